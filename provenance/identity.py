"""Which of the works that sources describe is the one that a reference cites; all pure.

Descriptions of one work are put together by shared identifiers, and by title with shared authors. A
reference then names one of them by an identifier, or by its title with authors and year. A title
that is only similar is no match, unless the authors are the same people and it is plainly a form of
the work's own title.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from provenance.author_lists import is_corporate, share_most
from provenance.match import arxiv_month, fold, same_title, series_mentioned
from provenance.names import compare_names, share_an_author
from provenance.works import Reference, Work

Title = Literal[
    "same", "typo", "former", "short", "mention", "longer", "other subtitle", "similar", "other"
]
"""How a cited title stands to a work: the same; with a slip of the pen; one that the work had
before; without the subtitle; a few words of it; with words added; with another subtitle; of many
common words; another."""

_RANKS = (
    "proceedings",
    "dblp",
    "semantic_scholar",
    "openalex",
    "arxiv",
    "crossref",
    "authors",
    "note",
)
_SMALL = frozenset(re.findall(r"\w+", "a an and as at by for from in is of on or the to via with"))

_SUBTITLE = re.compile(r":\s+|\s[-–—]+\s|\?\s+")
_NUMERALS = frozenset(("1", "2", "3", "4", "5", "i", "ii", "iii", "iv", "v", "vi", "vii"))
"""Words by which parts of a series of works differ."""


@dataclass(frozen=True)
class Cluster:
    """All descriptions of one work, the most authoritative first."""

    works: tuple[Work, ...]

    @property
    def titles(self) -> list[str]:
        """The titles that it has, by authority.

        Records of the preprint other than arXiv's own keep the title of the day they were made.
        """
        own = [w for w in self.works if w.kind != "preprint" or w.authority == "arxiv"]
        return list(dict.fromkeys(work.title for work in own or self.works))

    @property
    def former_titles(self) -> list[str]:
        """Titles that it had before and has no more."""
        had = [title for work in self.works for title in (*work.former_titles, work.title)]
        return [t for t in had if not any(same_title(t, now) for now in self.titles)]

    @property
    def authors(self) -> tuple[str, ...]:
        """The fullest list of the most authoritative source that gives one."""
        return next((work.authors for work in self.works if work.authors), ())


@dataclass(frozen=True)
class Identified:
    """What a reference was taken to cite, and what its identifiers name if that is another work.

    ``cited`` is None where no work could be told, ``rivals`` are the works among which the title
    leaves the choice, ``strangers`` the works that an identifier of the reference names although
    the reference describes another: by field ("arxiv_id", "doi", "openreview_id").
    """

    cited: Cluster | None
    title: Title = "other"
    rivals: tuple[Cluster, ...] = ()
    strangers: tuple[tuple[str, Cluster], ...] = ()


def rank(work: Work) -> int:
    """Return the place of a work's source in the order of precedence, 0 for the proceedings.

    What Semantic Scholar and OpenAlex say without DBLP's key ranks behind the authors' own words.
    """
    if work.authority == "arxiv":
        return 2 if work.kind == "preprint" else 4
    return _RANKS.index(work.authority) + (
        work.authority != "proceedings" and work.authority != "dblp"
    )


def identify(reference: Reference, works: Sequence[Work]) -> Identified:
    """Tell which work a reference cites."""
    clusters = cluster(works)
    named = _named(reference, clusters)
    titled = [(c, title) for c in clusters if (title := _recognised(reference, c)) != "other"]
    if reference.title is None:
        return Identified(named[0][1], "same") if named else Identified(None)
    own = [(c, t) for c, t in titled if any(c is n for _, n in named)]
    best = own or _best(reference, titled)
    if not best:
        return _by_identifier_alone(reference, named)
    if len(best) > 1:
        return Identified(None, best[0][1], tuple(c for c, _ in best))
    cited, title = best[0]
    strangers = [(f, c) for f, c in named if c is not cited and not _may_be_one(c, cited)]
    return Identified(cited, title, strangers=tuple(strangers))


def _by_identifier_alone(reference: Reference, named: Sequence[tuple[str, Cluster]]) -> Identified:
    """Decide for a reference whose title no work has, from what its identifiers name.

    Where the title is a form of that work's, or the authors are the same people, it is that work.
    """
    for _, found in named:
        relation = title_relation(reference.title or "", found)
        same_people = bool(reference.authors and found.authors) and _first_is_among(
            reference.authors, found.authors
        )
        if same_people or relation not in ("other", "similar"):
            return Identified(found, relation)
        if relation == "similar" and not (reference.authors and found.authors):
            return Identified(found, relation)
    return Identified(None, strangers=tuple(named))


def _first_is_among(cited: Sequence[str], listed: Sequence[str]) -> bool:
    return compare_names(cited[0], listed[0]) == "same"


# Descriptions of one work


def cluster(works: Sequence[Work]) -> list[Cluster]:
    """Put the descriptions of each work together, in the order in which works first occur."""
    parent = list(range(len(works)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[str, str], int] = {}
    for i, work in enumerate(works):
        for key in _keys(work):
            parent[root(i)] = root(first.setdefault(key, i))
    titled: dict[str, list[int]] = defaultdict(list)
    for i, work in enumerate(works):
        for title in {fold(t).replace(" ", "") for t in (work.title, *work.former_titles)}:
            titled[title].append(i)
    for places in titled.values():
        for n, i in enumerate(places):
            for j in places[:n]:
                if root(i) != root(j) and _one_work(works[i], works[j]):
                    parent[root(i)] = root(j)
    groups: dict[int, list[Work]] = defaultdict(list)
    for i, work in enumerate(works):
        groups[root(i)].append(work)
    return [Cluster(tuple(sorted(group, key=rank))) for group in groups.values()]


def _keys(work: Work) -> Iterable[tuple[str, str]]:
    for name in ("arxiv_id", "doi", "openreview_id", "dblp_key"):
        value = getattr(work, name)
        if value:
            yield name, value.lower()


def _one_work(one: Work, other: Work) -> bool:
    """Tell whether two descriptions of one title are of one work: by the same people, in its time.

    Two arXiv entries are two works, whatever their titles.
    """
    if one.arxiv_id and other.arxiv_id and one.arxiv_id != other.arxiv_id:
        return False
    if one.authors and other.authors and not share_an_author(one.authors, other.authors):
        return False
    return abs((one.year or 0) - (other.year or 0)) <= 4 or not (one.year and other.year)


def _may_be_one(one: Cluster, other: Cluster) -> bool:
    """Tell whether two works can be one under two titles: by the same people, within two years."""
    years = [[w.year for w in c.works if w.year] for c in (one, other)]
    near = not all(years) or min(abs(a - b) for a in years[0] for b in years[1]) <= 2
    return near and share_most(one.authors, other.authors)


# What a reference names


def _named(reference: Reference, clusters: Sequence[Cluster]) -> list[tuple[str, Cluster]]:
    """Return the works that the reference's identifiers name, by field."""
    fields: dict[str, Callable[[Work], bool]] = {
        "arxiv_id": lambda w: w.arxiv_id == reference.arxiv_id,
        "doi": lambda w: (w.doi or "").lower() == reference.doi,
        "openreview_id": lambda w: w.openreview_id == reference.openreview_id,
        "url": lambda w: _same_page(w.url, reference.url),
    }
    given = {name: test for name, test in fields.items() if getattr(reference, name)}
    return [(f, c) for f, test in given.items() for c in clusters if any(map(test, c.works))]


def _same_page(one: str | None, other: str | None) -> bool:
    """Tell whether two addresses are of one paper's page in a volume of proceedings."""
    if not one or not other:
        return False
    pattern = r"proceedings\.mlr\.press/(v\d+|r\d+)/([a-z][\w-]*)"
    found = [re.search(pattern, url) for url in (one, other)]
    return all(found) and found[0].groups() == found[1].groups()  # type: ignore[union-attr]


def _recognised(reference: Reference, found: Cluster) -> Title:
    """Return how the cited title stands to a work, "other" where it is not taken for the work's.

    Who does not cite the title itself has to name the first author, and a title that has been
    changed, one that no other work can have.
    """
    relation = title_relation(reference.title or "", found)
    if relation in ("same", "former"):
        return relation if _can_be_theirs(reference, found) else "other"
    names, listed = reference.authors, found.authors
    if not names or not listed or compare_names(names[0], listed[0]) == "different":
        return "other"
    if relation == "similar":
        years = [year for work in found.works for year in (work.year, work.last_year)]
        return relation if share_most(names, listed) and reference.year in years else "other"
    return relation


def _can_be_theirs(reference: Reference, found: Cluster) -> bool:
    """Tell whether the work of this very title can be the one cited, whoever is named as author."""
    if (
        not reference.authors
        or not found.authors
        or _shares_someone(reference.authors, found.authors)
    ):
        return True
    if any(c for _, c in _named(reference, [found])):
        return True
    return len(fold(reference.title or "").split()) >= 5 and _near_in_time(reference, found)


def _shares_someone(cited: Sequence[str], listed: Sequence[str]) -> bool:
    if any(map(is_corporate, (*cited, *listed[:1]))):
        return True
    return any(compare_names(a, b) != "different" for a in cited for b in listed)


def _near_in_time(reference: Reference, found: Cluster) -> bool:
    years = [year for work in found.works for year in (work.year, work.last_year) if year]
    if not reference.year or not years:
        return True
    return min(abs(reference.year - year) for year in years) <= 2


def _best(
    reference: Reference, titled: Sequence[tuple[Cluster, Title]]
) -> list[tuple[Cluster, Title]]:
    """Return the works that fit best; several where nothing decides between them."""
    order: list[tuple[Title, ...]] = [
        ("same",), ("former",), ("typo",), ("short", "longer"), ("other subtitle",), ("similar",),
        ("mention",),
    ]  # fmt: skip
    for relations in order:
        found = [(c, t) for c, t in titled if t in relations]
        if len(found) > 1:
            found = _narrowed(reference, found)
        if found:
            return found
    return []


def _narrowed(
    reference: Reference, found: list[tuple[Cluster, Title]]
) -> list[tuple[Cluster, Title]]:
    """Let authors decide, then the year, then the venue, as far as each of them does."""
    series = set(series_mentioned(reference.venue or ""))
    tests: tuple[Callable[[Cluster], bool], ...] = (
        lambda c: (
            bool(reference.authors) and _first_is_among(reference.authors, c.authors or ("",))
        ),
        lambda c: bool(reference.authors) and _shares_someone(reference.authors, c.authors),
        lambda c: any(reference.year in (w.year, w.last_year) for w in c.works if reference.year),
        lambda c: any(w.series in series for w in c.works if w.series),
    )
    for test in tests:
        kept = [(c, t) for c, t in found if test(c)]
        if kept:
            found = kept
        if len(found) == 1:
            break
    return found


# Titles


def title_relation(cited: str, found: Cluster) -> Title:
    """Return how a cited title stands to the titles of a work."""
    if any(same_title(cited, title) for title in found.titles):
        return "same"
    ours = fold(cited).split()
    slip = any(_slips(ours, fold(title).split()) for title in found.titles)
    if not slip and any(same_title(cited, title) for title in found.former_titles):
        return "former"
    relations = [_relation(cited, title) for title in (*found.titles, *found.former_titles)]
    order: tuple[Title, ...] = ("typo", "short", "longer", "other subtitle", "mention", "similar")
    return next((kind for kind in order if kind in relations), "other")


def _relation(cited: str, title: str) -> Title:
    ours, theirs = fold(cited).split(), fold(title).split()
    if not ours or not theirs:
        return "other"
    if _slips(ours, theirs):
        return "typo"
    main, subtitle = _halves(cited), _halves(title)
    if any(same_title(cited, part) for part in _beginnings(title)):
        return "short"
    if len(theirs) >= 4 and ours[: len(theirs)] == theirs:
        return "longer"
    joined = fold(main[0]).replace(" ", "")
    whole = "".join(theirs)
    if (
        len(joined) >= 10
        and main[1]
        and (whole.startswith(joined) or _slips(fold(main[0]).split(), fold(subtitle[0]).split()))
    ):
        return "other subtitle"
    bare = fold(re.sub(r"\s*\([^()]*\)", "", cited)).split()
    if (
        len(bare) >= 3
        and len(bare) < len(theirs)
        and f" {' '.join(bare)} " in f" {' '.join(theirs)} "
    ):
        return "mention"
    if set(ours) & _NUMERALS != set(theirs) & _NUMERALS:
        return "other"
    common = len(set(ours) & set(theirs) - _SMALL)
    content = max(len(set(ours) - _SMALL), len(set(theirs) - _SMALL), 1)
    return "similar" if common / content >= 0.6 else "other"


def _beginnings(title: str) -> list[str]:
    """Return what a title may be shortened to: all that stands before one of its subtitles."""
    return [title[: match.start()] for match in _SUBTITLE.finditer(title)]


def _halves(title: str) -> tuple[str, str]:
    """Return what stands before and after the first colon, dash or question mark of a title."""
    match = _SUBTITLE.search(title)
    return (title[: match.start()], title[match.end() :]) if match else (title, "")


def _slips(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Tell whether two titles differ by slips only: letters, or small words left out or added."""
    from rapidfuzz.distance import OSA

    ours = [word for word in ours if word not in _SMALL]
    theirs = [word for word in theirs if word not in _SMALL]
    if len(ours) != len(theirs) or not ours:
        return False
    odd = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    return len(odd) <= max(1, len(ours) // 5) and all(
        OSA.distance(a, b) <= (1 if len(a) < 8 else 2)
        and min(len(a), len(b)) >= 4
        and _no_digits(a, b)
        for a, b in odd
    )


def _no_digits(one: str, other: str) -> bool:
    return not any(char.isdigit() for char in one + other)


def posted_year(arxiv_id: str | None) -> int | None:
    """Return the year in which an arXiv identifier was given out."""
    month = arxiv_month(arxiv_id or "")
    return month.year if month else None
