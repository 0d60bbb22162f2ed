"""The parsers of the sources on answers with the traits that real ones have.

Formats: SOURCES in the modules' docstrings. Each fake of ``world`` answers in its source's form, so
what it says is read back; below that are the oddities, one a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.sources import arxiv, crossref, dblp, openalex, openreview, pmlr, semantic_scholar
from provenance.works import Request, Work
from records.errors import UnreadableAnswer
from tests.provenance.loopback import Handler
from tests.provenance.world import WorldWork
from tests.provenance.world.papers import GATED_DELTANET, PAPERS, PERFORMER, ROFORMER, SCHLAG
from tests.provenance.world.whole import routes

Parse = Callable[[bytes, str], list[Work]]
EID = "warc:1-2"
PARSERS: dict[str, Parse] = {
    "arXiv": arxiv.parse,
    "PMLR citeproc": pmlr.parse_citeproc,
    "PMLR page": pmlr.parse_paper_page,
    "OpenReview": openreview.parse,
    "DBLP": dblp.parse,
    "Crossref": crossref.parse,
    "OpenAlex": openalex.parse,
    "Semantic Scholar": semantic_scholar.parse,
}


def answer(request: Request) -> bytes:
    """The body with which the world answers a request."""
    parts = urlsplit(request.url)
    places: dict[str, Handler] = routes()
    key = max((k for k in places if f"{parts.netloc}{parts.path}".startswith(k)), key=len)
    return places[key](parts.path, parse_qs(parts.query), {}).body


def one(works: list[Work], title: str) -> Work:
    [found] = [w for w in works if w.title == title and w.kind != "preprint"]
    return found


# What the world says is read back


@pytest.mark.parametrize("paper", [SCHLAG, PERFORMER, ROFORMER], ids=lambda p: p.title[:12])
def test_dblp_tells_publication_and_preprint_apart(paper: WorldWork) -> None:
    found = dblp.parse(answer(dblp.title_request(paper.title)), EID)
    published, preprint = sorted(found, key=lambda work: work.kind == "preprint")
    assert (published.authors, published.year) == (paper.authors, paper.year)
    assert (published.series, published.pages) == (paper.series, paper.pages)
    assert (preprint.arxiv_id, preprint.venue) == (paper.arxiv_id, None)


def test_a_volume_s_file_has_venue_and_pages_of_each_paper() -> None:
    work = one(pmlr.parse_citeproc(answer(pmlr.citeproc_request("139")), EID), SCHLAG.title)
    assert (work.series, work.year, work.volume) == ("icml", 2021, "139")
    assert (work.authors, work.pages) == (SCHLAG.authors, SCHLAG.pages)


def test_a_paper_s_page_says_the_same_as_the_volume_s_file() -> None:
    [page] = pmlr.parse_paper_page(answer(pmlr.paper_request("139", "schlag21a")), EID)
    file = one(pmlr.parse_citeproc(answer(pmlr.citeproc_request("139")), EID), SCHLAG.title)
    for name in ("title", "authors", "year", "series", "volume", "pages", "url", "work_key"):
        assert getattr(page, name) == getattr(file, name), name


def test_arxiv_describes_the_version_that_was_asked_for() -> None:
    works = arxiv.parse(answer(arxiv.ids_request(["2102.11174v1", "2102.11174"])), EID)
    assert {w.work_key: w.title for w in works} == {
        "2102.11174v1": SCHLAG.titles[0],
        "2102.11174v3": SCHLAG.titles[-1],
    }
    [whole] = arxiv.with_former_titles(works)
    assert (whole.title, whole.former_titles) == (SCHLAG.titles[-1], (SCHLAG.titles[0],))


@pytest.mark.parametrize("paper", [PERFORMER, GATED_DELTANET], ids=["v1", "v2"])
def test_openreview_s_two_apis_say_where_a_paper_was_accepted(paper: WorldWork) -> None:
    requests = openreview.note_requests(str(paper.openreview_id))
    bodies = [answer(request) for request in requests]
    [work] = [w for body in bodies if b'"notes"' in body for w in openreview.parse(body, EID)]
    assert (work.series, work.year, work.kind) == ("iclr", paper.year, "proceedings")
    assert work.authors == paper.authors


def test_openalex_takes_no_venue_from_the_primary_place() -> None:
    [work] = openalex.parse(answer(openalex.title_request(SCHLAG.title)), EID)
    assert (work.venue, work.arxiv_id, work.doi) == (None, SCHLAG.arxiv_id, None)
    assert work.url == "https://proceedings.mlr.press/v139/schlag21a.html"
    [journal] = openalex.parse(answer(openalex.title_request(ROFORMER.title)), EID)
    assert (journal.venue, journal.kind) == ("Neurocomputing", "journal")
    assert journal.authors == ROFORMER.authors  # as on the work, not as in the profiles


def test_crossref_joins_title_and_subtitle() -> None:
    [work] = crossref.parse(answer(crossref.doi_request(str(ROFORMER.doi))), EID)
    assert (work.title, work.year, work.volume) == (ROFORMER.title, 2024, "568")
    assert work.retracted is None


def test_semantic_scholar_s_dblp_key_tells_the_kind() -> None:
    [work] = semantic_scholar.parse(answer(semantic_scholar.match_request(SCHLAG.title)), EID)
    assert (work.kind, work.dblp_key, work.arxiv_id) == (
        "proceedings", SCHLAG.dblp_key, SCHLAG.arxiv_id,
    )  # fmt: skip
    titans = PAPERS[-2]
    [preprint] = semantic_scholar.parse(answer(semantic_scholar.match_request(titans.title)), EID)
    assert (preprint.kind, preprint.venue) == ("preprint", None)


# Other bodies


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!DOCTYPE html><html><body>Just a moment...</body></html>",
        b'{"result": {"hits": ',
        b"Rate exceeded.",
        b'{"name": "ChallengeRequiredError", "status": 403}',
        b"[1, 2, 3]",
        b"null",
        b"\xff\xfe\x00broken",
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><feed>&b;</feed>',
        b"[" * 100_000,
        b"- " * 100_000,
        b"{a: " * 100_000,
        b"<a>" * 100_000,
    ],
    ids=["empty", "html", "cut", "throttled", "challenge", "list", "null", "charset", "entities",
         "nested lists", "nested items", "nested objects", "nested elements"],
)  # fmt: skip
def test_a_body_of_another_form_is_unreadable_and_no_absence(name: str, body: bytes) -> None:
    with pytest.raises(UnreadableAnswer):
        PARSERS[name](body, EID)


@given(st.binary(max_size=200), st.sampled_from(sorted(PARSERS)))
def test_no_bytes_raise_anything_else(body: bytes, name: str) -> None:
    with suppress(UnreadableAnswer):
        PARSERS[name](body, EID)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["key", "title", "authors", "year", "venue", "doi", "DOI", "issued", "author", "id",
             "locations", "authorships", "paperId", "externalIds", "publicationVenue", "journal",
             "container-title", "subtitle", "biblio", "content", "forum", "details", "volume"]
        ),
        _json,
    )
)  # fmt: skip
def test_fields_of_any_kind_are_tolerated(item: dict[str, Any]) -> None:
    """What a source gives in another form counts as not given."""
    dblp.describe(item, EID)
    openalex.describe(item, EID)
    semantic_scholar.describe(item, EID)
    crossref.parse(json.dumps({"status": "ok", "message": {"items": [item]}}).encode(), EID)
    openreview.parse(json.dumps({"notes": [item]}).encode(), EID)


# arXiv


def feed(entry: str) -> bytes:
    return f"""<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom">
<entry><id>https://arxiv.org/abs/2102.11174v3</id><title>A
  B</title>{entry}</entry></feed>""".encode()


def test_an_absent_comment_is_not_an_empty_one() -> None:
    [absent] = arxiv.parse(feed(""), EID)
    [empty] = arxiv.parse(feed("<arxiv:comment/>"), EID)
    [given_] = arxiv.parse(feed("<arxiv:comment>ICML 2021,\n 9 pages</arxiv:comment>"), EID)
    assert [absent.comment, empty.comment, given_.comment] == [None, "", "ICML 2021, 9 pages"]


def test_the_journal_reference_that_authors_type_is_no_venue() -> None:
    [work] = arxiv.parse(feed("<arxiv:journal_ref>ICLR 2021</arxiv:journal_ref>"), EID)
    assert (work.venue, work.series, work.journal_ref) == (None, None, "ICLR 2021")


def test_an_error_entry_is_no_paper() -> None:
    """arXiv answers a malformed identifier with status 200 and one entry titled Error."""
    body = answer(
        Request(source="arXiv", url="https://export.arxiv.org/api/query?id_list=nonsense")
    )
    with pytest.raises(UnreadableAnswer, match="incorrect id format"):
        arxiv.parse(body, EID)


def test_an_empty_page_has_no_entries() -> None:
    assert arxiv.parse(answer(arxiv.ids_request(["9999.99999"])), EID) == []


def test_one_request_serves_many_identifiers() -> None:
    request = arxiv.ids_request(["2106.06295", "2102.11174v1", "2106.06295"])
    assert parse_qs(urlsplit(request.url).query)["id_list"] == ["2102.11174v1,2106.06295"]


def test_our_reading_of_a_feed_agrees_with_the_arxiv_package() -> None:
    """An oracle that we did not write; it tells no empty element from an absent one."""
    _feed = pytest.importorskip("arxiv._feed")  # since version 4
    body = answer(arxiv.ids_request([str(p.arxiv_id) for p in PAPERS]))
    theirs, ours = _feed.parse(body).results, arxiv.parse_results(body)
    assert len(ours) == len(PAPERS)
    for one_, other in zip(ours, theirs, strict=True):
        for name in ("entry_id", "title", "published", "updated", "comment", "journal_ref", "doi"):
            assert getattr(one_, name) == getattr(other, name)
        assert [a.name for a in one_.authors] == [a.name for a in other.authors]


# PMLR


@pytest.mark.parametrize("markup", ["paper", "publications__item"])
def test_a_volume_s_page_is_read_in_either_markup(markup: str) -> None:
    body = answer(pmlr.volume_request("139"))
    if markup != "paper":
        body = body.replace(b'class="paper"', b'class="publications__item"')
    page = pmlr.parse_volume_page(body)
    assert page.header is not None
    assert (page.header.volume, str(page.header.venue)) == ("139", "icml 2021")
    [paper] = [p for p in page.papers if p.title == SCHLAG.title]
    assert (paper.authors, paper.pages) == (SCHLAG.authors, SCHLAG.pages)
    assert paper.url == "https://proceedings.mlr.press/v139/schlag21a.html"


def test_a_page_whose_papers_are_marked_up_otherwise_is_unreadable_and_not_empty() -> None:
    body = answer(pmlr.volume_request("139")).replace(b'class="paper"', b'class="item"')
    with pytest.raises(UnreadableAnswer, match="marked up in another way"):
        pmlr.parse_volume_page(body)


def test_the_year_of_a_page_is_not_that_of_the_posting_on_the_web() -> None:
    """v119 was put online on 2020-11-21; what counts is the line with the pages."""
    body = answer(pmlr.paper_request("119", "katharopoulos20a"))
    [work] = pmlr.parse_paper_page(body.replace(b"2020/11/21", b"2022/01/01"), EID)
    assert work.year == 2020


def test_suffixes_and_particles_stay_with_the_name() -> None:
    body = b"""- title: T
  author: [{given: Ludwig, prefix: van, family: Beethoven, suffix: Jr.}, Madonna]
  volume: '5'
"""
    [work] = pmlr.parse_citeproc(body, EID)
    assert work.authors == ("Ludwig van Beethoven Jr.", "Madonna")
    assert (work.year, work.pages, work.venue) == (None, None, None)


# OpenReview


@pytest.mark.parametrize(
    "venue", ["Submitted to ICLR 2026", "ICLR 2024 Conference Withdrawn Submission", "CoRR 2021"]
)
def test_a_submission_is_no_publication(venue: str) -> None:
    note = {"id": "x", "content": {"title": {"value": "T"}, "venue": {"value": venue}}}
    [work] = openreview.parse(json.dumps({"notes": [note]}).encode(), EID)
    assert (work.kind, work.venue) == ("preprint", None)


def test_a_rejected_paper_of_api_v1_is_no_publication() -> None:
    from tests.provenance.world.openreview import note_v1

    rejected = WorldWork(**{**vars(PERFORMER), "extra": {"decision": "reject"}})
    body = json.dumps({"notes": [note_v1(rejected), note_v1(PERFORMER)]}).encode()
    assert [w.kind for w in openreview.parse(body, EID)] == ["preprint", "proceedings"]


def test_a_workshop_at_a_conference_is_not_the_conference() -> None:
    venue = {"venue": {"value": "NeurIPS 2021 Workshop DistShift Poster"},
             "venueid": {"value": "NeurIPS.cc/2021/Workshop/DistShift"}}  # fmt: skip
    note = {"id": "x", "content": {"title": {"value": "T"}, **venue}}
    [work] = openreview.parse(json.dumps({"notes": [note]}).encode(), EID)
    assert (work.kind, work.series) == ("workshop", None)


def test_what_openreview_took_from_dblp_speaks_as_dblp() -> None:
    venue = {"venue": "ICML 2019", "venueid": "dblp.org/conf/ICML/2019"}
    note = {"id": "x", "content": {"title": "T", **venue}}
    [work] = openreview.parse(json.dumps({"notes": [note]}).encode(), EID)
    assert (work.authority, work.series, work.year) == ("dblp", "icml", 2019)


# DBLP


def hit(**info: Any) -> bytes:
    hits = {"hit": [{"info": {"key": "conf/icml/X21", "title": "T.", **info}}]}
    return json.dumps({"result": {"hits": hits}}).encode()


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Attention Is All You Need.", "Attention Is All You Need"),
        ("Is it so?", "Is it so?"),
        ("Wait ...", "Wait ..."),
        ("Q &amp; A &lt;i&gt;.", "Q & A <i>"),
    ],
)
def test_dblp_s_full_stop_and_entities_are_no_part_of_a_title(title: str, expected: str) -> None:
    [work] = dblp.parse(hit(title=title), EID)
    assert work.title == expected


def test_a_single_author_is_an_object_and_a_namesake_has_a_number() -> None:
    [work] = dblp.parse(hit(authors={"author": {"@pid": "1", "text": "Jing Zhang 0052"}}), EID)
    assert work.authors == ("Jing Zhang",)


@pytest.mark.parametrize(
    ("venue", "series", "kind"),
    [
        ("ICML", "icml", "proceedings"),
        ("ECCV (12)", "eccv", "proceedings"),
        ("SVRHM@NeurIPS", None, "workshop"),
        ("NeurIPS (Workshops)", None, "workshop"),
        ("ICMLA", None, "proceedings"),
    ],
)
def test_the_series_is_the_venue_s_whole_name(venue: str, series: str | None, kind: str) -> None:
    [work] = dblp.parse(hit(venue=venue), EID)
    assert (work.series, work.kind) == (series, kind)


def test_no_hit_is_an_answer() -> None:
    assert dblp.parse(b'{"result": {"hits": {"@total": "0"}}}', EID) == []


# Crossref, OpenAlex, Semantic Scholar


def item(**fields: Any) -> bytes:
    message = {"DOI": "10.1/X", "title": ["T"], "type": "journal-article", **fields}
    return json.dumps({"status": "ok", "message": message}).encode()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"title": ["A <i>B</i> &amp; C"]}, "A B & C"),
        ({"title": ["A"], "subtitle": ["B"]}, "A: B"),
        ({"title": ["A: B"], "subtitle": ["B"]}, "A: B"),
        ({"title": ["A", "A, in German"]}, "A"),
        ({"title": ["P < 0.05 and Q > 3"]}, "P < 0.05 and Q > 3"),
    ],
)
def test_crossref_s_titles_lose_markup_only(fields: dict[str, Any], expected: str) -> None:
    [work] = crossref.parse(item(**fields), EID)
    assert work.title == expected


def test_crossref_s_names_have_one_part_or_are_an_organisation_s() -> None:
    authors = [{"given": "Ada", "family": "Lovelace"}, {"family": "Plato"}, {"name": "CERN"}, {}]
    [work] = crossref.parse(item(author=authors), EID)
    assert work.authors == ("Ada Lovelace", "Plato", "CERN")


@pytest.mark.parametrize(
    "fields",
    [{"updated-by": [{"type": "retraction"}]}, {"title": ["RETRACTED: T"]}],
)
def test_a_retraction_is_seen_by_update_and_by_title(fields: dict[str, Any]) -> None:
    [work] = crossref.parse(item(**fields), EID)
    assert work.retracted is True


def test_a_preprint_server_is_no_venue() -> None:
    fields = {"type": "posted-content", "container-title": ["bioRxiv"]}
    [work] = crossref.parse(item(**fields), EID)
    assert (work.kind, work.venue) == ("preprint", None)


def test_openalex_with_two_venues_has_none() -> None:
    places = [{"source": {"display_name": name, "type": "journal"}} for name in ("A", "B")]
    work = openalex.describe({"id": "W1", "title": "T", "locations": places}, EID)
    assert work is not None
    assert work.venue is None


@pytest.mark.parametrize("venue", ["arXiv.org", "ArXiv", "CoRR"])
def test_a_repository_is_no_venue_of_semantic_scholar_s(venue: str) -> None:
    work = semantic_scholar.describe({"paperId": "1", "title": "T", "venue": venue}, EID)
    assert work is not None
    assert (work.venue, work.kind) == (None, "preprint")
