"""arXiv's API: Atom feeds with the feed's own elements first, versioned ids, wrapped titles."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from html import escape

from tests.provenance.loopback import Handler, Response, feed_body
from tests.provenance.world import WorldWork

FEED = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <link href="http://arxiv.org/api/query?x" rel="self" type="application/atom+xml"/>
  <title type="html">ArXiv Query: x</title>
  <id>http://arxiv.org/api/cHxbiOdZaP56ODnBPIenZhzg5f8</id>
  <updated>2026-12-01T00:00:00-05:00</updated>
  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{count}\
</opensearch:totalResults>
{entries}</feed>"""
ERROR = """  <entry>
    <id>http://arxiv.org/api/errors#incorrect_id_format_for_{what}</id>
    <title>Error</title>
    <summary>incorrect id format for {what}</summary>
    <updated>2026-12-01T00:00:00-05:00</updated>
    <author><name>arXiv api core</name></author>
  </entry>
"""
LATER = {1: 0, 2: 1, 3: 107, 4: 200}
"""Days after the first posting on which the fake posts each version."""


def routes(works: Sequence[WorldWork]) -> dict[str, Handler]:
    """Answer ``id_list`` and ``search_query=ti:...`` as export.arxiv.org does."""
    by_id = {w.arxiv_id: w for w in works if w.arxiv_id}

    def handler(_: str, query: dict[str, list[str]], __: Mapping[str, str]) -> Response:
        if "id_list" in query:
            return _by_ids(query["id_list"][0].split(","), by_id)
        words = re.findall(r"\w+", query.get("search_query", [""])[0].removeprefix("ti:"))
        found = [
            w for w in by_id.values() if _phrase(words) in _phrase(re.findall(r"\w+", w.title))
        ]
        most = int(query.get("max_results", ["10"])[0])
        return _feed([entry(w, len(titles(w))) for w in found[:most]])

    return {"export.arxiv.org/api/query": handler}


def _phrase(words: Sequence[str]) -> str:
    return f" {' '.join(words).lower()} "


def titles(work: WorldWork) -> tuple[str, ...]:
    """The titles of the versions, the present one last."""
    return work.titles or (work.title,)


def _by_ids(names: Sequence[str], by_id: Mapping[str | None, WorldWork]) -> Response:
    entries = []
    for name in names:
        match = re.fullmatch(r"(\d{4}\.\d{4,5})(?:v(\d+))?", name)
        if match is None:
            return _feed([ERROR.format(what=escape(name))])
        work = by_id.get(match[1])
        if work is not None:
            version = int(match[2] or len(titles(work)))
            if version <= len(titles(work)):
                entries.append(entry(work, version))
    return _feed(entries)


def _feed(entries: Sequence[str]) -> Response:
    return feed_body(FEED.format(count=len(entries), entries="".join(entries)))


def entry(work: WorldWork, version: int) -> str:
    """One entry; what a paper does not have is no element at all."""
    from datetime import date, timedelta

    posted = date.fromisoformat(work.posted)
    updated = posted + timedelta(days=LATER.get(version, 300))
    title = "\n  ".join(textwrap.wrap(titles(work)[version - 1], 60))
    names = "".join(f"    <author><name>{escape(n)}</name></author>\n" for n in work.authors)
    optional = {"comment": work.comment, "journal_ref": work.journal_ref, "doi": work.arxiv_doi}
    given = "".join(
        f'    <arxiv:{name} xmlns:arxiv="http://arxiv.org/schemas/atom">{escape(value)}'
        f"</arxiv:{name}>\n"
        for name, value in optional.items()
        if value is not None
    )
    return f"""  <entry>
    <id>http://arxiv.org/abs/{work.arxiv_id}v{version}</id>
    <updated>{updated}T15:50:20Z</updated>
    <published>{posted}T17:11:23Z</published>
    <title>{escape(title)}</title>
    <summary>  We show the formal equivalence of things.</summary>
{names}{given}    <link href="http://arxiv.org/abs/{work.arxiv_id}v{version}" rel="alternate"/>
    <arxiv:primary_category xmlns:arxiv="http://arxiv.org/schemas/atom" term="cs.LG"/>
    <category term="cs.LG" scheme="http://arxiv.org/schemas/atom"/>
  </entry>
"""
