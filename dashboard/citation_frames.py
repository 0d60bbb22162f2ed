"""Frames of citation links into what the Citations page and the report show: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dashboard.citation_queries import ROLES
from dashboard.marks import labelled


def merged(links: pd.DataFrame) -> pd.DataFrame:
    """Return one row a link: where several sources list it, their names together."""
    columns = [name for name in links.columns if name not in ("source", "grade")]
    joined = links.groupby(columns, dropna=False, sort=False).agg(
        source=("source", _joined),
        grade=("grade", _best),
    )
    return joined.reset_index()[list(links.columns)]


def _joined(names: pd.Series) -> str:
    return "; ".join(dict.fromkeys(name for name in names if isinstance(name, str)))


def _best(grades: pd.Series) -> str | None:
    """Return captured where a source is, then transcribed; None where no source is known."""
    return min((grade for grade in grades if isinstance(grade, str)), default=None)


def keep_links(links: pd.DataFrame, role: str | None = None, text: str = "") -> pd.DataFrame:
    """Return the links of a role whose title, id, year or reason has every word of ``text``."""
    keep = pd.Series(True, index=links.index)
    if role:
        keep &= links["role"] == role
    texts = links[["title", "other_id", "reason"]].astype(object).fillna("")
    searched = texts.agg(" ".join, axis=1)
    searched = searched.str.cat(_years(links), sep=" ").str.casefold()
    for word in text.casefold().split():
        keep &= searched.str.contains(word, regex=False)
    return links[keep]


def links_table(links: pd.DataFrame) -> pd.DataFrame:
    """Return the table of links with their outcomes as symbol and word."""
    return pd.DataFrame(
        {
            "link": links["role"].map(ROLES),
            "year": _years(links),
            "title": links["title"],
            "paper": links["other_id"],
            "in the reference list": _outcomes(links["outcome"]),
            "dates": _outcomes(links["possible"]),
            "reason": links["reason"].astype(object).fillna("no check has looked at this link"),
            "listed by": links["source"],
            "url": links["url"],
        }
    )


def _outcomes(names: pd.Series) -> list[str]:
    return ["? not checked" if pd.isna(name) else labelled(name) for name in names]


def _years(links: pd.DataFrame) -> pd.Series:
    return links["year"].map(lambda year: "" if pd.isna(year) else str(int(year)))


def by_year(links: pd.DataFrame) -> pd.DataFrame:
    """Return the number of links of each role and year; links without a year are left out."""
    dated = links[links["year"].notna()]
    counts = dated.groupby(["year", "role"]).size().reset_index(name="papers")
    return counts.assign(year=counts["year"].astype(int), link=counts["role"].map(ROLES))


def graph(paper: Mapping[str, Any], links: pd.DataFrame) -> pd.DataFrame:
    """Return the nodes of the citation graph with a place for each.

    Across stands the year, up and down the place among the papers of that year: citing papers
    above the paper, cited ones below it. Columns ``title``, ``paper``, ``year``, ``lane``, ``link``
    (the role in words), ``found`` (outcome with its symbol), and ``from_year`` and ``from_lane``,
    where the paper itself stands. Papers without a year have no place and are left out.
    """
    columns = ["title", "paper", "year", "lane", "link", "found", "from_year", "from_lane"]
    year = paper.get("year")
    dated = links[links["year"].notna()]
    if year is None or dated.empty:
        return pd.DataFrame(columns=columns)
    place = dated.groupby(["role", "year"]).cumcount() + 1
    nodes = pd.DataFrame(
        {
            "title": dated["title"],
            "paper": dated["other_id"],
            "year": dated["year"].astype(int),
            "lane": place.where(dated["role"] == "cited by", -place),
            "link": dated["role"].map(ROLES),
            "found": _outcomes(dated["outcome"]),
        }
    )
    self_node = {
        "title": paper["title"], "paper": paper["paper_id"], "year": year, "lane": 0,
        "link": "the paper itself", "found": "",
    }  # fmt: skip
    nodes = pd.concat([nodes, pd.DataFrame([self_node])], ignore_index=True)
    return nodes.assign(from_year=year, from_lane=0)[columns]
