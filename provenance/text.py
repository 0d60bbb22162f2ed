"""What verification found, as text for people: pure."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from records.exchange import printable
from records.models import Check, Status

if TYPE_CHECKING:
    from provenance.verify import PaperReport

_MARKS = {
    "verified": "+",
    "refuted": "x",
    "outdated": "o",
    "contested": "?",
    "unverified": "-",
}


def reports_text(reports: Sequence[PaperReport], width: int = 100) -> str:
    """Return the statuses, findings and gaps of several papers as one text.

    A paper against which nothing was found is only counted where there are several.
    """
    shown = [r for r in reports if r.findings or len(reports) == 1]
    parts = [
        f"{_line(r.paper_id)}  {_line(r.title)}\n\n{statuses_text(r.statuses, width)}"
        for r in shown
    ]
    findings = [c for r in reports for c in r.findings]
    parts.append(findings_text(findings, width))
    parts.append(gaps_text([c for r in reports for c in r.unavailable], width))
    parts.append(_summary(reports))
    return "\n\n".join(parts)


def brief(reason: str) -> str:
    """Return why a source was silent, with addresses cut to their beginning."""
    return re.sub(r"(https?://[^ ]{40})[^ ;]{12,}", r"\g<1>...", reason)


def _line(text: str) -> str:
    """Return a text on one line, without what a terminal would obey."""
    return printable(" ".join(text.split()))


def statuses_text(statuses: Sequence[Status], width: int = 100) -> str:
    """Return every asserted value under its field, with its status and the reason for it."""
    fields: dict[str, list[Status]] = defaultdict(list)
    for status in statuses:
        fields[status.field].append(status)
    return "\n".join(
        "\n".join([_line(field), *(_status_text(status, width) for status in group)])
        for field, group in fields.items()
    )


def _status_text(status: Status, width: int) -> str:
    grade = f"  [{status.grade}]" if status.grade else ""
    head = f"  {_MARKS[status.status]} {status.status:<10}  {_line(status.value)}{grade}"
    return f"{head}\n{_indented(status.reason, width, 16)}"


def asked_text(answered: Sequence[str], silent: Mapping[str, str]) -> str:
    """Return which sources were asked, which could not be, and on what the findings rest then."""
    lines = []
    if answered:
        lines.append(f"Answered, now or in the archive: {', '.join(answered)}.")
    if silent:
        lines.append("Could not be asked, so what is on record stands:")
        lines += [f"  {source}: {_line(brief(reason))}" for source, reason in silent.items()]
    return "\n".join(lines or ["No source needed to be asked."])


def findings_text(findings: Sequence[Check], width: int = 100) -> str:
    """Return each finding with its severity, its reason, its evidence and the evidence's grade."""
    if not findings:
        return "Findings: nothing speaks against what is recorded."
    lines = [f"Findings ({len(findings)})"]
    for check in findings:
        value = f" = {_line(check.value)}" if check.value else ""
        subject = _line(f"{check.paper_id} {check.field}")
        lines.append(f"  {check.severity or check.outcome:<10}  {subject}{value}")
        lines.append(_indented(check.reason, width, 14))
        basis = ", ".join(check.evidence_ids) or "none"
        lines.append(_indented(f"evidence ({check.grade or 'no grade'}): {basis}", width, 14))
    return "\n".join(lines)


def gaps_text(unavailable: Sequence[Check], width: int = 100) -> str:
    """Return what could not be checked, one entry a rule with the number of checks."""
    if not unavailable:
        return "Everything that the rules ask for could be checked."
    by_rule: dict[str, list[Check]] = defaultdict(list)
    for check in unavailable:
        by_rule[check.rule].append(check)
    lines = [f"Could not be checked ({len(unavailable)})"]
    for rule, checks in by_rule.items():
        example = checks[0].reason if len(checks) == 1 else f"for example: {checks[0].reason}"
        lines.append(f"  {len(checks):>4}  {rule}")
        lines.append(_indented(example, width, 8))
    return "\n".join(lines)


def _indented(text: str, width: int, by: int) -> str:
    return textwrap.fill(
        _line(text), max(width, by + 40), initial_indent=" " * by, subsequent_indent=" " * by
    )


def _summary(reports: Sequence[PaperReport]) -> str:
    values = Counter(s.status for report in reports for s in report.statuses)
    counted = ", ".join(f"{count} {name}" for name, count in values.most_common())
    papers = "1 paper" if len(reports) == 1 else f"{len(reports)} papers"
    return f"{papers}; asserted values: {counted or 'none'}"
