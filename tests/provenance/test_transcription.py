"""Claims looked up in the paper's own text; the page is made as LaTeXML makes pages."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from provenance.case import Case, Store
from provenance.live import paper_text_of
from provenance.sources.paper_text import parse_paper
from provenance.transcription import claim_transcription
from provenance.works import Answer
from records.archive import Capture
from records.curated import shipped_folders
from records.errors import UnreadableAnswer
from records.models import Claim, Paper
from records.workspace import Workspace

PAPER_ID = "2102.11174"


def page(
    rows: Sequence[Sequence[str]], body: str = "", caption: str = "Table 2: Results."
) -> bytes:
    """A page with Table 2 of the paper: model, rule, and perplexities by size and split."""
    cells = "".join(
        "<tr>" + "".join(f'<td class="ltx_td">{cell}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"""<html><body><article class="ltx_document">
<figure class="ltx_table" id="S6.T2"><figcaption class="ltx_caption"><span class="ltx_tag">Table 2:
</span>{caption.partition(":")[2]}</figcaption><table class="ltx_tabular"><thead>
<tr><th></th><th>Update</th><th colspan="2">small</th><th colspan="2">medium</th></tr>
<tr><th></th><th>Rule</th><th>Valid</th><th>Test</th><th>Valid</th><th>Test</th></tr>
</thead><tbody>{cells}</tbody></table></figure>
<section class="ltx_section" id="S6"><h2><span class="ltx_tag">6 </span>Experiments</h2>
<section class="ltx_subsection"><h3><span class="ltx_tag">6.3 </span>Language Modelling</h3>
<div class="ltx_para"><p class="ltx_p">{body}</p></div></section></section>
</article></body></html>""".encode()


ROWS = (  # paper, Table 2
    ("Transformer", "-", "33.0", "34.1", "27.9", "29.6"),
    ("Linear Transformer", "sum", "37.1", "38.3", "31.1", "33.0"),
    ("Delta Network", "delta", "34.1", "35.5", "29.7", "31.5"),
    ('<span class="ltx_text">Performer</span>', "sum", "39.0", "39.6", "32.2", "33.8"),
    ("Performer", "delta", "36.1", "37.2", "30.0", "31.8"),
)


def store(body: bytes, claims: Sequence[Claim]) -> Store:
    capture = Capture(
        evidence_id="warc:0-0", source="arXiv HTML", url="https://arxiv.org/html/x",
        final_url="https://arxiv.org/html/x", status=200, fetched=datetime.now(UTC),
        media_type="text/html", sha256="0" * 64, size=len(body), file="x",
    )  # fmt: skip
    paper = Paper(paper_id=PAPER_ID, title="T", arxiv_id=PAPER_ID, evidence_id="x")
    return Store.of([paper, paper_text_of(Answer(capture, body), PAPER_ID), *claims])


def outcomes(body: bytes, claims: Sequence[Claim]) -> dict[str, str]:
    found = claim_transcription(Case(PAPER_ID, store(body, claims)))
    return {f.field.removeprefix(f"claim {PAPER_ID}/"): f.outcome for f in found}


@pytest.fixture(scope="module")
def shipped(seeded_home: object) -> list[Claim]:
    workspace = Workspace(seeded_home)  # type: ignore[arg-type]
    return [r for r in workspace.records() if isinstance(r, Claim)]


def in_table(claims: Sequence[Claim], table: str) -> list[Claim]:
    return [c for c in claims if c.locator == table and c.claimed is not None]


def test_every_number_of_table_2_is_found_in_its_row_and_column(shipped: list[Claim]) -> None:
    claims = in_table(shipped, "Table 2")
    assert len(claims) == 20
    assert set(outcomes(page(ROWS), claims).values()) == {"confirmed"}


def test_a_number_that_stands_elsewhere_only_is_a_mismatch(shipped: list[Claim]) -> None:
    """34.1 is in two rows of Table 2; where the Delta Network's own is another, that counts."""
    rows = [row if row[0] != "Delta Network" else (*row[:2], "34.2", *row[3:]) for row in ROWS]
    found = outcomes(page(rows), in_table(shipped, "Table 2"))
    assert found.pop("table2/delta-network-small-valid") == "contradicted"
    assert set(found.values()) == {"confirmed"}


def test_a_row_that_is_not_there_is_open(shipped: list[Claim]) -> None:
    found = outcomes(page(ROWS[:3]), in_table(shipped, "Table 2"))
    assert found["table2/performer-delta-medium-test"] == "unavailable"


def test_of_two_rows_with_one_label_none_is_taken(shipped: list[Claim]) -> None:
    found = outcomes(page((*ROWS, ROWS[2])), in_table(shipped, "Table 2"))
    assert found["table2/delta-network-small-valid"] == "unavailable"


def test_a_claim_of_the_text_needs_number_and_words_in_its_section(shipped: list[Claim]) -> None:
    [claim] = [c for c in shipped if c.claim_id.endswith("/exact/parameters-small")]
    said = "Our small language models have 40M trainable parameters."
    assert outcomes(page(ROWS, said), [claim]) == {claim.claim_id.split("/", 1)[1]: "confirmed"}
    other = "There were 40M cells in our small garden."
    assert set(outcomes(page(ROWS, other), [claim]).values()) == {"unavailable"}


def test_claims_of_figures_are_not_looked_for_in_the_text(shipped: list[Claim]) -> None:
    claims = [c for c in shipped if c.locator == "Fig. 2"]
    assert outcomes(page(ROWS), claims) == {}


def test_a_spread_and_marks_do_not_hide_a_number(shipped: list[Claim]) -> None:
    rows = [(*row[:2], f"{row[2]} ± 0.1", f"<b>{row[3]}</b>*", *row[4:]) for row in ROWS]
    assert set(outcomes(page(rows), in_table(shipped, "Table 2")).values()) == {"confirmed"}


def test_the_tables_of_the_record_are_those_of_the_tests() -> None:
    """The rows above are the curated claims', so the first test cannot pass by accident."""
    [place] = [f for f in shipped_folders() if f.name == PAPER_ID]
    with (place / "claim-tables.csv").open(encoding="utf-8", newline="") as file:
        values = [r["claimed"] for r in csv.DictReader(file) if r["locator"] == "Table 2"]
    assert sorted(values) == sorted(cell for row in ROWS for cell in row[2:])


def test_a_cell_over_several_rows_counts_for_each() -> None:
    body = page([("Performer", "sum", "1.0", "2.0", "3.0", "4.0")])
    body = body.replace(b'<td class="ltx_td">Performer</td>', b'<td rowspan="2">Performer</td>')
    body = body.replace(b"</tr></tbody>", b"</tr><tr><td>delta</td><td>5.0</td></tr></tbody>")
    [table] = parse_paper(body).tables
    assert table.rows[-1] == ("Performer", "delta", "5.0")


def test_formulas_are_read_from_their_tex() -> None:
    body = page(ROWS, 'It takes <math alttext="d_{\\mathrm{dot}}=256">x</math> dimensions.')
    [passage] = parse_paper(body).passages
    assert passage.text == "It takes d_dot=256 dimensions."
    assert passage.section == "6.3"


@pytest.mark.parametrize("body", [b"", b"<html><p>Conversion failed</p></html>", b"\x00\xff"])
def test_a_page_of_another_kind_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableAnswer):
        parse_paper(body)


def test_markup_in_a_table_is_text_and_nothing_else() -> None:
    [table] = parse_paper(page([("<script>alert(1)</script>", "x", "1", "2", "3", "4")])).tables
    assert "<" not in "".join(cell for row in table.rows for cell in row)
