"""Claims against the paper's own text: is the number that was written down the one printed there.

A claim names a table or section and describes its row and column in words. A number is found only
where it stands in that row and column, or in a sentence of that section that has the claim's words;
that the number occurs elsewhere proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from provenance.case import Case, Finding
from provenance.match import fold
from records.models import Claim, Evidence

_SCALES = (1.0, 1e3, 1e6, 1e-2)
"""A claim in units can be printed in thousands, millions or per cent."""

_ALIASES = {"valid": "validation", "val": "validation", "params": "parameters", "dim": "size"}
_COMMON = frozenset(
    ("the", "of", "and", "with", "for", "in", "on", "is", "a", "an", "by", "to", "at", "model")
)


def claim_transcription(case: Case) -> Iterator[Finding]:
    """Yield one finding for each claim whose place in the paper's text can be told."""
    texts = [e for e in case.about("paper-text") if e.grade == "captured"]
    for claim in case.store.claims:
        if claim.paper_id == case.paper_id and claim.claimed is not None and texts:
            finding = _finding(claim, texts[-1])
            if finding is not None:
                yield finding


def _finding(claim: Claim, text: Evidence) -> Finding | None:
    """Return what the paper's text says of a claim; None where the claim names no such place."""
    table = re.match(r"Table (\w+)", claim.locator)
    section = re.match(r"(?:Sec\.|App\.) ([\w.]+)", claim.locator)
    if table:
        grids = [t for t in text.facts.get("tables", []) if t.get("label") == f"Table {table[1]}"]
        found = [_in_table(claim, grid["rows"]) for grid in grids]
    elif section:
        found = [_in_section(claim, text.facts.get("passages", []), section[1].rstrip(","))]
    else:
        return None
    place = next((f for f in found if f is not None), None)
    field, value = f"claim {claim.claim_id}", f"{claim.claimed:g}"
    if place is None:
        reason = f"{claim.locator}: its row or sentence could not be told in the paper's text"
        return Finding(field, value, "unavailable", reason, [text.evidence_id])
    printed, same = place
    if same:
        reason = f"{claim.locator} has it: {printed}"
        return Finding(field, value, "confirmed", reason, [text.evidence_id], found=printed)
    reason = f"{claim.locator} has another number: {printed}"
    return Finding(field, value, "contradicted", reason, [text.evidence_id], "wrong", printed)


# Tables


def _in_table(claim: Claim, rows: Sequence[Sequence[str]]) -> tuple[str, bool] | None:
    """Return the row and column that a claim describes, and whether its number is there.

    None where no row, or more than one, fits best. A row is described by its words and by those of
    the headings above; a number of the row that the claim states as a condition counts too.
    """
    header = [row for row in rows if not any(_number(cell) is not None for cell in row)]
    body = [row for row in rows if any(_number(cell) is not None for cell in row)]
    if not body:
        return None
    wanted = _described(claim)
    scores = [_row_score(row, wanted) for row in body]
    best = max(scores)
    rows_ = [row for row, score in zip(body, scores, strict=True) if score == best]
    if best <= 0 or len(rows_) > 1:
        return None
    columns = _columns(rows_[0], header, wanted)
    if not columns:
        return None
    printed = [rows_[0][c] for c in columns]
    same = any(_equal(cell, float(claim.claimed or 0)) for cell in printed)
    strange = {w for cell in rows_[0] if _number(cell) is None for w in _tokens(cell)} - wanted
    if not same and (len(columns) > 1 or strange - _COMMON):
        return None  # too little is sure to call the claim wrong
    label = " | ".join(cell for cell in rows_[0] if cell and _number(cell) is None)
    return f"{label}: {' or '.join(printed)}", same


def _described(claim: Claim) -> set[str]:
    conditions = " ".join(f"{k} {v}" for k, v in claim.conditions.items() if v is not None)
    return _tokens(f"{claim.statement} {conditions}") - _COMMON


def _tokens(text: str) -> set[str]:
    spaced = re.sub(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)", " ", text)
    return {_ALIASES.get(word, word) for word in fold(spaced).split()}


def _row_score(row: Sequence[str], wanted: set[str]) -> int:
    """Return how many words of a row's labels are wanted, less those that are not."""
    words = {w for cell in row if _number(cell) is None for w in _tokens(cell)} - _COMMON
    return len(words & wanted) - len(words - wanted)


def _columns(row: Sequence[str], header: Sequence[Sequence[str]], wanted: set[str]) -> list[int]:
    """Return the columns of a row's numbers whose headings fit best; several if none is told."""
    numbers = [c for c, cell in enumerate(row) if _number(cell) is not None]
    titles = {
        c: {w for heads in header if c < len(heads) for w in _tokens(heads[c])} - _COMMON
        for c in numbers
    }
    scores = {c: len(titles[c] & wanted) for c in numbers}
    best = max(scores.values(), default=0)
    return [c for c in numbers if scores[c] == best]


def _number(text: str) -> float | None:
    """Return the number that a cell consists of; a spread and a unit may follow it."""
    bare = re.sub(r"\s*(?:±|\+/-).*$|[*†‡<>≤≥~]|\(.*\)", "", text).strip()
    match = re.fullmatch(r"[-−]?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\s*(%|[kKMB])?", bare)
    if match is None:
        return None
    return float(f"{match[1].replace(',', '')}{match[2] or ''}")


def _equal(text: str, claimed: float) -> bool:
    """Tell whether a printed number is the claimed one, in its own decimals and some unit."""
    printed = _number(text)
    if printed is None:
        return False
    return any(abs(printed * scale - claimed) <= 1e-9 * max(1.0, abs(claimed)) for scale in _SCALES)


# Sections


def _in_section(
    claim: Claim, passages: Sequence[dict[str, Any]], section: str
) -> tuple[str, bool] | None:
    """Return the sentence of a section that has the claim's number and its words; else None."""
    wanted = {w for w in _described(claim) if not w.isdigit()}
    for passage in passages:
        text = str(passage.get("text", ""))
        if passage.get("section") != section or len(_tokens(text) & wanted) < 2:
            continue
        numbers = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:\s?[kKMB%])?(?![\w.]*\d)", text)
        if any(_equal(_scaled(number), float(claim.claimed or 0)) for number in numbers):
            return text, True
    return None


def _scaled(number: str) -> str:
    """Return a number with a unit as one without: "40M" is 40,000,000."""
    match = re.fullmatch(r"([\d,]+(?:\.\d+)?)\s?([kKMB%])?", number.strip())
    if match is None or match[2] in (None, "%"):
        return number
    factor = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}[match[2]]
    return f"{float(match[1].replace(',', '')) * factor:.0f}"
