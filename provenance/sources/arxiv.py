"""arXiv: its API's Atom feeds, and the version history of a paper; all pure.

The API describes the version that is asked for, so the titles that a paper had before are read by
asking for ``2102.11174v1`` and so on. What authors may leave out (``comment``, ``journal_ref``,
``doi``) is None where the feed has no such element and empty where the element is empty. An entry
is a ``Result`` of the ``arxiv`` package; its parser is not used, since it takes the one for the
other and mends damaged XML without a word.

Format: info.arxiv.org/help/api/user-manual.html.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, ParseError

from provenance.match import parse_day, same_title
from provenance.works import Request, Work
from records.errors import UnreadableAnswer

if TYPE_CHECKING:
    from arxiv import Result

SOURCE = "arXiv"
PARSER = "arxiv/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

_API = "https://export.arxiv.org/api/query"
_ATOM = "{http://www.w3.org/2005/Atom}"
_ARXIV = "{http://arxiv.org/schemas/atom}"
_ID = re.compile(
    r"arxiv\.org/abs/(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})v(?P<version>\d+)$"
)


@dataclass(frozen=True)
class Version:
    """One version of an arXiv paper; a title or day that was not read is None."""

    number: int
    posted: date | None
    title: str | None

    def __str__(self) -> str:
        return f"v{self.number}" + (f" ({self.posted})" if self.posted else "")


def parse_versions(facts: Mapping[str, Any]) -> list[Version]:
    """Return the versions of an ``arxiv-versions`` evidence, the first one first.

    Raises:
        ValueError: ``versions`` is no list of tables with a whole number as ``version``.
    """
    versions = []
    for entry in facts.get("versions", []):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("version"), int):
            raise ValueError(f"a version is a table with a number, not {entry!r:.60}")
        title = entry.get("title")
        posted = parse_day(str(entry.get("posted")))
        versions.append(Version(entry["version"], posted, str(title) if title else None))
    return sorted(versions, key=lambda version: version.number)


# What to ask


def ids_request(ids: Sequence[str]) -> Request:
    """Ask for entries by identifier, with or without version ("2102.11174", "2102.11174v1")."""
    names = sorted(set(ids))
    query = urlencode({"id_list": ",".join(names), "max_results": len(names)}, safe=",/")
    return _request(query)


def title_request(title: str, most: int = 10) -> Request:
    """Ask for the entries whose title has these words in a row, the likeliest first."""
    words = " ".join(re.findall(r"\w+", title))
    return _request(urlencode({"search_query": f'ti:"{words}"', "max_results": most}))


def _request(query: str) -> Request:
    return Request(source=SOURCE, url=f"{_API}?{query}", accept="application/atom+xml")


# What is answered


def parse_results(body: bytes) -> list[Result]:
    """Return the entries of a feed.

    ``comment``, ``journal_ref`` and ``doi`` are None where the feed does not have them and ``""``
    where it has them empty. Lines that the feed wraps are joined.

    Raises:
        UnreadableAnswer: the body is no Atom feed, or the feed is arXiv's way to report an error.
    """
    root = _feed(body)
    entries = root.findall(f"{_ATOM}entry")
    for entry in entries:
        if "/api/errors" in _text(entry, f"{_ATOM}id", ""):
            raise UnreadableAnswer(
                f"{SOURCE} reports an error: {_text(entry, f'{_ATOM}summary', '')}"
            )
    return [result for entry in entries if (result := _result(entry)) is not None]


def _feed(body: bytes) -> Element:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(body)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise UnreadableAnswer(
            f"{SOURCE} answers with something that is no Atom feed ({type(error).__name__})"
        ) from error
    if root.tag != f"{_ATOM}feed":
        raise UnreadableAnswer(f"{SOURCE} answers with {root.tag[:60]!r} where a feed was expected")
    return root


def _result(entry: Element) -> Result | None:
    """Return an entry; None for one without identifier, which no version of the format has."""
    from arxiv import Result

    identifier = _text(entry, f"{_ATOM}id", "")
    title = _text(entry, f"{_ATOM}title", "")
    if not _ID.search(identifier) or not title:
        return None
    names = [_text(author, f"{_ATOM}name", "") for author in entry.findall(f"{_ATOM}author")]
    primary = entry.find(f"{_ARXIV}primary_category")
    result = Result(
        entry_id=identifier,
        title=title,
        authors=[Result.Author(name) for name in names if name],
        summary=_text(entry, f"{_ATOM}summary", ""),
        primary_category="" if primary is None else primary.get("term", ""),
        **{name: _moment(_text(entry, _ATOM + name, "")) for name in ("published", "updated")},
    )
    for name in ("comment", "journal_ref", "doi"):
        setattr(result, name, _text(entry, _ARXIV + name, None))
    return result


def _text(element: Element, path: str, default: Any) -> Any:
    """Return the text of a child in one line, ``default`` where there is no such child."""
    child = element.find(path)
    return default if child is None else " ".join("".join(child.itertext()).split())


def _moment(text: str) -> datetime:
    """Return a time stamp; one that cannot be read is the first year's, as in the package."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def parse(body: bytes, evidence_id: str) -> list[Work]:
    """Return a description of each entry of a feed; its ``work_key`` names the version.

    Raises:
        UnreadableAnswer: as ``parse_results``.
    """
    return [_work(result, evidence_id) for result in parse_results(body)]


def _work(result: Result, evidence_id: str) -> Work:
    match = _ID.search(result.entry_id)
    assert match is not None, "parse_results keeps entries with an identifier only"
    return Work(
        source=SOURCE,
        authority="arxiv",
        work_key=f"{match['id']}v{match['version']}",
        title=result.title,
        authors=tuple(author.name for author in result.authors),
        year=_year(result.published),
        last_year=_year(result.updated),
        kind="preprint",
        doi=result.doi.lower() if result.doi else None,
        arxiv_id=match["id"],
        url=f"https://arxiv.org/abs/{match['id']}",
        comment=result.comment,
        journal_ref=result.journal_ref,
        evidence_id=evidence_id,
    )


def _year(moment: datetime) -> int | None:
    return moment.year if moment.year > 1 else None


def version_number(work: Work) -> int:
    """Return the version that a description of an arXiv entry is of, 0 for another work."""
    match = re.search(r"v(\d+)$", work.work_key) if work.source == SOURCE else None
    return int(match[1]) if match else 0


def with_former_titles(works: Iterable[Work]) -> list[Work]:
    """Fold the versions of each arXiv entry into the newest, which keeps the others' titles.

    Works of other sources stay as and where they are.
    """
    works = list(works)
    versions: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        if work.source == SOURCE and work.arxiv_id:
            versions[work.arxiv_id].append(work)
    newest = {key: _folded(sorted(found, key=version_number)) for key, found in versions.items()}
    out: dict[int, Work] = {}
    for work in works:
        whole = newest.get(work.arxiv_id or "", work) if work.source == SOURCE else work
        out.setdefault(id(whole), whole)
    return list(out.values())


def _folded(versions: Sequence[Work]) -> Work:
    """Return the last of the versions of one entry, with the titles of the others, oldest first."""
    last = versions[-1]
    former: list[str] = []
    for title in (t for work in versions for t in (*work.former_titles, work.title)):
        if not any(same_title(title, other) for other in (*former, last.title)):
            former.append(title)
    return last.model_copy(update={"former_titles": tuple(former)})
