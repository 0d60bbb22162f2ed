"""Whole bibliographies checked against all sources, served from a loopback server."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from provenance.citation_text import Checked
from provenance.citations import Library, check_targets
from provenance.evidence import Archive
from provenance.http import OfflineFetcher
from provenance.local_index import build_index, open_index
from provenance.targets import Targets, identifier
from provenance.works import CitationReport
from tests.provenance.loopback import hanging, loopback_client, openreview_challenge, respond, serve
from tests.provenance.world.papers import GATED_DELTANET
from tests.provenance.world.whole import routes

BIB = r"""
@inproceedings{rnns, title={Transformers are {RNN}s: Fast Autoregressive Transformers with Linear
  Attention}, author={Katharopoulos, A. and Vyas, A. and Pappas, N. and Fleuret, F.}, year={2020},
  booktitle={International Conference on Machine Learning}, pages={5156--5165}}
@misc{former, title={Linear Transformers Are Secretly Fast Weight Memory Systems},
  author={Imanol Schlag and Kazuki Irie and Jürgen Schmidhuber}, year={2021},
  eprint={2102.11174}, archivePrefix={arXiv}}
@inproceedings{icml, title={Learning Associative Inference Using Fast Weight Memory},
  author={Imanol Schlag and Tsendsuren Munkhdalai and Jürgen Schmidhuber}, year={2021},
  booktitle={Proceedings of the 38th International Conference on Machine Learning}}
@inproceedings{irie22, title={Going Beyond Linear Transformers with Recurrent Fast Weight
  Programmers}, author={Irie, Kazuki and others}, year={2022}, booktitle={NeurIPS}}
@article{titans, title={Titans: Learning to Memorize at Test Time}, year={2024},
  author={Behrouz, Ali and Zhong, Peilin and Mirrokni, Vahab},
  journal={arXiv preprint arXiv:2412.20324}}
@article{rope, title={RoFormer: Enhanced Transformer with Rotary Position Embedding},
  author={Su, Jianlin and Lu, Yu and Pan, Shengfeng and Murtadha, Ahmed and Wen, Bo and
  Liu, Yunfeng}, journal={Neurocomputing}, volume={568}, year={2024},
  doi={10.1016/j.neucom.2023.127063}}
@misc{nothing, title={Hyperbolic Attention with Hyperbolic Bilinear Layers},
  author={Yang, A. and Li, B.}, year={2021}}
"""
EXPECTED = {
    "rnns": ("found", "correct"),
    "former": ("found", "outdated"),
    "icml": ("found", "wrong"),
    "irie22": ("found", "wrong"),
    "titans": ("found", "wrong"),
    "rope": ("found", "correct"),
    "nothing": ("not found", "unverifiable"),
}


def summary(checked: Checked) -> dict[str, tuple[str, str]]:
    return {r.reference.key: (r.existence, r.verdict) for r in checked.reports}


def faults(report: CitationReport) -> set[str]:
    return {f.field for f in report.findings if f.severity in ("wrong", "outdated")}


@pytest.fixture
def bib(tmp_path: Path) -> Path:
    path = tmp_path / "refs.bib"
    path.write_text(BIB, encoding="utf-8")
    return path


def check(bib: Path, folder: Path, **changes: object) -> tuple[Checked, Counter[str]]:
    """Check a bibliography against the world; return what was found and the requests by host."""
    with serve(routes() | changes) as server:  # type: ignore[arg-type]
        client = loopback_client(server, Archive(folder))
        [checked] = check_targets(Targets(files=(bib,)), Library(client))
        return checked, Counter(seen.host for seen in server.requests)


def test_every_reference_gets_its_verdict(bib: Path, tmp_path: Path) -> None:
    checked, _ = check(bib, tmp_path / "evidence")
    assert summary(checked) == EXPECTED
    by_key = {r.reference.key: faults(r) for r in checked.reports}
    assert by_key["former"] == {"title", "venue"}
    assert by_key["icml"] == {"venue"}
    assert by_key["irie22"] == {"year"}
    assert by_key["titans"] == {"arxiv_id"}


def test_a_replay_on_a_copied_archive_says_the_same(bib: Path, tmp_path: Path) -> None:
    checked, _ = check(bib, tmp_path / "evidence")
    shutil.move(tmp_path / "evidence", tmp_path / "elsewhere")
    offline = OfflineFetcher(Archive(tmp_path / "elsewhere"))
    [again] = check_targets(Targets(files=(bib,)), Library(offline))
    assert [r.model_dump() for r in again.reports] == [r.model_dump() for r in checked.reports]


def test_a_second_run_sends_no_request(bib: Path, tmp_path: Path) -> None:
    check(bib, tmp_path / "evidence")
    checked, requests = check(bib, tmp_path / "evidence")
    assert not requests
    assert summary(checked) == EXPECTED


def test_no_more_is_asked_than_needed(bib: Path, tmp_path: Path) -> None:
    """One file for each of two volumes; of arXiv one feed for all identifiers, one for versions."""
    checked, requests = check(bib, tmp_path / "evidence")
    searches = sum("arXiv" in report.asked for report in checked.reports)
    assert requests["proceedings.mlr.press"] == 2
    assert requests["export.arxiv.org"] <= 3 + searches
    assert requests["dblp.org"] <= len(checked.reports) + 1


def test_every_finding_rests_on_archived_bytes(bib: Path, tmp_path: Path) -> None:
    checked, _ = check(bib, tmp_path / "evidence")
    archive = Archive(tmp_path / "evidence")
    held = {capture.evidence_id for capture in archive.captures()}
    findings = [f for r in checked.reports for f in r.findings if f.source]
    assert findings
    assert {e for f in findings for e in f.evidence_ids} <= held
    assert archive.check() == []


@pytest.mark.parametrize("host", ["api.openreview.net", "api2.openreview.net"])
def test_a_source_that_refuses_is_unavailable_and_decides_nothing(
    host: str, bib: Path, tmp_path: Path
) -> None:
    checked, _ = check(bib, tmp_path, **{host: respond(openreview_challenge())})
    assert summary(checked) == EXPECTED
    assert any("OpenReview" in r.silent for r in checked.reports)


def test_without_any_source_nothing_is_false(bib: Path, tmp_path: Path) -> None:
    offline = OfflineFetcher(Archive(tmp_path / "empty"))
    [checked] = check_targets(Targets(files=(bib,)), Library(offline))
    assert {r.existence for r in checked.reports} == {"not checkable"}
    assert {r.verdict for r in checked.reports} == {"unverifiable"}


def test_a_slow_source_does_not_hold_up_the_rest(bib: Path, tmp_path: Path) -> None:
    changes = {"dblp.org/search/publ/api": respond(hanging())}
    with serve(routes() | changes) as server:
        client = loopback_client(server, Archive(tmp_path / "e"), read_timeout=0.1, attempts=1)
        [checked] = check_targets(Targets(files=(bib,)), Library(client))
    found = summary(checked)
    assert found["rnns"] == ("found", "correct")
    assert found["nothing"] == ("not found", "unverifiable")
    assert "DBLP" in checked.reports[-1].silent


def test_an_identifier_alone_is_looked_up(tmp_path: Path) -> None:
    reference = identifier(f"arXiv:{GATED_DELTANET.arxiv_id}")
    assert reference is not None
    with serve(routes()) as server:
        client = loopback_client(server, Archive(tmp_path))
        [checked] = check_targets(Targets(identifiers=(reference,)), Library(client))
    [report] = checked.reports
    assert report.existence == "found"
    assert GATED_DELTANET.title in {work.title for work in report.works}


def test_what_a_local_index_settles_is_not_searched_for(bib: Path, tmp_path: Path) -> None:
    (tmp_path / "known.bib").write_text(
        """@inproceedings{DBLP:conf/icml/KatharopoulosV020,
  author = {Angelos Katharopoulos and Apoorv Vyas and Nikolaos Pappas and Fran{\\c{c}}ois Fleuret},
  title = {Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention},
  booktitle = {Proceedings of the 37th International Conference on Machine Learning, {ICML} 2020},
  pages = {5156--5165},
  year = {2020}
}""",
        encoding="utf-8",
    )
    build_index([str(tmp_path / "known.bib")], tmp_path / "index")
    library_index = open_index(tmp_path / "index")
    with serve(routes()) as server:
        client = loopback_client(server, Archive(tmp_path / "evidence"))
        [checked] = check_targets(Targets(files=(bib,)), Library(client, library_index))
        asked = [seen.target for seen in server.requests]
    assert summary(checked) == EXPECTED
    assert not any("RNNs" in target for target in asked)
    assert any("Recurrent" in target for target in asked)


def test_asking_ends_when_its_time_is_over(bib: Path, tmp_path: Path) -> None:
    with serve(routes()) as server:
        client = loopback_client(server, Archive(tmp_path / "evidence"))
        [checked] = check_targets(Targets(files=(bib,)), Library(client, seconds=0))
        assert not server.requests
    assert {r.verdict for r in checked.reports} == {"unverifiable"}
    assert "the time for asking was over" in checked.reports[0].silent["DBLP"]
