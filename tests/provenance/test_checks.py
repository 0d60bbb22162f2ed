"""The rules on small invented records: another paper, so that nothing is wired to this one."""

from __future__ import annotations

from typing import Any

import pytest

from provenance.case import Store
from provenance.checks import check_paper
from records.models import (
    Assertion,
    Authority,
    Check,
    Citation,
    Claim,
    Evidence,
    Grade,
    ListEntry,
    Paper,
    Record,
    Status,
)
from records.status import derive_statuses

TITLE = "A Paper of Some Kind"
HEADER = "Volume 7: International Conference on Learning Representations, 3-5 May 2019, Oslo"


def paper(paper_id: str = "1901.00001", year: int | None = 2019) -> Paper:
    return Paper(paper_id=paper_id, title=TITLE, year=year, arxiv_id=paper_id, evidence_id="note")


def source(
    evidence_id: str,
    kind: str,
    authority: Authority = "proceedings",
    grade: Grade = "transcribed",
    **facts: Any,
) -> Evidence:
    return Evidence(
        evidence_id=evidence_id,
        source=evidence_id,
        authority=authority,
        grade=grade,
        sha256="0" * 64 if grade == "captured" else None,
        kind=kind,
        facts=facts,
    )


def says(field: str, value: str, basis: str | None = None, by: str = "note") -> Assertion:
    return Assertion(
        assertion_id=f"{field}={value}:{by}",
        paper_id="1901.00001",
        field=field,
        value=value,
        evidence_id=by,
        basis=basis,
    )


NOTE = source("note", "record", "note")
AUTHORS = ["Ada Lovelace", "Soren Orsted"]
BY_THEM = says("authors", "Ada Lovelace; Søren Ørsted")
HEAD = source("head", "pmlr-volume-header", header=HEADER)


def entry(**facts: Any) -> Evidence:
    return source("toc", "pmlr-entry", **{"title": TITLE, "volume": 7, "authors": AUTHORS, **facts})


def listing(*titles: str, length: int | None = None, venue: str = "iclr 2019") -> list[Record]:
    facts = {"venue": venue, "length": len(titles) if length is None else length}
    entries = [
        ListEntry(evidence_id="list", position=n, title=t, authors=tuple(AUTHORS))
        for n, t in enumerate(titles, start=1)
    ]
    return [source("list", "accepted-list", **facts), *entries]


def store_of(*records: Record, known_authors: bool = True) -> Store:
    """Return a store with the paper, a note on it and, unless others are asserted, its authors."""
    asserted = any(isinstance(r, Assertion) and r.field == "authors" for r in records)
    authors = [BY_THEM] if known_authors and not asserted else []
    return Store.of([paper(), NOTE, *authors, *records])


def checks(rule: str, *records: Record, known_authors: bool = True) -> list[Check]:
    found = check_paper("1901.00001", store_of(*records, known_authors=known_authors))
    return [check for check in found if check.rule == rule]


def statuses(*records: Record) -> list[Status]:
    store = store_of(*records)
    return derive_statuses(store.assertions, check_paper("1901.00001", store))


def outcomes(
    rule: str, *records: Record, known_authors: bool = True
) -> list[tuple[str | None, str]]:
    found = checks(rule, *records, known_authors=known_authors)
    return [(check.value, check.outcome) for check in found]


def test_the_venue_is_read_from_the_header_of_the_volume() -> None:
    records = [BY_THEM, says("venue", "iclr 2019"), says("venue", "icml 2019"), entry(), HEAD]
    assert outcomes("volume-venue", *records) == [
        ("iclr 2019", "confirmed"),
        ("icml 2019", "contradicted"),
    ]


def test_the_year_of_a_venue_counts() -> None:
    records = [BY_THEM, says("venue", "iclr 2018"), entry(), HEAD]
    assert outcomes("volume-venue", *records) == [("iclr 2018", "contradicted")]


@pytest.mark.parametrize("venue", ["iclr 2019", "icml 2019"])
def test_a_title_alone_decides_nothing_while_authors_are_not_compared(venue: str) -> None:
    said = [says("title", TITLE), says("venue", venue), says("pages", "1-9")]
    records = [*said, entry(pages="1-9"), HEAD, *listing(TITLE, venue=venue)]
    for rule in ("volume-venue", "accepted-list", "listed-title", "bibliographic-fields"):
        found = outcomes(rule, *records, known_authors=False)
        assert {outcome for _, outcome in found} == {"unavailable"}, rule


def test_a_paper_of_the_same_title_by_others_is_another_paper() -> None:
    # "Curriculum Learning" is the title of more than one paper
    records = [says("authors", "Yoshua Bengio"), says("venue", "icml 2009"), entry(), HEAD]
    assert outcomes("volume-venue", *records) == []
    assert outcomes("namesake", *records) == [(None, "unavailable")]
    listed = [says("authors", "Yoshua Bengio"), says("venue", "iclr 2019"), *listing(TITLE)]
    assert outcomes("accepted-list", *listed) == [("iclr 2019", "unavailable")]


def test_a_listed_title_of_a_namesake_is_not_the_papers() -> None:
    other = ListEntry(evidence_id="list", position=1, title="Another", authors=("Ada Lovelace",))
    evidence = source("list", "accepted-list", venue="iclr 2019", length=1)
    assert outcomes("listed-title", says("title", "Another"), evidence, other) == []


def test_an_asserted_title_does_not_choose_the_paper() -> None:
    records = [says("title", "Another"), says("venue", "iclr 2019"), *listing("Another")]
    assert outcomes("accepted-list", *records) == [("iclr 2019", "absent")]
    assert outcomes("listed-title", *records) == []


def test_a_volume_whose_header_was_not_read_decides_nothing() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), entry()]
    assert outcomes("volume-venue", *records) == [("iclr 2019", "unavailable")]


def test_the_header_of_another_volume_decides_nothing() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), entry(volume=8), HEAD]
    assert outcomes("volume-venue", *records) == [("iclr 2019", "unavailable")]


def test_an_entry_of_another_title_decides_nothing() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), entry(title="Another"), HEAD]
    assert outcomes("volume-venue", *records) == []


def test_a_paper_on_the_whole_list_is_confirmed() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), *listing("X", TITLE.upper())]
    assert outcomes("accepted-list", *records) == [("iclr 2019", "confirmed")]


def test_absence_says_how_long_the_list_is_and_what_comes_nearest() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), *listing("X", "A Paper of Sorts")]
    (check,) = checks("accepted-list", *records)
    assert check.outcome == "absent"
    assert "list of 2 papers" in check.reason
    assert check.found == "A Paper of Sorts"


def test_the_title_of_the_record_counts_where_nobody_asserts_one() -> None:
    assert outcomes("accepted-list", says("venue", "iclr 2019"), *listing("X", TITLE)) == [
        ("iclr 2019", "confirmed")
    ]


def test_a_title_that_is_nearly_on_the_list_is_not_called_absent() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), *listing("A Paper of Some Kinds")]
    assert outcomes("accepted-list", *records) == [("iclr 2019", "unavailable")]


@pytest.mark.parametrize("venue", ["iclr 2019 (poster)", "somewhere"])
def test_a_venue_that_cannot_be_read_is_said_to_be_unchecked(venue: str) -> None:
    assert outcomes("unread-venue", says("venue", venue)) == [(venue, "unavailable")]


def test_a_list_that_has_a_title_twice_proves_no_absence() -> None:
    records = [says("venue", "iclr 2019"), *listing("X", "X")]
    assert outcomes("accepted-list", *records) == [("iclr 2019", "unavailable")]


def test_a_list_may_write_its_venue_in_another_way() -> None:
    records = [says("venue", "iclr 2019"), *listing(TITLE, venue="ICLR 2019")]
    assert outcomes("accepted-list", *records) == [("iclr 2019", "confirmed")]


def test_absence_from_a_list_with_gaps_proves_nothing() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), *listing("X", length=2)]
    (check,) = checks("accepted-list", *records)
    assert check.outcome == "unavailable"
    assert "1 of 2 entries" in check.reason


def test_the_list_of_another_venue_is_not_asked() -> None:
    records = [says("title", TITLE), says("venue", "icml 2019"), *listing("X")]
    assert outcomes("accepted-list", *records) == []


ARXIV_PAGE = source(
    "page", "arxiv-entry", "arxiv", arxiv_id="1901.00001", absent_fields=["comment", "journal_ref"]
)


@pytest.mark.parametrize("basis", ["arXiv comment field", "the arXiv journal-ref"])
def test_a_field_that_is_not_there_is_no_ground(basis: str) -> None:
    assert outcomes("cited-field", says("venue", "iclr 2019", basis), ARXIV_PAGE) == [
        ("iclr 2019", "absent")
    ]


def test_a_true_venue_stays_verified_though_its_ground_is_missing() -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019", "arXiv comment"), entry(), HEAD]
    (status,) = [s for s in statuses(ARXIV_PAGE, *records) if s.field == "venue"]
    assert status.status == "verified"


def test_a_cited_field_on_a_page_that_was_not_read_is_unavailable() -> None:
    other = source("page", "arxiv-entry", "arxiv", arxiv_id="2000.00001", absent_fields=["comment"])
    records = [says("venue", "iclr 2019", "arXiv comment field"), other]
    assert outcomes("cited-field", *records) == [("iclr 2019", "unavailable")]


def test_a_cited_field_that_is_there_is_not_called_missing() -> None:
    page = source("page", "arxiv-entry", "arxiv", arxiv_id="1901.00001", absent_fields=["doi"])
    assert outcomes("cited-field", says("venue", "x", "arXiv comment"), page) == []


def test_a_source_that_gives_one_field_two_values_contradicts_itself() -> None:
    records = [says("venue", "iclr 2019"), says("venue", "icml 2019", "a guess")]
    (check,) = checks("note-against-field", *records)
    assert (check.value, check.outcome) == (None, "contradicted")
    assert "iclr 2019 and icml 2019 (per a guess)" in check.reason


def test_one_value_written_in_two_ways_is_no_contradiction() -> None:
    both = [
        says("authors", "Ada Lovelace; Søren Ørsted"),
        says("authors", "Lovelace, Ada and Ørsted, S."),
    ]
    venues = [says("venue", "nips 2017"), says("venue", "NeurIPS 2017")]
    records = [*both, *venues, says("keyword", "a"), says("keyword", "b")]
    assert outcomes("note-against-field", *records) == []


def test_two_sources_that_disagree_are_not_one_that_contradicts_itself() -> None:
    other = source("other", "record", "note")
    records = [says("venue", "iclr 2019"), says("venue", "icml 2019", by="other"), other]
    assert outcomes("note-against-field", *records) == []


@pytest.mark.parametrize(
    ("field", "value", "outcome"),
    [
        ("pages", "1--9", "confirmed"),
        ("pages", "pp. 1-9", "confirmed"),
        ("pages", "1-8", "contradicted"),
        ("volume", "PMLR 7", "confirmed"),
        ("volume", "v7", "confirmed"),
        ("volume", "PMLR 139", "contradicted"),
        ("year", "2019", "confirmed"),
        ("year", "2020", "confirmed"),  # the entry's own year, after the conference
        ("year", "2019a", "confirmed"),
        ("year", "2018", "contradicted"),
        ("pages", "see there!", "unavailable"),
        ("volume", "Neurocomputing 7", "unavailable"),
        ("year", "2018 or so, or 2019", "unavailable"),
    ],
)
def test_the_proceedings_decide_bibliographic_fields(field: str, value: str, outcome: str) -> None:
    records = [BY_THEM, says(field, value), entry(pages="1-9", year=2020), HEAD]
    found = [c for c in checks("bibliographic-fields", *records) if c.field == field]
    assert [(c.value, c.outcome) for c in found] == [(value, outcome)]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("A. Lovelace and S. Orsted", "confirmed"),
        ("Lovelace, Ada and others", "confirmed"),
        ("Søren Ørsted; Ada Lovelace", "contradicted"),
        ("Ada Lovelace", "contradicted"),
        ("Augusta Lovelace; Søren Ørsted", "unavailable"),
    ],
)
def test_the_proceedings_decide_the_authors(value: str, outcome: str) -> None:
    assert outcomes("bibliographic-fields", says("authors", value), entry()) == [(value, outcome)]


def test_authors_that_the_evidence_has_as_one_text_are_taken_apart() -> None:
    toc = entry(authors="Lovelace, Ada and Orsted, Soren")
    assert outcomes("bibliographic-fields", BY_THEM, toc) == [(BY_THEM.value, "confirmed")]


def versions(*titles: str | None) -> Evidence:
    history = [
        {"version": n, "posted": f"2019-0{n}-01", **({"title": t} if t else {})}
        for n, t in enumerate(titles, start=1)
    ]
    return source("history", "arxiv-versions", "arxiv", arxiv_id="1901.00001", versions=history)


@pytest.mark.parametrize(
    ("title", "outcome", "severity"),
    [
        (TITLE, "confirmed", None),
        ("Its First Title", "contradicted", "outdated"),
        ("An Invented Title", "contradicted", "wrong"),
    ],
)
def test_an_old_title_is_outdated_and_an_invented_one_wrong(
    title: str, outcome: str, severity: str | None
) -> None:
    (check,) = checks("title-versions", says("title", title), versions("Its First Title", TITLE))
    assert (check.outcome, check.severity) == (outcome, severity)


def test_a_version_whose_title_was_not_read_may_have_any() -> None:
    history = versions("Its First Title", None, TITLE)
    assert outcomes("title-versions", says("title", "Another"), history) == [
        ("Another", "unavailable")
    ]


@pytest.mark.parametrize(
    ("day", "outcome"),
    [
        ("2019-01-31", "confirmed"),
        ("2018-12-31", "confirmed"),  # submitted at the end of the month before
        ("2018-11-30", "unavailable"),  # moderation may hold a paper for months
        ("2019-02-01", "contradicted"),  # nothing is announced before it is submitted
    ],
)
def test_the_identifier_is_of_the_month_of_announcement(day: str, outcome: str) -> None:
    records = [says("first posted", day), says("arxiv id", "1901.00001")]
    assert outcomes("arxiv-id-date", *records) == [(f"1901.00001, {day}", outcome)]


def test_a_date_that_agrees_proves_no_identifier() -> None:
    records = [says("first posted", "2019-01-31"), says("arxiv id", "1901.99999")]
    found = {s.field: s.status for s in statuses(*records)}
    assert (found["first posted"], found["arxiv id"]) == ("unverified", "unverified")


@pytest.mark.parametrize(
    ("identifier", "outcome"), [("1901.00001", "confirmed"), ("1706.03762", "contradicted")]
)
def test_an_identifier_is_proved_by_the_title_that_arxiv_has_under_it(
    identifier: str, outcome: str
) -> None:
    own = versions(TITLE)
    history = [{"version": 1, "posted": "2017-06-12", "title": "Another"}]
    other = source("other", "arxiv-versions", "arxiv", arxiv_id="1706.03762", versions=history)
    records = [says("title", TITLE), says("arxiv id", identifier), own, other]
    assert outcomes("identifier-title", *records) == [(identifier, outcome)]


@pytest.mark.parametrize(
    ("paper_id", "year", "outcome"),
    [
        ("1906.00001", "2019", "confirmed"),
        ("1906.00001", "2018", "unavailable"),
        ("1906.00001", "2017", "contradicted"),
        ("1906.00001", "2020", "contradicted"),
        ("1901.00001", "2019", "unavailable"),
        ("1901.00001", "2018", "unavailable"),
    ],
)
def test_a_january_identifier_leaves_the_year_of_posting_open(
    paper_id: str, year: str, outcome: str
) -> None:
    # so it is with Titans: arXiv 2501.00663 was submitted on 31 December 2024
    said = says("year first posted", year).model_copy(update={"paper_id": paper_id})
    found = check_paper(paper_id, Store.of([paper(paper_id), NOTE, said]))
    assert [c.outcome for c in found if c.rule == "arxiv-id-date"] == [outcome]


def cites(cited: str, *more: Record, year: int | None = None) -> list[tuple[str | None, str]]:
    link = Citation(citing_id="1901.00001", cited_id=cited, evidence_id="note")
    return outcomes("citation-chronology", link, paper(cited, year), *more)


def test_an_older_reference_is_possible() -> None:
    assert cites("1812.00001") == [("1901.00001 cites 1812.00001", "confirmed")]


def test_a_reference_of_a_later_year_than_the_last_version_is_impossible() -> None:
    assert cites("2006.00001", versions("a", "b", TITLE), year=2020)[0][1] == "contradicted"


@pytest.mark.parametrize("year", [2019, None])
def test_a_reference_that_may_have_been_out_before_is_not_called_false(year: int | None) -> None:
    # published in spring, on arXiv in summer: its identifier is younger than it is
    assert cites("1906.00001", versions("a", "b", TITLE), year=year)[0][1] == "unavailable"


def test_a_reference_older_than_the_last_version_is_possible() -> None:
    assert cites("1903.00001", versions("a", "b", TITLE))[0][1] == "confirmed"


def test_a_younger_reference_is_not_called_false_while_later_versions_are_unknown() -> None:
    assert cites("1906.00001")[0][1] == "unavailable"


def test_a_reference_that_came_to_arxiv_years_after_its_publication_is_possible() -> None:
    assert cites("2205.00001", versions("a", "b", TITLE), year=1992)[0][1] == "confirmed"


LINK = Citation(citing_id="1901.00001", cited_id="1812.00001", evidence_id="note")


def test_a_link_is_open_until_the_reference_list_has_been_read() -> None:
    assert outcomes("citation-link", LINK, paper("1812.00001")) == [(None, "unavailable")]


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        ("A. Lovelace.\nA paper of some kind.\n2018", "confirmed"),
        ("A. Lovelace. Another title. arXiv:1812.00001", "confirmed"),
        ("A. Lovelace. Another paper of some kind. 2018", "absent"),
    ],
)
def test_a_link_is_there_if_the_reference_list_has_title_or_identifier(
    entry: str, outcome: str
) -> None:
    facts = {"arxiv_id": "1901.00001", "entries": ["B. Babbage. First. 1830", entry]}
    read = source("list", "reference-list", grade="captured", **facts)
    assert outcomes("citation-link", LINK, paper("1812.00001"), read) == [
        ("1901.00001 cites 1812.00001", outcome)
    ]


def test_a_count_of_listed_links_is_counted() -> None:
    the_map = source("note", "citation-map", "note")
    link = Citation(citing_id="1901.00001", cited_id="1812.00001", evidence_id="note")
    records = [the_map, link, paper("1812.00001"), says("references, listed", "1"),
               says("references", "40"), says("cited by, listed", "2")]  # fmt: skip
    assert sorted(outcomes("stated-counts", *records)) == [
        ("1", "confirmed"),
        ("2", "contradicted"),
        ("40", "unavailable"),
    ]


def test_a_count_is_held_against_the_map_that_states_it() -> None:
    the_map, other = source("note", "citation-map", "note"), source("m", "citation-map", "note")
    link = Citation(citing_id="1901.00001", cited_id="1812.00001", evidence_id="note")
    records = [the_map, other, link, paper("1812.00001"), says("references, listed", "1")]
    assert outcomes("stated-counts", *records) == [("1", "confirmed")]


def test_fewer_stated_than_listed_is_wrong() -> None:
    the_map = source("note", "citation-map", "note")
    link = Citation(citing_id="1901.00001", cited_id="1812.00001", evidence_id="note")
    records = [the_map, link, paper("1812.00001"), says("references", "0")]
    assert outcomes("stated-counts", *records) == [("0", "contradicted")]


V130 = source("v", "pmlr-volume", volume=130, conference="AISTATS", year=2021)
EDITION = source("n", "conference-edition", conference="AISTATS", year=2021, edition=24)


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        ("the 24th AISTATS", "confirmed"),
        ("the 35th AISTATS", "contradicted"),
        ("an ICLR volume", "contradicted"),
        ("AISTATS 2020", "contradicted"),
        ("the 24th AISTATS, held on the 13th of April 2021, not ICLR", "confirmed"),
        ("the proceedings of SIGGRAPH", "unavailable"),
    ],
)
def test_a_statement_about_a_volume_is_held_against_the_volume(
    statement: str, outcome: str
) -> None:
    (check,) = checks("volume-statement", says("PMLR v130", statement), V130, EDITION)
    assert check.outcome == outcome
    assert check.evidence_ids == ("v", "n")


def test_an_ordinal_is_not_judged_where_none_was_read() -> None:
    said = says("PMLR v130", "the 35th AISTATS")
    assert outcomes("volume-statement", said, V130) == [("the 35th AISTATS", "unavailable")]


def test_a_statement_about_a_volume_that_was_not_read_is_unavailable() -> None:
    assert outcomes("volume-statement", says("PMLR v1", "x")) == [("x", "unavailable")]


def cost(metric: str) -> Claim:
    return Claim(
        claim_id="c", paper_id="1901.00001", kind="cost", locator="Sec. 6.3", statement="fast",
        metric=metric, claimed=1, evidence_id="note",
    )  # fmt: skip


def test_no_number_is_false_where_the_paper_prints_one() -> None:
    said = says("throughput", "no throughput number")
    assert outcomes("stated-absence", said, cost("words_per_second"))[0][1] == "contradicted"


def test_no_number_is_not_proved_by_claims_that_speak_of_other_things() -> None:
    said = says("throughput", "no throughput number")
    assert outcomes("stated-absence", said, cost("gpu_memory_gb"))[0][1] == "unavailable"


def test_agreeing_dimensions_do_not_verify_a_formula() -> None:
    shaped = source("note", "record", "note", shapes={"S": ["a", "b"]})
    found = {s.field: s.status for s in statuses(shaped, says("update rule", "S + S"))}
    assert found["update rule"] == "unverified"


def test_a_formula_that_cannot_be_read_is_unavailable() -> None:
    shaped = source("note", "record", "note", shapes={"S": ["a", "b"]})
    assert outcomes("formula-dimensions", shaped, says("update rule", "S + mystery")) == [
        ("S + mystery", "unavailable")
    ]


@pytest.mark.parametrize(
    ("declared", "outcome"), [("verified", "confirmed"), ("contested", "contradicted")]
)
def test_a_declared_status_is_held_against_the_derived_one(declared: str, outcome: str) -> None:
    records = [says("title", TITLE), says("venue", "iclr 2019"), entry(), HEAD]
    (check,) = checks("declared-status", says("venue status", declared), *records)
    assert check.outcome == outcome


def test_a_finding_has_the_grade_of_its_weakest_evidence() -> None:
    captured = source("head", "pmlr-volume-header", grade="captured", header=HEADER)
    records = [says("title", TITLE), says("venue", "iclr 2019"), captured]
    (weak,) = checks("volume-venue", *records, entry())
    strong_entry = source("toc", "pmlr-entry", grade="captured", title=TITLE, volume=7)
    (strong,) = checks("volume-venue", *records, strong_entry)
    assert (weak.grade, strong.grade) == ("transcribed", "captured")


def test_the_same_store_gives_the_same_checks() -> None:
    records = [paper(), NOTE, says("title", TITLE), says("venue", "iclr 2019"), entry(), HEAD]
    one = check_paper("1901.00001", Store.of(records))
    other = check_paper("1901.00001", Store.of(records))
    assert [c.check_id for c in one] == [c.check_id for c in other]


@pytest.mark.parametrize(
    "evidence",
    [
        source("h", "arxiv-versions", "arxiv", arxiv_id="1901.00001", versions=["v1"]),
        source("h", "arxiv-versions", "arxiv", arxiv_id="1901.00001", versions=[{"version": 1}]),
        source("h", "pmlr-volume", volume=130),
        source("note", "record", "note", shapes={"S": 3}),
    ],
)
def test_evidence_in_a_form_that_no_rule_knows_is_unavailable_and_no_crash(
    evidence: Evidence,
) -> None:
    records = [evidence, says("first posted", "2019-01-01"), says("PMLR v130", "x"),
               says("update rule", "S + S"), says("title", TITLE)]  # fmt: skip
    found = check_paper("1901.00001", store_of(*records))
    assert "wrong" not in {c.severity for c in found}


@pytest.mark.parametrize("day", ["22 Feb 2021", "2019-01"])
def test_a_date_in_another_form_is_not_called_false(day: str) -> None:
    assert outcomes("version-dates", says("first posted", day), versions(TITLE)) == [
        (day, "unavailable")
    ]


def test_a_volume_that_the_evidence_leaves_out_contradicts_nothing() -> None:
    toc = source("toc", "pmlr-entry", title=TITLE, authors=AUTHORS)
    found = checks("bibliographic-fields", says("volume", "PMLR 7"), toc)
    assert [c.field for c in found] == ["authors"]


def test_evidence_that_is_not_in_the_store_counts_as_the_lowest_grade() -> None:
    said = says("first posted", "2019-01-01", by="lost")
    found = check_paper("1901.00001", store_of(said, says("arxiv id", "1901.00001")))
    assert {c.grade for c in found if "lost" in c.evidence_ids} == {"transcribed"}


@pytest.mark.parametrize(("declared", "severity"), [("contested", "outdated"), ("odd", "wrong")])
def test_a_declared_status_that_is_none_is_wrong(declared: str, severity: str) -> None:
    records = [says("venue status", declared), says("venue", "iclr 2019"), entry(), HEAD]
    (check,) = checks("declared-status", *records)
    assert check.severity == severity


def test_a_declared_status_counts_a_value_once_however_it_is_written() -> None:
    records = [says("venue", "iclr 2019"), says("venue", "ICLR 2019"), entry(), HEAD]
    (check,) = checks("declared-status", says("venue status", "verified"), *records)
    assert check.outcome == "confirmed"
