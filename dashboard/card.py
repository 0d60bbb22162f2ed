"""The paper's card as escaped HTML, for the dashboard and the report: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pandas as pd
from markupsafe import Markup

from dashboard.frames import records
from dashboard.markup import badge, link

CARD_FIELDS = ("authors", "venue", "volume", "pages", "year", "first posted")


def paper_card(
    paper: Mapping[str, Any],
    statuses: pd.DataFrame,
    proceedings: pd.DataFrame,
    *,
    in_dashboard: bool = False,
) -> Markup:
    """Return the card: titles, the main fields with the status of each value, links.

    ``in_dashboard`` says whether the name of a field may lead to its story on the Evidence page.
    """
    record = str(paper["paper_id"]) if in_dashboard else None
    rows = records(statuses)
    titles = [row for row in rows if row["field"] == "title"]
    current = [row for row in titles if row["value"] == paper["title"]]
    return Markup('<div class="fwp-card"><h2>{}</h2>{}{}<dl>{}</dl></div>').format(
        paper["title"],
        _badge_line(current),
        _earlier_titles([row for row in titles if row["value"] != paper["title"]]),
        Markup("").join(
            [*(_term(f, record) for f in _fields(rows)), _links(paper, records(proceedings))]
        ),
    )


def _badge_line(rows: list[dict[str, Any]]) -> Markup:
    return Markup("").join(
        Markup('<div class="fwp-small">title: {}</div>').format(badge(row["status"]))
        for row in rows
    )


def _earlier_titles(rows: list[dict[str, Any]]) -> Markup:
    line = '<div class="fwp-small">also titled “{}” {}</div>'
    return Markup("").join(Markup(line).format(row["value"], badge(row["status"])) for row in rows)


def _fields(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    found = [(name, [row for row in rows if row["field"] == name]) for name in CARD_FIELDS]
    return [(name, values) for name, values in found if values]


def _term(field: tuple[str, list[dict[str, Any]]], record: str | None) -> Markup:
    name, rows = field
    shown = Markup("{}").format(name)
    if record is not None:
        address = "evidence?" + urlencode({"record": record, "field": name})
        shown = Markup('<a href="{}" target="_self" title="who says so">{}</a>').format(
            address, name
        )
    values = Markup("").join(
        Markup("<div><span>{}</span>{}{}</div>").format(
            row["value"], badge(row["status"]), _declared(row)
        )
        for row in rows
    )
    return Markup("<dt>{}</dt><dd>{}</dd>").format(shown, values)


def _declared(row: Mapping[str, Any]) -> Markup:
    if not row["declared"]:
        return Markup("")
    return Markup('<span class="fwp-small">(the record calls it {})</span>').format(row["declared"])


def _links(paper: Mapping[str, Any], proceedings: list[dict[str, Any]]) -> Markup:
    links = [link(row["url"], row["source"]) for row in proceedings]
    if paper["arxiv_id"]:
        arxiv = paper["arxiv_id"]
        links.insert(0, link(f"https://arxiv.org/abs/{arxiv}", f"arXiv {arxiv}"))
    elif paper["url"]:
        links.insert(0, link(paper["url"], str(paper["url"])))
    if not links:
        return Markup("")
    body = Markup("").join(Markup("<div>{}</div>").format(address) for address in links)
    return Markup("<dt>links</dt><dd>{}</dd>").format(body)
