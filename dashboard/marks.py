"""Symbols, words and colours of verdicts, statuses, outcomes and severities.

A colour never stands alone: each name has a symbol too, and is always printed beside it. The
colours keep apart for the common kinds of colour blindness.
"""

from __future__ import annotations

from typing import NamedTuple

BLUE, SKY, VERMILION, GREY, ORANGE = "#0072b2", "#56b4e9", "#d55e00", "#9aa0a6", "#e69f00"
SERIES = (BLUE, ORANGE, "#009e73", "#cc79a7", VERMILION, SKY, "#7f7f7f", "#b8a800")
SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "cross",
    "triangle-left",
    "triangle-right",
)


class Mark(NamedTuple):
    """How one name is shown: ``on_colour`` is the text colour that reads on ``colour``."""

    symbol: str
    colour: str
    on_colour: str = "#ffffff"


UNKNOWN = Mark("·", GREY, "#000000")
VERDICTS = {
    "reproduced": Mark("✓", BLUE),
    "direction reproduced": Mark("≈", SKY, "#000000"),
    "not reproduced": Mark("✗", VERMILION, "#000000"),
    "not run": Mark("○", GREY, "#000000"),
}
NOT_JUDGED = "not judged"
"""How a claim is shown that a run has measured and that no rule could decide; see its reason."""
MEANINGS = {
    "reproduced": "a run under the claim's own conditions measured the claimed value, within the "
    "tolerance that the reason states.",
    "direction reproduced": "the runs are of a smaller scale, so their values are not compared; "
    "they come in the order that the paper claims, beyond the spread of the seeds.",
    "not reproduced": "the claim was measured, and its value or order is another.",
    "not run": "no run has measured the claim.",
    NOT_JUDGED: "a run has measured it, and what it would be compared with is missing.",
}
STATUSES = {
    "verified": Mark("✓", BLUE),
    "contested": Mark("⇄", ORANGE, "#000000"),
    "refuted": Mark("✗", VERMILION, "#000000"),
    "outdated": Mark("↺", SKY, "#000000"),
    "unverified": Mark("?", GREY, "#000000"),
}
OUTCOMES = {
    "confirmed": Mark("✓", BLUE),
    "contradicted": Mark("✗", VERMILION, "#000000"),
    "absent": Mark("∅", ORANGE, "#000000"),
    "unavailable": Mark("?", GREY, "#000000"),
    "not_applicable": UNKNOWN,
}
SEVERITIES = {
    "wrong": Mark("✗", VERMILION, "#000000"),
    "outdated": Mark("↺", SKY, "#000000"),
    "incomplete": Mark("◐", ORANGE, "#000000"),
    "style": Mark("¶", GREY, "#000000"),
}
GRADES = {"captured": Mark("▣", BLUE), "transcribed": Mark("✎", GREY, "#000000")}
_ALL = {NOT_JUDGED: VERDICTS["not run"], **GRADES, **SEVERITIES, **OUTCOMES, **VERDICTS, **STATUSES}


def mark(name: str | None) -> Mark:
    """Return how a verdict, status, outcome, severity or grade is shown."""
    return _ALL.get(name or "", UNKNOWN)


def labelled(name: str | None) -> str:
    """Return ``name`` as plain text with its symbol in front; nothing for no name."""
    return f"{mark(name).symbol} {name.replace('_', ' ')}" if name else ""
