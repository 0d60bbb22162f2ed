"""PMLR: the page of a volume, its citeproc file, the pages of papers; 404 for anything else."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape

import yaml

from tests.provenance.loopback import Handler, Response, html_body
from tests.provenance.world import WorldWork

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
NOT_FOUND = Response(404, {"Content-Type": "text/html"}, b"<h1>404</h1>")


def routes(works: Sequence[WorldWork]) -> dict[str, Handler]:
    """Answer for the volumes in which any of the works is."""
    volumes: dict[str, list[WorldWork]] = defaultdict(list)
    files: dict[str, bytes] = {}
    for work in works:
        if work.pmlr_id and work.volume:
            volumes[work.volume].append(work)

    def handler(path: str, _: dict[str, list[str]], __: Mapping[str, str]) -> Response:
        match = re.fullmatch(r"/v(\d+)/(.*)", path)
        papers = volumes.get(match[1], []) if match else []
        if match is None or not papers:
            return NOT_FOUND
        if match[2] == "":
            return html_body(volume_page(papers))
        if match[2] == "assets/bib/citeproc.yaml":
            if match[1] not in files:
                dumped = yaml.dump([record(p) for p in papers], Dumper=DUMPER, allow_unicode=True)
                files[match[1]] = dumped.encode()
            return Response(200, {"Content-Type": "text/yaml"}, files[match[1]])
        found = [p for p in papers if match[2] == f"{p.pmlr_id}.html"]
        return html_body(paper_page(found[0])) if found else NOT_FOUND

    return {"proceedings.mlr.press": handler}


def volume_page(papers: Sequence[WorldWork]) -> str:
    """The page as PMLR's theme builds it; names are joined by no-break spaces."""
    items = "".join(
        f"""<div class="paper"><p class="title">{escape(p.title)}</p>
<p class="details"><span class="authors">{",&nbsp;".join(map(escape, p.authors))}</span>;
<span class="info"><i>Proceedings of the Conference</i>, PMLR {p.volume}:{p.pages}</span></p>
<p class="links">[<a href="https://proceedings.mlr.press/v{p.volume}/{p.pmlr_id}.html">abs</a>]\
[<a href="http://proceedings.mlr.press/v{p.volume}/{p.pmlr_id}/{p.pmlr_id}.pdf">Download PDF</a>]
</p></div>"""
        for p in papers
    )
    header = f"Volume {papers[0].volume}: {papers[0].pmlr_header}"
    return f"""<html><body><h1><a href="/">Proceedings of Machine Learning Research</a></h1>
<h2>{header}</h2><p><strong>Editors: A B,&nbsp;C D</strong></p>{items}</body></html>"""


def record(paper: WorldWork) -> dict[str, object]:
    """One record of the volume's file; the volume is a number there."""
    names = [name.rsplit(" ", 1) for name in paper.authors]
    first, _, last = str(paper.pages).partition("-")
    return {
        "title": paper.title,
        "abstract": "An abstract: with a colon.",
        "volume": int(str(paper.volume)),
        "URL": f"https://proceedings.mlr.press/v{paper.volume}/{paper.pmlr_id}.html",
        "series": "Proceedings of Machine Learning Research",
        "container-title": f"Proceedings of the 38th {paper.venue}",
        "publisher": "PMLR",
        "author": [{"given": given, "family": family} for given, family in names],
        "editor": [{"given": "Marina", "family": "Meila"}],
        "page": paper.pages,
        "id": paper.pmlr_id,
        "issued": {"date-parts": [paper.year, 7, 1]},
        "firstpage": int(first),
        "lastpage": int(last),
        "published": "2021-07-01 00:00:00 +0000",
    }


def paper_page(paper: WorldWork) -> str:
    """The page of a paper with its citation tags."""
    first, _, last = str(paper.pages).partition("-")
    tags = {
        "citation_title": [paper.title],
        "citation_author": list(paper.authors),
        "citation_firstpage": [first],
        "citation_lastpage": [last],
        "citation_publication_date": [f"{paper.year}/11/21"],
        "citation_conference_title": [str(paper.venue)],
    }
    metas = "".join(
        f'<meta name="{name}" content="{escape(value)}">'
        for name, values in tags.items()
        for value in values
    )
    return f"""<html><head>{metas}
<link rel="canonical" href="https://proceedings.mlr.press/v{paper.volume}/{paper.pmlr_id}.html">
</head><body><article class="post-content"><h1>{escape(paper.title)}</h1>
<div id="info"><i>Proceedings</i>,&nbsp;PMLR {paper.volume}:{paper.pages},&nbsp;{paper.year}.</div>
</article></body></html>"""
