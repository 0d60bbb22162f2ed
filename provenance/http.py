"""The network, in this one place: polite, bounded requests to the sources, archived as evidence.

``Client.fetch`` answers from the archive where it holds a recent answer and asks the source
otherwise. Every host has its own pace (``HOSTS``, after the host's published etiquette), which all
clients of a process share. What is answered is archived, refusals too. A source that does not
answer as it should raises ``SourceUnavailable``; nothing here says that a work is absent.
``OfflineFetcher`` answers from an archive alone.

Keys come from the environment only (``OPENALEX_API_KEY``, ``SEMANTIC_SCHOLAR_API_KEY``,
``CROSSREF_PLUS_TOKEN``), as does the default contact (``FWP_CONTACT``).
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, Protocol
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import requests
import urllib3
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pyrate_limiter import InMemoryBucket, Rate, RateItem
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_exponential_jitter

from provenance.evidence import Archive, Exchange, Headers, purge, without_secrets
from provenance.works import Answer, Request
from records.errors import ConfigError, SourceUnavailable

RETRIED = frozenset((429, 500, 502, 503, 504))
REDIRECTS = frozenset((301, 302, 303, 307, 308))
MOST_REDIRECTS = 5
_CHUNK = 2**16


@dataclass(frozen=True)
class Key:
    """How a host takes its key: from which variable, and in which header field or parameter."""

    variable: str
    header: str | None = None
    parameter: str | None = None
    prefix: str = ""


@dataclass(frozen=True)
class Host:
    """What is kept to with one host: at least ``interval`` seconds between the beginnings of two
    requests, at most ``connections`` at a time. Hosts of one ``group`` count as one.
    """

    name: str
    interval: float
    connections: int = 1
    group: str = ""
    contact_parameter: str | None = None
    key: Key | None = None


_CROSSREF = Key("CROSSREF_PLUS_TOKEN", header="Crossref-Plus-API-Token", prefix="Bearer ")

HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        # info.arxiv.org/help/api/tou.html: one request in three seconds, one connection
        Host("export.arxiv.org", 3, group="arxiv"),
        Host("arxiv.org", 3, group="arxiv"),
        Host("ar5iv.labs.arxiv.org", 3, group="arxiv"),  # the HTML of papers before December 2023
        Host("proceedings.mlr.press", 1),
        Host("api.openreview.net", 1),
        Host("api2.openreview.net", 1),
        # dblp.org/faq: one or two seconds between requests
        Host("dblp.org", 1.5),
        # api.crossref.org: the limit is in the answers' header fields, mailto names the polite pool
        Host("api.crossref.org", 0.2, 3, contact_parameter="mailto", key=_CROSSREF),
        Host("api.datacite.org", 0.5, 2),
        Host("api.openalex.org", 0.2, 3, "", "mailto", Key("OPENALEX_API_KEY", None, "api_key")),
        Host("api.semanticscholar.org", 1, key=Key("SEMANTIC_SCHOLAR_API_KEY", "x-api-key")),
        Host("papers.nips.cc", 1, group="nips"),
        Host("proceedings.neurips.cc", 1, group="nips"),
        Host("aclanthology.org", 1),
    )
}


class Clock(Protocol):
    """Time, so that tests need not wait."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""

    def now(self) -> datetime:
        """Return the time of day, with its zone."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's own time."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ClientConfig(BaseModel):
    """How a client asks; times in seconds, sizes in bytes of the decoded body.

    ``contact`` is a mail or web address that the operators of a source can turn to. ``total``
    bounds one request with its retries from the moment that its turn at the host comes, ``run``
    (None: no bound) everything that one client does: after it, nothing is asked any more.
    ``attempts`` counts the first one. After ``failures`` requests in a row that a host did not
    answer or refused, this client does not ask it again. An archived answer younger than
    ``max_age`` is used instead of a request, unless ``refresh``. ``origins`` sends the requests of
    a host to another address on this machine, for tests; then no other host is asked:
    ``{"dblp.org": "http://127.0.0.1:8000/dblp.org"}``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    contact: str | None = Field(
        default_factory=lambda: os.environ.get("FWP_CONTACT") or None,
        pattern=r"^[!-~]{3,200}$",
        validate_default=True,
    )
    connect_timeout: float = Field(default=5, gt=0)
    read_timeout: float = Field(default=20, gt=0)
    total: float = Field(default=60, gt=0)
    run: float | None = Field(default=None, gt=0)
    max_size: int = Field(default=64 * 2**20, ge=1)
    attempts: int = Field(default=4, ge=1)
    failures: int = Field(default=3, ge=1)
    max_age: timedelta = timedelta(days=30)
    refresh: bool = False
    origins: Mapping[str, str] = Field(default_factory=dict)

    @field_validator("origins")
    @classmethod
    def _loopback_only(cls, origins: Mapping[str, str]) -> Mapping[str, str]:
        for origin in origins.values():
            if urlsplit(origin).hostname not in ("127.0.0.1", "::1", "localhost"):
                raise ValueError(f"{origin!r} is not on this machine; origins are for tests")
        return origins


class Limits:
    """The paces of the hosts; one object for all clients of a process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._paces: dict[str, Pace] = {}

    def pace(self, host: Host) -> Pace:
        """Return the pace that the requests to ``host`` keep."""
        with self._lock:
            name = host.group or host.name
            return self._paces.setdefault(name, Pace(host, self._clock))


class Pace:
    """The pace of one host or group of hosts: who may ask it, and when."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self._clock = clock
        self._interval = host.interval
        self._bucket = _bucket(host.interval)
        self._turn = threading.Lock()
        self._blocked_until = -math.inf
        self.connections = threading.BoundedSemaphore(host.connections)

    def wait(self) -> None:
        """Wait for this request's turn, and take it."""
        with self._turn:
            while (seconds := self._seconds_to_wait()) > 0:
                self._clock.sleep(seconds)

    def _seconds_to_wait(self) -> float:
        seconds = self.blocked()
        if seconds <= 0:
            item = RateItem("request", int(self._clock.monotonic() * 1000))
            self._bucket.leak(item.timestamp)
            seconds = 0.0 if self._bucket.put(item) else _milliseconds(self._bucket, item) / 1000
        return seconds

    def block(self, seconds: float) -> None:
        """Let no request begin for so long, as the host asks."""
        self._blocked_until = max(self._blocked_until, self._clock.monotonic() + seconds)

    def blocked(self) -> float:
        """Return how many seconds the host still asks to be left alone, 0 or less for none."""
        return self._blocked_until - self._clock.monotonic()

    def slow_down(self, interval: float) -> None:
        """Keep at least ``interval`` seconds between requests from now on; never fewer than now."""
        with self._turn:
            if interval > self._interval:
                self._interval = interval
                self._bucket = _bucket(interval)
                self._bucket.put(RateItem("request", int(self._clock.monotonic() * 1000)))


def _bucket(interval: float) -> InMemoryBucket:
    return InMemoryBucket([Rate(1, max(1, math.ceil(interval * 1000)))])


def _milliseconds(bucket: InMemoryBucket, item: RateItem) -> int:
    wait = bucket.waiting(item)
    if not isinstance(wait, int):
        raise TypeError("a bucket in memory answers at once")
    return max(1, wait)


_LIMITS = Limits(SystemClock())


class _Trouble(Exception):
    """A request to ``host`` that brought no answer; the message completes "DBLP (dblp.org) ...".

    ``again``: another attempt may help, after ``retry_after`` seconds if the host says so.
    ``counts``: whether the host seems to be down, to be counted by attempt or by request, or is
    sure to be.
    ``exchange`` is what it said, if it said anything.
    """

    def __init__(
        self,
        message: str,
        host: str,
        again: bool = False,
        counts: Literal["attempt", "request", "host"] | None = None,
        exchange: Exchange | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.host = host
        self.again = again
        self.counts = counts
        self.exchange = exchange
        self.retry_after = retry_after


class _Budget:
    """The time that one request may take, from when it first gets its turn."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self._end: float | None = None

    def begin(self) -> None:
        if self._end is None:
            self._end = self._clock.monotonic() + self.seconds

    def left(self) -> float:
        return self.seconds if self._end is None else self._end - self._clock.monotonic()


class Client:
    """Answers requests from the archive or the source; may be used from several threads.

    ``sent`` counts the requests that went out, by host. With a ``clock`` of its own a client keeps
    its own paces.

    Raises:
        ConfigError: a key in ``environ`` holds what no header field can.
    """

    def __init__(
        self,
        archive: Archive,
        config: ClientConfig | None = None,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.archive = archive
        self.config = config or ClientConfig()
        self.sent: Counter[str] = Counter()
        self._clock = clock or SystemClock()
        self._limits = Limits(clock) if clock else _LIMITS
        self._started = self._clock.monotonic()
        self._keys = _keys(os.environ if environ is None else environ)
        self._lock = threading.Lock()
        self._failures: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._sessions: dict[str, _Session] = {}
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._fetched: set[str] = set()

    def fetch(self, request: Request) -> Answer:
        """Return the answer to a request, from the archive or from the source.

        Raises:
            SourceUnavailable: the source cannot be reached, refuses, is too slow, answers what
                cannot be an answer, or is not on the list of sources.
            EvidenceError: the archive cannot be read or written.
        """
        url = _identity(request)
        with self._lock:
            turn = self._turns[url]
        with turn:  # who asks the same in another thread finds the answer archived
            refresh = self.config.refresh and url not in self._fetched
            known = None if refresh else self._known(request)
            answer = known or self._ask(request)
            self._fetched.add(url)
        return answer

    def _known(self, request: Request) -> Answer | None:
        return _archived(self.archive, request, self.config.max_age, self._clock.now())

    def _ask(self, request: Request) -> Answer:
        """Ask the source, more than once where that may help, and archive what it answers."""
        budget = _Budget(self._clock, self.config.total)
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, _Trouble) and error.again),
            stop=lambda state: self._is_enough(state, budget),
            wait=_seconds_before_next,
            sleep=self._clock.sleep,
            reraise=True,
        )
        try:
            exchange = retrying(self._attempt, request, budget)
        except _Trouble as trouble:
            if trouble.counts == "request":
                self._count_failure(trouble)
            if trouble.exchange is not None:
                self.archive.store(trouble.exchange, self._clock.now())
            attempts = int(retrying.statistics.get("attempt_number", 1))
            raise SourceUnavailable(_sentence(request, trouble, attempts, budget)) from None
        return Answer(self.archive.store(exchange, self._clock.now()), exchange.body)

    def _is_enough(self, state: RetryCallState, budget: _Budget) -> bool:
        trouble = _trouble(state)
        return (
            state.attempt_number >= self.config.attempts
            or state.upcoming_sleep > budget.left()
            or self._failures[trouble.host] >= self.config.failures
        )

    def _attempt(self, request: Request, budget: _Budget) -> Exchange:
        """Ask once, following redirects, and return what is an answer."""
        url, host = request.url, _host(request.url)
        if host is None:
            raise _Trouble("is not asked: this is no https address of a source on the list", "")
        for _ in range(MOST_REDIRECTS + 1):
            exchange = self._exchange(host, url, request, budget)
            location = _header(exchange.response_headers, "location")
            if exchange.status not in REDIRECTS or location is None:
                return self._judged(host, request, exchange)
            url = _joined(url, location)
            target = _host(url)
            if target is None:
                message = f"redirects to {url[:200]!r}, which is no https address on the list"
                raise _Trouble(message, host.name, exchange=exchange)
            host = target
        message = f"redirects more than {MOST_REDIRECTS} times"
        raise _Trouble(message, host.name, exchange=exchange)

    def _exchange(self, host: Host, url: str, request: Request, budget: _Budget) -> Exchange:
        """Wait for a turn at the host and send one request."""
        pace = self._limits.pace(host)
        with pace.connections:
            self._may_ask(host, pace, budget)
            pace.wait()
            budget.begin()
            try:
                exchange = self._send(host, url, request, budget)
            except _Trouble as trouble:
                if trouble.counts in ("attempt", "host"):
                    self._count_failure(trouble)
                raise
        pace.slow_down(_published_interval(exchange.response_headers))
        return exchange

    def _may_ask(self, host: Host, pace: Pace, budget: _Budget) -> None:
        """Raise if the host is not to be asked any more, or not yet."""
        if self.config.origins and host.name not in self.config.origins:
            raise _Trouble("is not asked: the configured origins do not name it", host.name)
        if self._seconds_left() <= 0:
            raise _Trouble(f"is not asked: the {self.config.run:g} s are used up", host.name)
        failures = self._failures[host.name]
        if failures >= self.config.failures:
            reason = self._reasons.get(host.name, "")
            message = f"failed {failures} times in a row and is not asked again ({reason})"
            raise _Trouble(message, host.name)
        if pace.blocked() > budget.left():
            message = f"asked to be left alone for another {pace.blocked():.0f} s"
            raise _Trouble(message, host.name)

    def _seconds_left(self) -> float:
        run = math.inf if self.config.run is None else self.config.run
        return self._started + run - self._clock.monotonic()

    def _send(self, host: Host, url: str, request: Request, budget: _Budget) -> Exchange:
        """Send one request and read what comes, within the limits of time and size."""
        headers = self._headers(host, request)
        left = max(0.001, min(budget.left(), self._seconds_left()))
        timeout = (min(self.config.connect_timeout, left), min(self.config.read_timeout, left))
        with self._lock:
            self.sent[host.name] += 1
            session = self._session(host)
        with (
            _troubles(host, timeout),
            session.get(
                self._address(host, url),
                headers=headers,
                timeout=timeout,
                stream=True,
                allow_redirects=False,
            ) as response,
        ):
            body = self._body(host, response, budget)
            exchange = Exchange(
                source=request.source,
                url=request.url,
                final_url=url,
                status=response.status_code,
                request_headers=tuple(headers.items()),
                response_headers=tuple(response.headers.items()),
                body=body,
                reason=response.reason or "",
                contact=self.config.contact,
                keys=tuple(self._keys.values()),
            )
        return purge(exchange)

    def _body(self, host: Host, response: requests.Response, budget: _Budget) -> bytes:
        """Read and decode a body, and stop as soon as it is too large or takes too long."""
        limit = self.config.max_size
        too_large = _Trouble(f"answers more than the {limit / 2**20:g} MiB allowed", host.name)
        broken = _Trouble("broke off in the middle of its answer", host.name, True, "request")
        slow = _Trouble(f"takes longer than {budget.seconds:g} s", host.name, True, "request")
        length = response.headers.get("Content-Length", "")
        declared = int(length) if length.isascii() and length.isdigit() else None
        decoder = _Decoder(response.headers.get("Content-Encoding", ""), host.name)
        if declared is not None and declared > limit:
            raise too_large
        body, received = bytearray(), 0
        while chunk := response.raw.read1(_CHUNK, decode_content=False):
            received += len(chunk)
            body += decoder.decode(chunk, limit + 1 - len(body))
            if len(body) > limit:
                raise too_large
            if budget.left() <= 0:
                raise slow
        if not decoder.whole or (declared is not None and received != declared):
            raise broken
        return bytes(body)

    def _judged(self, host: Host, request: Request, exchange: Exchange) -> Exchange:
        """Return what is an answer, raise what is none, and keep count of both."""
        status = exchange.status
        complaint = _complaint(request, exchange.status, exchange.response_headers, exchange.body)
        if complaint is None:
            with self._lock:
                self._failures[host.name] = 0
            return exchange
        again = status in RETRIED or _is_arxiv_throttle(exchange.body)
        retry_after = None
        if again:
            header = _header(exchange.response_headers, "retry-after")
            retry_after = retry_after_seconds(header, self._clock.now())
            self._limits.pace(host).block(retry_after or 0)
        counts: Literal["request"] | None = (
            "request" if again or status in (200, 401, 403) else None
        )
        raise _Trouble(complaint, host.name, again, counts, exchange, retry_after)

    def _count_failure(self, trouble: _Trouble) -> None:
        with self._lock:
            self._failures[trouble.host] += self.config.failures if trouble.counts == "host" else 1
            self._reasons[trouble.host] = str(trouble)

    def _headers(self, host: Host, request: Request) -> dict[str, str]:
        headers = {
            "User-Agent": user_agent(self.config.contact),
            "Accept": request.accept,
            "Accept-Encoding": "gzip",
        }
        key = host.key and self._keys.get(host.key.variable)
        if host.key and host.key.header and key:
            headers[host.key.header] = host.key.prefix + key
        return headers

    def _address(self, host: Host, url: str) -> str:
        """Return where a request is sent: ``url`` with contact and key, or its test address."""
        parts = urlsplit(url)
        query = [parts.query] if parts.query else []
        if host.contact_parameter and self.config.contact and "@" in self.config.contact:
            query.append(f"{host.contact_parameter}={quote(self.config.contact, safe='')}")
        key = host.key and self._keys.get(host.key.variable)
        if host.key and host.key.parameter and key:
            query.append(f"{host.key.parameter}={quote(key, safe='')}")
        base = self.config.origins.get(host.name, f"https://{host.name}").rstrip("/")
        return base + urlunsplit(("", "", parts.path or "/", "&".join(query), ""))

    def _session(self, host: Host) -> requests.Session:
        """Return the session of a host or group: no cookies, no .netrc, so many connections."""
        name = host.group or host.name
        if name not in self._sessions:
            session = _Session()
            adapter = requests.adapters.HTTPAdapter(
                pool_connections=1, pool_maxsize=host.connections, pool_block=True
            )
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            session.auth = _no_auth
            session.trust_env = host.name not in self.config.origins  # proxies and certificates
            self._sessions[name] = session
        return self._sessions[name]


class _Session(requests.Session):
    """A session that never looks at redirects: requests would read their bodies without limit."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Name no target: the client follows redirects itself."""


class OfflineFetcher:
    """Answers requests from an archive alone, whatever their age."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

    def fetch(self, request: Request) -> Answer:
        """Return the newest archived answer to a request.

        Raises:
            SourceUnavailable: the archive holds no intact answer to it.
            EvidenceError: the archive cannot be read.
        """
        answer = _archived(self.archive, request, None, datetime.now(UTC))
        if answer is not None:
            return answer
        url = _identity(request)
        if self.archive.names(url):
            raise SourceUnavailable(
                f"{request.source} is not asked (offline), and the archive holds of {url} only "
                f"refusals or damaged files; see `fwp evidence check`, or run without --offline"
            )
        raise SourceUnavailable(
            f"{request.source} is not asked (offline), and {url} is not in the archive; "
            f"run without --offline once"
        )


# What is an answer


def _archived(
    archive: Archive, request: Request, max_age: timedelta | None, now: datetime
) -> Answer | None:
    """Return the newest archived answer to a request that would do as an answer today."""
    for capture, body in archive.answers(_identity(request), max_age, now):
        headers = (("content-type", capture.media_type),)
        if _complaint(request, capture.status, headers, body) is None:
            return Answer(capture, body)
    return None


def _complaint(request: Request, status: int, headers: Headers, body: bytes) -> str | None:
    """Return why a response is no answer, or None."""
    if status == 429 or _is_arxiv_throttle(body):
        return f"answers that it is asked too often (status {status})"
    if status in (401, 403):
        return f"refuses the request (status {status})"
    if status >= 500:
        return f"is out of order (status {status})"
    if status not in (200, 404):
        return f"does not accept the request (status {status})"
    media_type = (_header(headers, "content-type") or "").partition(";")[0].strip().lower()
    if status == 200 and "json" in request.accept and media_type == "text/html":
        return "answers with a web page in place of JSON"
    return None


def _is_arxiv_throttle(body: bytes) -> bool:
    return body.strip() == b"Rate exceeded."


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After field asks for, at least 0 (RFC 9110, 10.2.3).

    ``value`` is a number of seconds or an HTTP date; None is returned for anything else.
    """
    text = (value or "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d*)?", text, re.ASCII):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    date = date.replace(tzinfo=date.tzinfo or UTC)
    return max(0.0, (date - now).total_seconds())


def _published_interval(headers: Headers) -> float:
    """Return the seconds between requests that Crossref's header fields allow, 0 without them."""
    limit = re.fullmatch(r"[1-9]\d{0,5}", _header(headers, "x-rate-limit-limit") or "")
    seconds = re.fullmatch(r"(\d{1,5})s", _header(headers, "x-rate-limit-interval") or "")
    return int(seconds[1]) / int(limit[0]) if limit and seconds else 0.0


# Addresses and names


def user_agent(contact: str | None) -> str:
    """Return what the project calls itself to sources."""
    try:
        name = f"fwp-repro/{version('fwp-repro')}"
    except PackageNotFoundError:  # used from a source tree
        name = "fwp-repro"
    return f"{name} (+{contact})" if contact else name


def _keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that the environment holds, by the names of their variables."""
    names = [host.key.variable for host in HOSTS.values() if host.key]
    keys = {name: environ.get(name, "").strip() for name in names}
    for name, key in keys.items():
        if not re.fullmatch(r"[!-~]*", key):
            raise ConfigError(f"{name} holds a character that no key has; set it again or unset it")
    return {name: key for name, key in keys.items() if key}


def _identity(request: Request) -> str:
    """Return the URL by which the archive knows a request."""
    try:
        return without_secrets(request.url)
    except ValueError as error:
        raise SourceUnavailable(
            f"{request.source} is not asked: {request.url!r} is no address ({error})"
        ) from error


def _host(url: str) -> Host | None:
    """Return the host on the list that ``url`` leads to over https, or None."""
    try:
        parts = urlsplit(url)
        plain = parts.scheme == "https" and parts.port in (None, 443) and "@" not in parts.netloc
    except ValueError:
        return None
    return HOSTS.get(parts.hostname or "") if plain else None


def _joined(url: str, location: str) -> str:
    """Return where a Location field leads from ``url``, without secrets that it repeats."""
    try:
        return without_secrets(urljoin(url, location))
    except ValueError:
        return f"invalid:{quote(location)}"


def _header(headers: Headers, name: str) -> str | None:
    return next((value for key, value in headers if key.lower() == name), None)


def _no_auth(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
    """Stand in for the passwords that requests would otherwise take from .netrc."""
    return prepared


# From what the libraries raise to sentences


@contextmanager
def _troubles(host: Host, timeout: tuple[float, float]) -> Iterator[None]:
    """Turn what requests and urllib3 raise into ``_Trouble``; their messages may hold keys."""
    try:
        yield
    except requests.exceptions.ConnectTimeout:
        message = f"did not answer: no connection within {timeout[0]:g} s"
        raise _Trouble(message, host.name, True, "attempt") from None
    except (requests.exceptions.ReadTimeout, urllib3.exceptions.ReadTimeoutError):
        message = f"did not answer within {timeout[1]:g} s"
        raise _Trouble(message, host.name, True, "request") from None
    except (requests.exceptions.ChunkedEncodingError, urllib3.exceptions.ProtocolError):
        message = "broke off in the middle of its answer"
        raise _Trouble(message, host.name, True, "request") from None
    except requests.exceptions.ConnectionError as error:
        message = f"did not answer: {_why(error)}"
        if _is_nameless(error):  # no network, most likely: waiting would only cost time
            raise _Trouble(message, host.name, False, "host") from None
        raise _Trouble(message, host.name, True, "attempt") from None
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        message = f"cannot be asked ({type(error).__name__})"
        raise _Trouble(message, host.name, False, "request") from None


def _why(error: requests.exceptions.ConnectionError) -> str:
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not accepted"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not reach it"
    return "its name cannot be resolved" if _is_nameless(error) else "the connection failed"


def _is_nameless(error: requests.exceptions.ConnectionError) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, urllib3.exceptions.NameResolutionError)


def _trouble(state: RetryCallState) -> _Trouble:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, _Trouble):
        raise TypeError("only a trouble is tried again")
    return error


_BACKOFF = wait_exponential_jitter(initial=1, max=30, jitter=1)


def _seconds_before_next(state: RetryCallState) -> float:
    """Return a growing, jittered number of seconds, and at least what the host asks for."""
    return max(_BACKOFF(state), _trouble(state).retry_after or 0)


def _sentence(request: Request, trouble: _Trouble, attempts: int, budget: _Budget) -> str:
    name = f"{request.source} ({trouble.host})" if trouble.host else request.source
    tried = f", {attempts} times" if attempts > 1 else ""
    asks = ""
    if trouble.retry_after is not None and trouble.retry_after > budget.left():
        asks = f" and asks to wait {trouble.retry_after:.0f} s, more than one request may take"
    return f"{name} {trouble}{tried}{asks}; asked for {_identity(request)}"


class _Decoder:
    """Undoes Content-Encoding, never beyond a given size; only gzip is asked for."""

    def __init__(self, encoding: str, host: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip"):
            raise _Trouble(f"answers in an encoding not asked for ({name[:40]!r})", host)
        self._host = host
        self._member = zlib.decompressobj(wbits=31) if "gzip" in name else None

    def decode(self, chunk: bytes, most: int) -> bytes:
        """Return at least ``most`` bytes, or all that ``chunk`` gives."""
        if self._member is None:
            return chunk
        out = bytearray()
        try:
            while chunk and len(out) < most:
                if self._member.eof:  # another member follows
                    self._member = zlib.decompressobj(wbits=31)
                out += self._member.decompress(chunk, most - len(out))
                chunk = self._member.unused_data or self._member.unconsumed_tail
        except zlib.error:
            message = "answers with damaged gzip data"
            raise _Trouble(message, self._host, True, "request") from None
        return bytes(out)

    @property
    def whole(self) -> bool:
        """Whether the data ended where an encoding ends."""
        return self._member is None or self._member.eof
