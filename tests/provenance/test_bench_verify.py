"""The measured quality of the judgement of citations, and how it is counted."""

from __future__ import annotations

from functools import cache

import pytest

from provenance.bench import (
    Case,
    Outcome,
    Quality,
    made_cases,
    measure,
    quality_table,
    real_cases,
)
from provenance.known_works import accepted_papers
from provenance.works import CitationFinding, CitationReport, CitationVerdict, Reference
from records.models import Severity


@cache
def real() -> Quality:
    return measure(real_cases())


@cache
def made() -> Quality:
    return measure(made_cases(each=8, seed=11))


UNDECIDABLE = {"cit-023"}
"""Kimi-VL is a work of the Kimi Team of 2025, as cited; what is wrong is that KDA is not in it."""


def test_every_real_citation_gets_its_labelled_verdict_for_a_labelled_field() -> None:
    assert {outcome.case.case_id for outcome in real().misses()} <= UNDECIDABLE


def test_no_sound_real_citation_is_flagged_and_the_unknown_stay_unverifiable() -> None:
    assert real().tally().false_alarms == 0
    unknown = [o for o in real().outcomes if o.case.verdict == "unverifiable"]
    assert unknown
    assert {o.report.verdict for o in unknown} == {"unverifiable"}


def test_real_and_made_citations_meet_the_targets() -> None:
    # issue 5: at least 95 % detected at 2 % false alarms or fewer
    assert real().tally().meets_targets
    assert made().tally().meets_targets


@pytest.mark.parametrize("kind", dict.fromkeys(case.kind for case in made_cases(1)))
def test_each_kind_of_change_is_judged_as_it_deserves(kind: str) -> None:
    tally = made().tally([kind])
    assert tally.right >= tally.faulty + tally.sound - 1


def test_made_citations_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    assert made_cases(2, seed=5) == made_cases(2, seed=5)
    assert made_cases(2, seed=5) != made_cases(2, seed=6)


def test_accepted_papers_are_all_of_both_conferences() -> None:
    # PMLR v139 lists 1,183 papers, ICLR 2021 accepted 860
    assert len(accepted_papers()) == 1183 + 860


def outcome(labelled: CitationVerdict, verdict: CitationVerdict, *found: Severity) -> Outcome:
    reference = Reference(key="k", position=1, format="plain", raw="r")
    findings = tuple(
        CitationFinding(field="year", outcome="contradicted", severity=s, reason="r") for s in found
    )
    report = CitationReport(
        reference=reference, existence="found", verdict=verdict, findings=findings
    )
    fields = ("year",) if labelled == "wrong" else ()
    return Outcome(Case("c", "plain", ("r",), labelled, fields), report)


def test_detected_means_flagged_for_the_labelled_field() -> None:
    tally = Quality(
        (
            outcome("wrong", "wrong", "wrong"),
            outcome("wrong", "incomplete", "incomplete"),
            outcome("wrong", "wrong"),
            outcome("correct", "wrong", "wrong"),
            outcome("correct", "incomplete", "incomplete"),
            outcome("correct", "correct", "style"),
        )
    ).tally()
    assert (tally.faulty, tally.detected, tally.sound, tally.false_alarms) == (3, 2, 3, 1)
    assert (tally.recall, tally.precision, tally.right) == (2 / 3, 2 / 3, 2)
    assert not tally.meets_targets


def test_the_table_counts_every_kind_and_names_what_is_not_as_labelled() -> None:
    table = quality_table(Quality((*real().outcomes, *made().outcomes)))
    assert "two authors swapped" in table
    assert "recall" in table
    assert all(f"not as labelled: {name}" in table for name in UNDECIDABLE)
