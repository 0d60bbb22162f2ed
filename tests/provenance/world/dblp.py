"""DBLP's search: hits that have all words of the query, with DBLP's ways of writing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tests.provenance.loopback import Handler, Response, json_body
from tests.provenance.world import WorldWork

ACRONYMS = {"icml": "ICML", "iclr": "ICLR", "nips": "NeurIPS"}


def routes(works: Sequence[WorldWork]) -> dict[str, Handler]:
    """Answer ``q=`` with the records of all matching works: of CoRR, and of the publication."""

    def handler(_: str, query: dict[str, list[str]], __: Mapping[str, str]) -> Response:
        words = [word.lower() for word in query["q"][0].split()]
        infos = [info for work in works if _matches(words, work.title) for info in records(work)]
        hits = [
            {"@score": "9", "@id": str(n), "info": info, "url": f"URL#{n}"}
            for n, info in enumerate(infos[: int(query["h"][0])])
        ]
        total = {"@total": str(len(hits)), "@computed": str(len(hits)), "@sent": str(len(hits))}
        found = {**total, "@first": "0", **({"hit": hits} if hits else {})}
        status = {"@code": "200", "text": "OK"}
        return json_body({"result": {"query": "x", "status": status, "hits": found}})

    return {"dblp.org/search/publ/api": handler}


def _matches(words: Sequence[str], title: str) -> bool:
    """Tell whether every word begins a word of the title, as DBLP's search takes them."""
    own = [word.lower() for word in re.findall(r"\w+", title)]
    return all(any(word.startswith(wanted) for word in own) for wanted in words)


def records(work: WorldWork) -> list[dict[str, Any]]:
    """The records of a work: of its publication, if any, and of its arXiv entry."""
    common = {"authors": {"author": authors(work)}, "title": f"{escape(work.title, quote=False)}."}
    out = []
    if work.dblp_key:
        journal = work.dblp_key.startswith("journals/")
        out.append(
            {
                **common,
                "venue": work.extra.get("dblp_venue")
                or ACRONYMS.get(work.series or "", work.venue or ""),
                **({"volume": work.volume} if journal and work.volume else {}),
                **({"pages": work.pages} if work.pages else {}),
                "year": str(work.year),
                "type": "Journal Articles" if journal else "Conference and Workshop Papers",
                "access": "open",
                "key": work.dblp_key,
                **({"doi": work.doi.upper()} if work.doi else {}),
                "ee": _link(work),
                "url": f"https://dblp.org/rec/{work.dblp_key}",
            }
        )
    if work.arxiv_id:
        key = f"journals/corr/abs-{work.arxiv_id.replace('.', '-')}"
        out.append(
            {
                **common,
                "venue": "CoRR",
                "volume": f"abs/{work.arxiv_id}",
                "year": work.posted[:4],
                "type": "Informal and Other Publications",
                "access": "open",
                "key": key,
                "ee": f"https://arxiv.org/abs/{work.arxiv_id}",
                "url": f"https://dblp.org/rec/{key}",
            }
        )
    return out


def authors(work: WorldWork) -> Any:
    """One author is an object and no list; every second name has a homonym's number."""
    listed = [
        {"@pid": f"1/{n}", "text": f"{name} 0001" if n % 2 else name}
        for n, name in enumerate(work.authors)
    ]
    return listed[0] if len(listed) == 1 else listed


def _link(work: WorldWork) -> str:
    if work.pmlr_id:
        return f"http://proceedings.mlr.press/v{work.volume}/{work.pmlr_id}.html"
    if work.openreview_id:
        return f"https://openreview.net/forum?id={work.openreview_id}"
    return f"https://doi.org/{work.doi}" if work.doi else "https://example.org/paper"
