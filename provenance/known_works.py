"""The works that ``fwp bench verify`` judges citations by, as their sources would describe them.

Facts of well-known papers (``data/known_works.jsonl``, each with its source) and the shipped lists
of accepted papers, every one of them there to be confused with the others. No source is asked.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from provenance.match import fold
from provenance.works import Reference, Work
from records.curated import shipped_folders

DATA = Path(__file__).parent / "data"


class KnownWorks:
    """Descriptions of works, found by the words of their titles and by their identifiers."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for i, work in enumerate(works):
            for title in (work.title, *work.former_titles):
                for word in fold(title).split():
                    self._by_word[word].add(i)

    def candidates(self, reference: Reference, most: int = 12) -> list[Work]:
        """Return what an ample search would: whoever has the identifiers, or most of the words."""
        words = set(fold(reference.title or "").split())
        joined = fold((reference.title or "").split(":")[0]).replace(" ", "")
        hits: Counter[int] = Counter()
        for word in words:
            for i in self._by_word.get(word, ()):
                hits[i] += 1
        found = [self._works[i] for i, n in hits.most_common(most) if n * 2 >= min(len(words), 6)]
        named = [
            w
            for w in self._works
            if (reference.arxiv_id and w.arxiv_id == reference.arxiv_id)
            or (reference.doi and w.doi == reference.doi)
            or (len(joined) >= 10 and fold(w.title).replace(" ", "").startswith(joined))
        ]
        unique = {(w.source, w.work_key): w for w in [*named, *found]}
        more = [w for w in self._works if any(w.title == u.title for u in unique.values())]
        return list({(w.source, w.work_key): w for w in [*unique.values(), *more]}.values())


@cache
def known_works() -> KnownWorks:
    """Return the facts' works, the accepted papers, and the doubles to confuse with them."""
    works = [work for facts in _facts() for work in _descriptions(facts)]
    return KnownWorks([*works, *accepted_papers(), *_doubles()])


def cited_works() -> list[tuple[Work, str | None]]:
    """Return the works of ``known_works.jsonl``: where they appeared, and arXiv's identifier."""
    return [(next(_descriptions(facts)), facts.get("arxiv_id")) for facts in _facts()]


def _facts() -> list[dict[str, Any]]:
    lines = (DATA / "known_works.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _doubles() -> Iterator[Work]:
    """Yield works that do not exist, to be confused with known ones: alike in title only.

    One has the very title of a known work, another nearly so; both have other authors, years and
    places.
    """
    strangers = [work.authors for work in accepted_papers()]
    for n, facts in enumerate(_facts()):
        for title in (facts["title"], f"{facts['title']}, Revisited"):
            yield Work(
                source="made up",
                authority="crossref",
                work_key=f"double:{n}:{title}",
                title=title,
                authors=strangers[n],
                year=facts["year"] + 7,
                kind="journal",
                venue="Journal of Doubles",
                evidence_id=f"double:{n}",
            )


def _descriptions(facts: dict[str, Any]) -> Iterator[Work]:
    """Yield what the place of publication and arXiv would say of a work."""
    common = {"title": facts["title"], "authors": tuple(facts.get("authors", ()))}
    evidence = f"known:{fold(facts['title'])[:40]}"
    if facts.get("venue"):
        names = ("series", "volume", "pages", "doi", "openreview_id", "dblp_key", "url")
        yield Work(
            **common,
            **{name: facts[name] for name in names if name in facts},
            source="proceedings",
            authority="proceedings",
            work_key=evidence,
            year=facts["year"],
            kind=facts.get("kind", "proceedings"),
            venue=facts["venue"],
            evidence_id=evidence,
        )
    if facts.get("arxiv_id"):
        yield Work(
            **common,
            source="arXiv",
            authority="arxiv",
            work_key=f"{facts['arxiv_id']}v9",
            former_titles=tuple(facts.get("former_titles", ())),
            year=facts["posted"],
            last_year=facts.get("last_posted", facts["year"]),
            kind="preprint",
            arxiv_id=facts["arxiv_id"],
            evidence_id=evidence,
        )


@cache
def accepted_papers() -> tuple[Work, ...]:
    """Return the papers of ICML 2021 and ICLR 2021, from the lists that ship with the project."""
    folder = next(f for f in shipped_folders() if f.name == "proceedings")
    venues = {"icml": "International Conference on Machine Learning",
              "iclr": "International Conference on Learning Representations"}  # fmt: skip
    works = []
    for series, venue in venues.items():
        with (folder / f"listing-{series}-2021.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                works.append(
                    Work(
                        source="DBLP",
                        authority="dblp",
                        work_key=f"{row['evidence_id']}#{row['position']}",
                        title=row["title"],
                        authors=tuple(row["authors"].split(" ; ")),
                        year=2021,
                        kind="proceedings",
                        venue=venue,
                        series=series,
                        volume="139" if series == "icml" else None,
                        pages=row["pages"] or None,
                        url=row["url"] or None,
                        evidence_id=row["evidence_id"],
                    )
                )
    return tuple(works)
