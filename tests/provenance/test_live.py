"""The curated records against their own sources, served from a loopback server."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from provenance.evidence import Archive
from provenance.http import OfflineFetcher
from provenance.verify import Verification, verify
from records.models import Evidence, Status
from records.workspace import REFERENCE_RUNS, Workspace
from tests.provenance.loopback import Handler, html_body, loopback_client, respond, serve
from tests.provenance.loopback import unavailable as out_of_order
from tests.provenance.world import WorldWork
from tests.provenance.world import whole as world
from tests.provenance.world.papers import PAPERS, SCHLAG

PAPER = "2102.11174"
LISTS = REFERENCE_RUNS.parent / "data" / "proceedings"


def accepted(series: str) -> list[WorldWork]:
    """The papers of a conference of 2021, from the list that ships with the project."""
    with (LISTS / f"listing-{series}-2021.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        WorldWork(
            title=row["title"],
            authors=tuple(row["authors"].split(" ; ")),
            year=2021,
            venue=SCHLAG.venue,
            series=series,
            volume="139" if series == "icml" else None,
            pages=row["pages"] or "1-9",
            pmlr_id=row["url"].rpartition("/")[2].removesuffix(".html"),
            pmlr_header=SCHLAG.pmlr_header,
            openreview_id=row["url"].rpartition("=")[2] if series == "iclr" else None,
        )
        for row in rows
        if not row["title"].startswith("Linear Transformers Are Secretly")
    ]


REFERENCES = """<ul class="ltx_biblist"><li class="ltx_bibitem"><span class="ltx_bibblock">
Ha, D., Dai, A., and Le, Q. V.</span><span class="ltx_bibblock">HyperNetworks.</span></li></ul>"""


@pytest.fixture(scope="module")
def routes() -> dict[str, Handler]:
    works = [w for w in PAPERS if not (w.series == "iclr" and w.year == 2021)]  # on the list
    pmlr = [replace(w, arxiv_id=None) for w in accepted("icml")]
    iclr = [replace(w, pmlr_id=None) for w in accepted("iclr")]
    html = {"ar5iv.labs.arxiv.org": respond(html_body(REFERENCES))}
    return world.routes([*works, *pmlr, *iclr]) | html


def verified(
    workspace: Workspace, routes: dict[str, Handler], paper: str = PAPER
) -> tuple[Verification, int]:
    with serve(routes) as server:
        client = loopback_client(server, Archive(workspace.home / "evidence"))
        return verify(workspace, [paper], client), len(server.requests)


@pytest.fixture(scope="module")
def online(
    seeded_home: Path, routes: dict[str, Handler], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Verification, Workspace]:
    """The paper verified once with all sources at hand, and the workspace; not to be changed."""
    home = tmp_path_factory.mktemp("online") / "workspace"
    shutil.copytree(seeded_home, home)
    return verified(Workspace(home), routes)[0], Workspace(home)


def by_value(statuses: tuple[Status, ...]) -> dict[tuple[str, str], str]:
    return {(s.field, s.value): s.status for s in statuses}


def test_online_the_statuses_are_those_of_the_readings_with_grade_captured(
    workspace: Workspace, online: tuple[Verification, Workspace]
) -> None:
    offline = by_value(verify(workspace, [PAPER]).reports[0].statuses)
    statuses = online[0].reports[0].statuses
    settled = {key: status for key, status in offline.items() if status != "unverified"}
    assert {key: by_value(statuses)[key] for key in settled} == settled
    grades = {(s.field, s.value): s.grade for s in statuses}
    for key in (("venue", "icml 2021"), ("volume", "PMLR 139"), ("pages", "9355-9366"),
                ("title", SCHLAG.title), ("title", SCHLAG.titles[0])):  # fmt: skip
        assert grades[key] == "captured", key


def test_arxiv_itself_says_that_there_is_no_comment(
    online: tuple[Verification, Workspace],
) -> None:
    found, _ = online
    statuses = by_value(found.reports[0].statuses)
    assert statuses["arxiv comment", "absent"] == "verified"
    assert statuses["arxiv journal_ref", "absent"] == "verified"


def test_an_empty_comment_is_a_comment(workspace: Workspace, routes: dict[str, Handler]) -> None:
    """Absent and empty are two things: an empty element contradicts that there is none."""
    works = [replace(SCHLAG, comment=""), *PAPERS[1:]]
    found, _ = verified(workspace, routes | world.routes(works))
    assert by_value(found.reports[0].statuses)["arxiv comment", "absent"] == "refuted"


def test_the_paper_is_absent_from_the_accepted_list_of_openreview(
    online: tuple[Verification, Workspace],
) -> None:
    """860 papers: the length of the list that ships with the project."""
    found, _ = online
    [absent] = [
        c
        for c in found.reports[0].checks
        if c.rule == "accepted-list" and c.value == "iclr 2021" and c.outcome == "absent"
    ]
    assert "860" in absent.reason
    assert absent.grade == "captured"


def test_a_citation_link_is_proved_by_the_reference_list(
    online: tuple[Verification, Workspace],
) -> None:
    found, _ = online
    outcomes = {c.value: c.outcome for c in found.reports[0].checks if c.rule == "citation-link"}
    assert outcomes[f"{PAPER} cites 1609.09106"] == "confirmed"  # HyperNetworks
    assert outcomes[f"{PAPER} cites 1706.03762"] == "absent"


def test_a_replay_on_a_copied_archive_gives_the_same_statuses(
    online: tuple[Verification, Workspace], seeded_home: Path, tmp_path: Path
) -> None:
    found, workspace = online
    other = tmp_path / "other"
    shutil.copytree(seeded_home, other)
    shutil.copytree(workspace.home / "evidence", other / "evidence")
    fetcher = OfflineFetcher(Archive(other / "evidence"))
    again = verify(Workspace(other), [PAPER], fetcher)
    assert again.reports == found.reports


def test_what_is_archived_is_not_asked_again(
    online: tuple[Verification, Workspace], routes: dict[str, Handler], workspace: Workspace
) -> None:
    shutil.copytree(online[1].home / "evidence", workspace.home / "evidence")
    found, requests = verified(workspace, routes)
    assert requests == 0
    assert found.reports == online[0].reports


def test_a_source_out_of_order_leaves_the_readings_standing(
    workspace: Workspace, routes: dict[str, Handler]
) -> None:
    offline = by_value(verify(workspace, [PAPER]).reports[0].statuses)
    broken = {host: respond(out_of_order()) for host in routes}
    found, _ = verified(workspace, broken)
    assert by_value(found.reports[0].statuses) == offline
    assert set(found.silent) == {"PMLR", "arXiv", "OpenReview", "arXiv HTML"}


def test_evidence_names_the_parser_that_read_it(online: tuple[Verification, Workspace]) -> None:
    captured = [r for r in online[1].records() if isinstance(r, Evidence) and r.sha256]
    assert captured
    assert all("/" in str(evidence.facts["parser"]) for evidence in captured)


def test_a_new_parser_reads_the_archived_bytes_anew(
    workspace: Workspace,
    online: tuple[Verification, Workspace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(online[1].home / "evidence", workspace.home / "evidence")
    monkeypatch.setattr("provenance.live.arxiv.PARSER", "arxiv/2")
    found = verify(workspace, [PAPER], OfflineFetcher(Archive(workspace.home / "evidence")))
    latest = {r.evidence_id: r for r in workspace.records() if isinstance(r, Evidence)}
    entry = next(e for e in latest.values() if e.kind == "arxiv-entry" and e.sha256)
    assert entry.facts["parser"] == "arxiv/2"
    assert by_value(found.reports[0].statuses)["arxiv comment", "absent"] == "verified"


def test_asking_about_another_paper_keeps_what_was_captured_of_the_first(
    workspace: Workspace, routes: dict[str, Handler]
) -> None:
    def captured(paper: str) -> set[str]:
        records = [r for r in workspace.records() if isinstance(r, Evidence) and r.sha256]
        return {r.evidence_id for r in records if r.facts.get("arxiv_id") == paper}

    verified(workspace, routes)
    before = captured(PAPER)
    verified(workspace, routes, "2106.06295")
    assert before
    assert captured(PAPER) >= before
    assert captured("2106.06295")
