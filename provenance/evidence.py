"""The evidence archive: what sources answered, as WARC files that another machine can replay.

Each response is a gzipped WARC/1.1 file of its own (ISO 28500:2017), a ``response`` record and the
``request`` that it answers. The name of the file is

    <16 hex of the sha256 of the request's URL>-<UTC nanoseconds, 20 digits>-<16 hex of the sha256
    of the body>.warc.gz

so that the newest answer to a request is found by listing names. A file is written beside its place
and then renamed: a kill leaves whole files only, and several processes may share a folder. A body
that comes again is stored again rather than as a ``revisit`` record, so that each file stands
alone. Bodies are stored decoded from transfer and content encodings; the header fields that
describe those are left out.

Secrets never reach a file: ``without_secrets`` is applied to URLs, and header fields that carry
credentials are dropped. The archive knows a request by its URL without secrets alone, so a replay
needs no key. The ``Accept`` field and a ``token`` parameter are no part of that identity.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from urllib.parse import quote, unquote_plus, urlsplit, urlunsplit

from records.archive import (
    FILE_NAME,
    Capture,
    media_type_of,
    moment,
    name_parts,
    parse_file,
    url_hash,
)
from records.errors import EvidenceError

SECRET_PARAMETERS = frozenset(
    ("access_token", "api-key", "api_key", "apikey", "key", "mailto", "token")
)
SECRET_HEADERS = frozenset(
    (
        "api-key",
        "authorization",
        "cookie",
        "crossref-plus-api-token",
        "proxy-authorization",
        "set-cookie",
        "x-api-key",
    )
)
REMOVED = "[removed]"
SHORTEST_SECRET = 8
"""Characters: a shorter key is not looked for in bodies, where it would also hit other text."""

_LENGTH_HEADERS = frozenset(
    ("connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding")
)
_PART = ".part"
_STALE_SECONDS = 3600
_DOUBTFUL_SECONDS = 2
"""A folder changed so lately may change again without a new time stamp."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Exchange:
    """A request and the whole response to it, as ``Archive.store`` takes them.

    ``url`` is the one asked for, ``final_url`` the one that answered after redirects; both may hold
    secrets. ``body`` is decoded. ``secrets`` are values that must not be written: keys and the
    contact address, of which ``keys`` must not even stand in the body.
    """

    source: str
    url: str
    final_url: str
    status: int
    request_headers: Headers = ()
    response_headers: Headers = ()
    body: bytes = field(default=b"", repr=False)
    reason: str = ""
    contact: str | None = field(default=None, repr=False)
    keys: tuple[str, ...] = field(default=(), repr=False)


def without_secrets(url: str) -> str:
    """Return ``url`` without user, fragment and the parameters that carry a key or an address.

    What remains is unchanged to the byte, but that scheme and host become lower case and all that
    is not printable ASCII becomes percent-encoded UTF-8.

    Raises:
        ValueError: ``url`` is no URL.
    """
    parts = urlsplit(_ascii(url).replace(" ", "%20"))
    host = parts.netloc.rpartition("@")[2].lower()
    fields = parts.query.split("&") if parts.query else []
    kept = [f for f in fields if unquote_plus(f.partition("=")[0]).lower() not in SECRET_PARAMETERS]
    return urlunsplit((parts.scheme.lower(), host, parts.path, "&".join(kept), ""))


def purge(exchange: Exchange) -> Exchange:
    """Return the exchange as it may be written, without any secret.

    Its body is the one that is archived and hashed, so findings must rest on this one.
    """
    secrets = _spellings([*exchange.keys, *([exchange.contact] if exchange.contact else [])])
    body = exchange.body
    for key in exchange.keys:
        if len(key) >= SHORTEST_SECRET:
            body = body.replace(key.encode(), REMOVED.encode())
    return Exchange(
        source=exchange.source,
        url=without_secrets(exchange.url),
        final_url=without_secrets(exchange.final_url),
        status=exchange.status,
        request_headers=_clean_headers(exchange.request_headers, secrets),
        response_headers=_clean_headers(exchange.response_headers, secrets),
        body=body,
        reason=exchange.reason,
    )


class Archive:
    """A folder of WARC files, made when something is first stored.

    May be used from several threads, and the folder by several processes at once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._listed: dict[str, list[str]] = {}
        self._stamp: int | None = None
        self._swept = False

    def store(self, exchange: Exchange, fetched: datetime | None = None) -> Capture:
        """Write one exchange and return what describes it.

        ``fetched`` is the time of the answer, now unless given.

        Raises:
            EvidenceError: the folder cannot be made or the file cannot be written.
        """
        exchange = purge(exchange)
        nanoseconds = time.time_ns() if fetched is None else _nanoseconds(fetched)
        capture = _describe(exchange, nanoseconds)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            self._write(capture.file, _warc(exchange, capture))
        except OSError as error:
            raise EvidenceError(
                f"the answer of {exchange.source} cannot be written to the evidence archive "
                f"{self.folder} ({error.strerror or error}); make room or name another workspace"
            ) from error
        with self._lock:
            names = self._listed.setdefault(url_hash(capture.url), [])
            names[:] = sorted({*names, capture.file})
        return capture

    def latest(self, url: str, max_age: timedelta | None = None) -> Capture | None:
        """Return the newest intact answer (status 200 or 404) to ``url``, or None.

        With ``max_age`` one that is older does not count.
        """
        return next((capture for capture, _ in self.answers(url, max_age)), None)

    def answers(
        self, url: str, max_age: timedelta | None = None, now: datetime | None = None
    ) -> Iterator[tuple[Capture, bytes]]:
        """Yield the intact answers (status 200 or 404) to ``url`` with their bodies, newest first.

        Damaged files are passed over; ``check`` reports them. Only files of this URL are opened.
        """
        clean = without_secrets(url)
        now = now or datetime.now(UTC)
        oldest = 0 if max_age is None else _nanoseconds(now - max_age)
        for name in reversed(self.names(clean)):
            if name_parts(name)[1] < oldest:
                return
            with suppress(EvidenceError):
                capture, body = self._open(name)
                if capture.status in (200, 404) and capture.url == clean:
                    yield capture, body

    def read(self, capture: Capture) -> bytes:
        """Return the body of a capture.

        Raises:
            EvidenceError: the file is missing or damaged, or its body is not the one described.
        """
        found, body = self._open(capture.file)
        if found.sha256 != capture.sha256:
            raise EvidenceError(
                f"{capture.file} holds another body than {capture.evidence_id} describes; "
                f"run `fwp evidence check`"
            )
        return body

    def names(self, url: str) -> list[str]:
        """Return the names of all files of ``url``, oldest first, whatever they hold."""
        return self._names(url_hash(without_secrets(url)))

    def captures(self) -> Iterator[Capture]:
        """Yield a description of each intact capture, oldest first; ``check`` names the others."""
        for name in sorted(self._all_names(), key=lambda name: (name_parts(name)[1], name)):
            with suppress(EvidenceError):
                yield self._open(name)[0]

    def get(self, evidence_id: str) -> Capture:
        """Return the newest capture of that id.

        Raises:
            EvidenceError: the archive holds none, or the newest is damaged.
        """
        url, _, body = evidence_id.removeprefix("warc:").partition("-")
        names = [name for name in self._names(url) if name_parts(name)[2] == body]
        if not names or not evidence_id.startswith("warc:"):
            raise EvidenceError(
                f"{evidence_id} is not in the evidence archive {self.folder}; "
                f"`fwp evidence list` shows what is"
            )
        return self._open(names[-1])[0]

    def check(self) -> list[str]:
        """Read every file, hash every body, and return a sentence for each thing that is wrong.

        Files that a running or interrupted store has not finished are no fault.
        """
        return [problem for path in self._files() if (problem := self._problem(path)) is not None]

    def _problem(self, path: Path) -> str | None:
        if not FILE_NAME.fullmatch(path.name) or not path.is_file():
            return f"{path.name} is no file of the archive; remove it"
        try:
            self._open(path.name)
        except EvidenceError as error:
            return str(error)
        return None

    def _open(self, name: str) -> tuple[Capture, bytes]:
        if not FILE_NAME.fullmatch(name):
            raise EvidenceError(f"{name!r} is not the name of a file of the evidence archive")
        try:
            data = (self.folder / name).read_bytes()
        except OSError as error:
            raise EvidenceError(
                f"{name} cannot be read from the evidence archive {self.folder} "
                f"({error.strerror or error})"
            ) from error
        return parse_file(name, data)

    def _write(self, name: str, data: bytes) -> None:
        part = self.folder / f"{_PART}-{os.getpid()}-{uuid.uuid4().hex}"
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.folder / name)
        finally:
            part.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove, once, what stores of an hour ago or earlier left unfinished."""
        if self._swept:
            return
        self._swept = True
        for part in self.folder.glob(f"{_PART}-*"):
            with suppress(FileNotFoundError):  # another process sweeps too
                if part.stat().st_mtime < time.time() - _STALE_SECONDS:
                    part.unlink()

    def _names(self, url_hash: str) -> list[str]:
        """Return the names of a URL's files, oldest first, as last listed; lists anew if none."""
        with self._lock:
            if url_hash not in self._listed:
                self._list()
            return list(self._listed.get(url_hash, ()))

    def _list(self) -> None:
        try:
            stamp = self.folder.stat().st_mtime_ns
        except FileNotFoundError:
            self._listed, self._stamp = {}, None
            return
        if stamp == self._stamp:
            return
        settled = time.time_ns() - stamp > _DOUBTFUL_SECONDS * 10**9
        self._listed = {}
        for name in sorted(self._all_names()):
            self._listed.setdefault(name_parts(name)[0], []).append(name)
        self._stamp = stamp if settled else None

    def _all_names(self) -> list[str]:
        return [path.name for path in self._files() if FILE_NAME.fullmatch(path.name)]

    def _files(self) -> list[Path]:
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 (three times as fast as iterdir)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise EvidenceError(
                f"the evidence archive {self.folder} cannot be listed ({error.strerror or error})"
            ) from error
        return [self.folder / name for name in sorted(names) if not name.startswith(_PART)]


# From an exchange to bytes and back


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Return the secrets as they stand in text and in URLs, longest first."""
    spelt = {form for s in secrets for form in (s, quote(s), quote(s, safe="")) if form}
    return sorted(spelt, key=len, reverse=True)


def _clean_headers(headers: Headers, secrets: list[str]) -> Headers:
    clean = []
    for name, value in headers:
        if name.lower() in SECRET_HEADERS:
            continue
        text = _clean_location(value) if name.lower() == "location" else value
        for secret in secrets:
            text = text.replace(secret, REMOVED)
        clean.append((name, _ascii(text)))  # warcio fails on some values that are not
    return tuple(clean)


def _clean_location(value: str) -> str:
    try:
        return without_secrets(value)
    except ValueError:
        return "invalid:"


def _ascii(text: str) -> str:
    """Return the text with all but printable ASCII percent-encoded as UTF-8."""
    return re.sub(r"[^ -~]", lambda found: quote(found[0], errors="replace"), text)


def _describe(exchange: Exchange, nanoseconds: int) -> Capture:
    """Return the capture of a purged exchange."""
    sha256 = hashlib.sha256(exchange.body).hexdigest()
    asked = url_hash(exchange.url)
    return Capture(
        evidence_id=f"warc:{asked}-{sha256[:16]}",
        source=exchange.source,
        url=exchange.url,
        final_url=exchange.final_url,
        status=exchange.status,
        fetched=moment(nanoseconds),
        media_type=media_type_of(exchange.response_headers),
        sha256=sha256,
        size=len(exchange.body),
        file=f"{asked}-{nanoseconds:020d}-{sha256[:16]}.warc.gz",
    )


def _warc(exchange: Exchange, capture: Capture) -> bytes:
    """Return the WARC file of a purged exchange."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    out = BytesIO()
    writer = WARCWriter(out, gzip=True, warc_version="WARC/1.1")
    date = capture.fetched.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    kept = [(n, v) for n, v in exchange.response_headers if n.lower() not in _LENGTH_HEADERS]
    reason = re.sub(r"[^ -~]", "", exchange.reason)
    response = writer.create_warc_record(
        capture.url,
        "response",
        payload=BytesIO(exchange.body),
        length=len(exchange.body),
        http_headers=StatusAndHeaders(
            f"{exchange.status} {reason}".rstrip(),
            [*kept, ("Content-Length", str(len(exchange.body)))],
            protocol="HTTP/1.1",
        ),
        warc_headers_dict={
            "WARC-Date": date,
            "WARC-Payload-Digest": f"sha256:{capture.sha256}",
            "FWP-Source": quote(capture.source),
            "FWP-Final-URI": capture.final_url,
        },
    )
    parts = urlsplit(capture.final_url)
    target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    request = writer.create_warc_record(
        capture.url,
        "request",
        http_headers=StatusAndHeaders(
            f"GET {target} HTTP/1.1",
            [("Host", parts.netloc), *exchange.request_headers],
            is_http_request=True,
        ),
        warc_headers_dict={"WARC-Date": date},
    )
    writer.write_request_response_pair(request, response)
    return out.getvalue()


def _nanoseconds(moment: datetime) -> int:
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return max(0, since // timedelta(microseconds=1) * 1000)
