"""What tables show of the store's frames, and how the store's texts become HTML."""

from __future__ import annotations

import math
from decimal import Decimal

import pandas as pd
import pytest

from dashboard import frames
from dashboard.markup import badge, command_markdown, link, marked, plain_markdown, safe_url

CLAIMS = pd.DataFrame(
    {
        "claim_id": ["p/a", "p/b"],
        "locator": ["Fig. 2", "Table 3"],
        "kind": ["synthetic", "language_model"],
        "statement": ["ELU+1 errs (S = 60)", "perplexity is 35.6"],
        "metric": ["eval_loss", "perplexity"],
        "comparison": [">", "diverges"],
        "claimed": [0.01, math.nan],
        "measured": [0.0212345, math.nan],
        "diverged": [False, True],
        "spread": [math.nan, math.nan],
        "seeds": [[1], []],
        "verdict": ["reproduced", "not run"],
        "reason": ["r", "s"],
        "run_ids": [["x"], []],
    }
)


def test_claims_table_tells_a_divergence_from_nothing() -> None:
    table = frames.claims_table(CLAIMS)
    assert list(table["claimed"]) == ["> 0.01", "diverges"]
    assert list(table["measured"]) == ["0.02123", "diverged"]
    assert list(table["spread"]) == ["", ""]
    assert list(table["verdict"]) == ["✓ reproduced", "○ not judged"]


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ({}, ["p/a", "p/b"]),
        ({"kinds": ["synthetic"]}, ["p/a"]),
        ({"locators": ["Table 3"], "verdicts": ["reproduced"]}, []),
        ({"text": "ELU s"}, ["p/a"]),
        ({"text": "(S"}, ["p/a"]),
        ({"text": ".*"}, []),
    ],
)
def test_filters_hold_together_and_text_is_no_pattern(
    filters: dict[str, object], kept: list[str]
) -> None:
    assert list(frames.keep_claims(CLAIMS, **filters)["claim_id"]) == kept  # type: ignore[arg-type]


def test_coverage_table_adds_up() -> None:
    coverage = pd.DataFrame(
        {
            "kind": ["exact", "exact", "cost"],
            "verdict": ["reproduced", "not run", "not run"],
            "claims": [2, 1, 5],
        }
    )
    table = frames.coverage_table(coverage)
    assert table.to_numpy().tolist() == [
        ["exact", 3, 2, 0, 0, 1],
        ["cost", 5, 0, 0, 0, 5],
        ["all", 8, 2, 0, 0, 6],
    ]


def test_showable_turns_what_tables_cannot_hold_into_text() -> None:
    frame = pd.DataFrame(
        {"list": [["a", "b"], None], "huge": [2**80, 1], "mixed": [{"a": 1}, Decimal("1.5")]},
        dtype=object,
    )
    shown = frames.showable(frame)
    assert shown["list"][0] == "a; b"
    assert frames.is_missing(shown["list"][1])
    assert shown["huge"][0] == str(2**80)
    assert list(shown["mixed"]) == ['{"a": 1}', "1.5"]


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "ftp://a/b", "//a/b", "http:", "http://[", None, 3],
)
def test_only_http_addresses_become_links(url: object) -> None:
    assert safe_url(url) is None
    assert link(url, "<i>text</i>") == "&lt;i&gt;text&lt;/i&gt;"


def test_html_pieces_escape_what_they_are_given() -> None:
    assert "<script" not in badge("<script>")
    assert link('https://a/"><script>', "t").count("<") == 2


def test_plain_markdown_escapes_every_sign() -> None:
    assert plain_markdown("[a](b)\n:red[x] $y$ <b>") == r"\[a\]\(b\) \:red\[x\] \$y\$ \<b\>"


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("ICML 2021, v139", "icml 2021", "<mark>ICML</mark> <mark>2021</mark>, v139"),
        ("<b>Bold</b> & on", "bold", "&lt;b&gt;<mark>Bold</mark>&lt;/b&gt; &amp; on"),
        ("Jürgen", "JÜRGEN", "<mark>Jürgen</mark>"),
        ("nothing", "", "nothing"),
    ],
)
def test_words_that_match_are_marked_and_all_is_escaped(text: str, value: str, wanted: str) -> None:
    assert marked(text, value) == wanted


def run_row(run_id: str, config: str, code: str = "c") -> dict[str, object]:
    return {
        "run_id": run_id,
        "seed": 1,
        "code_version": code,
        "config": config,
        "environment": "{}",
    }


def test_runs_differ_in_what_is_not_the_same_in_all_of_them() -> None:
    runs = pd.DataFrame([run_row("a", '{"S": 20, "lr": 1}'), run_row("b", '{"S": 40, "lr": 1}')])
    shown = frames.differences(runs)
    assert shown.to_numpy().tolist() == [["config: S", "20", "40"]]
    assert list(shown.columns) == ["setting", "a", "b"]


def test_a_setting_that_one_run_lacks_is_a_difference() -> None:
    runs = pd.DataFrame([run_row("a", "{}"), run_row("b", '{"S": 40}', code="d")])
    assert frames.differences(runs)["setting"].tolist() == ["code version", "config: S"]


def test_a_parquet_file_gives_the_rows_back() -> None:
    import io

    frame = pd.DataFrame({"a": [1, 2], "names": [["x", "y"], ["z"]]})
    read = pd.read_parquet(io.BytesIO(frames.parquet(frame)))
    assert read.to_dict("list") == {"a": [1, 2], "names": ["x; y", "z"]}


def test_changes_stand_as_before_and_now() -> None:
    changes = pd.DataFrame(
        {"subject": ["venue: icml"], "before": [None], "after": ["verified"], "kind": ["status"]}
    )
    assert frames.changes_table(changes).to_numpy().tolist() == [["venue: icml", "–", "✓ verified"]]


def test_decimals_are_numbers_where_no_digit_is_lost() -> None:
    frame = pd.DataFrame({"short": [Decimal("1.5"), None], "long": [Decimal(10) ** 20 + 1, None]})
    shown = frames.showable(frame)
    assert shown["short"].tolist()[0] == 1.5
    assert shown["short"].dtype == float
    assert shown["long"].tolist()[0] == "100000000000000000001"


def test_keys_and_mixed_values_become_text() -> None:
    import io

    frame = pd.DataFrame({"map": [{1.5: 2}], "a": [1]}, dtype=object)
    mixed = pd.DataFrame({"u": [1, "x"]}, dtype=object)
    assert frames.showable(frame)["map"].tolist() == ['{"1.5": 2}']
    assert pd.read_parquet(io.BytesIO(frames.parquet(mixed)))["u"].tolist() == ["1", "x"]


def test_a_command_stays_code_whatever_it_holds() -> None:
    assert command_markdown("fwp rerun a` ![](http://x)") == "`fwp rerun a' ![](http://x)`"
