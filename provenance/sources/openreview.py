"""OpenReview: notes of its two APIs; all pure.

Venues up to 2023 are in API v1, where content is flat and a decision is a reply; later ones in v2,
where each field of the content is ``{"value": ...}``. What was submitted and not accepted is no
publication. Notes that OpenReview took over from DBLP say what DBLP says. Calls without an account
may be refused (403), which says nothing of what is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from provenance.match import series_mentioned
from provenance.works import Request, Work
from records.errors import UnreadableAnswer

SOURCE = "OpenReview"
PARSER = "openreview/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

PAGE = 1000
"""Notes that one answer holds at most."""

_V1, _V2 = "https://api.openreview.net", "https://api2.openreview.net"
_GROUPS = {"iclr": "ICLR.cc", "icml": "ICML.cc", "nips": "NeurIPS.cc"}
_FIRST_IN_V2 = {"iclr": 2024, "icml": 2023, "nips": 2023}
_NOT_ACCEPTED = re.compile(
    r"submi|reject|withdr|under.?review|blind|desk|retract|anonymous|\bcorr\b", re.IGNORECASE
)


# What to ask


def note_requests(forum: str) -> list[Request]:
    """Ask both APIs for a note with its replies; either may have it."""
    query = urlencode({"id": forum, "details": "directReplies"})
    return [_request(f"{base}/notes?{query}") for base in (_V2, _V1)]


def title_requests(title: str) -> list[Request]:
    """Ask both APIs for the notes whose title has these words."""
    query = urlencode({"term": title, "content": "title", "source": "forum", "limit": 10})
    return [_request(f"{base}/notes/search?{query}") for base in (_V2, _V1)]


def accepted_request(series: str, year: int, offset: int = 0) -> Request:
    """Ask for a page of the papers of a conference (``iclr``, ``icml``, ``nips``).

    Up to the year before v2 these are all submissions with their decisions, later the accepted.

    Raises:
        KeyError: a series that is not there.
    """
    group = f"{_GROUPS[series]}/{year}/Conference"
    if year >= _FIRST_IN_V2[series]:
        return _request(f"{_V2}/notes?{urlencode(_page({'content.venueid': group}, offset))}")
    fields = {"invitation": f"{group}/-/Blind_Submission", "details": "directReplies"}
    return _request(f"{_V1}/notes?{urlencode(_page(fields, offset))}")


def _page(fields: Mapping[str, str], offset: int) -> dict[str, str | int]:
    return {**fields, "limit": PAGE, "offset": offset}


def _request(url: str) -> Request:
    return Request(source=SOURCE, url=url, accept="application/json")


# What is answered


@dataclass(frozen=True)
class NotesPage:
    """One page of an answer: the papers on it, and how many notes it has, papers or not."""

    works: tuple[Work, ...]
    notes: int


def parse(body: bytes, evidence_id: str) -> list[Work]:
    """Return the papers among the notes of an answer.

    Raises:
        UnreadableAnswer: the body is no JSON object with notes.
    """
    return list(parse_page(body, evidence_id).works)


def parse_page(body: bytes, evidence_id: str) -> NotesPage:
    """Return the papers of one page, accepted or not.

    Raises:
        UnreadableAnswer: as ``parse``.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableAnswer(f"{SOURCE} answers with no JSON ({type(error).__name__})") from error
    notes = answer.get("notes") if isinstance(answer, Mapping) else None
    if not isinstance(notes, list):
        name = answer.get("name") if isinstance(answer, Mapping) else None
        raise UnreadableAnswer(f"{SOURCE} answers without notes" + (f": {name}" if name else ""))
    works = [_work(n, evidence_id) for n in notes if isinstance(n, Mapping)]
    return NotesPage(tuple(work for work in works if work is not None), len(notes))


def _work(note: Mapping[str, Any], evidence_id: str) -> Work | None:
    """Return a paper; None for a reply, a note without title or one of another kind."""
    content = note.get("content")
    if not isinstance(content, Mapping) or note.get("replyto"):
        return None
    title = _value(content, "title")
    identifier = note.get("forum") or note.get("id")
    if not isinstance(title, str) or not title.strip() or not isinstance(identifier, str):
        return None
    names = _value(content, "authors")
    venue = _accepted_at(note, content)
    group = str(_value(content, "venueid") or note.get("invitation") or "")
    series = _series(group, venue) if venue else None
    return Work(
        source=SOURCE,
        authority="dblp" if group.startswith("dblp.org/") else "proceedings",
        work_key=identifier,
        title=" ".join(title.split()),
        authors=tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else (),
        year=_year(group, venue) if venue else None,
        kind=("workshop" if "workshop" in f"{group} {venue}".lower() else "proceedings")
        if venue
        else "preprint",
        venue=venue,
        series=series,
        openreview_id=identifier,
        url=f"https://openreview.net/forum?id={identifier}",
        evidence_id=evidence_id,
    )


def _value(content: Mapping[str, Any], name: str) -> Any:
    """Return a field of the content of either API."""
    found = content.get(name)
    return found.get("value") if isinstance(found, Mapping) else found


def _accepted_at(note: Mapping[str, Any], content: Mapping[str, Any]) -> str | None:
    """Return where a paper was accepted, in OpenReview's words; None for any other paper."""
    venue, group = _value(content, "venue"), str(_value(content, "venueid") or "")
    if isinstance(venue, str) and venue.strip():
        refused = _NOT_ACCEPTED.search(venue) or _NOT_ACCEPTED.search(group)
        return None if refused else " ".join(venue.split())
    if any("accept" in decision.lower() for decision in _decisions(note)):
        parts = str(note.get("invitation", "")).split("/")
        return " ".join(part.removesuffix(".cc") for part in parts[:2]) or None
    return None


def _decisions(note: Mapping[str, Any]) -> Sequence[str]:
    details = note.get("details")
    replies = details.get("directReplies", []) if isinstance(details, Mapping) else []
    return [
        str(_value(reply["content"], "decision") or "")
        for reply in replies
        if isinstance(reply, Mapping)
        and isinstance(reply.get("content"), Mapping)
        and str(reply.get("invitation", "")).endswith("Decision")
    ]


def _series(group: str, venue: str) -> str | None:
    """Return the series that OpenReview's group ("ICLR.cc/2021/Conference") or words name."""
    if "workshop" in f"{group} {venue}".lower():
        return None
    owner = group.partition("/")[0]
    found = {key for key, name in _GROUPS.items() if name == owner} or set(series_mentioned(venue))
    return found.pop() if len(found) == 1 else None


def _year(group: str, venue: str) -> int | None:
    for text in (venue, group):
        years = set(re.findall(r"(?<!\d)((?:19|20)\d\d)(?!\d)", text))
        if len(years) == 1:
            return int(years.pop())
    return None
