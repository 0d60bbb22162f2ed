"""What to ask about a reference, in which order: identifiers first, then the title, then more.

A reference is asked about until the owner of the proceedings or DBLP has told where the work was
published, or nobody is left to ask. What an identifier leads to is always looked at, since the
identifier may be another work's. arXiv is asked for up to a hundred identifiers in one request, and
PMLR for a whole volume.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from provenance.lookup import Dossier, Question
from provenance.match import fold, same_title, volume_number
from provenance.names import compare_names, share_an_author
from provenance.sources import arxiv, crossref, dblp, openalex, openreview, pmlr, semantic_scholar
from provenance.works import Reference, Work

BATCH = 100
"""Identifiers in one request to arXiv; longer URLs are refused."""

_ARXIV_DOI = re.compile(r"^10\.48550/arxiv\.(?P<id>.+)$", re.IGNORECASE)
_PMLR = re.compile(r"proceedings\.mlr\.press/v(?P<volume>r?\d+)(?:/(?P<paper>[a-z][\w-]*\d\d\w?))?")
_DECISIVE = ("proceedings", "dblp")


class SourcePlanner:
    """Plans questions to arXiv, DBLP, PMLR, OpenReview, Crossref, OpenAlex and Semantic Scholar."""

    def questions(self, dossier: Dossier) -> Sequence[Question]:
        """Return the questions that what is known suggests, the same for the same knowledge."""
        reference = dossier.reference
        found = found_of(reference, dossier.works)
        return [
            *_by_identifier(reference, found),
            *_by_volume(reference, found),
            *_by_found_identifier(reference, found),
            *_former_versions(reference, dossier.works),
            *_by_title(dossier, found),
        ]

    def together(self, questions: Sequence[Question]) -> Mapping[str, Question]:
        """Return, by the URL of each question, the question that is asked in its place."""
        asked = {question.url: question for question in questions}
        items = {q.item: q for q in questions if q.source == arxiv.SOURCE and q.item}
        names = sorted(items)
        for start in range(0, len(names), BATCH):
            part = names[start : start + BATCH]
            whole = Question(arxiv.ids_request(part), arxiv.parse)
            asked |= {items[name].url: whole for name in part}
        return asked


def found_of(reference: Reference, works: Sequence[Work]) -> list[Work]:
    """Return the works that have a title of the reference's and can have its authors.

    Its titles are the one cited and, where that is one of an arXiv entry that it names, all that
    the entry has had. Authors decide only where both sides name some.
    """
    titles = _own_titles(reference, works)
    return [w for w in works if _has_title(w, titles) and _may_share(reference.authors, w.authors)]


def _own_titles(reference: Reference, works: Sequence[Work]) -> list[str]:
    if not reference.title:
        return []
    cited = arxiv_identifier(reference)
    entries = [w for w in works if cited and w.arxiv_id == cited and w.source == arxiv.SOURCE]
    had = [title for work in entries for title in (work.title, *work.former_titles)]
    one_of_them = any(same_title(reference.title, title) for title in had)
    return [reference.title, *(had if one_of_them else ())]


def _has_title(work: Work, titles: Sequence[str]) -> bool:
    had = (work.title, *work.former_titles)
    return any(same_title(one, other) for one in titles for other in had)


def is_settled(reference: Reference, found: Sequence[Work]) -> bool:
    """Tell whether no other source need be searched for a reference that ``found`` describe.

    The owner of the proceedings or DBLP has told the place of publication; or the reference gives
    no such place, and arXiv has the work.
    """
    preprint = reference.venue is None and any(work.authority == "arxiv" for work in found)
    return preprint or _is_published(found)


def _is_published(found: Sequence[Work]) -> bool:
    return any(w.authority in _DECISIVE and w.kind not in (None, "preprint") for w in found)


def _may_share(cited: Sequence[str], listed: Sequence[str]) -> bool:
    if not cited or not listed or share_an_author(cited, listed):
        return True
    return any(compare_names(a, b) != "different" for a in cited for b in listed)


# By the identifiers that the reference gives


def _by_identifier(reference: Reference, found: Sequence[Work]) -> Iterator[Question]:
    """Ask whose the identifiers are; not of a DOI that a description of the work has already."""
    if identifier := arxiv_identifier(reference):
        yield _about_arxiv(identifier)
    told = any(work.doi == reference.doi for work in found)
    if reference.doi and not told and not _ARXIV_DOI.match(reference.doi):
        yield Question(crossref.doi_request(reference.doi), crossref.parse)
    if reference.openreview_id:
        for request in openreview.note_requests(reference.openreview_id):
            yield Question(request, openreview.parse)


def arxiv_identifier(reference: Reference) -> str | None:
    """Return the arXiv identifier that a reference gives, be it as a DOI of arXiv's, or None."""
    match = _ARXIV_DOI.match(reference.doi or "")
    return reference.arxiv_id or (re.sub(r"v\d+$", "", match["id"]) if match else None)


def _about_arxiv(identifier: str) -> Question:
    """Ask for one identifier, with or without version; ``together`` makes one request of many."""
    bare, _, version = identifier.partition("v")
    return Question(
        arxiv.ids_request([identifier]),
        arxiv.parse,
        keep=lambda w: w.arxiv_id == bare and (not version or w.work_key == identifier),
        item=identifier,
    )


def _by_volume(reference: Reference, found: Iterable[Work]) -> Iterator[Question]:
    """Ask for the PMLR volumes that the reference or what was found of it names."""
    places = [(reference.url, reference.volume, _is_pmlr(reference))]
    places += [(work.url, work.volume, "mlr.press" in (work.url or "")) for work in found]
    volumes: dict[str, str | None] = {}
    for url, volume, owned in places:
        match = _PMLR.search(url or "")
        number = (
            match["volume"].upper() if match else volume_number(volume or "") if owned else None
        )
        if number:
            volumes.setdefault(number, match["paper"] if match else None)
    for number, paper in volumes.items():
        yield Question(
            pmlr.citeproc_request(number),
            pmlr.parse_citeproc,
            keep=_kept_of_volume(reference, paper),
        )


def _is_pmlr(reference: Reference) -> bool:
    text = " ".join([reference.venue or "", reference.volume or "", *reference.fields.values()])
    return bool(re.search(r"PMLR|Proceedings of Machine Learning Research", text))


def _kept_of_volume(reference: Reference, paper: str | None) -> Callable[[Work], bool]:
    def keep(work: Work) -> bool:
        named = paper is not None and work.work_key.rpartition("/")[2] == paper
        return named or bool(found_of(reference, [work]))

    return keep


# By what the answers point to


def _by_found_identifier(reference: Reference, found: Sequence[Work]) -> Iterator[Question]:
    """Ask the repositories and owners that descriptions of the work name."""
    for identifier in dict.fromkeys(w.arxiv_id for w in found if w.arxiv_id):
        yield _about_arxiv(identifier)
    known = {work.openreview_id for work in found if work.source == openreview.SOURCE}
    for note in dict.fromkeys(w.openreview_id for w in found if w.openreview_id):
        if note not in known:
            for request in openreview.note_requests(note):
                yield Question(request, openreview.parse)


def _former_versions(reference: Reference, works: Sequence[Work]) -> Iterator[Question]:
    """Ask for the earlier versions of the arXiv entry that the reference names by another title."""
    if not reference.title:
        return
    cited = arxiv_identifier(reference)
    for work in works:
        newest = re.search(r"v(\d+)$", work.work_key)
        if work.source != arxiv.SOURCE or work.arxiv_id != cited or newest is None:
            continue
        if not same_title(work.title, reference.title):
            yield from (_about_arxiv(f"{cited}v{n}") for n in range(1, int(newest[1])))


# By the title, while it is open where the work was published


def _by_title(dossier: Dossier, found: Sequence[Work]) -> Iterator[Question]:
    """Ask DBLP, then who takes preprints and submissions, then the catalogues of everything."""
    reference = dossier.reference
    if _is_published(found):
        return
    for title in _titles(reference, dossier.works):
        for search in (_dblp, _repositories, _catalogues):
            questions = search(title, reference)
            yield from questions
            if not all(question.url in dossier.questions for question in questions):
                break  # the next only when these have answered
            if is_settled(reference, found):
                break


def _titles(reference: Reference, works: Sequence[Work]) -> list[str]:
    """Return the titles to look for: the one cited, and the present one of what the id names.

    The latter only where the authors can be the same; else the identifier is another work's.
    """
    cited = arxiv_identifier(reference)
    named = [
        work.title
        for work in works
        if cited and work.arxiv_id == cited and work.source == arxiv.SOURCE
        if _may_share(reference.authors, work.authors)
    ]
    titles = [title for title in (reference.title, *named) if title]
    return list({fold(title): title for title in reversed(titles)}.values())[::-1]


def _dblp(title: str, _: Reference) -> list[Question]:
    return [Question(dblp.title_request(title), dblp.parse)]


def _repositories(title: str, _: Reference) -> list[Question]:
    reviews = [Question(request, openreview.parse) for request in openreview.title_requests(title)]
    return [Question(arxiv.title_request(title), arxiv.parse), *reviews]


def _catalogues(title: str, reference: Reference) -> list[Question]:
    author = reference.authors[0] if reference.authors else None
    return [
        Question(semantic_scholar.match_request(title), semantic_scholar.parse),
        Question(openalex.title_request(title), openalex.parse),
        Question(crossref.title_request(title, author), crossref.parse),
    ]
