from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from provenance.lookup import Dossier, Question, fetch_all, gather
from provenance.works import Answer, Reference, Request, Work
from records.archive import Capture
from records.errors import SourceUnavailable, UnreadableAnswer


def reference(title: str) -> Reference:
    return Reference(key=title, position=1, format="plain", raw=title, title=title)


def work(title: str, source: str = "DBLP") -> Work:
    return Work(
        source=source, authority="dblp", work_key=title, title=title, evidence_id=f"e-{title}"
    )


def question(title: str, host: str = "dblp.org", item: str | None = None) -> Question:
    request = Request(source=host, url=f"https://{host}/{title}")
    return Question(request, lambda body, _: [work(body.decode(), host)], item=item)


class Asks:
    """Asks what it is told for each title, one round after the other."""

    def __init__(self, rounds: Mapping[str, Sequence[Sequence[Question]]]) -> None:
        self.rounds = rounds

    def questions(self, dossier: Dossier) -> Sequence[Question]:
        rounds = self.rounds[dossier.reference.key]
        done = sum(all(q.url in dossier.questions for q in each) for each in rounds)
        return rounds[min(done, len(rounds) - 1)]

    def together(self, questions: Sequence[Question]) -> Mapping[str, Question]:
        items = [q for q in questions if q.item]
        joint = question("+".join(q.item or "" for q in items), "export.arxiv.org")
        return {q.url: (joint if q.item else q) for q in questions}


class Echoes:
    """Answers with the last part of the URL, unless there is another answer to it."""

    def __init__(self, others: Mapping[str, Exception | int] | None = None) -> None:
        self.others = others or {}
        self.asked: list[str] = []
        self.at_once: dict[str, int] = {}
        self.most = 0
        self._lock = threading.Lock()

    def fetch(self, request: Request) -> Answer:
        with self._lock:
            self.asked.append(request.url)
            self.at_once[request.source] = self.at_once.get(request.source, 0) + 1
            self.most = max(self.most, self.at_once[request.source])
        time.sleep(0.01)
        with self._lock:
            self.at_once[request.source] -= 1
        other = self.others.get(request.url)
        if isinstance(other, Exception):
            raise other
        body = request.url.rpartition("/")[2].encode()
        capture = Capture(
            evidence_id=f"e-{request.url}",
            source=request.source,
            url=request.url,
            final_url=request.url,
            status=other or 200,
            fetched=datetime.now(UTC),
            media_type="text/plain",
            sha256=hashlib.sha256(body).hexdigest(),
            size=len(body),
            file="x",
        )
        return Answer(capture, body)


def test_a_question_of_several_references_is_asked_once() -> None:
    dossiers = [Dossier(reference("a")), Dossier(reference("b"))]
    volume, fetcher = question("volume"), Echoes()
    gather(dossiers, Asks({"a": [[volume]], "b": [[volume]]}), fetcher)
    assert fetcher.asked == ["https://dblp.org/volume"]
    assert [d.works for d in dossiers] == [[work("volume", "dblp.org")]] * 2


def test_what_is_not_about_a_reference_is_not_kept() -> None:
    dossier = Dossier(reference("a"))
    asked = replace(question("volume"), keep=lambda w: w.title == "a")
    gather([dossier], Asks({"a": [[asked]]}), Echoes())
    assert (dossier.works, dossier.asked) == ([], ["dblp.org"])


def test_identifiers_are_asked_for_together() -> None:
    dossiers = [Dossier(reference("a")), Dossier(reference("b"))]
    single = {name: [[question(name, item=name)]] for name in ("a", "b")}
    fetcher = Echoes()
    gather(dossiers, Asks(single), fetcher)
    assert fetcher.asked == ["https://export.arxiv.org/a+b"]


def test_an_answer_leads_to_the_next_question() -> None:
    dossier = Dossier(reference("a"))
    fetcher = Echoes()
    gather([dossier], Asks({"a": [[question("one")], [question("two")]]}), fetcher)
    assert fetcher.asked == ["https://dblp.org/one", "https://dblp.org/two"]


def test_a_host_is_asked_by_one_thread() -> None:
    titles = [f"t{i}" for i in range(8)]
    fetcher = Echoes()
    gather(
        [Dossier(reference(t)) for t in titles], Asks({t: [[question(t)]] for t in titles}), fetcher
    )
    assert (len(fetcher.asked), fetcher.most) == (8, 1)


@pytest.mark.parametrize("error", [SourceUnavailable("no answer"), UnreadableAnswer("no JSON")])
def test_a_source_that_fails_is_silent_and_not_asked(error: Exception) -> None:
    dossier = Dossier(reference("a"))
    fetcher = Echoes({"https://dblp.org/one": error})
    gather(
        [dossier], Asks({"a": [[question("one"), question("two", "api.crossref.org")]]}), fetcher
    )
    assert dossier.silent == {"dblp.org": str(error)}
    assert dossier.asked == ["api.crossref.org"]


def test_a_404_is_an_answer_without_works() -> None:
    dossier = Dossier(reference("a"))
    gather([dossier], Asks({"a": [[question("one")]]}), Echoes({"https://dblp.org/one": 404}))
    assert (dossier.works, dossier.asked, dossier.silent) == ([], ["dblp.org"], {})


def test_what_was_not_asked_in_time_is_unavailable() -> None:
    dossier = Dossier(reference("a"))
    fetcher = Echoes()
    gather([dossier], Asks({"a": [[question("one")]]}), fetcher, seconds=-1)
    assert fetcher.asked == []
    assert dossier.silent == {"dblp.org": "not asked: the time for asking was over"}


def test_each_answer_is_told_to_the_meter() -> None:
    ticks: list[int] = []

    @contextmanager
    def meter(total: int) -> Iterator[Callable[[], None]]:
        yield lambda: ticks.append(total)

    requests = [Request(source="a", url=f"https://dblp.org/{n}") for n in range(3)]
    fetch_all(requests, Echoes(), time.monotonic() + 60, meter)
    assert ticks == [3, 3, 3]
