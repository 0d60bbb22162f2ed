"""``fwp bench verify``: how well citations are judged, counted on labelled ones.

Two sets: real citations with labels (``data/citation_cases.jsonl``), and citations made from known
works by changing one thing in each (``made_citations``). All are read as a bibliography is and held
against ``known_works``; no source is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from provenance.bibliography import parse_bibliography
from provenance.citation_checks import duplicates, judge
from provenance.known_works import DATA, known_works
from provenance.made_citations import make_citations
from provenance.works import CitationReport, CitationVerdict, ReferenceFormat

LEAST_DETECTED, MOST_FALSE_ALARMS = 0.95, 0.02
"""What is aimed at, as rates; the best published checker has 0.884 and 0.042."""

_FAULTY = ("wrong", "outdated", "incomplete")


@dataclass(frozen=True)
class Case:
    """A labelled citation: the texts of a list, the verdict on its last, and the faulty fields."""

    case_id: str
    form: ReferenceFormat
    raw: tuple[str, ...]
    verdict: CitationVerdict
    fields: tuple[str, ...] = ()
    kind: str = "real"


@dataclass(frozen=True)
class Outcome:
    """A case and what was made of it."""

    case: Case
    report: CitationReport

    @property
    def is_faulty(self) -> bool:
        """Whether the citation has a fault that can be seen."""
        return self.case.verdict in _FAULTY

    @property
    def is_flagged(self) -> bool:
        """Whether the verdict speaks of a fault; what is left out alarms nobody."""
        return self.report.verdict in (_FAULTY if self.is_faulty else ("wrong", "outdated"))

    @property
    def is_detected(self) -> bool:
        """Whether a faulty citation was flagged for a labelled field."""
        faults = {f.field for f in self.report.findings if f.severity not in (None, "style")}
        return self.is_faulty and self.is_flagged and bool(faults & set(self.case.fields))

    @property
    def is_right(self) -> bool:
        """Whether the verdict is the labelled one, and a fault was seen in a labelled field."""
        right = self.report.verdict == self.case.verdict
        return right and (self.is_detected or not self.is_faulty)


@dataclass(frozen=True)
class Tally:
    """Outcomes, counted."""

    faulty: int
    detected: int
    sound: int
    false_alarms: int
    right: int

    @property
    def recall(self) -> float | None:
        """Share of the faulty that were flagged for the right field."""
        return self.detected / self.faulty if self.faulty else None

    @property
    def precision(self) -> float | None:
        """Share of the alarms that were justified."""
        alarms = self.detected + self.false_alarms
        return self.detected / alarms if alarms else None

    @property
    def false_alarm_rate(self) -> float | None:
        """Share of the sound, and of those that nobody can check, that were flagged."""
        return self.false_alarms / self.sound if self.sound else None

    @property
    def meets_targets(self) -> bool:
        """Whether enough was detected at few enough false alarms."""
        enough = self.recall is None or self.recall >= LEAST_DETECTED
        return enough and (self.false_alarm_rate or 0) <= MOST_FALSE_ALARMS


@dataclass(frozen=True)
class Quality:
    """The outcomes of all cases."""

    outcomes: tuple[Outcome, ...]

    def tally(self, kinds: Iterable[str] | None = None) -> Tally:
        """Return the counts for cases of some kinds, or of all."""
        wanted = None if kinds is None else set(kinds)
        outcomes = [o for o in self.outcomes if wanted is None or o.case.kind in wanted]
        sound = [o for o in outcomes if not o.is_faulty]
        return Tally(
            faulty=len(outcomes) - len(sound),
            detected=sum(o.is_detected for o in outcomes),
            sound=len(sound),
            false_alarms=sum(o.is_flagged for o in sound),
            right=sum(o.is_right for o in outcomes),
        )

    @property
    def kinds(self) -> list[str]:
        """The kinds of cases, in order."""
        return list(dict.fromkeys(o.case.kind for o in self.outcomes))

    def misses(self) -> list[Outcome]:
        """Return the outcomes that are not as labelled."""
        return [o for o in self.outcomes if not o.is_right]


def quality(each: int = 40, seed: int = 0) -> Quality:
    """Judge the real citations and ``each`` made ones for every kind of change."""
    return measure([*real_cases(), *made_cases(each, seed)])


def real_cases() -> list[Case]:
    """Return the labelled citations that ship with the project."""
    lines = (DATA / "citation_cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Case(c["id"], c["format"], tuple(c["raw"]), c["verdict"], tuple(c["fields"]))
        for c in map(json.loads, lines)
    ]


def made_cases(each: int = 40, seed: int = 0) -> list[Case]:
    """Return made citations, ``each`` for every kind of change; the same for the same seed."""
    return [
        Case(
            f"{made.kind.name} {made.number}",
            made.form,
            (made.raw,),
            made.kind.verdict,
            (made.kind.field,) if made.kind.field else (),
            made.kind.name,
        )
        for made in make_citations(each, seed)
    ]


def measure(cases: Sequence[Case]) -> Quality:
    """Judge every case by the known works."""
    return Quality(tuple(Outcome(case, _judged(case)) for case in cases))


def _judged(case: Case) -> CitationReport:
    reports = []
    for n, raw in enumerate(case.raw, start=1):
        reference = parse_bibliography(raw, case.form)[0]
        reference = reference.model_copy(update={"key": f"{case.case_id}-{n}", "position": n})
        works = known_works().candidates(reference)
        reports.append(judge(reference, works, ["known works"], {}))
    return duplicates(reports)[-1]


# As text


def quality_table(measured: Quality) -> str:
    """Return a table by kind of case, with the targets, and below it what was not as labelled."""
    made = [kind for kind in measured.kinds if kind != "real"]
    rows = [_row(kind, measured.tally([kind])) for kind in made]
    rows += [("", "", "", "", "")]
    rows += [_row("real citations", measured.tally(["real"])), _row("made", measured.tally(made))]
    head = ("citations", "cases", "detected", "false alarms", "verdict right")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
             for row in (head, *rows)]  # fmt: skip
    return "\n".join([*lines, "", *_summary(measured), *map(_miss, measured.misses())])


def _row(name: str, tally: Tally) -> tuple[str, ...]:
    return (
        name,
        str(tally.faulty + tally.sound),
        f"{tally.detected} of {tally.faulty}" if tally.faulty else "-",
        f"{tally.false_alarms} of {tally.sound}" if tally.sound else "-",
        str(tally.right),
    )


def _summary(measured: Quality) -> list[str]:
    made = [kind for kind in measured.kinds if kind != "real"]
    lines = []
    for name, kinds in (("real", ["real"]), ("made", made)):
        tally = measured.tally(kinds)
        rates = {
            "recall": tally.recall,
            "precision": tally.precision,
            "false alarms": tally.false_alarm_rate,
        }
        shown = ", ".join(f"{k} {100 * v:.1f} %" for k, v in rates.items() if v is not None)
        met = "met" if tally.meets_targets else "missed"
        lines.append(
            f"{name}: {shown}; target at least {100 * LEAST_DETECTED:.0f} % detected at "
            f"{100 * MOST_FALSE_ALARMS:.0f} % false alarms or fewer: {met}"
        )
    return lines


def _miss(outcome: Outcome) -> str:
    case, report = outcome.case, outcome.report
    faults = ", ".join(f"{f.field} {f.severity}" for f in report.findings if f.severity) or "none"
    return (
        f"not as labelled: {case.case_id}: {report.verdict} instead of {case.verdict} "
        f"(existence: {report.existence}; faults: {faults})"
    )


def as_json(measured: Quality) -> dict[str, Any]:
    """Return the counts by kind of case, and the cases that are not as labelled."""
    return {
        "kinds": {kind: _counts(measured.tally([kind])) for kind in measured.kinds},
        "misses": [
            {"case": o.case.case_id, "labelled": o.case.verdict, "verdict": o.report.verdict}
            for o in measured.misses()
        ],
    }


def _counts(tally: Tally) -> dict[str, float | None]:
    return {
        "faulty": tally.faulty,
        "detected": tally.detected,
        "sound": tally.sound,
        "false_alarms": tally.false_alarms,
        "right": tally.right,
        "recall": tally.recall,
        "precision": tally.precision,
        "false_alarm_rate": tally.false_alarm_rate,
    }
