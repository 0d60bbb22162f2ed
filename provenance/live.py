"""The curated records' own sources, asked: their answers as captured evidence.

What is asked follows from the store: the arXiv entry of each paper with the titles of its former
versions, each volume of PMLR that the records name, the accepted papers of each ICLR that they
name, and the reference list of each paper that cites another. The evidence has the kinds and facts
that people's readings have, so the same rules judge it; ``parser`` names what read the bytes. Asked
of an archive instead of the sources, this reads the archived bytes anew, with the present parsers.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from provenance.case import Store
from provenance.lookup import Echo, fetch_all, unreadable
from provenance.match import parse_venue, volume_number
from provenance.progress import Meter, no_meter
from provenance.sources import arxiv, openreview, paper_text, pmlr, reference_list
from provenance.works import Answer, Fetcher, Request, Work
from records.errors import UnreadableAnswer
from records.models import Authority, Evidence, ListEntry, Record

if TYPE_CHECKING:
    from arxiv import Result

OPTIONAL = ("comment", "journal_ref", "doi")
BATCH = 100
"""Identifiers in one request to arXiv."""

_ROUNDS = 8

Reader = Callable[[Answer], Iterable[Evidence | ListEntry]]


@dataclass
class Asked:
    """What came of asking: records to append, who answered, and who did not, with the reason."""

    records: list[Evidence | ListEntry] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Task:
    """A request, the ways in which its answer becomes records, and what more to ask then.

    A reader that cannot read the answer costs the others nothing.
    """

    request: Request
    readers: tuple[Reader, ...]
    follow: Callable[[Answer], Sequence[_Task]] = lambda _: ()


def ask(
    store: Store,
    fetcher: Fetcher,
    *,
    papers: Sequence[str] = (),
    seconds: float = 600.0,
    echo: Echo = lambda _: None,
    meter: Meter = no_meter,
) -> Asked:
    """Ask the sources of the records and return what they say as captured evidence.

    Args:
        store: the records.
        fetcher: who answers.
        papers: those to ask about; none means all.
        seconds: when they have passed, nothing more is asked.
        echo: told how much is asked in each round.
        meter: told of each answer.
    """
    until = time.monotonic() + seconds
    asked = Asked()
    tasks = _tasks(store, list(papers) or list(store.papers))
    for _ in range(_ROUNDS):
        if not tasks:
            break
        echo(f"looking up: {len(tasks)} things about the records")
        answers = fetch_all([task.request for task in tasks], fetcher, until, meter)
        tasks = [more for task in tasks for more in _take(task, answers[task.request.url], asked)]
    return asked


def _take(task: _Task, answer: Answer | str, asked: Asked) -> Sequence[_Task]:
    source = task.request.source
    if isinstance(answer, str):
        asked.silent.setdefault(source, answer)
        return ()
    if source not in asked.answered:
        asked.answered.append(source)
    if answer.capture.status == 404:
        return ()
    for read in task.readers:
        try:
            asked.records += read(answer)
        except UnreadableAnswer as error:
            asked.silent.setdefault(source, unreadable(error))
    try:
        return task.follow(answer)
    except UnreadableAnswer:
        return ()  # a reader has said so


def by_answer(records: Sequence[Evidence | ListEntry]) -> dict[str, list[Record]]:
    """Return the records by what was asked, so that a later answer replaces the earlier one's."""
    parts: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        parts[record.evidence_id.removeprefix("warc:").partition("-")[0]].append(record)
    return parts


# What to ask


def _tasks(store: Store, papers: Sequence[str]) -> list[_Task]:
    ids = sorted({i for p in papers if (i := store.papers[p].arxiv_id) and _is_arxiv(i)})
    batches = [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]
    return [
        *(_Task(arxiv.ids_request(batch), (entries,), _former) for batch in batches),
        *(task for volume in _volumes(store, papers) for task in _volume_tasks(volume)),
        *(_list_task("iclr", year, 0, ()) for year in _iclr_years(store, papers)),
        *(_html(store, paper_id) for paper_id in _read_in_full(store, papers)),
    ]


def _is_arxiv(identifier: str) -> bool:
    return bool(re.fullmatch(r"\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7}", identifier))


def _asserted(store: Store, papers: Sequence[str], name: str) -> list[str]:
    wanted = set(papers)
    values = (a.value for a in store.assertions if a.field == name and a.paper_id in wanted)
    return list(dict.fromkeys(values))


def _volumes(store: Store, papers: Sequence[str]) -> list[str]:
    """Return the PMLR volumes that the records of the papers name, and those read before."""
    named = [volume_number(value) for value in _asserted(store, papers, "volume")]
    return list(dict.fromkeys(volume for volume in named if volume))


def _iclr_years(store: Store, papers: Sequence[str]) -> list[int]:
    venues = [parse_venue(value) for value in _asserted(store, papers, "venue")]
    return sorted({venue.year for venue in venues if venue and venue.series == "iclr"})


def _read_in_full(store: Store, papers: Sequence[str]) -> list[str]:
    """Return the papers whose text is needed: those that cite, and those that make claims."""
    wanted = set(papers)
    citing = [c.citing_id for c in store.citations if {c.citing_id, c.cited_id} & wanted]
    claiming = [claim.paper_id for claim in store.claims if claim.paper_id in wanted]
    return list(dict.fromkeys([*claiming, *citing]))


def _html(store: Store, paper_id: str) -> _Task:
    paper = store.papers.get(paper_id)
    identifier = (paper.arxiv_id if paper else None) or paper_id
    claims = any(claim.paper_id == paper_id for claim in store.claims)

    def text(answer: Answer) -> list[Evidence | ListEntry]:
        return [paper_text_of(answer, identifier)]

    def references(answer: Answer) -> list[Evidence | ListEntry]:
        return reference_lists(answer, identifier)

    readers = (references, text) if claims else (references,)
    return _Task(reference_list.html_request(identifier), readers)


# arXiv


def entries(answer: Answer) -> Iterator[Evidence]:
    """Yield what arXiv's entries say in their optional fields, and which of them are not there."""
    for work, result in _results(answer):
        facts = {name: value for name in OPTIONAL if (value := getattr(result, name)) is not None}
        absent = [name for name in OPTIONAL if name not in facts]
        yield _evidence(
            answer,
            "arxiv-entry",
            "arxiv",
            f"arXiv's entry of {work.work_key}",
            str(work.arxiv_id),
            {"arxiv_id": work.arxiv_id, "title": work.title, **facts, "absent_fields": absent},
            arxiv.PARSER,
        )


def _results(answer: Answer) -> list[tuple[Work, Result]]:
    works = arxiv.parse(answer.body, answer.capture.evidence_id)
    return list(zip(works, arxiv.parse_results(answer.body), strict=True))


def _former(answer: Answer) -> list[_Task]:
    """Ask for all versions of the entries in an answer, the present ones again with them."""
    found = [(work.arxiv_id, arxiv.version_number(work)) for work, _ in _results(answer)]
    groups: list[list[str]] = [[]]
    for identifier, newest in found:
        versions = [f"{identifier}v{n}" for n in range(1, newest + 1)]
        if len(groups[-1]) + len(versions) > BATCH and groups[-1]:
            groups.append([])
        groups[-1] += versions[-BATCH:]
    return [_Task(arxiv.ids_request(group), (versions_of,)) for group in groups if group]


def versions_of(answer: Answer) -> Iterator[Evidence]:
    """Yield the version history of each entry of an answer: days and titles, oldest first."""
    histories: dict[str, dict[int, dict[str, object]]] = {}
    for work, result in _results(answer):
        number = arxiv.version_number(work)
        moment = result.published if number == 1 else result.updated
        posted = moment.date().isoformat() if moment.year > 1 else None
        version = {"version": number, "posted": posted, "title": work.title}
        histories.setdefault(str(work.arxiv_id), {})[number] = version
    for identifier, versions in histories.items():
        facts = {"arxiv_id": identifier, "versions": [versions[n] for n in sorted(versions)]}
        source = f"arXiv's entries of the versions of {identifier}"
        yield _evidence(answer, "arxiv-versions", "arxiv", source, identifier, facts, arxiv.PARSER)


# PMLR


def _volume_tasks(volume: str) -> list[_Task]:
    return [
        _Task(pmlr.volume_request(volume), (lambda answer: volume_page(answer, volume),)),
        _Task(pmlr.citeproc_request(volume), (lambda answer: volume_entries(answer, volume),)),
    ]


def volume_page(answer: Answer, volume: str) -> list[Evidence | ListEntry]:
    """Return the header of a volume, and its papers as the accepted list of the conference."""
    page = pmlr.parse_volume_page(answer.body)
    header = _evidence(
        answer,
        "pmlr-volume-header",
        "proceedings",
        f"PMLR v{volume}, header of its page",
        volume,
        {"header": page.header_text},
        pmlr.PARSER,
        excerpt=page.header_text,
    )
    venue = page.header.venue if page.header else None
    if venue is None:
        return [header]
    facts = {"venue": str(venue), "length": len(page.papers)}
    listed = _evidence(
        answer,
        "accepted-list",
        "proceedings",
        f"PMLR v{volume}, its list of papers",
        str(venue),
        facts,
        pmlr.PARSER,
        excerpt=page.header_text,
    )
    rows = [(p.title, p.authors, p.pages, p.url) for p in page.papers]
    return [header, listed, *_entries(listed, rows)]


_Row = tuple[str, tuple[str, ...], str | None, str | None]


def _entries(listed: Evidence, rows: Sequence[_Row]) -> list[ListEntry]:
    return [
        ListEntry(
            evidence_id=listed.evidence_id,
            position=n,
            title=title,
            authors=authors,
            pages=pages,
            url=url,
        )
        for n, (title, authors, pages, url) in enumerate(rows, start=1)
    ]


def volume_entries(answer: Answer, volume: str) -> list[Evidence]:
    """Return the entry of each paper of a volume, as the volume's file has it."""
    works = pmlr.parse_citeproc(answer.body, answer.capture.evidence_id)
    return [_entry(answer, volume, work) for work in works]


def _entry(answer: Answer, volume: str, work: Work) -> Evidence:
    facts: dict[str, object] = {
        "title": work.title,
        "authors": list(work.authors),
        "volume": volume,
    }
    known = {"container_title": work.venue, "pages": work.pages, "year": work.year}
    facts |= {name: value for name, value in known.items() if value is not None}
    name = work.work_key.rpartition("/")[2]
    source = f"PMLR v{volume}, its entry {name}"
    return _evidence(answer, "pmlr-entry", "proceedings", source, name, facts, pmlr.PARSER)


# OpenReview


def _list_task(series: str, year: int, offset: int, before: tuple[Work, ...]) -> _Task:
    """Ask for a page of the papers of a conference; the list is complete after the last one."""
    request = openreview.accepted_request(series, year, offset)

    def page(answer: Answer) -> tuple[openreview.NotesPage, tuple[Work, ...], bool]:
        found = openreview.parse_page(answer.body, answer.capture.evidence_id)
        works = (*before, *found.works)
        whole = found.notes < openreview.PAGE
        return found, works, whole

    def read(answer: Answer) -> list[Evidence | ListEntry]:
        _, works, whole = page(answer)
        return accepted_list(answer, series, year, works) if whole else []

    def follow(answer: Answer) -> list[_Task]:
        found, works, whole = page(answer)
        return [] if whole else [_list_task(series, year, offset + found.notes, works)]

    return _Task(request, (read,), follow)


def accepted_list(
    answer: Answer, series: str, year: int, works: Sequence[Work]
) -> list[Evidence | ListEntry]:
    """Return the accepted papers among all submissions of a conference, as a list."""
    accepted = [work for work in works if work.series == series and work.year == year]
    if not accepted:
        raise UnreadableAnswer(
            f"{openreview.SOURCE}: none of {len(works)} submissions to {series} {year} can be told "
            "to be accepted"
        )
    venue = f"{series} {year}"
    facts = {"venue": venue, "length": len(accepted), "submissions": len(works)}
    listed = _evidence(
        answer,
        "accepted-list",
        "proceedings",
        f"OpenReview, the accepted papers of {venue}",
        venue,
        facts,
        openreview.PARSER,
    )
    rows: list[_Row] = [(w.title, w.authors, None, w.url) for w in accepted]
    return [listed, *_entries(listed, rows)]


# Reference lists


def reference_lists(answer: Answer, arxiv_id: str) -> list[Evidence | ListEntry]:
    """Return the reference list of a paper from its HTML."""
    found = reference_list.parse_references(answer.body)
    facts = {"arxiv_id": arxiv_id, "length": len(found), "entries": found}
    source = f"the reference list of {arxiv_id} in its HTML ({answer.capture.final_url})"
    return [
        _evidence(
            answer, "reference-list", "authors", source, arxiv_id, facts, reference_list.PARSER
        )
    ]


def paper_text_of(answer: Answer, arxiv_id: str) -> Evidence:
    """Return the tables of a paper and its sentences with numbers, from its HTML."""
    text = paper_text.parse_paper(answer.body)
    facts = {
        "arxiv_id": arxiv_id,
        "tables": [{"label": t.label, "rows": [list(row) for row in t.rows]} for t in text.tables],
        "passages": [{"section": p.section, "text": p.text} for p in text.passages],
    }
    source = f"the text of {arxiv_id} in HTML ({answer.capture.final_url})"
    return _evidence(answer, "paper-text", "authors", source, arxiv_id, facts, paper_text.PARSER)


def _evidence(
    answer: Answer,
    kind: str,
    authority: Authority,
    source: str,
    subject: str,
    facts: Mapping[str, object],
    parser: str,
    excerpt: str = "",
) -> Evidence:
    capture = answer.capture
    return Evidence(
        evidence_id=f"{capture.evidence_id}#{kind}/{subject}",
        source=source,
        authority=authority,
        grade="captured",
        kind=kind,
        url=capture.url,
        read_on=capture.fetched.date(),
        media_type=capture.media_type or None,
        sha256=capture.sha256,
        excerpt=excerpt,
        facts={**facts, "parser": parser},
    )
