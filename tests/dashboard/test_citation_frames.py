"""Citation links as table, graph and timeline."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from dashboard import citation_charts, citation_frames, citation_queries
from records.models import Check, Citation, Evidence, Record
from records.workspace import Workspace

PAPER = {"paper_id": "p", "title": "The paper", "year": 2021}
LINKS = pd.DataFrame(
    [
        ("cites", "a", "Attention", 2017, "https://a", "map", "transcribed", "confirmed", "in it"),
        ("cites", "b", "Bytes", 2017, None, "map", "transcribed", None, None),
        ("cited by", "c", "Delta rule", 2024, None, "map", "transcribed", "absent", "not in it"),
        ("cited by", "c", "Delta rule", 2024, None, "API", "captured", "absent", "not in it"),
        ("cited by", "d", "Undated", math.nan, None, "map", "transcribed", None, None),
    ],
    columns=[
        "role", "other_id", "title", "year", "url", "source", "grade", "outcome", "reason",
    ],
).assign(possible="confirmed", dates="possible")  # fmt: skip


@pytest.fixture
def links() -> pd.DataFrame:
    return citation_frames.merged(LINKS)


def test_a_link_that_two_sources_list_is_one_row_with_the_better_grade(links: pd.DataFrame) -> None:
    row = links[links["other_id"] == "c"]
    assert row[["source", "grade"]].to_numpy().tolist() == [["map; API", "captured"]]
    assert len(links) == 4


@pytest.mark.parametrize(
    ("role", "text", "kept"),
    [
        (None, "", "abcd"),
        ("cites", "", "ab"),
        (None, "DELTA 2024", "c"),
        ("cites", "delta", ""),
        (None, "not", "c"),
    ],
)
def test_links_are_kept_by_role_and_words(
    links: pd.DataFrame, role: str | None, text: str, kept: str
) -> None:
    assert "".join(citation_frames.keep_links(links, role, text)["other_id"]) == kept


def test_the_table_says_what_was_and_was_not_checked(links: pd.DataFrame) -> None:
    table = citation_frames.links_table(links).set_index("paper")
    assert table.loc["a", "in the reference list"] == "✓ confirmed"
    assert table.loc["b", "in the reference list"] == "? not checked"
    assert table.loc["b", "reason"] == "no check has looked at this link"
    assert (table.loc["a", "year"], table.loc["d", "year"]) == ("2017", "")


def test_the_graph_gives_every_dated_paper_a_place_of_its_own(links: pd.DataFrame) -> None:
    nodes = citation_frames.graph(PAPER, links)
    assert set(nodes["paper"]) == {"a", "b", "c", "p"}
    assert not nodes.duplicated(["year", "lane"]).any()
    lanes = dict(zip(nodes["paper"], nodes["lane"], strict=True))
    assert lanes["p"] == 0 < lanes["c"]
    assert max(lanes["a"], lanes["b"]) < 0
    assert set(zip(nodes["from_year"], nodes["from_lane"], strict=True)) == {(2021, 0)}


@pytest.mark.parametrize("paper", [{**PAPER, "year": None}, PAPER])
def test_a_graph_without_dates_is_empty(paper: dict[str, Any], links: pd.DataFrame) -> None:
    kept = links if paper["year"] is None else links[links["year"].isna()]
    assert citation_frames.graph(paper, kept).empty


def test_years_are_counted_by_role(links: pd.DataFrame) -> None:
    counts = citation_frames.by_year(links)
    assert counts[["year", "role", "papers"]].to_numpy().tolist() == [
        [2017, "cites", 2],
        [2024, "cited by", 1],
    ]


def test_the_graph_draws_an_edge_and_a_point_a_paper(links: pd.DataFrame) -> None:
    nodes = citation_frames.graph(PAPER, links)
    spec = citation_charts.graph(nodes).to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rule", "point"]
    assert all(len(rows) == len(nodes) for rows in spec["datasets"].values())


def test_the_timeline_draws_a_bar_a_year_and_role(links: pd.DataFrame) -> None:
    spec = citation_charts.timeline(citation_frames.by_year(links)).to_dict()
    (layer,) = spec["layer"]
    fields = {name: layer["encoding"][name]["field"] for name in ("x", "y", "color")}
    assert fields == {"x": "year", "y": "papers", "color": "link"}


def records_of(outcome: str, value: str | None) -> list[Record]:
    return [
        Evidence(evidence_id="m", source="M", authority="note", grade="transcribed", kind="note"),
        Citation(citing_id="2102.11174", cited_id="new", evidence_id="m", position=1),
        Check(
            rule="citation-link", rule_version=1, paper_id="2102.11174", field="citation",
            value=value, outcome=outcome, reason="why", evidence_ids=("m",), grade="transcribed",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "value"), [("confirmed", "2102.11174 cites new"), ("unavailable", None)]
)
def test_the_store_tells_of_a_link_and_of_the_check_of_its_list(
    fresh: Workspace, outcome: str, value: str | None
) -> None:
    fresh.append("verify/2102.11174", records_of(outcome, value))
    links = citation_queries.links(lambda sql: fresh.query(sql).frame(), "2102.11174")
    (row,) = links[links["other_id"] == "new"].to_dict("records")
    assert (row["role"], row["title"], row["source"]) == ("cites", "new", "M")
    assert (row["outcome"], row["reason"]) == (outcome, "why")


def test_every_link_of_the_store_is_one_row(fresh: Workspace) -> None:
    links = citation_queries.links(lambda sql: fresh.query(sql).frame(), "2102.11174")
    (count,) = fresh.query("SELECT count(*) FROM citations").rows[0]
    assert len(citation_frames.merged(links)) == len(links) == count


def test_a_link_of_an_unknown_source_is_still_a_link() -> None:
    unknown = LINKS.iloc[[2]].assign(source=math.nan, grade=math.nan)
    links = citation_frames.merged(pd.concat([LINKS, unknown]))
    assert links.loc[links["other_id"] == "c", "source"].tolist() == ["map; API"]
