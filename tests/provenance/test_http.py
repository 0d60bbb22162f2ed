"""The network client against a loopback server that shows the faults of real sources."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.evidence import Archive
from provenance.http import (
    HOSTS,
    Client,
    ClientConfig,
    OfflineFetcher,
    SystemClock,
    retry_after_seconds,
    user_agent,
)
from provenance.works import Request
from records.errors import ConfigError, EvidenceError, SourceUnavailable
from tests.provenance.loopback import (
    FakeClock,
    Response,
    Server,
    arxiv_throttled,
    echo_path,
    feed_body,
    gzipped,
    hanging,
    html_body,
    huge,
    in_turn,
    json_body,
    loopback_client,
    openreview_challenge,
    redirect,
    respond,
    serve,
    too_many,
    too_many_until,
    truncated,
    unavailable,
    wrong_charset,
)

GOOD = json_body({"result": "good"})


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "evidence")


def dblp(path: str = "/search", accept: str = "application/json") -> Request:
    return Request(source="DBLP", url=f"https://dblp.org{path}", accept=accept)


def ask(archive: Archive, *responses: Response, **config: Any) -> tuple[bytes, Server]:
    """Return the body that a client gets from DBLP, which answers with ``responses`` in turn."""
    with serve({"dblp.org": in_turn(*responses)}) as server:
        return loopback_client(server, archive, **config).fetch(dblp()).body, server


def refusal(archive: Archive, *responses: Response, **config: Any) -> tuple[str, Server]:
    """Return why DBLP is unavailable when it answers with ``responses`` in turn."""
    with serve({"dblp.org": in_turn(*responses)}) as server:
        client = loopback_client(server, archive, **config)
        with pytest.raises(SourceUnavailable) as raised:
            client.fetch(dblp())
        return str(raised.value), server


# Answers


def test_an_answer_is_archived_as_it_came(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        answer = loopback_client(server, archive).fetch(dblp("/search?q=a%20b"))
    assert answer.body == GOOD.body
    assert answer.capture.url == "https://dblp.org/search?q=a%20b"
    assert answer.capture.final_url == "https://dblp.org/search?q=a%20b"
    assert answer.capture.media_type == "application/json"
    assert archive.read(archive.get(answer.capture.evidence_id)) == GOOD.body


def test_the_query_arrives_as_it_was_asked(archive: Archive) -> None:
    with serve({"dblp.org": echo_path}) as server:
        loopback_client(server, archive).fetch(dblp("/search?q=a%20b%2Bc&format=json&h=5"))
    assert server.requests[0].target == "/search?q=a%20b%2Bc&format=json&h=5"


def test_404_is_an_answer(archive: Archive) -> None:
    with serve({"dblp.org": respond(html_body("no such page", 404))}) as server:
        answer = loopback_client(server, archive).fetch(dblp())
    assert answer.capture.status == 404
    assert answer.body == b"no such page"


@pytest.mark.parametrize("chunked", [True, False])
def test_a_packed_body_is_unpacked(archive: Archive, chunked: bool) -> None:
    body, server = ask(archive, replace(gzipped(GOOD), chunked=chunked))
    assert body == GOOD.body
    assert server.requests[0].headers["accept-encoding"] == "gzip"


def test_a_body_of_two_packed_members_is_unpacked_whole(archive: Archive) -> None:
    packed = gzipped(GOOD)
    body, _ = ask(archive, replace(packed, body=packed.body * 2))
    assert body == GOOD.body * 2


def test_a_declared_charset_does_not_touch_the_bytes(archive: Archive) -> None:
    with serve({"dblp.org": respond(wrong_charset("Jürgen"))}) as server:
        answer = loopback_client(server, archive).fetch(dblp(accept="text/html"))
    assert answer.body == "Jürgen".encode()


def test_an_empty_answer_is_an_answer(archive: Archive) -> None:
    body, _ = ask(archive, Response(200))
    assert body == b""


def test_the_contact_is_named_to_the_source_and_nowhere_written(archive: Archive) -> None:
    contact = "someone@example.org"
    with serve({"api.crossref.org": respond(GOOD)}) as server:
        request = Request(source="Crossref", url="https://api.crossref.org/works?rows=1")
        loopback_client(server, archive, contact=contact).fetch(request)
    (seen,) = server.requests
    assert seen.headers["user-agent"] == user_agent(contact)
    assert contact in seen.headers["user-agent"]
    assert seen.target == "/works?rows=1&mailto=someone%40example.org"
    (capture,) = archive.captures()
    assert capture.url == request.url


@pytest.mark.parametrize(
    ("url", "variable", "field", "sent"),
    [
        ("https://api.openalex.org/works", "OPENALEX_API_KEY", "", "/works?api_key=k%2F123456789"),
        ("https://api.semanticscholar.org/g", "SEMANTIC_SCHOLAR_API_KEY", "x-api-key", "/g"),
        ("https://api.crossref.org/w", "CROSSREF_PLUS_TOKEN", "crossref-plus-api-token", "/w"),
    ],
)
def test_a_key_goes_to_its_source_and_never_into_the_archive(
    archive: Archive, url: str, variable: str, field: str, sent: str
) -> None:
    host = url.split("/")[2]
    with serve({host: echo_path}) as server:
        config = ClientConfig(contact=None, origins=server.origins)
        client = Client(archive, config, FakeClock(), {variable: "k/123456789"})
        answer = client.fetch(Request(source="S", url=url))
    (seen,) = server.requests
    assert seen.target == sent
    assert not field or seen.headers[field].endswith("k/123456789")
    assert b"k/123456789" not in answer.body
    assert archive.read(answer.capture) == answer.body
    assert loopback_client(server, archive).fetch(Request(source="S", url=url)) == answer


def test_a_key_goes_to_no_other_source(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        config = ClientConfig(contact=None, origins=server.origins)
        keys = {"OPENALEX_API_KEY": "k123456789", "SEMANTIC_SCHOLAR_API_KEY": "k123456789"}
        Client(archive, config, FakeClock(), keys).fetch(dblp())
    assert "k123456789" not in str(server.requests)


def test_a_key_that_cannot_be_sent_is_refused_by_name_not_by_value(archive: Archive) -> None:
    with pytest.raises(ConfigError, match="OPENALEX_API_KEY") as raised:
        Client(archive, ClientConfig(), environ={"OPENALEX_API_KEY": "secret\r\nX: y"})
    assert "secret" not in str(raised.value)


def test_the_contact_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWP_CONTACT", "someone@example.org")
    assert ClientConfig().contact == "someone@example.org"


def test_a_contact_cannot_add_header_fields() -> None:
    with pytest.raises(ValueError, match="contact"):
        ClientConfig(contact="a@example.org\r\nX-Evil: 1")


def test_cookies_are_not_kept(archive: Archive) -> None:
    answer = replace(GOOD, headers={"Set-Cookie": "id=1; Path=/"})
    with serve({"dblp.org": respond(answer)}) as server:
        client = loopback_client(server, archive)
        client.fetch(dblp("/a"))
        client.fetch(dblp("/b"))
    assert all("cookie" not in seen.headers for seen in server.requests)


# The archive first


def test_a_second_run_asks_nothing(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        first = loopback_client(server, archive).fetch(dblp())
        second = loopback_client(server, archive).fetch(dblp())
    assert second == first
    assert len(server.requests) == 1


def test_a_404_is_not_asked_again(archive: Archive) -> None:
    with serve({"dblp.org": respond(Response(404))}) as server:
        for _ in range(2):
            loopback_client(server, archive).fetch(dblp())
    assert len(server.requests) == 1


def test_an_old_answer_is_asked_for_anew(archive: Archive) -> None:
    later = FakeClock(datetime.now(UTC) + timedelta(days=31))
    with serve({"dblp.org": in_turn(GOOD, json_body("new"))}) as server:
        loopback_client(server, archive).fetch(dblp())
        answer = loopback_client(server, archive, later).fetch(dblp())
    assert answer.body == b'"new"'


def test_refresh_asks_once_a_run(archive: Archive) -> None:
    with serve({"dblp.org": in_turn(GOOD, json_body("new"))}) as server:
        loopback_client(server, archive).fetch(dblp())
        client = loopback_client(server, archive, refresh=True)
        assert client.fetch(dblp()).body == client.fetch(dblp()).body == b'"new"'
    assert len(server.requests) == 2


def test_a_damaged_answer_is_asked_for_anew(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        stored = loopback_client(server, archive).fetch(dblp()).capture
        (archive.folder / stored.file).write_bytes(b"damage")
        assert loopback_client(server, archive).fetch(dblp()).body == GOOD.body
    assert len(server.requests) == 2


def test_threads_that_ask_the_same_ask_once(archive: Archive) -> None:
    with (
        serve({"dblp.org": respond(replace(GOOD, hang=0.05))}) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        client = loopback_client(server, archive)
        answers = list(pool.map(client.fetch, [dblp()] * 8))
    assert len(server.requests) == 1
    assert {answer.body for answer in answers} == {GOOD.body}


def test_offline_replays_what_was_fetched(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        answer = loopback_client(server, archive).fetch(dblp())
    assert OfflineFetcher(Archive(archive.folder)).fetch(dblp()) == answer


def test_offline_age_does_not_matter(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        loopback_client(server, archive, FakeClock(datetime(2001, 1, 1, tzinfo=UTC))).fetch(dblp())
    assert OfflineFetcher(archive).fetch(dblp()).body == GOOD.body


def test_offline_what_was_never_fetched_is_unavailable(archive: Archive) -> None:
    with pytest.raises(SourceUnavailable, match=r"https://dblp.org/search is not in the archive"):
        OfflineFetcher(archive).fetch(dblp())


@pytest.mark.parametrize("response", [openreview_challenge(), html_body("down"), Response(400)])
def test_offline_a_refusal_stays_a_refusal(archive: Archive, response: Response) -> None:
    refusal(archive, response)
    with pytest.raises(SourceUnavailable, match="only refusals"):
        OfflineFetcher(archive).fetch(dblp())


# Faults that pass


def test_a_wait_that_the_source_asks_for_is_kept(archive: Archive) -> None:
    clock = FakeClock()
    body, server = ask(archive, too_many(retry_after=17), GOOD, clock=clock)
    assert body == GOOD.body
    assert len(server.requests) == 2
    assert sum(clock.slept) >= 17


def test_a_wait_until_a_date_is_kept(archive: Archive) -> None:
    clock = FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    until = datetime(2026, 5, 1, 12, 0, 25, tzinfo=UTC)
    body, _ = ask(archive, too_many_until(until), GOOD, clock=clock)
    assert body == GOOD.body
    assert clock.now() >= until


def test_while_a_source_asks_for_a_wait_nobody_asks_it(archive: Archive) -> None:
    clock = FakeClock()
    with serve({"dblp.org": in_turn(too_many(30), GOOD)}) as server:
        client = loopback_client(server, archive, clock, attempts=1)
        with pytest.raises(SourceUnavailable):
            client.fetch(dblp("/a"))
        client.fetch(dblp("/b"))
    assert sum(clock.slept) >= 30


@pytest.mark.parametrize(
    "fault",
    [
        too_many(),
        Response(429, {"Retry-After": "soon"}),
        unavailable(),
        Response(500),
        Response(502),
        Response(504),
        arxiv_throttled(200),
        arxiv_throttled(429),
        truncated(GOOD),
        truncated(gzipped(GOOD)),
        replace(GOOD, chunked=True, truncate=5),
        replace(GOOD, headers={"Content-Encoding": "gzip"}),
        replace(gzipped(GOOD), body=gzipped(GOOD).body[:-9]),
    ],
)
def test_a_fault_that_passes_is_waited_out(archive: Archive, fault: Response) -> None:
    clock = FakeClock()
    body, server = ask(archive, fault, fault, GOOD, clock=clock)
    assert body == GOOD.body
    assert len(server.requests) == 3
    assert sum(clock.slept) >= 3


def test_a_hanging_source_is_asked_again(archive: Archive) -> None:
    body, server = ask(archive, hanging(), GOOD, read_timeout=0.05)
    assert body == GOOD.body
    assert len(server.requests) == 2


# Faults that stay


@pytest.mark.parametrize(
    ("fault", "said", "requests"),
    [
        (too_many(), "asked too often", 4),
        (unavailable(), "out of order", 4),
        (arxiv_throttled(), "asked too often", 4),
        (truncated(GOOD), "broke off", 4),
        (openreview_challenge(), "refuses", 1),
        (Response(401), "refuses", 1),
        (Response(400), "does not accept", 1),
        (Response(204), "does not accept", 1),
        (html_body("<h1>maintenance</h1>"), "web page in place of JSON", 1),
        (replace(GOOD, headers={"Content-Encoding": "br"}), "encoding not asked for", 1),
    ],
)
def test_a_source_that_gives_no_answer_is_unavailable(
    archive: Archive, fault: Response, said: str, requests: int
) -> None:
    message, server = refusal(archive, fault)
    assert said in message
    assert "DBLP (dblp.org)" in message
    assert "https://dblp.org/search" in message
    assert len(server.requests) == requests


@pytest.mark.parametrize("fault", [too_many(), unavailable(), openreview_challenge()])
def test_a_refusal_is_archived(archive: Archive, fault: Response) -> None:
    refusal(archive, fault)
    (capture,) = archive.captures()
    assert capture.status == fault.status
    assert archive.read(capture) == fault.body


def test_a_web_page_is_an_answer_to_who_asks_for_one(archive: Archive) -> None:
    with serve({"dblp.org": respond(html_body("<p>paper"))}) as server:
        answer = loopback_client(server, archive).fetch(dblp(accept="text/html"))
    assert answer.body == b"<p>paper"


def test_a_wait_longer_than_one_request_may_take_is_told_not_kept(archive: Archive) -> None:
    clock = FakeClock()
    message, server = refusal(archive, too_many(retry_after=3600), clock=clock)
    assert "asks to wait 3600 s" in message
    assert len(server.requests) == 1
    assert sum(clock.slept) == 0


def test_a_source_that_asked_for_a_long_wait_is_left_alone(archive: Archive) -> None:
    with serve({"dblp.org": respond(too_many(3600))}) as server:
        client = loopback_client(server, archive)
        for path in ("/a", "/b"):
            with pytest.raises(SourceUnavailable):
                client.fetch(dblp(path))
    assert len(server.requests) == 1


def test_one_request_takes_no_longer_than_allowed(archive: Archive) -> None:
    clock = FakeClock()
    refusal(archive, too_many(retry_after=4), clock=clock, total=10, attempts=100)
    assert sum(clock.slept) <= 10


def test_a_body_that_drips_is_cut_off(archive: Archive) -> None:
    started = time.monotonic()
    dripping = replace(GOOD, body=b"x" * 1000, drip=0.02)
    message, _ = refusal(archive, dripping, clock=SystemClock(), total=0.3, attempts=1)
    assert "longer than 0.3 s" in message
    assert time.monotonic() - started < 2


def test_after_its_time_a_run_asks_nothing_more(archive: Archive) -> None:
    clock = FakeClock()
    with serve({"dblp.org": respond(GOOD)}) as server:
        client = loopback_client(server, archive, clock, run=100)
        client.fetch(dblp("/a"))
        clock.sleep(100)
        with pytest.raises(SourceUnavailable, match="100 s are used up"):
            client.fetch(dblp("/b"))
        assert client.fetch(dblp("/a")).body == GOOD.body


@pytest.mark.parametrize("response", [huge(100), Response(headers={"Content-Length": "104857600"})])
def test_a_huge_body_is_not_read(archive: Archive, response: Response) -> None:
    message, server = refusal(archive, response, max_size=2**20)
    assert "more than the 1 MiB allowed" in message
    assert len(server.requests) == 1
    assert list(archive.captures()) == []


def test_a_small_body_that_unpacks_to_a_huge_one_is_not_unpacked(archive: Archive) -> None:
    bomb = gzipped(Response(body=bytes(50 * 2**20)))
    message, _ = refusal(archive, bomb, max_size=2**20)
    assert "more than the 1 MiB allowed" in message


def test_a_full_disk_is_no_fault_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with serve({"dblp.org": respond(GOOD)}) as server, pytest.raises(EvidenceError):
        loopback_client(server, Archive(tmp_path / "file")).fetch(dblp())


# A source that is down


@contextmanager
def nowhere() -> Iterator[dict[str, str]]:
    """Yield origins where nothing answers: a port that is taken, but not listened to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield {"dblp.org": f"http://127.0.0.1:{taken.getsockname()[1]}"}


def test_a_source_out_of_reach_is_given_up_at_once(archive: Archive) -> None:
    clock = FakeClock()
    with nowhere() as origins:
        config = ClientConfig(contact=None, origins=origins)
        client = Client(archive, config, clock, environ={})
        messages = []
        for n in range(50):
            with pytest.raises(SourceUnavailable) as raised:
                client.fetch(dblp(f"/{n}"))
            messages.append(str(raised.value))
    assert client.sent["dblp.org"] == 3
    assert "connection failed" in messages[0]
    assert "failed 3 times in a row and is not asked again" in messages[-1]
    assert sum(clock.slept) < 10


def test_threads_that_wait_for_a_source_out_of_reach_are_told_at_once(archive: Archive) -> None:
    with nowhere() as origins, ThreadPoolExecutor(8) as pool:
        clock = FakeClock()
        client = Client(archive, ClientConfig(contact=None, origins=origins), clock, environ={})
        errors = [pool.submit(client.fetch, dblp(f"/{n}")) for n in range(40)]
        assert all(isinstance(e.exception(), SourceUnavailable) for e in errors)
    assert client.sent["dblp.org"] <= 3 + 8


def test_a_source_that_refuses_three_requests_is_not_asked_a_fourth_time(archive: Archive) -> None:
    with serve({"api2.openreview.net": respond(openreview_challenge())}) as server:
        client = loopback_client(server, archive)
        for n in range(5):
            url = f"https://api2.openreview.net/notes?id={n}"
            with pytest.raises(SourceUnavailable):
                client.fetch(Request(source="OpenReview", url=url))
    assert len(server.requests) == 3


def test_an_answer_in_between_clears_the_count(archive: Archive) -> None:
    refused = Response(403)
    with serve({"dblp.org": in_turn(refused, refused, GOOD, refused, refused, GOOD)}) as server:
        client = loopback_client(server, archive)
        for n in range(6):
            try:
                client.fetch(dblp(f"/{n}"))
            except SourceUnavailable:
                continue
    assert len(server.requests) == 6


def test_a_request_that_is_not_accepted_says_nothing_of_the_next(archive: Archive) -> None:
    with serve({"dblp.org": in_turn(*[Response(400)] * 5, GOOD)}) as server:
        client = loopback_client(server, archive)
        for n in range(5):
            with pytest.raises(SourceUnavailable):
                client.fetch(dblp(f"/{n}"))
        assert client.fetch(dblp("/good")).body == GOOD.body


def test_one_source_down_does_not_stop_another(archive: Archive) -> None:
    routes = {"dblp.org": respond(Response(403)), "proceedings.mlr.press": respond(GOOD)}
    with serve(routes) as server:
        client = loopback_client(server, archive)
        for n in range(4):
            with pytest.raises(SourceUnavailable):
                client.fetch(dblp(f"/{n}"))
        pmlr = Request(source="PMLR", url="https://proceedings.mlr.press/v139/")
        assert client.fetch(pmlr).body == GOOD.body


def test_no_message_shows_a_key(archive: Archive) -> None:
    with nowhere() as origins:
        config = ClientConfig(contact=None, origins={"api.openalex.org": origins["dblp.org"]})
        client = Client(archive, config, FakeClock(), {"OPENALEX_API_KEY": "k123456789"})
        with pytest.raises(SourceUnavailable) as raised:
            client.fetch(Request(source="OpenAlex", url="https://api.openalex.org/works?x=1"))
    assert "k123456789" not in str(raised.value)


# Redirects


def test_a_redirect_within_the_sources_is_followed(archive: Archive) -> None:
    routes = {
        "export.arxiv.org": respond(redirect("https://arxiv.org/list", 301)),
        "arxiv.org": respond(feed_body("<feed/>")),
    }
    with serve(routes) as server:
        request = Request(source="arXiv", url="https://export.arxiv.org/old")
        answer = loopback_client(server, archive).fetch(request)
    assert answer.body == b"<feed/>"
    assert answer.capture.url == request.url
    assert answer.capture.final_url == "https://arxiv.org/list"
    assert archive.latest(request.url) == answer.capture


def test_a_relative_redirect_is_followed(archive: Archive) -> None:
    with serve({"dblp.org/old": respond(redirect("/new")), "dblp.org": echo_path}) as server:
        answer = loopback_client(server, archive).fetch(dblp("/old?q=1"))
    assert answer.capture.final_url == "https://dblp.org/new"


@pytest.mark.parametrize(
    "location",
    [
        "http://dblp.org/new",
        "https://127.0.0.1/latest/meta-data",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://localhost/",
        "https://10.0.0.1/",
        "https://example.org/",
        "https://dblp.org.example.org/",
        "https://dblp.org:8443/",
        "https://dblp.org@example.org/",
        "//example.org/",
        "file:///etc/passwd",
        "ftp://dblp.org/",
        "https://[",
        "https://dblp.org:port/",
    ],
)
def test_a_redirect_out_of_the_sources_is_not_followed(archive: Archive, location: str) -> None:
    message, server = refusal(archive, redirect(location))
    assert "redirects to" in message
    assert len(server.requests) == 1
    (capture,) = archive.captures()
    assert capture.status == 302


def test_the_body_of_a_redirect_is_limited_too(archive: Archive) -> None:
    message, _ = refusal(archive, replace(huge(100), status=302, headers={"Location": "/b"}))
    assert "more than the 64 MiB allowed" in message


def test_endless_redirects_end(archive: Archive) -> None:
    message, server = refusal(archive, redirect("/search"))
    assert "redirects more than 5 times" in message
    assert len(server.requests) == 6


def test_a_key_that_a_redirect_repeats_does_not_travel(archive: Archive) -> None:
    routes = {
        "api.openalex.org": respond(redirect("https://dblp.org/x?api_key=k123456789&q=1")),
        "dblp.org": respond(GOOD),
    }
    with serve(routes) as server:
        config = ClientConfig(contact=None, origins=server.origins)
        client = Client(archive, config, FakeClock(), {"OPENALEX_API_KEY": "k123456789"})
        client.fetch(Request(source="OpenAlex", url="https://api.openalex.org/works/W1"))
    assert server.requests[-1].target == "/x?q=1"


@pytest.mark.parametrize(
    "url", ["https://example.org/", "https://127.0.0.1/", "https://dblp.org:22/", "https://["]
)
def test_only_sources_on_the_list_are_asked(archive: Archive, url: str) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        client = loopback_client(server, archive)
        with pytest.raises(SourceUnavailable, match="address"):
            client.fetch(Request(source="S", url=url))
    assert not client.sent


def test_with_origins_no_other_host_is_asked(archive: Archive) -> None:
    with serve({"dblp.org": respond(GOOD)}) as server:
        client = loopback_client(server, archive)
        with pytest.raises(SourceUnavailable, match="origins"):
            client.fetch(Request(source="PMLR", url="https://proceedings.mlr.press/v139/"))


def test_origins_are_addresses_of_this_machine() -> None:
    with pytest.raises(ValueError, match="not on this machine"):
        ClientConfig(origins={"dblp.org": "http://example.org"})


# Paces


@pytest.mark.parametrize(
    ("host", "interval"),
    [("export.arxiv.org", 3), ("arxiv.org", 3), ("dblp.org", 1.5), ("proceedings.mlr.press", 1)],
)
def test_requests_to_a_host_keep_its_pace(archive: Archive, host: str, interval: float) -> None:
    clock = FakeClock()
    with serve({host: respond(GOOD)}) as server:
        client = loopback_client(server, archive, clock)
        for n in range(4):
            client.fetch(Request(source="S", url=f"https://{host}/{n}"))
    assert sum(clock.slept) == pytest.approx(3 * interval, abs=0.05)


def test_threads_together_keep_the_pace_of_a_host(archive: Archive) -> None:
    clock = FakeClock()
    with serve({"dblp.org": respond(GOOD)}) as server, ThreadPoolExecutor(8) as pool:
        client = loopback_client(server, archive, clock)
        list(pool.map(client.fetch, [dblp(f"/{n}") for n in range(8)]))
    assert sum(clock.slept) == pytest.approx(7 * 1.5, abs=0.1)


def test_the_hosts_of_arxiv_share_one_pace_and_one_connection(archive: Archive) -> None:
    clock = FakeClock()
    hosts = ["export.arxiv.org", "arxiv.org"]
    slow = replace(feed_body("<feed/>"), hang=0.02)
    with serve({host: respond(slow) for host in hosts}) as server, ThreadPoolExecutor(6) as pool:
        client = loopback_client(server, archive, clock)
        urls = [f"https://{host}/{n}" for n in range(3) for host in hosts]
        list(pool.map(client.fetch, [Request(source="arXiv", url=url) for url in urls]))
    assert sum(clock.slept) == pytest.approx(5 * 3, abs=0.1)
    times = sorted(seen.at for seen in server.requests)
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) > 0.015  # none began before the one before it was answered


def test_hosts_do_not_wait_for_each_other(archive: Archive) -> None:
    clock = FakeClock()
    hosts = ["dblp.org", "export.arxiv.org", "api.openalex.org", "proceedings.mlr.press"]
    with serve(dict.fromkeys(hosts, respond(GOOD))) as server:
        client = loopback_client(server, archive, clock)
        for host in hosts:
            client.fetch(Request(source="S", url=f"https://{host}/"))
    assert clock.slept == []


def test_clients_of_one_process_share_the_paces(archive: Archive) -> None:
    with serve({"api.openalex.org": respond(GOOD)}) as server:
        for n in range(3):
            client = Client(archive, ClientConfig(contact=None, origins=server.origins), environ={})
            client.fetch(Request(source="OpenAlex", url=f"https://api.openalex.org/{n}"))
    times = [seen.at for seen in server.requests]
    assert times[2] - times[0] >= 2 * HOSTS["api.openalex.org"].interval - 0.05


@pytest.mark.parametrize(
    ("limit", "interval", "seconds"),
    [("1", "2s", 2), ("2", "1s", 0.5), ("50", "1s", 0.2), ("0", "1s", 0.2), ("x", "soon", 0.2)],
)
def test_a_published_limit_slows_down_and_never_speeds_up(
    archive: Archive, limit: str, interval: str, seconds: float
) -> None:
    clock = FakeClock()
    headers = {"X-Rate-Limit-Limit": limit, "X-Rate-Limit-Interval": interval}
    with serve({"api.crossref.org": respond(replace(GOOD, headers=headers))}) as server:
        client = loopback_client(server, archive, clock)
        for n in range(5):
            client.fetch(Request(source="Crossref", url=f"https://api.crossref.org/{n}"))
    assert sum(clock.slept) == pytest.approx(4 * seconds, rel=0.05)


def test_requests_are_counted_by_host(archive: Archive) -> None:
    with serve({"dblp.org": in_turn(too_many(), GOOD), "arxiv.org": respond(GOOD)}) as server:
        client = loopback_client(server, archive)
        client.fetch(dblp())
        client.fetch(dblp())
        client.fetch(Request(source="arXiv", url="https://arxiv.org/html/1"))
    assert client.sent == {"dblp.org": 2, "arxiv.org": 1}


NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("1.5", 1.5),
        ("Fri, 01 May 2026 12:02:00 GMT", 120),
        ("Fri, 01 May 2026 11:00:00 GMT", 0),
        ("Friday, 01-May-26 12:02:00 GMT", 120),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@given(st.text())
def test_no_retry_after_field_breaks_anything(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or seconds >= 0


# Kills

FETCHER = """
import sys
from pathlib import Path
from provenance.evidence import Archive
from provenance.http import Client, ClientConfig
from provenance.works import Request
from tests.provenance.loopback import FakeClock
config = ClientConfig(contact=None, origins={"dblp.org": sys.argv[2]})
client = Client(Archive(Path(sys.argv[1])), config, clock=FakeClock(), environ={})
for n in range(20):
    client.fetch(Request(source="DBLP", url=f"https://dblp.org/{n}"))
"""


def run_fetcher(archive: Archive, server: Server) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", FETCHER, str(archive.folder), server.origins["dblp.org"]]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_keeps_what_was_fetched_and_the_next_run_goes_on(
    archive: Archive, signum: signal.Signals
) -> None:
    tenth = threading.Event()

    def handler(path: str, *_: Any) -> Response:
        if path == "/10" and not tenth.is_set():
            tenth.set()
            return hanging()
        return GOOD

    with serve({"dblp.org": handler}) as server:
        killed = run_fetcher(archive, server)
        assert tenth.wait(30)
        killed.send_signal(signum)
        assert killed.wait(30) != 0
        assert archive.check() == []
        assert len(list(archive.captures())) == 10
        assert run_fetcher(archive, server).wait(30) == 0
    targets = [seen.target for seen in server.requests]
    assert targets == [f"/{n}" for n in [*range(11), *range(10, 20)]]
    assert len(list(archive.captures())) == 20


def test_a_host_whose_name_cannot_be_resolved_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network nothing resolves, and waiting for it would only cost time."""

    def no_address(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    clock = FakeClock()
    client = Client(Archive(tmp_path), ClientConfig(contact=None), clock=clock, environ={})
    for word in ("one", "two"):
        request = Request(source="DBLP", url=f"https://dblp.org/search/publ/api?q={word}")
        with pytest.raises(SourceUnavailable, match="its name cannot be resolved"):
            client.fetch(request)
    assert client.sent["dblp.org"] == 1
    assert sum(clock.slept) == 0
