"""The story of one field as escaped HTML: who asserts what, then what the checks found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dashboard.markup import badge, link, marked

Row = Mapping[str, Any]


def story(
    said: Sequence[Row], found: Sequence[Row], declared: Sequence[Row], sources: Mapping[str, Row]
) -> Markup:
    """Return the list of steps: assertions as given, a declared status, findings, where it ends.

    Args:
        said: assertions of the field with their sources, in the order of being said.
        found: the checks of the field.
        declared: what the record itself says of the field's status.
        sources: evidence by id, for the findings.
    """
    steps = [
        *map(_assertion, said),
        *map(_declared, declared),
        *(_finding(row, sources) for row in found),
        *_ends(said),
    ]
    items = Markup("").join(Markup("<li>{}</li>").format(step) for step in steps)
    return Markup('<ol class="fwp-story">{}</ol>').format(items)


def _assertion(row: Row) -> Markup:
    basis = Markup(", on the ground of: {}").format(row["basis"]) if row["basis"] else ""
    return Markup("{} says: <strong>{}</strong>{}{}").format(
        link(row["url"], row["source"] or "an unknown source"),
        row["value"],
        basis,
        _source(row, str(row["value"])),
    )


def _declared(row: Row) -> Markup:
    return Markup("The record itself declares the field <strong>{}</strong> ({})").format(
        row["value"], row["source"] or "an unknown source"
    )


def _finding(row: Row, sources: Mapping[str, Row]) -> Markup:
    value = Markup(" <strong>{}</strong>").format(row["value"]) if row["value"] else ""
    severity = Markup(" {}").format(badge(row["severity"])) if row["severity"] else ""
    value_text = str(row["value"] or "")
    named = [sources[i] for i in row["evidence_ids"] or () if i in sources]
    cited = Markup("").join(_cited(source, value_text) for source in named)
    return Markup("{}{}{}<div>{}</div>{}").format(
        badge(row["outcome"]), value, severity, row["reason"], cited
    )


def _cited(row: Row, value: str) -> Markup:
    return Markup('<div class="fwp-small">source: {}</div>{}').format(
        link(row["url"], row["source"]), _source(row, value)
    )


def _source(row: Row, value: str) -> Markup:
    """Return how a source was read, and its excerpt with the words of ``value`` marked."""
    read = f"read {row['read_on']}" if row["read_on"] else "day of reading not recorded"
    said = row["excerpt"]
    excerpt = Markup("<div><q>{}</q></div>").format(marked(said, value)) if said else ""
    note = Markup("<div>{}</div>").format(row["note"]) if row["note"] else ""
    return Markup('<div class="fwp-small">{} · {}{}{}</div>').format(
        badge(row["grade"]), read, excerpt, note
    )


def _ends(said: Sequence[Row]) -> list[Markup]:
    values = {row["value"]: row for row in said}
    return [
        Markup("Where it stands: <strong>{}</strong> {}<div class='fwp-small'>{}</div>").format(
            value, badge(row["status"]), row["reason"] or ""
        )
        for value, row in values.items()
    ]


def source_card(row: Row) -> Markup:
    """Return one source: who it is, when and how it was read, its words, its hash, its address."""
    digest = Markup("<div>sha256 <code>{}</code></div>").format(row["sha256"])
    return Markup('<div class="fwp-card">{}<div>{} ({})</div>{}</div>').format(
        _source(row, ""),
        link(row["url"], row["source"]),
        row["authority"],
        digest if row["sha256"] else "",
    )
