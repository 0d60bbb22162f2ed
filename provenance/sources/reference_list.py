"""The reference list of a paper, from its HTML (arXiv's own, or ar5iv's; both made by LaTeXML).

LaTeXML writes a list as ``li.ltx_bibitem`` with the parts of an entry in ``span.ltx_bibblock``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from provenance.match import fold
from provenance.works import Request
from records.errors import UnreadableAnswer

SOURCE = "arXiv HTML"
PARSER = "reference-list/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

LAST_WITHOUT_HTML = 2312
"""arXiv makes HTML of papers submitted from December 2023 on; ar5iv has the older ones."""

_LONGEST_TITLE = 5
"""Sentences in a title, at most: "Is it so? Yes. A study." has three."""


def html_request(arxiv_id: str) -> Request:
    """Ask for the HTML of the present version of a paper."""
    month = re.match(r"(\d{4})\.\d", arxiv_id)
    recent = month is not None and int(month[1]) >= LAST_WITHOUT_HTML
    host = "arxiv.org" if recent else "ar5iv.labs.arxiv.org"
    return Request(source=SOURCE, url=f"https://{host}/html/{arxiv_id}", accept="text/html")


def parse_references(body: bytes) -> list[str]:
    """Return the entries of the reference list as plain text, their parts on lines of their own.

    Raises:
        UnreadableAnswer: the page holds no list as LaTeXML writes it, so nothing can be said of
            what the paper cites.
    """
    from bs4 import BeautifulSoup

    page = BeautifulSoup(body, "lxml")
    entries = [_entry(item) for item in page.select(".ltx_bibitem")]
    entries = [entry for entry in entries if entry]
    if not entries:
        raise UnreadableAnswer(
            f"{SOURCE}: the page has no reference list as LaTeXML writes it (ltx_bibitem)"
        )
    return entries


def _entry(item: object) -> str:
    from bs4 import Tag

    if not isinstance(item, Tag):
        return ""
    parts = item.select(".ltx_bibblock") or [item]
    lines = [" ".join(part.get_text(" ").split()) for part in parts]
    links = [str(link["href"]) for link in item.select("a[href^=http]")]
    return "\n".join(line for line in [*lines, *dict.fromkeys(links)] if line)


def cites(entries: Sequence[str], title: str, arxiv_id: str | None) -> str | None:
    """Return the entry of a reference list that is of the work, or None.

    An entry is of the work if it names the arXiv identifier, or if one sentence of it, or some in a
    row, are the title: a title that only occurs within a longer one is another work's.
    """
    wanted = fold(title).replace(" ", "")
    for entry in entries:
        if arxiv_id and re.search(rf"(?<![\d.]){re.escape(arxiv_id)}(?!\d)", entry):
            return entry
        if wanted and wanted in _runs(entry):
            return entry
    return None


def _runs(entry: str) -> set[str]:
    """Return every run of up to so many sentences of an entry, folded, without spaces."""
    text = re.sub(r"\(?\b(?:19|20)\d\d[a-z]?\b\)?[.,:]?", "\n", entry)
    text = re.sub(r"[“”\"]", "\n", text)
    parts = [fold(part).replace(" ", "") for part in re.split(r"[.?!]\s+|\n", text)]
    parts = [part for part in parts if part]
    return {
        run
        for start in range(len(parts))
        for run in accumulate(parts[start : start + _LONGEST_TITLE])
    }
