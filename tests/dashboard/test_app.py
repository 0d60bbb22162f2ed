"""Every page by Streamlit's own test driver: no exception, and the store's numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import dashboard.app
from dashboard import frames, titles
from dashboard.archived import PART
from dashboard.launch import command
from provenance.evidence import Archive, Exchange
from records.models import Evidence, Run
from records.questions import ready_questions
from records.workspace import Workspace

APP = str(Path(dashboard.app.__file__))
PAGES = [name for name, _ in titles.PAGES]
TITLES = dict(titles.PAGES)


def opened(name: str, **address: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=60).run()
    if name != PAGES[0]:
        at.switch_page(f"views/{name}.py")
    for key, value in address.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception
    assert [title.value for title in at.title] == [TITLES[name]]
    return at


def texts(at: AppTest) -> str:
    kinds = (at.text, at.code, at.caption, at.markdown, at.error, at.warning, at.info)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_a_new_workspace_say_what_to_do(homed: Workspace, name: str) -> None:
    at = opened(name)
    assert not at.error
    if name in {"overview", "evidence", "citations", "runs"}:
        assert "fwp " in texts(at)


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_a_filled_workspace(homed: Workspace, filled: Workspace, name: str) -> None:
    assert not opened(name).error


@pytest.mark.parametrize("name", PAGES)
def test_hostile_texts_break_no_page(homed: Workspace, hostile: Workspace, name: str) -> None:
    at = opened(name, paper="0-hostile", record="0-hostile")
    assert not at.error
    assert not any("<script" in str(element.proto) for element in at.get("html"))


def test_overview_shows_the_stores_numbers(homed: Workspace, filled: Workspace) -> None:
    metrics = {metric.label: metric.value for metric in opened("overview").metric}
    reproduced, run, claims = filled.query(
        "SELECT sum(reproduced), sum(claims - not_run), sum(claims) FROM claim_coverage"
    ).rows[0]
    assert metrics["Claims run"] == f"{run} of {claims}"
    assert metrics["Reproduced"] == str(reproduced) != "0"


def test_overview_lists_what_could_not_be_checked(homed: Workspace, filled: Workspace) -> None:
    frames_shown = [element.value for element in opened("overview").dataframe]
    assert "reason of unavailable" in frames_shown[-1]["reason"].to_list()


def test_claims_filters_narrow_the_table(homed: Workspace, filled: Workspace) -> None:
    at = opened("claims", verdict="reproduced")
    (count,) = filled.query("SELECT count(*) FROM side_by_side WHERE verdict = 'reproduced'").rows[
        0
    ]
    assert len(at.dataframe[0].value) == count > 0
    at.text_input(key="words").input("no claim says this").run()
    assert "0 of" in texts(at)
    assert not at.exception


def test_a_claims_detail_shows_value_reason_and_signature(
    homed: Workspace, filled: Workspace
) -> None:
    claim = filled.query(
        "SELECT s.*, r.signature FROM side_by_side s JOIN runs r ON list_contains(run_ids, run_id) "
        "ORDER BY claim_id DESC LIMIT 1"
    ).dicts()[0]
    shown = texts(opened("claims", claim=claim["claim_id"]))
    assert claim["statement"] in shown
    assert claim["reason"] in shown
    assert claim["signature"] in shown
    assert frames.measured_text(claim["measured"]) in shown


def test_evidence_tells_the_story_of_any_field(homed: Workspace, filled: Workspace) -> None:
    at = opened("evidence", field="title")
    story = "".join(str(element.proto) for element in at.get("html"))
    for outcome in ("confirmed", "contradicted", "absent", "unavailable"):
        assert f"reason of {outcome}" in story


def test_runs_show_a_run_written_meanwhile(homed: Workspace, run_of: Callable[..., Run]) -> None:
    at = opened("runs")
    run = run_of("some/claim", "loss", 0.125)
    homed.append("run/new", [run])
    at.run()
    assert run.signature in texts(at)
    at.multiselect(key="compared").select(run.run_id).run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == 2  # among those compared, and that of the run


def test_runs_tell_shipped_ones_from_those_made_here(
    homed: Workspace, run_of: Callable[..., Run]
) -> None:
    run = run_of("some/claim", "loss", 0.125)
    shipped = run_of("other/claim", "loss", 0.5).model_copy(update={"shipped": True})
    homed.append("run/new", [run, shipped])
    at = opened("runs")
    origins = at.dataframe[0].value.set_index("run")["origin"].to_dict()
    assert origins == {run.run_id: "made here", shipped.run_id: "shipped"}
    kept = opened("runs", origin="shipped").dataframe[0].value
    assert kept["run"].to_list() == [shipped.run_id]


_FACET = json.dumps('"facet"')[1:-1]


def chart_specs(at: AppTest) -> list[str]:
    return [str(element.proto) for element in at.get("vega_lite_chart")]


def test_the_figures_follow_the_chosen_mode(
    homed: Workspace, two_modes: tuple[Workspace, dict[str, Any]]
) -> None:
    one = "1 measured point"
    for mode in ("weightiest", "authors", "ours"):
        at = opened("claims", part="figures", mode=mode)
        assert at.radio(key="mode").value == mode
        assert one in texts(at)
    other = opened("claims", part="figures", mode="ours", figure="update-rule")
    assert "--stream ours" in texts(other)  # the other experiment was not measured by our seeds


def test_the_figures_can_be_drawn_a_panel_a_model(
    homed: Workspace, two_modes: tuple[Workspace, dict[str, Any]]
) -> None:
    assert not any(_FACET in spec for spec in chart_specs(opened("claims", part="figures")))
    at = opened("claims", part="figures", panels="on", log="on")
    assert any(_FACET in spec for spec in chart_specs(at))


def test_curves_over_training_start_at_the_smallest_size(
    homed: Workspace, two_modes: tuple[Workspace, dict[str, Any]]
) -> None:
    at = opened("claims", part="figures", mode="ours", figure="update-rule")
    assert at.selectbox(key="size-update-rule").value == "20"
    four = {"dpfp1 · sum", "tanh · fwm", "dpfp1 · fwm", "dpfp1 · delta"}  # the rules of Fig. 3
    assert set(at.multiselect(key="lines-update-rule-20").value) == four
    assert "3 runs of the mode" in texts(
        opened("claims", part="figures", mode="ours", figure="capacity")
    )
    at.selectbox(key="size-update-rule").select("40").run()
    assert not at.exception


def test_a_claim_with_a_log_shows_it_with_or_without_runs(
    homed: Workspace, two_modes: tuple[Workspace, dict[str, Any]]
) -> None:
    workspace, measured = two_modes
    other = workspace.query(
        "SELECT claim_id FROM logged_curves JOIN verdicts USING (claim_id) "
        "WHERE verdict = 'not run' LIMIT 1"
    ).rows[0][0]
    for claim_id in (measured["claim_id"], other):
        assert "Thin line: the authors' training log" in texts(opened("claims", claim=claim_id))


def test_knees_and_modes_are_tables_of_the_claims_page(
    homed: Workspace, two_modes: tuple[Workspace, dict[str, Any]]
) -> None:
    at = opened("claims", part="capacity")
    shown = [subheader.value for subheader in at.subheader]
    assert "How many associations each model holds" in shown
    assert "What holds by the runs of one mode alone" in shown
    tables = [set(element.value.columns) for element in at.dataframe]
    assert any({"model", "from the authors' logs"} <= columns for columns in tables)
    (misses,) = [e.value for e in at.dataframe if {"mode", "reason"} <= set(e.value.columns)]
    assert set(misses["mode"]) == {"the authors' streams", "our seeds"}


def test_recall_against_state_says_where_no_run_has_measured_it(homed: Workspace) -> None:
    literature = homed.query(
        "SELECT count(*) FROM claims WHERE metric = 'accuracy' "
        "AND conditions->>'state_bytes' IS NOT NULL"
    ).rows[0][0]
    at = opened("claims", part="recall")
    assert ("fwp rerun pareto" in texts(at)) is (literature > 0)


def test_the_statement_stands_in_the_address_and_is_answered(homed: Workspace) -> None:
    at = opened("sql", q="SELECT 40 + 2 AS answer")
    assert at.dataframe[0].value["answer"].to_list() == [42]
    at.text_area(key="q").input("SELECT 7 AS seven").run()
    assert at.query_params["q"] in ("SELECT 7 AS seven", ["SELECT 7 AS seven"])
    assert at.dataframe[0].value["seven"].to_list() == [7]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY papers TO '/tmp/fwp-papers.csv'",
        "ATTACH '/tmp/fwp-other.duckdb'",
        "INSTALL httpfs",
        "SET memory_limit = '1GB'",
    ],
)
def test_the_sql_page_refuses_what_leaves_the_store(homed: Workspace, statement: str) -> None:
    at = opened("sql", q=statement)
    assert at.error
    assert not at.dataframe
    assert "root:" not in texts(at)


def test_a_large_result_is_paged(homed: Workspace) -> None:
    at = opened("sql", q="SELECT * FROM range(2500)")
    assert "rows 1 to 1000: there are more" in texts(at)
    at.number_input(key="page").set_value(3).run()
    assert "rows 2001 to 2500: the last" in texts(at)
    assert at.dataframe[0].value.iloc[0, 0] == 2000
    assert at.query_params["page"] == "3"
    at.text_area(key="q").set_value("SELECT 1").run()
    assert "1 row" in [text.value for text in at.text]
    assert "page" not in at.query_params


def test_every_kind_of_value_can_be_shown(homed: Workspace) -> None:
    values = (
        "[1, 2]",
        "{'a': 1}",
        "MAP {'k': 1.5}",
        "2::HUGEINT ** 100",
        "uuid()",
        "INTERVAL 3 DAY",
        "'ab'::BLOB",
        "'NaN'::DOUBLE",
        "NULL",
        "1.25::DECIMAL(9, 2)",
        "TIME '12:00'",
        "now()",
        "true",
    )
    nulls = ", ".join(["NULL"] * len(values))
    at = opened(
        "sql", q=f"SELECT {', '.join(values)}, 1 AS a, 2 AS a UNION ALL SELECT {nulls}, 1, 2"
    )
    assert not at.error
    assert at.dataframe[0].value.shape == (2, len(values) + 2)


def test_a_ready_question_fills_the_editor(homed: Workspace) -> None:
    question = ready_questions()[1]
    at = opened("sql")
    at.selectbox(key="question").select(question.title).run()
    assert at.text_area(key="q").value == question.sql
    assert not at.error


def test_an_unusable_workspace_is_a_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, homed: Workspace
) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("FWP_HOME", str(tmp_path / "file"))
    at = AppTest.from_file(APP, default_timeout=60).run()
    assert not at.exception
    assert "FWP_HOME" in texts(at)


def test_rows_can_be_drawn_as_the_address_says(homed: Workspace) -> None:
    at = opened("sql", q="SELECT kind, claims FROM claim_coverage", draw="bars", x="kind")
    (spec,) = chart_specs(at)
    assert "bar" in spec
    assert (at.selectbox(key="x").value, at.selectbox(key="y").value) == ("kind", "claims")


@pytest.mark.parametrize("page", ["0", "-1", "x", "1e9", "²", "9" * 5_000])
def test_an_unusable_page_number_is_the_first_page(homed: Workspace, page: str) -> None:
    at = opened("sql", q="SELECT * FROM range(1500)", page=page)
    assert not at.exception
    assert "rows 1 to 1000" in texts(at)


def test_the_overview_tells_what_the_last_session_changed(
    homed: Workspace, filled: Workspace
) -> None:
    at = opened("overview")
    changes = filled.query("SELECT count(*) FROM changes WHERE kind = 'verdict'").rows[0][0]
    assert changes >= 6  # the claims that the fixture's runs have measured
    assert f"{changes} verdicts and" in texts(at)
    shown = [e.value for e in at.dataframe if list(e.value.columns) == ["of", "before", "now"]]
    assert (shown[0]["before"].iloc[0], shown[0]["now"].iloc[0]) == ("○ not run", "✓ reproduced")


def test_the_claims_page_shows_one_of_the_papers_tables(homed: Workspace) -> None:
    at = opened("claims", part="tables", table="Table 3")
    body = "".join(str(element.proto) for element in at.get("html"))
    assert "Table 3: perplexity" in body
    assert "Table 2: perplexity" not in body


def test_citations_are_narrowed_by_the_address(homed: Workspace) -> None:
    shown = opened("citations", role="cited by", words="kimi").dataframe[0].value
    assert shown["link"].unique().tolist() == ["citing the paper"]
    assert len(shown) == 2  # Kimi Linear and Kimi K3, in the citation map
    assert "no link is proved" in texts(opened("citations"))


def captured(workspace: Workspace, body: bytes, media_type: str) -> str:
    """Archive an answer and put it on record; return its id."""
    url = "https://example.org/page"
    exchange = Exchange("S", url, url, 200, (), (("Content-Type", media_type),), body)
    kept = Archive(workspace.home / "evidence").store(exchange)
    record = Evidence(
        evidence_id=kept.evidence_id, source="S", authority="note", grade="captured", kind="page",
        url=url, sha256=kept.sha256,
    )  # fmt: skip
    workspace.append("import/captured", [record])
    return kept.evidence_id


def test_archived_text_is_shown_in_parts(homed: Workspace) -> None:
    body = "a" * PART + "the end"
    at = opened("evidence", source=captured(homed, body.encode(), "text/plain"))
    assert "The sha256 is right" in texts(at)
    assert "the end" not in texts(at)
    at.number_input(key="part").set_value(2).run()
    assert "the end" in texts(at)


def test_archived_bytes_that_are_no_text_are_not_shown(homed: Workspace) -> None:
    at = opened("evidence", source=captured(homed, b"%PDF-1.7 secret", "application/pdf"))
    assert "no text" in texts(at)
    assert "secret" not in texts(at)


def test_a_damaged_archive_is_told(homed: Workspace) -> None:
    evidence_id = captured(homed, b"x", "text/plain")
    (path,) = (homed.home / "evidence").iterdir()
    path.write_bytes(b"damaged")
    at = opened("evidence", source=evidence_id)
    assert "The archived bytes cannot be shown." in texts(at)
    assert "is damaged" in texts(at)


def test_runs_side_by_side_show_in_what_they_differ(
    homed: Workspace, two_modes: tuple[Workspace, dict[str, Any]]
) -> None:
    ids = [row[0] for row in homed.query("SELECT run_id FROM runs ORDER BY run_id").rows][:2]
    at = opened("runs")
    at.multiselect(key="compared").set_value(ids).run()
    assert not at.exception
    settings = next(e.value for e in at.dataframe if "setting" in e.value.columns)
    assert set(settings.columns) == {"setting", *ids}
    numbers = next(e.value for e in at.dataframe if {"name", *ids} == set(e.value.columns))
    assert numbers["name"].to_list() == ["eval_loss"]


def test_the_memory_page_says_what_each_rule_returns(homed: Workspace) -> None:
    at = opened("memory", pairs="A=3 A=7", d="4", beta="1")
    (row,) = at.dataframe[0].value.to_dict("records")
    assert row == {
        "key": "A", "last written": 7, "sum": "✗ 3 or 7", "gated sum": "✓ 7", "delta": "✓ 7",
    }  # fmt: skip
    at.text_input(key="pairs").set_value("A3").run()
    assert "is no pair" in texts(at)
    at.button_group(key="example").set_value("Two keys, apart").run()
    assert at.text_input(key="pairs").value == "A=3 B=5"


@pytest.mark.parametrize("value", ["nan", "inf", "-5", "x", "1e300"])
def test_numbers_of_the_address_are_brought_into_their_range(homed: Workspace, value: str) -> None:
    at = opened("memory", d=value, beta=value)
    assert 2 <= at.slider(key="d").value <= 32
    assert 0 <= at.slider(key="beta").value <= 1


def test_only_the_memory_page_loads_torch(fresh: Workspace) -> None:
    code = (
        "import sys, dashboard.app\n"
        "from streamlit.testing.v1 import AppTest\n"
        "at = AppTest.from_file(dashboard.app.__file__, default_timeout=60).run()\n"
        "for name in sys.argv[1:]:\n"
        "    at.switch_page(f'views/{name}.py').run()\n"
        "    assert not at.exception, name\n"
        "    print(name, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *PAGES[1:]],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FWP_HOME": str(fresh.home)},
    )
    loaded = [line.split()[0] for line in done.stdout.splitlines() if line.endswith("True")]
    assert loaded == ["memory"]


@pytest.mark.parametrize(
    ("name", "key"), [("claims", "claim"), ("evidence", "record"), ("evidence", "source")]
)
def test_an_address_of_something_that_is_not_there_is_told(
    homed: Workspace, name: str, key: str
) -> None:
    at = opened(name, **{key: "no-such-thing"})
    assert any("no\\-such\\-thing" in str(w.value) for w in at.warning)


def test_a_number_of_a_smaller_scale_is_marked_as_such(
    homed: Workspace, run_of: Callable[..., Run]
) -> None:
    claim = "2102.11174/table2/delta-network-small-valid"
    run = run_of(claim, "perplexity", 34.15)
    small = tuple(m.model_copy(update={"scale": "reduced"}) for m in run.metrics)
    homed.append("run/small", [run.model_copy(update={"metrics": small})])
    at = opened("claims", claim=claim)
    assert any("Measured at the scale" in str(w.value) for w in at.warning)
    assert not any("claimed 34.1" in spec for spec in chart_specs(at))
    (row,) = [
        row for row in at.dataframe[0].value.to_dict("records") if "Delta Network" in row["claim"]
        and row["measured"]
    ]  # fmt: skip
    assert row["verdict"] == "○ not judged"  # alone, it has no order


def test_no_sentence_of_the_code_is_on_a_page() -> None:
    assert "--runner.magicEnabled=false" in command("localhost", 1)


def test_the_chosen_paper_stays_chosen_on_the_next_page(
    homed: Workspace, hostile: Workspace
) -> None:
    at = opened("claims", paper="0-hostile")
    at.selectbox(key="paper").select("2102.11174").run()
    at.switch_page("views/citations.py").run()
    assert at.selectbox(key="paper").value == "2102.11174"
    at.selectbox(key="paper").select("0-hostile").run()
    at.switch_page("views/overview.py").run()
    assert at.selectbox(key="paper").value == "0-hostile"
    assert at.query_params["paper"] == "0-hostile"


def test_pairs_are_never_markdown(homed: Workspace) -> None:
    (note,) = opened("memory", pairs="![](http://127.0.0.1:9/x.png)").info
    assert "![](" not in note.value


def test_a_number_of_the_address_is_put_onto_its_step(homed: Workspace) -> None:
    at = opened("memory", d="7.6", passes="1.5")
    assert at.slider(key="d").value == 8
    assert at.slider(key="passes").value in (1, 2)


def test_a_hash_that_is_not_that_of_the_bytes_is_told(homed: Workspace) -> None:
    evidence_id = captured(homed, b"x", "text/plain")
    record = Evidence(
        evidence_id=evidence_id, source="S", authority="note", grade="captured", kind="page",
        sha256="f" * 64,
    )  # fmt: skip
    homed.append("import/wrong-hash", [record])
    shown = texts(opened("evidence", source=evidence_id))
    assert "names another sha256" in shown
    assert "The sha256 is right" not in shown


def test_the_same_run_is_compared_once_and_eight_at_most(
    homed: Workspace, run_of: Callable[..., Run]
) -> None:
    runs = [run_of("some/claim", "loss", 1.0, suffix=f"-{n}") for n in range(10)]
    homed.append("run/ten", runs)
    at = AppTest.from_file(APP, default_timeout=60).run()
    at.switch_page("views/runs.py")
    at.query_params["compared"] = [runs[0].run_id] * 2 + [run.run_id for run in runs]
    at.run()
    assert not at.exception
    assert at.multiselect(key="compared").value == [run.run_id for run in runs[:8]]


@pytest.mark.parametrize("draw", ["bars", "lines", "points"])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT INTERVAL 1 DAY AS d, 1 AS n",
        "SELECT MAP {DATE '2020-01-01': 1} AS m, 1 AS n",
        "SELECT 1.5 AS x, 'a' AS y",
        "SELECT 1 AS index, 2 AS series, true AS x",
        "SELECT 'nan'::DOUBLE AS n, 'inf'::FLOAT AS m",
        "SELECT NULL::INTEGER AS n, now() AS t",
    ],
)
def test_any_result_can_be_drawn(homed: Workspace, statement: str, draw: str) -> None:
    at = opened("sql", q=statement, draw=draw)
    assert not at.error
