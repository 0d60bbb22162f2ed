"""OpenReview's two APIs: v1 with flat content and decisions in replies, v2 with wrapped content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.provenance.loopback import Handler, Response, json_body
from tests.provenance.world import WorldWork

GROUPS = {"iclr": "ICLR.cc", "icml": "ICML.cc", "nips": "NeurIPS.cc"}
MISSING = {"name": "NotFoundError", "message": "The Note was not found", "status": 404}


def routes(works: Sequence[WorldWork]) -> dict[str, Handler]:
    """Serve the submissions of ICLR up to 2023 by v1, all later ones by v2."""
    noted = [w for w in works if w.openreview_id]
    old = [w for w in noted if w.year <= 2023]
    new = [w for w in noted if w.year > 2023]
    return {
        "api.openreview.net": _handler(old, note_v1),
        "api2.openreview.net": _handler(new, note_v2),
    }


def _handler(works: Sequence[WorldWork], note: Any) -> Handler:
    def handler(path: str, query: dict[str, list[str]], _: Mapping[str, str]) -> Response:
        if path == "/notes/search":
            words = query["term"][0].lower().split()
            return _notes([note(w) for w in works if all(t in w.title.lower() for t in words)])
        if "id" in query:
            found = [note(w) for w in works if w.openreview_id == query["id"][0]]
            return _notes(found) if found else json_body(MISSING, 404)
        group = (query.get("invitation") or query.get("content.venueid") or [""])[0]
        year, offset = group.split("/")[1:2], int(query.get("offset", ["0"])[0])
        listed = [
            note(w)
            for w in works
            if [str(w.year)] == year and group.startswith(GROUPS.get(w.series or "", "?"))
        ]
        limit = int(query.get("limit", ["1000"])[0])
        return _notes(listed[offset : offset + limit])

    return handler


def _notes(notes: Sequence[dict[str, Any]]) -> Response:
    return json_body({"notes": list(notes), "count": len(notes)})


def note_v1(work: WorldWork) -> dict[str, Any]:
    """A submission whose acceptance is told by a reply alone."""
    group = f"{GROUPS[str(work.series)]}/{work.year}/Conference"
    decision = "Reject" if work.extra.get("decision") == "reject" else "Accept (Poster)"
    reply = {
        "id": "reply",
        "replyto": work.openreview_id,
        "invitation": f"{group}/Paper7/-/Decision",
        "content": {"title": "Final Decision", "decision": decision},
    }
    return {
        "id": work.openreview_id,
        "forum": work.openreview_id,
        "invitation": f"{group}/-/Blind_Submission",
        "content": {"title": work.title, "authors": list(work.authors), "pdf": "/pdf/x.pdf"},
        "details": {"directReplies": [reply]},
        "cdate": 1601308000000,
    }


def note_v2(work: WorldWork) -> dict[str, Any]:
    """A note whose every field is wrapped."""
    group = f"{GROUPS[str(work.series)]}/{work.year}/Conference"
    name = GROUPS[str(work.series)].removesuffix(".cc")
    rejected = work.extra.get("decision") == "reject"
    content = {
        "title": work.title,
        "authors": list(work.authors),
        "venue": f"Submitted to {name} {work.year}" if rejected else f"{name} {work.year} Poster",
        "venueid": f"{group}/Rejected_Submission" if rejected else group,
    }
    return {
        "id": work.openreview_id,
        "forum": work.openreview_id,
        "invitations": [f"{group}/-/Submission"],
        "content": {key: {"value": value} for key, value in content.items()},
    }
