"""Which sources are asked about a reference, and in which order, until it is settled.

Questions follow from what is known of a reference: first its identifiers, then its title, then what
the answers point to (the volume that a record names, the former titles of an arXiv entry). A
question is asked once, whoever needs it: one volume file serves all papers of the volume, and arXiv
is asked for a hundred identifiers at a time. Each host is asked by one thread, all hosts at once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from provenance.progress import Meter, Tick, no_meter
from provenance.works import Answer, Fetcher, Reference, Request, Work
from records.errors import SourceUnavailable, UnreadableAnswer

Parse = Callable[[bytes, str], list[Work]]
Echo = Callable[[str], None]
ROUNDS = 6
"""Answers are followed up so many times at most."""


@dataclass(frozen=True)
class Question:
    """A request about one reference, and how its answer is read.

    ``keep`` picks from an answer that serves many references what is about this one. Questions of
    one source that have an ``item`` can be asked together: see ``Planner.together``.
    """

    request: Request
    parse: Parse = field(compare=False)
    keep: Callable[[Work], bool] = field(default=lambda _: True, compare=False)
    item: str | None = None

    @property
    def source(self) -> str:
        """Who is asked."""
        return self.request.source

    @property
    def url(self) -> str:
        """Identity of the question."""
        return self.request.url


@dataclass
class Dossier:
    """What has been gathered about one reference."""

    reference: Reference
    works: list[Work] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)
    questions: set[str] = field(default_factory=set)

    def add(self, works: Iterable[Work]) -> None:
        """Add descriptions, equal ones once."""
        self.works += [work for work in works if work not in self.works]


@dataclass(frozen=True)
class Reply:
    """What became of a question: works, or the reason why there is no answer."""

    works: tuple[Work, ...] = ()
    reason: str | None = None


class Planner(Protocol):
    """Decides what to ask next about a reference."""

    def questions(self, dossier: Dossier) -> Sequence[Question]:
        """Return the questions that what is known suggests, the same for the same knowledge."""

    def together(self, questions: Sequence[Question]) -> Mapping[str, Question]:
        """Return, by the URL of each question, the question that is asked in its place."""


def gather(
    dossiers: Sequence[Dossier],
    planner: Planner,
    fetcher: Fetcher,
    *,
    seconds: float = 600.0,
    echo: Echo = lambda _: None,
    meter: Meter = no_meter,
) -> None:
    """Ask until nothing is left to ask, filling the dossiers.

    Args:
        dossiers: what is known so far; filled with works, sources asked and silent sources.
        planner: what to ask about one of them.
        fetcher: who answers.
        seconds: when they have passed, what has not been asked is noted as unavailable.
        echo: told how many questions there are in each round.
        meter: told of each answer.
    """
    until = time.monotonic() + seconds
    replies: dict[str, Reply] = {}
    for _ in range(ROUNDS):
        wanted = [(d, q) for d in dossiers for q in _new_questions(planner, d)]
        if not wanted:
            return
        asked = planner.together(list({q.url: q for _, q in wanted}.values()))
        new = {asked[q.url].url: asked[q.url] for _, q in wanted if asked[q.url].url not in replies}
        if new:
            echo(f"looking up: {_counted(list(new.values()))}")
            replies |= _ask_all(list(new.values()), fetcher, until, meter)
        for dossier, question in wanted:
            _note(dossier, question, replies[asked[question.url].url])


def _new_questions(planner: Planner, dossier: Dossier) -> list[Question]:
    new = {q.url: q for q in planner.questions(dossier) if q.url not in dossier.questions}
    dossier.questions |= new.keys()
    return list(new.values())


def _counted(questions: Sequence[Question]) -> str:
    count: dict[str, int] = defaultdict(int)
    for question in questions:
        count[question.source] += 1
    return ", ".join(f"{source} ({number})" for source, number in sorted(count.items()))


def _note(dossier: Dossier, question: Question, reply: Reply) -> None:
    if reply.reason is not None:
        dossier.silent.setdefault(question.source, reply.reason)
        return
    if question.source not in dossier.asked:
        dossier.asked.append(question.source)
    dossier.add(work for work in reply.works if question.keep(work))


def _ask_all(
    questions: Sequence[Question], fetcher: Fetcher, until: float, meter: Meter
) -> dict[str, Reply]:
    answers = fetch_all([question.request for question in questions], fetcher, until, meter)
    return {question.url: _read(question, answers[question.url]) for question in questions}


def _read(question: Question, answer: Answer | str) -> Reply:
    if isinstance(answer, str):
        return Reply(reason=answer)
    if answer.capture.status == 404:
        return Reply()
    try:
        return Reply(tuple(question.parse(answer.body, answer.capture.evidence_id)))
    except UnreadableAnswer as error:
        return Reply(reason=unreadable(error))


def unreadable(error: UnreadableAnswer) -> str:
    """Return the reason that an answer cannot be read, and what to do: it is archived as it is."""
    return f"{error}; ask again with --refresh"


def fetch_all(
    requests: Sequence[Request], fetcher: Fetcher, until: float, meter: Meter = no_meter
) -> dict[str, Answer | str]:
    """Ask for several things, each host by a thread of its own, all hosts at once.

    Args:
        requests: what to ask.
        fetcher: who answers.
        until: when, by ``time.monotonic``, nothing more is asked.
        meter: told of each answer.

    Returns:
        By URL the answer, or the reason why there is none.
    """
    hosts: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        hosts[urlsplit(request.url).netloc].append(request)

    def ask_host(part: Sequence[Request], tick: Tick) -> dict[str, Answer | str]:
        found = {}
        for request in part:
            found[request.url] = _fetched(request, fetcher, until)
            tick()
        return found

    with meter(len(requests)) as tick, ThreadPoolExecutor(max(1, len(hosts))) as pool:
        parts = pool.map(lambda part: ask_host(part, tick), hosts.values())
        return {url: found for part in parts for url, found in part.items()}


def _fetched(request: Request, fetcher: Fetcher, until: float) -> Answer | str:
    if time.monotonic() > until:
        return "not asked: the time for asking was over"
    try:
        return fetcher.fetch(request)
    except (SourceUnavailable, UnreadableAnswer) as error:
        return str(error)
