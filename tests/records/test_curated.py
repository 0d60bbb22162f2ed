from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from records.curated import load_folder, require_known_references, shipped_folders
from records.errors import DataError
from records.models import Assertion, Citation, Claim, Evidence, ListEntry, Paper, Record

EVIDENCE = """
[[evidence]]
evidence_id = "e"
source = "s"
authority = "note"
grade = "transcribed"
kind = "record"
"""


@pytest.fixture(scope="module")
def shipped() -> list[Record]:
    return [record for folder in shipped_folders() for record in load_folder(folder)]


def claims(records: list[Record], prefix: str) -> list[Claim]:
    return [r for r in records if isinstance(r, Claim) and r.claim_id.split("/")[1] == prefix]


def test_every_shipped_record_names_evidence_that_is_there(shipped: list[Record]) -> None:
    require_known_references(shipped)


def test_nothing_shipped_claims_to_be_captured(shipped: list[Record]) -> None:
    assert {r.grade for r in shipped if isinstance(r, Evidence)} == {"transcribed"}


def test_the_citation_map_is_there_with_thirty_links_each_way(shipped: list[Record]) -> None:
    # the map lists 30 of 41 references and 30 of 502 citing papers
    links = [r for r in shipped if isinstance(r, Citation)]
    assert Counter(c.citing_id == "2102.11174" for c in links) == {True: 30, False: 30}
    assert len([r for r in shipped if isinstance(r, Paper)]) == 61


@pytest.mark.parametrize(
    ("table", "cells"),
    [("table1", 14), ("table2", 20), ("table3", 8), ("table4", 12), ("table5", 10)],
)
def test_every_cell_of_a_table_is_a_claim(shipped: list[Record], table: str, cells: int) -> None:
    assert len(claims(shipped, table)) == cells


def test_a_bound_in_a_table_keeps_its_sign(shipped: list[Record]) -> None:
    # Table 4: the linear transformer with carried context has perplexity ">260"
    bounds = [c for c in claims(shipped, "table4") if c.comparison == ">"]
    assert [c.claimed for c in bounds] == [260, 260]


def test_every_logged_run_of_the_figures_is_a_claim(shipped: list[Record]) -> None:
    points = [
        r
        for r in shipped
        if isinstance(r, Claim)
        and r.evidence_id == "authors-synthetic-logs"
        and r.derivation is None
    ]
    assert len(points) == 320
    # 18 of the authors' logs end in NaN, all of them FAVOR+ with the delta rule
    diverging = [c for c in points if c.comparison == "diverges"]
    assert len(diverging) == 18
    assert {c.conditions["feature_map"] for c in diverging} == {"favor64", "favor128"}


def test_a_point_of_a_figure_has_the_loss_and_the_steps_of_its_log(shipped: list[Record]) -> None:
    # authors' log, dpfp1/ours (delta), 20 keys: best loss 0.0007664201 after 700 steps
    (point,) = [
        r
        for r in shipped
        if isinstance(r, Claim) and r.claim_id == "2102.11174/update-rule/dpfp1-delta-S20"
    ]
    assert point.claimed == 0.0007664201
    assert point.reference["steps"] == 700
    assert point.conditions["L"] == 40


def test_a_claim_that_is_compared_to_another_has_the_same_metric(shipped: list[Record]) -> None:
    by_id = {r.claim_id: r for r in shipped if isinstance(r, Claim)}
    compared = [c for c in by_id.values() if c.compared_to]
    assert compared
    for claim in compared:
        other = by_id[str(claim.compared_to)]
        assert (other.metric, other.kind) == (claim.metric, claim.kind)
        # a sentence of the text may be about rows of a table
        assert other.locator == claim.locator or claim.locator.startswith("Sec.")


@pytest.mark.parametrize(("list_id", "length"), [("list-iclr-2021", 860), ("list-icml-2021", 1183)])
def test_an_accepted_list_is_whole(shipped: list[Record], list_id: str, length: int) -> None:
    (evidence,) = [r for r in shipped if isinstance(r, Evidence) and r.evidence_id == list_id]
    entries = [r for r in shipped if isinstance(r, ListEntry) and r.evidence_id == list_id]
    assert evidence.facts["length"] == length
    assert [e.position for e in entries] == list(range(1, length + 1))


def test_both_values_of_the_venue_are_kept(shipped: list[Record]) -> None:
    venues = {r.value for r in shipped if isinstance(r, Assertion) and r.field == "venue"}
    assert venues == {"icml 2021", "iclr 2021"}


def load(tmp_path: Path, name: str, text: str) -> list[Record]:
    (tmp_path / name).write_text(text)
    return load_folder(tmp_path)


def test_broken_toml_names_the_file_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"bad\.toml: not valid TOML: .*line 2"):
        load(tmp_path, "bad.toml", "[[paper]]\ntitle = \n")


def test_a_bad_toml_record_names_file_line_and_field(tmp_path: Path) -> None:
    text = EVIDENCE + EVIDENCE.replace("transcribed", "guessed")
    with pytest.raises(
        DataError, match=r"e\.toml, line 9, \[\[evidence\]\] number 2: field 'grade'"
    ):
        load(tmp_path, "e.toml", text)


def test_an_unknown_table_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: \[\[papers\]\] is no record type; known: paper"):
        load(tmp_path, "x.toml", "[[papers]]\ntitle = 'x'\n")


def test_a_broken_json_line_names_file_and_line(tmp_path: Path) -> None:
    good = '{"type": "paper", "paper_id": "1", "title": "t", "evidence_id": "e"}'
    with pytest.raises(DataError, match=r"x\.jsonl, line 2: "):
        load(tmp_path, "x.jsonl", f"{good}\n{good[:-5]}\n")


def test_a_json_line_of_unknown_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.jsonl, line 1: field 'type' is 'papier'"):
        load(tmp_path, "x.jsonl", '{"type": "papier"}\n')


def test_a_bad_csv_cell_names_file_line_and_field(tmp_path: Path) -> None:
    text = "paper_id,title,year,evidence_id\n1,One,2020,e\n2,Two,soon,e\n"
    with pytest.raises(DataError, match=r"paper-x\.csv, line 3: field 'year': .*'soon'"):
        load(tmp_path, "paper-x.csv", text)


def test_a_csv_row_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"paper\.csv, line 2: .*cells"):
        load(tmp_path, "paper.csv", "paper_id,title,evidence_id\n1,One\n")


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="field 'titel'"):
        load(tmp_path, "paper.csv", "paper_id,title,titel,evidence_id\n1,One,Ein,e\n")


def test_a_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "paper.csv").write_bytes(b"paper_id,title,evidence_id\n1,J\xfcrgen,e\n")
    with pytest.raises(DataError, match=r"paper\.csv, line 2: not UTF-8"):
        load_folder(tmp_path)


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Evidence e is there twice"):
        load(tmp_path, "e.toml", EVIDENCE + EVIDENCE)


def test_evidence_that_is_nowhere_is_named() -> None:
    paper = Paper(paper_id="1", title="One", evidence_id="missing")
    with pytest.raises(DataError, match="Paper 1 names the evidence 'missing'"):
        require_known_references([paper])


def test_captured_evidence_needs_the_hash_of_its_bytes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sha256"):
        load(tmp_path, "e.toml", EVIDENCE.replace("transcribed", "captured"))


def test_a_dotted_column_fills_a_mapping_with_typed_values(tmp_path: Path) -> None:
    head = "claim_id,paper_id,kind,locator,statement,metric,claimed,evidence_id"
    row = "c,1,exact,here,it holds,error,0,e"
    text = f"{head},conditions.S,conditions.on\n{row},20,true\n"
    (claim,) = load(tmp_path, "claim.csv", text)
    assert isinstance(claim, Claim)
    assert claim.conditions == {"S": 20, "on": True}


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.toml, \.csv or \.jsonl file"):
        load_folder(tmp_path)


def test_a_csv_cell_may_span_lines(tmp_path: Path) -> None:
    (paper,) = load(tmp_path, "paper.csv", 'paper_id,title,evidence_id\n1,"One\ntitle",e\n')
    assert isinstance(paper, Paper)
    assert paper.title == "One\ntitle"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.toml", "a = " + "[" * 5000 + "]" * 5000),
        ("x.toml", "a = " + "9" * 5000),
        ("x.jsonl", "[" * 100000),
        ("x.jsonl", '{"type": ["paper"]}'),
        ("x.jsonl", '{"type": "check"}'),
        ("claim.csv", "conditions,conditions.x\n1,2\n"),
        ("paper.csv", "paper_id,title,title,evidence_id\n1,One,Two,e\n"),
    ],
)
def test_hostile_files_are_refused_with_a_message(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(DataError, match=rf"{name}"):
        load(tmp_path, name, text)


def test_a_run_needs_a_time_zone(tmp_path: Path) -> None:
    line = (
        '{"type": "run", "run_id": "r", "experiment": "x", "config": {}, "seed": 1, '
        '"code_version": "c", "environment": {}, "started": "2026-01-01T00:00:00", '
        '"finished": "2026-01-01T00:00:00Z", "metrics": []}'
    )
    with pytest.raises(DataError, match=r"field 'started'.*timezone"):
        load(tmp_path, "run.jsonl", line)


# cells read again from the paper's tables, apart from the files that hold them
@pytest.mark.parametrize(
    ("claim_id", "value"),
    [
        ("table1/performer-sum-d-dot-512-test", 27.7),
        ("table2/delta-network-small-test", 35.5),
        ("table2/performer-delta-medium-valid", 30.0),
        ("table3/delta-network-medium-pos-no-attn-norm-no-valid", 28.1),
        ("table4/transformer-xl-medium-state-m-6.29-test", 25.5),
        ("table5/dpfp-nu-1-delta-small-d-dot-256-valid", 33.9),
        ("cost/delta-network-small-words-per-second", 63000),
    ],
)
def test_a_cell_has_the_value_of_the_paper(
    shipped: list[Record], claim_id: str, value: float
) -> None:
    by_id = {r.claim_id: r for r in shipped if isinstance(r, Claim)}
    assert by_id[f"2102.11174/{claim_id}"].claimed == value
