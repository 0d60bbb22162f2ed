"""A loopback server that stands in for the sources, with the faults that real ones show.

    with serve({"dblp.org": respond(json_body(hits)), "export.arxiv.org": arxiv}) as server:
        client = loopback_client(server, Archive(tmp_path))
        client.fetch(Request(source="DBLP", url="https://dblp.org/search/publ/api?q=x"))
        assert [seen.host for seen in server.requests] == ["dblp.org"]

A request for ``https://HOST/PATH`` goes to ``http://127.0.0.1:PORT/HOST/PATH``: that is the address
that ``server.origins`` gives for each host. The key of a route is a host or a host with the
beginning of a path (``"dblp.org/search"``); the longest that fits answers, and what fits none is
answered with 404. A handler may be called from several threads at once.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from provenance.evidence import Archive
from provenance.http import Client, ClientConfig


@dataclass(frozen=True)
class Response:
    """What a handler answers.

    ``truncate`` bytes of the body are sent and then the connection is cut; ``hang`` waits that many
    seconds before the first byte (until the server closes, at most); ``repeat`` sends the body so
    many times over; ``chunked`` sends it without a Content-Length; ``drip`` waits that many seconds
    between single bytes.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    truncate: int | None = None
    hang: float = 0
    repeat: int = 1
    chunked: bool = False
    drip: float = 0


Handler = Callable[[str, dict[str, list[str]], Mapping[str, str]], Response]


class Seen(NamedTuple):
    """One request as the server saw it: the host meant, path with query, headers, when."""

    host: str
    target: str
    headers: Mapping[str, str]
    at: float


@dataclass
class Server:
    """A running loopback server: where the hosts are found, and what was asked."""

    origins: dict[str, str]
    requests: list[Seen] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    most_at_once: dict[str, int] = field(default_factory=dict)


@contextmanager
def serve(routes: Mapping[str, Handler]) -> Iterator[Server]:
    """Serve ``routes`` from a free port of 127.0.0.1 until the block ends."""
    server = Server(origins={})
    web = ThreadingHTTPServer(("127.0.0.1", 0), _handler(routes, server))
    web.daemon_threads = True
    web.block_on_close = False
    base = f"http://127.0.0.1:{web.server_address[1]}"
    server.origins.update({key.split("/")[0]: f"{base}/{key.split('/')[0]}" for key in routes})
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        web.shutdown()
        web.server_close()
        thread.join()


def _handler(routes: Mapping[str, Handler], server: Server) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()
    now: dict[str, int] = {}

    class Loopback(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host, _, rest = self.path.lstrip("/").partition("/")
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                server.requests.append(Seen(host, f"/{rest}", headers, time.monotonic()))
                now[host] = now.get(host, 0) + 1
                server.most_at_once[host] = max(server.most_at_once.get(host, 0), now[host])
            try:
                self._send(_route(routes, host, f"/{rest}")(*_asked(f"/{rest}"), headers))
            except (ConnectionError, TimeoutError):
                self.close_connection = True  # the client went away, as tests of faults want
            finally:
                with lock:
                    now[host] -= 1

        def _send(self, response: Response) -> None:
            if response.hang:
                server.stopping.wait(response.hang)
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self._send_length(response)
            self.end_headers()
            if response.drip:
                self._drip(response)
            elif response.truncate is None:
                self._send_body(response)
            else:
                self.wfile.write(response.body[: response.truncate])
                self.wfile.flush()
                self.close_connection = True

        def _send_length(self, response: Response) -> None:
            if response.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            elif not any(name.lower() == "content-length" for name in response.headers):
                self.send_header("Content-Length", str(len(response.body) * response.repeat))

        def _send_body(self, response: Response) -> None:
            frame = b"%x\r\n%s\r\n" % (len(response.body), response.body)
            for _ in range(response.repeat):
                self.wfile.write(frame if response.chunked else response.body)
            if response.chunked:
                self.wfile.write(b"0\r\n\r\n")

        def _drip(self, response: Response) -> None:
            for byte in response.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if server.stopping.wait(response.drip):
                    return

        def log_message(self, *_: Any) -> None:
            return

    return Loopback


def _route(routes: Mapping[str, Handler], host: str, target: str) -> Handler:
    fits = [key for key in routes if f"{host}{target}".startswith(key)]
    fits = [key for key in fits if key.split("/")[0] == host]
    return routes[max(fits, key=len)] if fits else respond(Response(404, body=b"no route"))


def _asked(target: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlsplit(target)
    return parts.path, parse_qs(parts.query, keep_blank_values=True)


# Handlers


def respond(response: Response) -> Handler:
    """Answer every request alike."""
    return lambda _path, _query, _headers: response


def in_turn(*responses: Response) -> Handler:
    """Answer the first request with the first response, and so on; the last one for ever."""
    left = list(responses)
    lock = threading.Lock()

    def handler(_path: str, _query: dict[str, list[str]], _headers: Mapping[str, str]) -> Response:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return handler


def echo_path(path: str, query: dict[str, list[str]], _headers: Mapping[str, str]) -> Response:
    """Answer with the path and query that were asked for, as JSON."""
    return json_body({"path": path, "query": query})


# Answers


def json_body(value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    body = json.dumps(value).encode()
    return Response(status, {"Content-Type": "application/json"}, body)


def html_body(text: str, status: int = 200) -> Response:
    """A web page, such as a service shows in place of JSON while it is down."""
    return Response(status, {"Content-Type": "text/html; charset=utf-8"}, text.encode())


def feed_body(text: str) -> Response:
    """An Atom feed, as arXiv's API answers."""
    return Response(200, {"Content-Type": "application/atom+xml; charset=UTF-8"}, text.encode())


# Faults


def too_many(retry_after: float | None = None) -> Response:
    """429, with Retry-After in seconds or without."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Response(429, headers, b"Too Many Requests")


def too_many_until(when: datetime) -> Response:
    """429 with Retry-After as an HTTP date."""
    date = format_datetime(when.astimezone(UTC), usegmt=True)
    return Response(429, {"Retry-After": date}, b"Too Many Requests")


def unavailable() -> Response:
    """503 without Retry-After."""
    return html_body("<h1>Service Temporarily Unavailable</h1>", status=503)


def hanging(seconds: float = 60) -> Response:
    """No byte for so long, or until the server closes."""
    return Response(hang=seconds)


def truncated(response: Response) -> Response:
    """The first half of an answer, then the connection is cut."""
    return replace(response, truncate=len(response.body) // 2)


def gzipped(response: Response) -> Response:
    """The same answer with Content-Encoding gzip."""
    headers = {**response.headers, "Content-Encoding": "gzip"}
    return replace(response, headers=headers, body=gzip.compress(response.body))


def wrong_charset(text: str) -> Response:
    """UTF-8 bytes that are declared to be Latin-1."""
    return Response(200, {"Content-Type": "text/html; charset=iso-8859-1"}, text.encode())


def huge(megabytes: int = 100) -> Response:
    """A body of so many MiB, sent without its length."""
    return Response(body=b"x" * 2**20, repeat=megabytes, chunked=True)


def redirect(location: str, status: int = 302) -> Response:
    """A redirect to ``location``, absolute or relative."""
    return Response(status, {"Location": location})


def arxiv_throttled(status: int = 200) -> Response:
    """What arXiv's API answers to too many requests: plain text, of status 200 or 429."""
    return Response(status, {"Content-Type": "text/plain"}, b"Rate exceeded.")


def openreview_challenge() -> Response:
    """What OpenReview's API answers to visitors that it takes for robots: 403 with a JSON error."""
    error = {"name": "ChallengeRequiredError", "message": "Challenge required", "status": 403}
    return json_body(error, status=403)


# Clients


class FakeClock:
    """A clock for ``Client`` whose sleeps take no time; ``slept`` lists them, in seconds."""

    def __init__(self, start: datetime | None = None) -> None:
        self.slept: list[float] = []
        self._start = start or datetime.now(UTC)
        self._passed = 0.0
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return self._passed

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self._passed += seconds


def loopback_client(
    server: Server, archive: Archive, clock: FakeClock | None = None, **config: Any
) -> Client:
    """A client whose requests go to ``server``, without keys, waiting in no time.

    ``config`` holds further fields of ``ClientConfig``.
    """
    settings = {"origins": server.origins, "contact": None, "read_timeout": 2.0, **config}
    return Client(archive, ClientConfig(**settings), clock=clock or FakeClock(), environ={})
