"""Crossref, OpenAlex and Semantic Scholar, each with its own gaps and habits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.provenance.loopback import Handler, Response, json_body
from tests.provenance.world import WorldWork

UNRELATED = {
    "DOI": "10.21606/eksig2011.112",
    "type": "proceedings-article",
    "title": ["Staging &amp; Performing <i>Transformers</i> of the Stage"],
    "author": [{"name": "A Theatre Company", "sequence": "first"}],
    "container-title": [],
    "issued": {"date-parts": [[2011, 6, 23]]},
}


def routes(works: Sequence[WorldWork]) -> dict[str, Handler]:
    """Answer all three."""
    return {
        "api.crossref.org/works": _crossref(works),
        "api.openalex.org/works": _openalex(works),
        "api.semanticscholar.org/graph/v1/paper": _semantic_scholar(works),
    }


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _crossref(works: Sequence[WorldWork]) -> Handler:
    """Only what has a publisher's DOI is there, and a search finds something else first."""
    by_doi = {w.doi: w for w in works if w.doi}

    def handler(path: str, query: dict[str, list[str]], _: Mapping[str, str]) -> Response:
        if path.startswith("/works/"):
            work = by_doi.get(path.removeprefix("/works/"))
            if work is None:
                return Response(404, {"Content-Type": "text/plain"}, b"Resource not found.")
            return json_body({"status": "ok", "message-type": "work", "message": crossref(work)})
        asked = set(_words(query["query.bibliographic"][0]))
        found = [w for w in by_doi.values() if len(asked & set(_words(w.title))) >= 3]
        items = [UNRELATED, *map(crossref, found)]
        return json_body({"status": "ok", "message-type": "work-list", "message": {"items": items}})

    return handler


def crossref(work: WorldWork) -> dict[str, Any]:
    """A work as Crossref has it; the title and its subtitle are apart."""
    title, colon, subtitle = work.title.partition(": ")
    names = [name.rsplit(" ", 1) for name in work.authors]
    return {
        "DOI": work.doi,
        "type": "journal-article",
        "title": [title],
        "subtitle": [subtitle] if colon else [],
        "author": [{"given": g, "family": f, "sequence": "additional"} for g, f in names],
        "container-title": [work.venue],
        "volume": work.volume,
        "page": work.pages,
        "issued": {"date-parts": [[work.year, 2]]},
        **({"updated-by": [{"type": "retraction", "DOI": "10.1/r"}]} if work.retracted else {}),
    }


def _openalex(works: Sequence[WorldWork]) -> Handler:
    def handler(path: str, query: dict[str, list[str]], _: Mapping[str, str]) -> Response:
        if path.startswith("/works/doi:"):
            doi = path.removeprefix("/works/doi:")
            found = [w for w in works if doi in (w.doi, f"10.48550/arxiv.{w.arxiv_id}")]
            return json_body(openalex(found[0])) if found else json_body({"error": "404"}, 404)
        asked = _words(query["filter"][0].removeprefix("title.search:"))
        found = [w for w in works if set(asked) <= set(_words(w.title))]
        return json_body({"meta": {"count": len(found)}, "results": [openalex(w) for w in found]})

    return handler


def openalex(work: WorldWork) -> dict[str, Any]:
    """A work as OpenAlex merges it: arXiv is the primary place even where it was published."""
    places = [
        {
            "landing_page_url": f"https://arxiv.org/abs/{work.arxiv_id}",
            "source": {"display_name": "arXiv (Cornell University)", "type": "repository"},
        }
    ]
    if work.doi:
        source = {"display_name": work.venue, "type": "journal"}
        places.append({"landing_page_url": f"https://doi.org/{work.doi}", "source": source})
    elif work.pmlr_id:
        url = f"https://proceedings.mlr.press/v{work.volume}/{work.pmlr_id}.html"
        places.append({"landing_page_url": url, "source": None})
    doi = work.doi or f"10.48550/arxiv.{work.arxiv_id}"
    return {
        "id": f"https://openalex.org/W{abs(hash(work.title)) % 10**9}",
        "doi": f"https://doi.org/{doi}",
        "title": work.title,
        "display_name": work.title,
        "publication_year": work.year,
        "type": "article",
        "authorships": [
            {"author": {"display_name": name.upper()}, "raw_author_name": name}
            for name in work.authors
        ],
        "primary_location": places[0],
        "locations": places,
        "biblio": {"volume": work.volume, "issue": None, "first_page": "1", "last_page": "12"},
        "is_retracted": work.retracted,
    }


def _semantic_scholar(works: Sequence[WorldWork]) -> Handler:
    def handler(path: str, query: dict[str, list[str]], _: Mapping[str, str]) -> Response:
        if path.endswith("/search/match"):
            asked = set(_words(query["query"][0]))
            found = [w for w in works if len(asked & set(_words(w.title))) >= 0.7 * len(asked)]
            if not found:
                return json_body({"error": "Title match not found"}, 404)
            return json_body({"data": [{**semantic_scholar(found[0]), "matchScore": 200.1}]})
        wanted = path.rpartition("/paper/")[2].partition(":")[2]
        found = [w for w in works if wanted in (w.arxiv_id, w.doi)]
        return json_body(semantic_scholar(found[0])) if found else json_body({"error": "?"}, 404)

    return handler


def semantic_scholar(work: WorldWork) -> dict[str, Any]:
    """A paper with abbreviated names; of a preprint the venue is called arXiv.org."""
    short = [f"{name[0]}. {name.rsplit(' ', 1)[-1]}" for name in work.authors]
    dblp = work.dblp_key or f"journals/corr/abs-{str(work.arxiv_id).replace('.', '-')}"
    return {
        "paperId": f"{abs(hash(work.title)):x}",
        "externalIds": {"ArXiv": work.arxiv_id, "DBLP": dblp, "CorpusId": 1},
        "publicationVenue": {"name": work.venue, "type": "conference"} if work.venue else None,
        "url": "https://www.semanticscholar.org/paper/x",
        "title": work.title,
        "venue": work.venue or "arXiv.org",
        "year": work.year,
        "journal": {"name": "ArXiv", "volume": f"abs/{work.arxiv_id}"},
        "authors": [{"authorId": str(n), "name": name} for n, name in enumerate(short)],
    }
