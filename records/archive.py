"""The files of the evidence archive, read: what a source answered, with its hash checked.

``provenance.evidence`` writes them and says how they are named and made up.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import AwareDatetime, Field

from records.errors import EvidenceError
from records.models import Record

FOLDER = "evidence"
"""The archive's folder in a workspace."""
FILE_NAME = re.compile(r"(?P<url>[0-9a-f]{16})-(?P<time>\d{20})-(?P<body>[0-9a-f]{16})\.warc\.gz")
_TEXTUAL = ("json", "xml", "yaml", "html", "text", "javascript", "bibtex")


class Capture(Record):
    """One archived response: when and from where, and the hash of its body.

    ``evidence_id`` is how findings name it. ``url`` is the one that was asked for, without
    secrets; ``final_url`` the one that answered after redirects.
    """

    evidence_id: str = Field(min_length=1)
    source: str = Field(min_length=1)
    url: str
    final_url: str
    status: int = Field(ge=100, le=599)
    fetched: AwareDatetime
    media_type: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)
    file: str


def read_capture(folder: Path, evidence_id: str) -> tuple[Capture, bytes]:
    """Return the newest capture of an id with its body, which has the hash that it is named by.

    Args:
        folder: the archive.
        evidence_id: ``warc:<16 hex digits of the URL>-<16 of the body>``; a ``#`` and what follows
            it, which tell several findings in one answer apart, are not looked at.

    Raises:
        EvidenceError: the archive holds none, or the newest is damaged.
    """
    url, _, body = evidence_id.partition("#")[0].removeprefix("warc:").partition("-")
    try:
        paths = folder.iterdir() if folder.is_dir() else ()
        names = [path.name for path in paths if FILE_NAME.fullmatch(path.name)]
        newest = max((n for n in names if _is_of(n, url, body)), key=name_parts, default=None)
        if newest is None or not evidence_id.startswith("warc:"):
            raise EvidenceError(
                f"{evidence_id} is not in the evidence archive {folder}; "
                f"`fwp evidence list` shows what is"
            )
        return parse_file(newest, (folder / newest).read_bytes())
    except OSError as error:
        raise EvidenceError(
            f"{evidence_id} cannot be read from the evidence archive {folder} "
            f"({error.strerror or error})"
        ) from error


def text_of(capture: Capture, body: bytes) -> str | None:
    """Return a body as text, what is not UTF-8 replaced; None where its media type is no text."""
    if body and not any(word in capture.media_type for word in _TEXTUAL):
        return None
    return body.decode("utf-8", errors="replace")


def _is_of(name: str, url: str, body: str) -> bool:
    named_url, _, named_body = name_parts(name)
    return (named_url, named_body) == (url, body)


def parse_file(name: str, data: bytes) -> tuple[Capture, bytes]:
    """Return the capture and body in a WARC file.

    Raises:
        EvidenceError: the file is cut short, damaged, or not what its name says.
    """
    asked, nanoseconds, body_hash = name_parts(name)
    record, body = _response_record(name, _whole_gzip(name, data))
    headers = record.rec_headers
    sha256 = hashlib.sha256(body).hexdigest()
    url = headers.get_header("WARC-Target-URI") or ""
    if headers.get_header("WARC-Payload-Digest") != f"sha256:{sha256}" or sha256[:16] != body_hash:
        raise EvidenceError(
            f"{name} is damaged: its body does not have the hash it was stored with"
        )
    if url_hash(url) != asked:
        raise EvidenceError(f"{name} is damaged: it holds the answer to another request ({url})")
    try:
        capture = Capture(
            evidence_id=f"warc:{asked}-{body_hash}",
            source=unquote(headers.get_header("FWP-Source") or ""),
            url=url,
            final_url=headers.get_header("FWP-Final-URI") or url,
            status=int(record.http_headers.get_statuscode()),
            fetched=moment(nanoseconds),
            media_type=media_type_of(record.http_headers.headers),
            sha256=sha256,
            size=len(body),
            file=name,
        )
    except (ValueError, OverflowError) as error:
        raise EvidenceError(f"{name} is damaged: its header cannot be read ({error})") from error
    return capture, body


def _whole_gzip(name: str, data: bytes) -> bytes:
    """Return the contents of a file of gzip members; zlib holds each against its checksum."""
    out = []
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            out.append(member.decompress(data))
        except zlib.error as error:
            raise EvidenceError(
                f"{name} is damaged: it is not whole gzip data ({error})"
            ) from error
        if not member.eof:
            raise EvidenceError(f"{name} is cut short; fetch it again or copy it anew")
        data = member.unused_data
    return b"".join(out)


def _response_record(name: str, data: bytes) -> tuple[Any, bytes]:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    try:
        for record in ArchiveIterator(BytesIO(data), no_record_parse=False):
            if record.rec_type == "response" and record.http_headers is not None:
                return record, record.content_stream().read()
    except (ArchiveLoadFailed, AttributeError, TypeError, ValueError) as error:
        # warcio raises the second and third for records without an address or a length
        raise EvidenceError(f"{name} is damaged: it is no WARC file ({error})") from error
    raise EvidenceError(f"{name} is damaged: it holds no response")


def url_hash(url: str) -> str:
    return hashlib.sha256(url.encode(errors="surrogatepass")).hexdigest()[:16]


def name_parts(name: str) -> tuple[str, int, str]:
    url, nanoseconds, rest = name.split("-")
    return url, int(nanoseconds), rest[:16]


def media_type_of(headers: Iterable[tuple[str, str]]) -> str:
    values = [value for name, value in headers if name.lower() == "content-type"]
    media_type = values[-1].partition(";")[0].strip().lower() if values else ""
    return media_type or "application/octet-stream"


def moment(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
