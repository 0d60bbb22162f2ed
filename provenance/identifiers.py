"""Identifiers and links in text: arXiv, DOI, OpenReview, PMLR; all pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ID = r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v(?P<version>\d+))?"
_ARXIV = (
    re.compile(rf"arxiv\.org/(?:abs|pdf|html|e-print)/{_ID}", re.IGNORECASE),
    re.compile(rf"10\.48550/arxiv\.{_ID}", re.IGNORECASE),
    re.compile(rf"arxiv(?:[\s_-]*(?:preprint|e-?print|id))*[\s:.,#({{\[_]*{_ID}", re.IGNORECASE),
    re.compile(rf"\babs/{_ID}", re.IGNORECASE),
)
_BARE_ARXIV = re.compile(rf"{_ID}", re.IGNORECASE)
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>{}|\\^`]+", re.IGNORECASE)
_NOTE = re.compile(r"openreview\.net/(?:forum|pdf|references/pdf)\?id=(?P<id>[\w-]+)")
_URL = re.compile(r"https?://[^\s<>\"{}|\\^`\]]+")
_ONLY_ARXIV = re.compile(
    r"\b(?:arxiv|corr|preprint|e-?prints?|available at|technical report|cs|cl|lg|ml|stat|"
    r"abs|org|ai|cv|ne|vol(?:ume)?|under review|submitted|in|the|on|work|progress|unpublished|"
    r"manuscript)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Identifiers:
    """What identifies a work in a text; ``arxiv_id`` has no version, ``doi`` is in lower case."""

    arxiv_id: str | None = None
    arxiv_version: int | None = None
    doi: str | None = None
    openreview_id: str | None = None
    url: str | None = None


def find_identifiers(text: str) -> Identifiers:
    """Return the first identifier of each kind in a text; arXiv's own DOIs count as arXiv's."""
    arxiv = next((m for pattern in _ARXIV if (m := pattern.search(text))), None)
    dois = [doi for match in _DOI.finditer(text) if (doi := _trimmed(match[0]).lower())]
    note, url = _NOTE.search(text), _URL.search(text)
    return Identifiers(
        arxiv_id=arxiv["id"] if arxiv else None,
        arxiv_version=int(arxiv["version"]) if arxiv and arxiv["version"] else None,
        doi=next((doi for doi in dois if not doi.startswith("10.48550/arxiv.")), None),
        openreview_id=note["id"] if note else None,
        url=_trimmed(url[0]) if url else None,
    )


def bare_arxiv_id(text: str) -> tuple[str, int | None] | None:
    """Return the identifier and version that a field for arXiv identifiers holds, or None."""
    match = _BARE_ARXIV.fullmatch(text.strip())
    if match is None:
        return None
    return match["id"], int(match["version"]) if match["version"] else None


def without_identifiers(text: str) -> str:
    """Return a text without the identifiers and links in it, and without what introduces them."""
    text = _URL.sub(" ", text)
    for pattern in _ARXIV:
        text = pattern.sub(" ", text)
    text = _DOI.sub(" ", text)
    text = re.sub(
        r"\b(?:URL|DOI|available(?: online)? (?:at|from)|doi)\s*:?\s*(?=[\s.,;)\]]|$)", " ", text
    )
    text = re.sub(r"<\s*>|\(\s*[,;:]?\s*\)|\[\s*\]", " ", text)
    return re.sub(r"\s+([.,;:)])", r"\1", " ".join(text.split()))


def names_only_arxiv(venue: str) -> bool:
    """Tell whether a text in the place of a venue names arXiv and nothing else.

    "arXiv preprint arXiv:2102.11174" and "CoRR" do; "ICML (arXiv:2102.11174)" does not.
    """
    if not re.search(r"arxiv|corr\b|preprint|e-?prints?\b|under review|submitted", venue, re.I):
        return False
    rest = _ONLY_ARXIV.sub(" ", without_identifiers(venue))
    return not re.search(r"[^\W\d_]{2,}", re.sub(r"\b(?:19|20)\d\d[a-z]?\b", " ", rest))


def _trimmed(text: str) -> str:
    """Return a link without the punctuation that follows it; brackets that it opened stay."""
    text = text.rstrip(".,;:'’”*_")
    while text.endswith((")", "]")) and text.count(")") + text.count("]") > text.count(
        "("
    ) + text.count("["):
        text = text[:-1].rstrip(".,;:'’”*_")
    return text
