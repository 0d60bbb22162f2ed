"""The paper's tables as it prints them, our number beside each cell."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
from markupsafe import Markup

from dashboard import paper_tables
from records.models import Claim
from records.workspace import Workspace


def cell(model: str, split: str, claimed: float, **more: Any) -> dict[str, Any]:
    return {
        "paper_id": "p",
        "claim_id": f"p/{model}-{split}",
        "locator": "Table 2",
        "metric": "perplexity",
        "comparison": "=",
        "claimed": claimed,
        "measured": math.nan,
        "diverged": False,
        "verdict": "not run",
        "conditions": f'{{"model": "{model}", "split": "{split}", "lr": 0.1}}',
        "scale": None,
        **more,
    }


CELLS = [
    cell("A", "valid", 33.0, measured=43.47, verdict="direction reproduced", scale="reduced"),
    cell("A", "test", 34.1),
    cell("B", "valid", 260.0, comparison=">", measured=math.nan, diverged=True,
         verdict="not reproduced", scale="paper"),
]  # fmt: skip


def only(rows: list[dict[str, Any]], *, links: bool = False) -> str:
    ((_, body),) = paper_tables.tables(pd.DataFrame(rows), links=links)
    return str(body)


def texts(body: str, tag: str) -> list[str]:
    """Return the text of each cell of a kind, tags within it as spaces."""
    found = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", body)
    return [" ".join(Markup(re.sub("<[^>]+>", " ", text)).unescape().split()) for text in found]


def test_splits_stand_across_and_models_down() -> None:
    body = only(CELLS)
    assert texts(body, "th") == ["model", "valid", "test", "A", "B"]
    assert len(texts(body, "td")) == 4  # two models, two splits


def test_each_cell_has_both_numbers_and_the_verdict_in_words() -> None:
    body = only(CELLS)
    assert texts(body, "td") == ["33.0 ≈ 43.47 (reduced)", "34.1 ○ not run", "> 260 ✗ diverged", ""]
    assert 'aria-label="direction reproduced"' in body


def test_a_condition_that_is_the_same_in_all_rows_names_none() -> None:
    assert "lr" not in texts(only(CELLS), "th")


def test_a_cell_leads_to_its_claim_where_links_are_wanted() -> None:
    assert 'href="claims?paper=p&amp;claim=p%2FA-valid"' in only(CELLS, links=True)
    assert "href" not in only(CELLS)


def test_texts_of_the_store_are_escaped() -> None:
    body = only([cell("<script>x", "valid", 1.0)])
    assert "<script>" not in body
    assert "&lt;script&gt;x" in body


def test_tables_come_in_the_papers_order_and_hold_every_cell(fresh: Workspace) -> None:
    cells = paper_tables.cells(lambda sql: fresh.query(sql).frame(), "2102.11174")
    shown = dict(paper_tables.tables(cells, links=False))
    assert list(shown) == [f"Table {number}" for number in (1, 2, 3, 4, 5)]
    filled = sum(bool(text) for body in shown.values() for text in texts(str(body), "td"))
    assert filled == len(cells)
    results = cells[cells["metric"].isin(["bleu", "perplexity"])]
    assert len(results) == 14 + 20 + 8 + 12 + 10  # the numbers that Tables 1 to 5 print


def test_table_2_of_the_paper_is_laid_out_as_printed(fresh: Workspace) -> None:
    cells = paper_tables.cells(lambda sql: fresh.query(sql).frame(), "2102.11174")
    body = str(dict(paper_tables.tables(cells, links=False))["Table 2"])
    heads = texts(body, "th")
    columns = ["small valid", "small test", "medium valid", "medium test"]
    assert heads[:6] == ["model", "rule", *columns]
    first = [text.split()[0] for text in texts(body, "td")[:4]]
    assert first == ["33.0", "34.1", "27.9", "29.6"]  # Table 2, Transformer


def test_small_numbers_keep_their_digits() -> None:
    cells = [cell("A", "valid", 1e-5), cell("A", "test", 2.5e-6), cell("B", "valid", 3.0)]
    shown = [text.split()[0] for text in texts(only(cells), "td") if text]
    assert shown == ["0.0000100", "0.0000025", "3.0000000"]


def test_claims_of_equal_conditions_share_a_cell() -> None:
    cells = [cell("A", "valid", 1.0), cell("A", "valid", 2.0)]
    assert texts(only(cells), "td") == ["1 ○ not run 2 ○ not run"]


def test_a_table_of_an_absurd_number_is_no_table(fresh: Workspace) -> None:
    claim = fresh.query("SELECT * FROM claims WHERE locator = 'Table 2' LIMIT 1").dicts()[0]
    fresh.append(
        "import/absurd",
        [
            Claim(
                claim_id="absurd", paper_id=claim["paper_id"], kind="cost",
                locator="Table " + "9" * 30, statement="s", metric="m", claimed=1.0,
                conditions={}, evidence_id=claim["evidence_id"],
            )
        ],
    )  # fmt: skip
    cells = paper_tables.cells(lambda sql: fresh.query(sql).frame(), claim["paper_id"])
    assert "absurd" not in set(cells["claim_id"])
