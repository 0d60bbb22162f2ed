"""What was found of a bibliography, for people (table, Markdown) and for programs (JSON, SARIF)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from provenance.text import brief
from provenance.works import CitationFinding, CitationReport, CitationVerdict, Work
from records.exchange import printable, table
from records.models import Severity

FORMATS = ("table", "json", "markdown", "sarif")
VERDICTS: tuple[CitationVerdict, ...] = (
    "wrong",
    "outdated",
    "incomplete",
    "unverifiable",
    "correct",
)
CSV_COLUMNS = ("file", "entry", "existence", "verdict", "field", "outcome", "severity", "cited",
               "found", "source", "reason")  # fmt: skip
_COLUMNS = ("entry", "verdict", "field", "cited", "found", "says")
_LEVELS: dict[Severity | None, str] = {
    "wrong": "error",
    "outdated": "warning",
    "incomplete": "warning",
    "style": "note",
    None: "note",
}
_SARIF = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LONGEST = 300
"""Characters of one value that a table shows."""


@dataclass(frozen=True)
class Checked:
    """A bibliography or target, as the user named it, and a report for each of its references."""

    name: str
    reports: Sequence[CitationReport]


def render(checked: Sequence[Checked], form: str) -> str:
    """Return what was found of several bibliographies as one text, in one of ``FORMATS``."""
    if form == "json":
        return json.dumps({"files": [_document(c) for c in checked]}, ensure_ascii=False, indent=2)
    if form == "sarif":
        return _sarif(checked)
    draw = _markdown if form == "markdown" else _table
    return "\n\n".join(draw(c.reports, c.name) for c in checked)


def csv_rows(checked: Sequence[Checked]) -> list[tuple[Any, ...]]:
    """Return a row for each finding, and for a reference without any; see ``CSV_COLUMNS``."""
    rows: list[tuple[Any, ...]] = []
    for each in checked:
        for report in each.reports:
            head = (each.name, report.reference.key, report.existence, report.verdict)
            rows += [
                (*head, f.field, f.outcome, f.severity, f.cited, f.found, f.source, f.reason)
                for f in report.findings
            ] or [(*head, *[None] * (len(CSV_COLUMNS) - len(head)))]
    return rows


def amiss(report: CitationReport) -> list[CitationFinding]:
    """Return what speaks against a reference, the gravest first."""
    order = {"wrong": 0, "outdated": 1, "incomplete": 2, "style": 3, None: 4}
    found = [f for f in report.findings if f.outcome in ("contradicted", "absent")]
    return sorted(found, key=lambda finding: order[finding.severity])


def summary(reports: Sequence[CitationReport]) -> str:
    """Return how many references there are of each verdict, in one line."""
    count = Counter(report.verdict for report in reports)
    shares = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
    references = "1 reference" if len(reports) == 1 else f"{len(reports)} references"
    return f"{references}: {shares or 'none'}"


def silent(reports: Sequence[CitationReport]) -> dict[str, str]:
    """Return the sources that could not be asked, with the first reason that each gave."""
    found: dict[str, str] = {}
    for report in reports:
        for source, reason in report.silent.items():
            found.setdefault(source, reason)
    return found


def _rows(report: CitationReport) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for finding in amiss(report):
        label = finding.field + (f" ({finding.severity})" if finding.severity else "")
        found = finding.found if finding.found is not None else finding.reason
        rows.append((label, _short(finding.cited), _short(found), finding.source or ""))
    if not rows:
        rows = [("", "", _short(_why(report)), "; ".join(w.source for w in report.works[:3]))]
    head = [(report.reference.key, str(report.verdict))] + [("", "")] * (len(rows) - 1)
    return [(*start, *row) for start, row in zip(head, rows, strict=True)]


def _why(report: CitationReport) -> str:
    """Return why a reference with no fault has its verdict, or what an identifier names."""
    if report.reference.title is None and report.works:
        return _described(report.works)
    if report.verdict != "unverifiable":
        return ""
    if report.existence == "not found":
        return f"not found in {len(report.asked)} sources, which is no proof that it does not exist"
    if report.existence == "not checkable" and report.silent:
        return f"could not be looked up: no answer from {', '.join(report.silent)}"
    reasons = [f.reason for f in report.findings if f.outcome == "unavailable"]
    return reasons[0] if reasons else f"the work is {report.existence}"


def _described(works: Sequence[Work]) -> str:
    """Return a work in one line, with its place of publication if it has one."""
    place = next((w for w in works if w.venue), works[0])
    where = f"{place.venue} {place.year or ''}".strip() if place.venue else "a preprint"
    names = "; ".join(works[0].authors[:3]) + ("; ..." if len(works[0].authors) > 3 else "")
    return f"{works[0].title} ({names}; {where})"


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _gaps(reports: Sequence[CitationReport]) -> list[str]:
    """Return a line for each source that could not be asked."""
    return [f"{s}: {_short(brief(reason))}" for s, reason in silent(reports).items()]


def _table(reports: Sequence[CitationReport], name: str) -> str:
    rows = [row for report in reports for row in _rows(report)]
    parts = [table(_COLUMNS, rows, title=printable(name))] if rows else []
    gaps = _gaps(reports)
    if gaps:
        parts.append("Could not be asked\n" + "\n".join(f"  {printable(gap)}" for gap in gaps))
    return "\n\n".join([*parts, summary(reports)])


def _markdown(reports: Sequence[CitationReport], name: str) -> str:
    lines = [f"### {_escaped(name)}", "", summary(reports), ""]
    lines += [_markdown_row(_COLUMNS), _markdown_row(["---"] * len(_COLUMNS))]
    lines += [_markdown_row(map(_escaped, row)) for report in reports for row in _rows(report)]
    gaps = _gaps(reports)
    if gaps:
        lines += ["", "Could not be asked:", "", *(f"- {_escaped(gap)}" for gap in gaps)]
    return "\n".join(lines)


def _markdown_row(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is: no markup, no HTML, no link, no column."""
    line = printable(" ".join(text.split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", line)


def _document(checked: Checked) -> dict[str, Any]:
    count = Counter(report.verdict for report in checked.reports)
    return {
        "file": checked.name,
        "summary": {verdict: count[verdict] for verdict in VERDICTS},
        "unavailable_sources": silent(checked.reports),
        "references": [report.model_dump(mode="json") for report in checked.reports],
    }


def _sarif(checked: Sequence[Checked]) -> str:
    """Return SARIF 2.1.0 (OASIS), which code hosts show beside the lines of the bibliography."""
    results = [
        _sarif_result(report, finding, each.name)
        for each in checked
        for report in each.reports
        for finding in amiss(report)
    ]
    rules = [
        {
            "id": rule,
            "shortDescription": {"text": f"The {rule.partition('/')[2]} of a reference"},
        }
        for rule in dict.fromkeys(result["ruleId"] for result in results)
    ]
    driver = {"name": "fwp verify", "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(report: CitationReport, finding: CitationFinding, name: str) -> dict[str, Any]:
    found = f"; found: {_short(finding.found)}" if finding.found is not None else ""
    text = f"{report.reference.key}, {finding.field}: {_short(finding.reason)}{found}"
    place = {
        "artifactLocation": {"uri": quote(name.replace("\\", "/"))},
        "region": {"startLine": report.reference.line},
    }
    return {
        "ruleId": f"citation/{finding.field}",
        "level": _LEVELS[finding.severity],
        "message": {"text": printable(text)},
        "locations": [{"physicalLocation": place}],
        "properties": {
            "severity": finding.severity,
            "source": finding.source,
            "evidence": list(finding.evidence_ids),
        },
    }
