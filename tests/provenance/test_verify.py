"""Verification of the real record, the one that ships with the project."""

from __future__ import annotations

import pytest

from provenance.text import reports_text
from provenance.verify import PaperReport, verify
from records.errors import UnknownPaper
from records.ledger import Ledger
from records.models import Check, Status
from records.workspace import Workspace


@pytest.fixture
def report(workspace: Workspace) -> PaperReport:
    (found,) = verify(workspace, ["2102.11174"]).reports
    return found


def status(report: PaperReport, field: str, value: str) -> Status:
    (found,) = [s for s in report.statuses if (s.field, s.value) == (field, value)]
    return found


def finding(report: PaperReport, rule: str) -> Check:
    (found,) = [c for c in report.findings if c.rule == rule]
    return found


def test_the_venue_icml_2021_is_verified_by_entry_and_header(report: PaperReport) -> None:
    venue = status(report, "venue", "icml 2021")
    assert venue.status == "verified"
    assert {"pmlr-v139-toc-2026-10-04", "pmlr-v139-header"} <= set(venue.evidence_ids)


def test_the_venue_iclr_2021_is_refuted_for_both_reasons(report: PaperReport) -> None:
    venue = status(report, "venue", "iclr 2021")
    assert venue.status == "refuted"
    assert "comment field, and that field does not exist" in venue.reason
    assert "absent from the list of 860 papers" in venue.reason


def test_the_declared_status_stays_visible_beside_the_derived_one(report: PaperReport) -> None:
    declared = status(report, "venue status", "contested")
    assert declared.status == "outdated"
    assert declared.reason.endswith("icml 2021 verified, iclr 2021 refuted")


def test_nothing_rests_on_more_than_a_transcription(report: PaperReport) -> None:
    assert {c.grade for c in report.checks if c.evidence_ids} == {"transcribed"}


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("title", "Linear Transformers Are Secretly Fast Weight Programmers", "verified"),
        ("title", "Linear Transformers Are Secretly Fast Weight Memory Systems", "outdated"),
        ("pages", "9355-9366", "verified"),
        ("volume", "PMLR 139", "verified"),
        ("first posted", "2021-02-22", "verified"),
        ("arxiv id", "2102.11174", "verified"),
        ("arxiv comment", "absent", "unverified"),
        ("PMLR v130", "the 35th ICLR-adjacent AISTATS volume", "refuted"),
        ("throughput", "no throughput number", "refuted"),
        ("update rule", "S_t = S_{t-1} + beta_t (v_t - S_{t-1}^T k_t) k_t^T", "refuted"),
        ("update rule", "W + β (v − v̄) φ(k)ᵀ", "unverified"),
        ("year", "2021", "verified"),
        ("cited by", "502", "unverified"),
        ("references, listed", "30", "verified"),
        ("small model, batch size", "8", "contested"),
    ],
)
def test_where_a_value_stands(report: PaperReport, field: str, value: str, name: str) -> None:
    assert status(report, field, value).status == name


def test_the_note_contradicts_the_field(report: PaperReport) -> None:
    check = finding(report, "note-against-field")
    assert check.evidence_ids == ("record-note",)
    assert "iclr 2021 (per arXiv comment field)" in check.reason


def test_the_throughput_finding_quotes_the_papers_numbers(report: PaperReport) -> None:
    assert "66000" in finding(report, "stated-absence").reason


def test_all_sixty_citation_links_are_possible_by_date(workspace: Workspace) -> None:
    links = [
        c for r in verify(workspace).reports for c in r.checks if c.rule == "citation-chronology"
    ]
    assert [c.outcome for c in links] == ["confirmed"] * 60


def test_a_year_of_posting_at_the_turn_of_the_year_stays_open(workspace: Workspace) -> None:
    (titans,) = verify(workspace, ["2501.00663"]).reports
    assert status(titans, "year first posted", "2024").status == "unverified"


def test_what_could_not_be_checked_offline_says_so(report: PaperReport) -> None:
    rules = {c.rule for c in report.unavailable}
    assert {"live-arxiv", "citation-link", "stated-counts"} <= rules
    assert "Could not be checked" in reports_text([report])


def test_every_rule_can_read_the_shipped_evidence(workspace: Workspace) -> None:
    # a rule that fails is turned into "unavailable", which would hide a defect of ours
    reasons = [c.reason for r in verify(workspace).reports for c in r.checks]
    assert [reason for reason in reasons if "could not read the evidence" in reason] == []


def test_nothing_is_called_wrong_of_the_other_papers(workspace: Workspace) -> None:
    others = [r for r in verify(workspace).reports if r.paper_id != "2102.11174"]
    assert len(others) == 60
    assert [c for r in others for c in r.findings] == []


def test_verifying_again_writes_nothing_new(workspace: Workspace) -> None:
    before = Ledger(workspace.home).names()
    verify(workspace)
    assert Ledger(workspace.home).names() == before


def test_an_unknown_paper_writes_nothing_and_says_how_to_list_them(workspace: Workspace) -> None:
    before = Ledger(workspace.home).names()
    with pytest.raises(UnknownPaper, match=r"no paper '9999\.99999' .* fwp query"):
        verify(workspace, ["2102.11174", "9999.99999"])
    assert Ledger(workspace.home).names() == before


@pytest.mark.parametrize("target", ["arXiv:2102.11174", "https://arxiv.org/abs/2102.11174"])
def test_a_paper_may_be_named_as_a_link(workspace: Workspace, target: str) -> None:
    assert [r.paper_id for r in verify(workspace, [target]).reports] == ["2102.11174"]
