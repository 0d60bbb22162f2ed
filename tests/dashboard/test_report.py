"""The report: one file, complete, escaped, with the store's own numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dashboard import frames, queries
from dashboard.report import write_report
from dashboard.report_figures import pictures, write_pictures
from records.errors import ConfigError, WorkspaceError
from records.models import Run
from records.workspace import Workspace

PAPER = "2102.11174"


class Page(HTMLParser):
    """Collects tags with their attributes, texts, and the cells of every table row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._cell = False

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data.strip()}".strip()


@pytest.fixture(scope="module")
def written(filled_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Page]:
    """The report of a filled workspace."""
    target = write_report(Workspace(filled_home), tmp_path_factory.mktemp("report") / "r.html")
    text = target.read_text(encoding="utf-8")
    return text, Page(text)


def report(workspace: Workspace) -> tuple[str, Page]:
    text = write_report(workspace, workspace.home / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


def test_the_report_stands_alone(written: tuple[str, Page]) -> None:
    text, page = written
    loading = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use"}
    assert not loading & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        addresses = [v for k, v in attributes.items() if k in {"src", "href", "xlink:href"}]
        assert tag == "a" or not addresses
        assert all(str(a).startswith(("http://", "https://")) for a in addresses)
    assert not re.search(r"@import|url\((?!#)", text)


def test_numbers_equal_the_stores(filled: Workspace, written: tuple[str, Page]) -> None:
    _, page = written
    for row in filled.query("SELECT * FROM claim_coverage").dicts():
        kind = row.pop("kind").replace("_", " ")
        assert [kind, *map(str, row.values())] in page.rows
    claims = frames.records(
        queries.side_by_side(
            lambda sql: filled.query(sql).frame(),
            str(filled.query("SELECT min(paper_id) FROM claims").rows[0][0]),
        )
    )
    run = [claim for claim in claims if claim["verdict"] != "not run"]
    assert run
    for claim in run:
        (shown,) = [row for row in page.rows if row[0] == claim["statement"] and len(row) == 7]
        assert shown[2:4] == [frames.claimed_text(claim), frames.measured_text(claim["measured"])]
        assert claim["verdict"] in shown[5]
        assert shown[6] == claim["reason"]


def test_every_status_finding_and_signature_is_there(
    filled: Workspace, written: tuple[str, Page]
) -> None:
    text, page = written
    cells = {cell for row in page.rows for cell in row}
    paper = str(filled.query("SELECT min(paper_id) FROM claims").rows[0][0])
    for row in filled.query(f"SELECT value FROM statuses WHERE paper_id = '{paper}'").dicts():
        assert row["value"] in cells
    assert "reason of contradicted" in text
    assert "reason of unavailable" in text
    for (signature,) in filled.query("SELECT signature FROM runs").rows:
        assert signature in text


def test_declared_and_derived_status_stand_side_by_side(
    filled: Workspace, written: tuple[str, Page]
) -> None:
    declared = filled.query(
        "SELECT d.paper_id, d.value FROM assertions d JOIN assertions a ON a.paper_id = d.paper_id "
        "AND d.field = a.field || ' status'"
    ).dicts()
    text, _ = written
    assert declared
    assert f"the record itself says: {declared[0]['value']}" in text


def test_hostile_texts_are_shown_and_do_nothing(hostile: Workspace, hostile_text: str) -> None:
    text, page = report(hostile)
    assert "&lt;script&gt;window.hacked" in text
    assert "script" not in {tag for tag, _ in page.tags}
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any("javascript" in str(attributes.get("href")) for _, attributes in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert any(hostile_text in cell for row in page.rows for cell in row)


def test_ids_are_unique(written: tuple[str, Page]) -> None:
    _, page = written
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_new_workspace_says_what_to_do(fresh: Workspace) -> None:
    text, _ = report(fresh)
    assert "fwp rerun" in text
    assert "fwp verify" in text


def test_the_report_draws_each_mode_the_curves_and_the_tables(
    two_modes: tuple[Workspace, dict[str, Any]],
) -> None:
    workspace, claim = two_modes
    text, page = report(workspace)
    assert "a panel a model, measured by the authors&#39; streams" in text
    assert "a panel a model, measured by our seeds" in text
    assert f"over training at S = {claim['S']} (capacity)" in text
    assert any(row[:2] == ["model", "metric"] for row in page.rows)
    misses = [row for row in page.rows if row[0] == "our seeds" and row[1] == claim["statement"]]
    assert len(misses) == 1
    assert "(update-rule)" not in text  # of which nothing was measured


def test_every_picture_of_the_report_can_be_had_as_a_file(
    filled: Workspace, tmp_path: Path
) -> None:
    written = write_pictures(lambda sql: filled.query(sql).frame(), PAPER, tmp_path / "pictures")
    names = [picture.name for picture in pictures(lambda sql: filled.query(sql).frame(), PAPER)]
    assert [path.stem for path in written] == names
    assert len(set(names)) == len(names) > 1
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_pictures_into_a_file_are_an_error(filled: Workspace, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="cannot write pictures into"):
        write_pictures(lambda sql: filled.query(sql).frame(), PAPER, tmp_path / "taken")


def test_a_shipped_run_is_called_so(fresh: Workspace, run_of: Callable[..., Run]) -> None:
    run = run_of("some/claim", "loss", 1.0).model_copy(update={"shipped": True})
    fresh.append("run/shipped", [run])
    text, _ = report(fresh)
    assert f"{run.run_id}</strong> (shipped reference run)" in text


def test_an_unwritable_target_is_a_workspace_error(
    filled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.report.render", lambda _workspace: "text")
    for target in (tmp_path / "missing" / "report.html", tmp_path):
        with pytest.raises(WorkspaceError, match="report"):
            write_report(filled, target)
    assert not list(tmp_path.glob(".*tmp"))


def test_a_report_is_replaced_whole(filled: Workspace) -> None:
    target = filled.home / "report.html"
    target.write_text("old", encoding="utf-8")
    write_report(filled, target)
    assert target.read_text(encoding="utf-8").endswith("</html>\n")
    assert [p.name for p in filled.home.glob("*report*")] == ["report.html"]


def test_the_report_has_the_papers_tables_citations_and_changes(
    filled: Workspace, written: tuple[str, Page]
) -> None:
    text, page = written
    for number in range(1, 6):
        assert f"<caption>Table {number}: " in text
    (links,) = filled.query("SELECT count(*) FROM citations").rows[0]
    assert f"{links} citation links" in text
    titles = {row[2] for row in page.rows if row[0] in ("cited by the paper", "citing the paper")}
    assert "Attention Is All You Need" in titles
    (changes,) = filled.query("SELECT count(*) FROM changes").rows[0]
    assert f"{changes} verdicts and statuses since" in text
