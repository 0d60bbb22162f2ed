"""Citations against works: which one is meant, what is wrong with it, and what is only unknown.

Facts of papers are those of PMLR v139 (Schlag et al.), PMLR v119 (Katharopoulos et al.), DBLP
(Irie et al., Choromanski et al.) and arXiv, as ``provenance/data/known_works.jsonl`` has them.
"""

from __future__ import annotations

import string
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance.citation_checks import duplicates, judge
from provenance.identity import cluster, identify
from provenance.works import CitationFinding, CitationReport, Reference, Work

TITLE = "Linear Transformers Are Secretly Fast Weight Programmers"
OLD_TITLE = "Linear Transformers Are Secretly Fast Weight Memory Systems"
AUTHORS = ("Imanol Schlag", "Kazuki Irie", "Jürgen Schmidhuber")
ICML = "International Conference on Machine Learning"


def work(**changes: Any) -> Work:
    fields: dict[str, Any] = {
        "source": "PMLR",
        "authority": "proceedings",
        "work_key": "v139/schlag21a",
        "title": TITLE,
        "authors": AUTHORS,
        "year": 2021,
        "kind": "proceedings",
        "venue": ICML,
        "series": "icml",
        "volume": "139",
        "pages": "9355-9366",
        "url": "https://proceedings.mlr.press/v139/schlag21a.html",
        "evidence_id": "e-pmlr",
    }
    return Work(**(fields | changes))


def preprint(**changes: Any) -> Work:
    fields: dict[str, Any] = {
        "source": "arXiv",
        "authority": "arxiv",
        "work_key": "2102.11174v3",
        "title": TITLE,
        "former_titles": (OLD_TITLE,),
        "authors": AUTHORS,
        "year": 2021,
        "last_year": 2021,
        "kind": "preprint",
        "arxiv_id": "2102.11174",
        "evidence_id": "e-arxiv",
    }
    return Work(**(fields | changes))


PERFORMER = "Rethinking Attention with Performers"
PERFORMER_AUTHORS = ("Krzysztof Marcin Choromanski", "Valerii Likhosherstov", "David Dohan")


def performer(**changes: Any) -> Work:
    fields: dict[str, Any] = {
        "source": "DBLP",
        "authority": "dblp",
        "work_key": "conf/iclr/ChoromanskiLDSG21",
        "title": PERFORMER,
        "authors": PERFORMER_AUTHORS,
        "year": 2021,
        "kind": "proceedings",
        "venue": "ICLR",
        "series": "iclr",
        "evidence_id": "e-dblp",
    }
    return Work(**(fields | changes))


def performer_preprint(**changes: Any) -> Work:
    fields: dict[str, Any] = {
        "source": "arXiv",
        "authority": "arxiv",
        "work_key": "2009.14794v4",
        "title": PERFORMER,
        "authors": PERFORMER_AUTHORS,
        "year": 2020,
        "last_year": 2022,
        "kind": "preprint",
        "arxiv_id": "2009.14794",
        "evidence_id": "e-arxiv",
    }
    return Work(**(fields | changes))


def cite(**changes: Any) -> Reference:
    fields: dict[str, Any] = {
        "key": "schlag2021",
        "position": 1,
        "format": "bibtex",
        "raw": "@inproceedings{schlag2021, ...}",
        "entry_type": "inproceedings",
        "title": TITLE,
        "authors": AUTHORS,
        "year": 2021,
        "venue": ICML,
    }
    return Reference(**(fields | changes))


def judged(reference: Reference, *works: Work) -> CitationReport:
    return judge(reference, works or (work(), preprint()), ["PMLR", "arXiv"], {})


def faults(report: CitationReport) -> dict[str, str]:
    return {f.field: f.severity for f in report.findings if f.severity}


def finding(report: CitationReport, field: str) -> CitationFinding:
    return next(f for f in report.findings if f.field == field)


# A citation that is right


def test_a_right_citation_is_correct_and_names_its_evidence() -> None:
    report = judged(cite(pages="9355--9366", volume="139"))
    assert (report.verdict, report.existence, faults(report)) == ("correct", "found", {})
    confirmed = {f.field: f.evidence_ids for f in report.findings if f.outcome == "confirmed"}
    assert confirmed.keys() >= {"title", "authors", "venue", "year", "pages", "volume"}
    assert confirmed["pages"] == ("e-pmlr",)


@pytest.mark.parametrize(
    "changes",
    [
        {"title": TITLE.lower()},
        {"title": TITLE.replace("Secretly", "Secretely")},
        {"authors": ("Schlag, I.", "Irie, K.", "Schmidhuber, J.")},
        {"authors": ("Imanol Schlag", "Kazuki Irie", "Jurgen Schmidhuber")},
        {"authors": ("Imanol Schlag", "Kazuki Irie", "Juergen Schmidhuber")},
        {"authors": ("Irie Kazuki", "Schlag Imanol")[::-1], "truncated": True},
        {"authors": ("Imanol Schlag",), "truncated": True},
        {"authors": ("Schlag I", "Irie K", "Schmidhuber J")},
        {"venue": "Proc. Int. Conf. on Machine Learning (ICML)"},
        {"venue": "Proceedings of the 38th International Conference on Machine Learning"},
        {"venue": "ICML 2021"},
        {"venue": "Proceedings of Machine Learning Research", "volume": "139"},
        {"pages": "9355-9366"},
        {"arxiv_id": "2102.11174"},
    ],
    ids=str,
)
def test_other_ways_of_writing_what_is_right_are_no_fault(changes: dict[str, Any]) -> None:
    report = judged(cite(**changes))
    assert report.verdict == "correct"
    assert set(faults(report).values()) <= {"style"}


# Titles


def test_a_former_title_with_the_published_venue_is_wrong() -> None:
    report = judged(cite(title=OLD_TITLE))
    assert faults(report)["title"] == "wrong"
    assert finding(report, "title").found == TITLE


def test_a_former_title_of_the_preprint_is_outdated() -> None:
    reference = cite(title=OLD_TITLE, venue=None, entry_type="misc", arxiv_id="2102.11174")
    report = judged(reference)
    assert report.verdict == "outdated"
    assert faults(report) == {"title": "outdated", "venue": "outdated"}


def test_a_copy_of_the_preprints_record_with_the_old_title_does_not_make_that_title_right() -> None:
    # DBLP's CoRR records keep the title of the first version
    copy = preprint(
        source="DBLP", authority="dblp", work_key="journals/corr/abs-2102-11174",
        title=OLD_TITLE, former_titles=(),
    )  # fmt: skip
    report = judged(cite(title=OLD_TITLE), work(), preprint(former_titles=()), copy)
    assert faults(report) == {"title": "wrong"}
    assert finding(report, "title").found == TITLE


@pytest.mark.parametrize(
    "title",
    [
        f"{TITLE} in PyTorch",
        "Linear Transformers Are Secretly Weight Programmers",
        "Linear Transformers Are Secretly Slow Weight Programmers",
        "Fast Transformers Are Secretly Linear Weight Programmers",
    ],
)
def test_words_added_left_out_replaced_or_swapped_make_a_title_wrong(title: str) -> None:
    assert faults(judged(cite(title=title))) == {"title": "wrong"}


GDN = "Gated Delta Networks: Improving Mamba2 with Delta Rule"  # arXiv 2412.06464


def gated(**changes: Any) -> Work:
    authors = ("Songlin Yang", "Jan Kautz", "Ali Hatamizadeh")
    fields: dict[str, Any] = {
        "source": "DBLP", "authority": "dblp", "work_key": "conf/iclr/YangKH25", "title": GDN,
        "authors": authors, "year": 2025, "kind": "proceedings", "venue": "ICLR",
        "series": "iclr", "evidence_id": "e",
    }  # fmt: skip
    return Work(**(fields | changes))


def test_a_left_out_subtitle_is_style_and_an_invented_one_is_wrong() -> None:
    base = {"authors": gated().authors, "year": 2025, "venue": "ICLR"}
    short = judged(cite(title="Gated Delta Networks", **base), gated())
    assert (short.verdict, faults(short)) == ("correct", {"title": "style"})
    invented = judged(cite(title="Gated Delta Networks: A Unified Theory", **base), gated())
    assert faults(invented) == {"title": "wrong"}


def test_a_title_that_is_nearly_that_of_another_work_is_not_found_and_not_wrong() -> None:
    other = cite(title="Gated Linear Networks", authors=("Joel Veness", "Tor Lattimore"), year=2021)
    report = judged(other, gated())
    assert (report.existence, report.verdict) == ("not found", "unverifiable")
    assert "no proof" in finding(report, "existence").reason


def test_the_second_part_of_a_series_is_not_taken_for_the_first() -> None:
    first = gated(title="Tensor Programs I: Wide Networks of Any Architecture", evidence_id="e1")
    second = cite(
        title="Tensor Programs II: Wide Networks of Any Architecture",
        authors=first.authors, year=2025, venue=None,
    )  # fmt: skip
    assert identify(second, [first]).title != "similar"


# Authors


@pytest.mark.parametrize(
    ("authors", "told"),
    [
        (AUTHORS[:2], "left out without"),
        ((AUTHORS[0], AUTHORS[2], AUTHORS[1]), "another order"),
        ((*AUTHORS, "Ada Lovelace"), "Ada Lovelace"),
        ((AUTHORS[0], "Ada Lovelace", AUTHORS[2]), "Ada Lovelace"),
        (("Ada Lovelace", *AUTHORS[1:]), "Ada Lovelace"),
        ((AUTHORS[0], AUTHORS[2]), "left out in the middle"),
        (("Xu Schlag", *AUTHORS[1:]), "another given name"),
    ],
)
def test_another_list_of_authors_is_wrong(authors: tuple[str, ...], told: str) -> None:
    report = judged(cite(authors=authors))
    assert faults(report) == {"authors": "wrong"}
    assert told in finding(report, "authors").reason


def test_et_al_after_somebody_who_is_not_the_first_author_is_wrong() -> None:
    report = judged(cite(authors=("Irie",), truncated=True, format="plain", entry_type=None))
    assert faults(report)["authors"] == "wrong"


@pytest.mark.parametrize("name", ["LeCun", "McAllester", "Cohen-Addad", "O'Neil"])
def test_a_family_name_with_a_capital_inside_is_no_team(name: str) -> None:
    report = judged(cite(authors=(name,), truncated=True))
    assert faults(report) == {"authors": "wrong"}


def test_a_short_form_of_a_given_name_is_at_most_style() -> None:
    listed = work(authors=("Robert Klein", "Johannes Gross"))
    report = judged(cite(authors=("Bob Klein", "Hans Gross")), listed)
    assert (report.verdict, faults(report)) == ("correct", {"authors": "style"})


def test_two_authors_with_one_initial_and_family_name_keep_their_order() -> None:
    listed = work(authors=("Jiangang Bai", "Yue Wu", "Jing Bai"))  # as in PMLR v139, bai21a
    assert judged(cite(authors=("J. Bai", "Y. Wu", "J. Bai")), listed).verdict == "correct"


def test_a_team_stands_for_its_members_and_the_other_way_round() -> None:
    team = preprint(title="Kimi Linear", authors=("Kimi Team",), former_titles=())
    people = preprint(title="Kimi Linear", authors=("Yu Zhang", "Zhilin Yang"), former_titles=())
    for names, listed in ((("Yu Zhang", "Zhilin Yang"), team), (("Kimi Team",), people)):
        reference = cite(title="Kimi Linear", authors=names, venue=None, arxiv_id="2102.11174")
        assert judged(reference, listed).verdict == "correct"


def test_a_placeholder_or_no_author_is_incomplete() -> None:
    placeholder = cite(authors=("see arXiv",), problems=("the author field holds no name",))
    for reference in (placeholder, cite(authors=())):
        report = judged(reference)
        assert (report.verdict, faults(report)) == ("incomplete", {"authors": "incomplete"})


def test_a_list_that_agrees_with_a_second_reliable_source_is_not_wrong() -> None:
    other_order = preprint(authors=(AUTHORS[1], AUTHORS[0], AUTHORS[2]))
    reference = cite(authors=other_order.authors)
    assert judged(reference, work(), other_order).verdict == "correct"


# Years and venues


def test_the_preprints_year_with_the_venue_is_wrong() -> None:
    reference = cite(title=PERFORMER, authors=PERFORMER_AUTHORS, venue="ICLR", year=2020)
    report = judged(reference, performer(), performer_preprint())
    assert faults(report) == {"year": "wrong"}
    assert "preprint's year" in finding(report, "year").reason


def test_a_catalogue_does_not_outweigh_dblp_in_year_and_venue() -> None:
    catalogue = performer(
        source="OpenAlex", authority="openalex", work_key="W1", year=2020, venue="ICML",
        series="icml",
    )  # fmt: skip
    base = {"title": PERFORMER, "authors": PERFORMER_AUTHORS}
    year = judged(cite(**base, venue="ICLR", year=2020), performer(), catalogue)
    assert faults(year) == {"year": "wrong"}
    venue = judged(cite(**base, venue="ICML", year=2021), performer(), catalogue)
    assert faults(venue) == {"venue": "wrong"}


def test_the_preprints_year_is_fine_for_the_preprint() -> None:
    reference = cite(
        title=PERFORMER, authors=PERFORMER_AUTHORS, venue=None, year=2020, arxiv_id="2009.14794"
    )
    assert judged(reference, performer_preprint()).verdict == "correct"
    published = judged(reference, performer(), performer_preprint())
    assert (published.verdict, faults(published)) == ("outdated", {"venue": "outdated"})


def test_the_year_of_a_later_version_without_the_identifier_is_wrong() -> None:
    reference = cite(
        title=PERFORMER, authors=PERFORMER_AUTHORS, venue=None, year=2022,
        format="plain", entry_type=None,
    )  # fmt: skip
    assert faults(judged(reference, performer(), performer_preprint()))["year"] == "wrong"


def test_two_years_in_one_reference_need_no_source_to_be_wrong() -> None:
    report = judge(cite(year=2026, venue="NeurIPS 2025"), [], [], {"DBLP": "time-out"})
    assert (report.existence, report.verdict) == ("not checkable", "wrong")
    assert faults(report) == {"year": "wrong"}


def test_another_conference_is_wrong() -> None:
    report = judged(cite(venue="ICLR"))
    assert faults(report) == {"venue": "wrong"}
    assert finding(report, "venue").found == f"{ICML} 2021"


def test_a_workshop_is_not_upgraded_to_the_conference() -> None:
    report = judged(cite(venue="ICML Workshop on Fast Weights"))
    assert finding(report, "venue").outcome == "unavailable"
    assert (report.existence, report.verdict) == ("found", "unverifiable")


def test_a_workshop_paper_cited_at_the_conference_is_wrong() -> None:
    at_workshop = work(
        source="OpenReview", authority="proceedings", kind="workshop", venue="ICML 2021 Workshop",
        volume=None, pages=None, url=None,
    )  # fmt: skip
    assert faults(judged(cite(), at_workshop, preprint())) == {"venue": "wrong"}
    right = judged(cite(venue="Workshop on Fast Weights, ICML"), at_workshop, preprint())
    assert right.verdict == "correct"


def test_a_venue_of_a_work_that_is_known_as_a_preprint_only_is_unverifiable() -> None:
    report = judged(cite(), preprint())
    assert (report.existence, report.verdict) == ("found", "unverifiable")


@pytest.mark.parametrize(
    ("cited", "listed", "series", "outcome"),
    [
        ("WMT", "Conference on Machine Translation", None, "unavailable"),
        ("Conference on Language Modeling", "COLM", None, "unavailable"),
        (
            "Trans. Mach. Learn. Res.",
            "Transactions on Machine Learning Research",
            None,
            "confirmed",
        ),
        ("Int. Conf. Mach. Learn.", "ICML", "icml", "confirmed"),
        ("J. Mach. Learn. Res.", "JMLR", None, "confirmed"),
        ("WMT", "ICML", "icml", "contradicted"),
        ("ICML", "COLM", None, "contradicted"),
    ],
)
def test_short_names_of_venues_are_understood_or_left_open(
    cited: str, listed: str, series: str | None, outcome: str
) -> None:
    found = work(venue=listed, series=series, volume=None)
    assert finding(judged(cite(venue=cited), found), "venue").outcome == outcome


def test_a_conference_in_the_journal_field_is_style() -> None:
    report = judged(cite(entry_type="article", venue="ICML", fields={"journal": "ICML"}))
    assert (report.verdict, faults(report)) == ("correct", {"entry_type": "style"})


def test_the_wrong_volume_and_wrong_pages_are_wrong_and_missing_ones_no_fault() -> None:
    report = judged(cite(volume="130", pages="1-12"))
    assert faults(report) == {"volume": "wrong", "pages": "wrong"}
    assert judged(cite()).verdict == "correct"


def test_no_venue_of_a_published_work_is_incomplete_only_if_the_rest_is_right() -> None:
    assert judged(cite(venue=None)).verdict == "incomplete"
    assert judged(cite(venue=None, authors=("Ada Lovelace",))).verdict == "wrong"


def test_a_catalogue_alone_does_not_make_a_venue_wrong() -> None:
    catalogue = work(
        source="OpenAlex", authority="openalex", venue="Neurocomputing", series=None,
        kind="journal", pages=None, volume=None, url=None,
    )  # fmt: skip
    listed = work(source="DBLP", authority="dblp", url=None)
    assert judged(cite(), listed, catalogue).verdict == "correct"


# Identifiers


def test_the_identifier_of_another_work_is_wrong_and_the_title_decides() -> None:
    stranger = preprint(
        title="AFLNet Five Years Later", authors=("Ruijie Meng",), former_titles=(),
        arxiv_id="2412.20324", work_key="2412.20324v1",
    )  # fmt: skip
    report = judged(cite(arxiv_id="2412.20324"), stranger, work(), preprint())
    assert faults(report) == {"arxiv_id": "wrong"}
    assert "AFLNet" in finding(report, "arxiv_id").reason
    assert finding(report, "arxiv_id").found == "2102.11174"
    assert {w.title for w in report.works} == {TITLE}


def test_a_doi_of_another_work_is_wrong() -> None:
    stranger = work(
        source="Crossref", authority="crossref", work_key="10.1/x", doi="10.1/x",
        title="Something Else Entirely", authors=("Ada Lovelace",), series=None, url=None,
    )  # fmt: skip
    assert faults(judged(cite(doi="10.1/x"), work(), stranger)) == {"doi": "wrong"}


def test_a_doi_that_crossref_does_not_have_is_no_error() -> None:
    report = judge(cite(doi="10.5555/3295222.3295349"), [work()], ["Crossref", "PMLR"], {})
    assert (report.verdict, faults(report)) == ("correct", {"doi": "style"})


# Which work is meant


def test_authors_and_years_decide_between_works_of_one_title() -> None:
    namesake = work(
        source="DBLP", authority="dblp", work_key="conf/x/Other24", authors=("Ada Lovelace",),
        year=2024, series="nips", venue="NeurIPS", url=None, volume=None, evidence_id="e-other",
    )  # fmt: skip
    report = judged(cite(), namesake, work(), preprint())
    assert report.verdict == "correct"
    assert all(w.authors == AUTHORS for w in report.works)
    other = judged(cite(authors=("Ada Lovelace",), year=2024, venue="NeurIPS"), namesake, work())
    assert [w.work_key for w in other.works] == ["conf/x/Other24"]


def test_works_of_one_title_between_which_nothing_decides_are_ambiguous() -> None:
    one = work(authors=("Ada Lovelace",), work_key="a", url=None)
    two = work(authors=("Alan Turing",), work_key="b", url=None)
    report = judged(cite(authors=(), venue=None, year=None, format="plain"), one, two)
    assert (report.existence, report.verdict) == ("ambiguous", "unverifiable")


def test_preprint_and_publication_are_one_work_and_namesakes_are_not() -> None:
    stranger = work(authors=("Ada Lovelace",), work_key="c", url=None)
    groups = cluster([preprint(), work(), stranger])
    assert sorted(len(group.works) for group in groups) == [1, 2]


def test_the_most_authoritative_source_comes_first() -> None:
    s2 = work(source="Semantic Scholar", authority="semantic_scholar", work_key="s2", url=None)
    report = judged(cite(), s2, preprint(), work(source="DBLP", authority="dblp"), work())
    assert [w.authority for w in report.works[:2]] == ["proceedings", "dblp"]


# What nobody says


def test_silent_sources_make_a_citation_uncheckable_and_not_wrong() -> None:
    report = judge(cite(), [], [], {"arXiv": "HTTP 503", "DBLP": "time-out"})
    assert (report.existence, report.verdict) == ("not checkable", "unverifiable")
    assert "HTTP 503" in finding(report, "existence").reason


def test_a_work_in_no_source_is_not_found_in_so_many_sources() -> None:
    report = judge(cite(), [], ["arXiv", "DBLP", "Crossref"], {})
    assert (report.existence, report.verdict) == ("not found", "unverifiable")
    assert "3 sources" in finding(report, "existence").reason


def test_a_retracted_work_is_outdated() -> None:
    assert faults(judged(cite(), work(retracted=True))) == {"retraction": "outdated"}


# Places that a reference names as its ground


@pytest.mark.parametrize(
    ("comment", "outcome", "severity"),
    [
        (None, "contradicted", "wrong"),
        ("Accepted at ICML 2021", "contradicted", "wrong"),
        ("ICLR 2021 camera-ready", "confirmed", None),
    ],
)
def test_what_the_arxiv_comment_is_said_to_say_is_held_against_it(
    comment: str | None, outcome: str, severity: str | None
) -> None:
    reference = cite(venue="ICLR 2021", basis="the arXiv comment field")
    found = finding(judged(reference, work(), preprint(comment=comment)), "basis")
    assert (found.outcome, found.severity) == (outcome, severity)


def test_an_arxiv_entry_that_was_not_read_says_nothing_of_its_comment() -> None:
    reference = cite(venue="ICLR 2021", basis="the arXiv comment field")
    assert finding(judged(reference, work()), "basis").outcome == "unavailable"


# Lists


def test_the_second_citation_of_a_work_in_a_list_names_the_first() -> None:
    first = judged(cite(key="a"))
    second = judged(cite(key="b", position=2, venue=None, arxiv_id="2102.11174"))
    alone, repeated = duplicates([first, second])
    assert (alone, repeated.verdict) == (first, "wrong")
    assert finding(repeated, "duplicate").found == "a"


def test_works_that_were_not_found_are_repeated_only_if_they_look_the_same() -> None:
    one = judge(cite(key="a"), [], ["DBLP"], {})
    same = judge(cite(key="b"), [], ["DBLP"], {})
    other = judge(cite(key="c", authors=("Ada Lovelace",)), [], ["DBLP"], {})
    reports = duplicates([one, same, other])
    assert ["duplicate" in faults(report) for report in reports] == [False, True, False]


# Whatever comes


_TEXT = st.one_of(
    st.none(),
    st.sampled_from([TITLE, OLD_TITLE, ICML, "ICML 2020", "2102.11174", "\x1b[31m", "<script>"]),
    st.text(max_size=30),
    st.text(alphabet=string.punctuation + " 0123456789", max_size=12),
)
_NAMES = st.lists(st.one_of(st.sampled_from(AUTHORS), st.text(max_size=12)), max_size=4).map(tuple)


@settings(max_examples=150)
@given(
    title=_TEXT, authors=_NAMES, venue=_TEXT, pages=_TEXT, volume=_TEXT, arxiv=_TEXT, doi=_TEXT,
    year=st.one_of(st.none(), st.integers(-5, 99999)), listed=_NAMES,
    form=st.sampled_from(["bibtex", "plain"]),
)  # fmt: skip
def test_any_reference_gets_a_report_whose_verdict_follows_from_its_findings(
    title: str | None, authors: tuple[str, ...], venue: str | None, pages: str | None,
    volume: str | None, arxiv: str | None, doi: str | None, year: int | None,
    listed: tuple[str, ...], form: str,
) -> None:  # fmt: skip
    reference = cite(
        title=title, authors=authors, venue=venue, pages=pages, volume=volume, arxiv_id=arxiv,
        doi=doi, year=year, format=form,
    )  # fmt: skip
    report = judged(reference, work(authors=listed), preprint())
    severe = set(faults(report).values()) - {"style"}
    assert (report.verdict in ("wrong", "outdated", "incomplete")) == bool(severe)
    assert report.existence == "found" or report.verdict != "correct"


@pytest.mark.parametrize("field", ["title", "venue", "volume", "pages", "url"])
@pytest.mark.parametrize("filling", [" ", "(", "1-", ": ", "Ab "])
def test_a_field_of_a_megabyte_is_judged_at_once(field: str, filling: str) -> None:
    started = time.monotonic()
    judged(cite(**{field: "x" + filling * (2**20 // len(filling)) + "x"}))
    assert time.monotonic() - started < 1


def test_thousands_of_authors_are_judged_at_once() -> None:
    names = tuple(f"Ada{i} Lovelace{i}" for i in range(5000))
    started = time.monotonic()
    report = judged(cite(authors=names[::-1]), work(authors=names))
    assert faults(report) == {"authors": "wrong"}
    assert time.monotonic() - started < 5


@given(st.permutations([work(), preprint(), performer(), performer_preprint(), gated()]))
@settings(max_examples=30)
def test_the_order_in_which_works_were_found_does_not_matter(works: list[Work]) -> None:
    report = judged(cite(arxiv_id="2009.14794"), *works)
    assert faults(report) == {"arxiv_id": "wrong"}
    assert [w.work_key for w in report.works] == ["v139/schlag21a", "2102.11174v3"]
