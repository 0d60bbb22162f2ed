"""Finding titles among many, noise allowed: left-out words and slips, never other words.

A title is looked for by its rarest words, and what is found has to explain it: every word of the
query is a word of the title, in the same order, but for a letter or two. So a title with a word
more or another word is no match however similar it is, and one that two titles explain about
equally well is none either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from provenance.match import fold

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_SHARE, LEAST_OF_FEW = 0.4, 0.7
"""Share of a title's letters that a query must have, and one of less than a dozen letters."""

DROPPED, SWAPPED, SLIPPED, SPACED = 1.73, 1.0, 3.0, 1.5
"""What it costs an explanation that a word is left out, that letters are swapped in one, that it
has another slip, and that spaces stand elsewhere: the logarithm of how much likelier it is that
this does not happen to a word (0.85 / 0.15 for a word left out)."""

MARGIN = 2.2
"""By how much the best explanation has to be cheaper than that by any other title."""

_FEW_LETTERS = 12
_LEAST_SPACED = 0.72
_SHORT = 40
_RAREST = 5
_FEW, _MANY = 6_000, 60_000
_TRIED = 48


@dataclass(frozen=True)
class Postings:
    """For each word the rows of the titles that have it: ``rows[starts[i]:starts[i + 1]]``."""

    words: Mapping[str, int]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    def of(self, word: str) -> NDArray[np.int32]:
        """Return the rows of a word that is there."""
        i = self.words[word]
        return self.rows[self.starts[i] : self.starts[i + 1]]


def build_postings(
    word_of: Sequence[int], row_of: Sequence[int], words: Mapping[str, int]
) -> Postings:
    """Sort pairs of word and row into postings.

    Args:
        word_of: the number of a word, one an occurrence.
        row_of: the row in which it occurs; as long as ``word_of``.
        words: the number of each word.
    """
    ids = np.asarray(word_of, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    rows = np.asarray(row_of, dtype=np.int32)[order]
    starts = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum(np.bincount(ids, minlength=len(words)), out=starts[1:])
    return Postings(words, starts, rows)


class TitleMatcher:
    """Looks titles up; may be used from several threads.

    Args:
        postings: the rows of each word.
        folded: the titles as ``match.fold`` gives them, one a row; a list or an Arrow array.
    """

    def __init__(self, postings: Postings, folded: Any) -> None:
        self._postings = postings
        self._folded = folded
        self._count = len(folded)
        self._lengths = np.bincount(postings.rows, minlength=self._count)

    def lookup(self, title: str) -> int | None:
        """Return the row of the title that this one is, noise apart; None if none or several are.

        Of rows with one title it is the first.
        """
        words = fold(title).split()
        if not words:
            return None
        for most in (_FEW, _MANY):
            found: dict[str, tuple[float, int]] = {}
            for row in self.likely(words, most):
                title_ = self._title(row)
                cost = explanation_cost(words, title_)
                if cost is not None:
                    found[title_] = min(found.get(title_, (cost, row)), (cost, row))
            if found:
                return _clear_winner(list(found.values()))
        return None

    def likely(self, words: Sequence[str], most: int = _MANY) -> list[int]:
        """Return the rows that share the rarest words with a query, the likeliest first.

        Args:
            words: the query, folded.
            most: rows that are looked at, about.
        """
        known = sorted(
            (len(self._postings.of(word)), word)
            for word in set(words)
            if word in self._postings.words
        )
        parts: list[NDArray[np.int32]] = []
        weights: list[NDArray[np.float64]] = []
        total = 0
        for count, word in known[: _RAREST if most == _FEW else len(known)]:
            if parts and total + count > most:
                break
            rows = self._postings.of(word)
            parts.append(rows)
            weights.append(np.full(len(rows), np.log1p(self._count / count)))
            total += count
        if not parts:
            return []
        rows = np.concatenate(parts)
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        scores = np.add.reduceat(np.concatenate(weights)[order], first)
        unique = rows[first]
        best = np.lexsort((self._lengths[unique], -scores))[:_TRIED]
        return [int(row) for row in unique[best]]

    def _title(self, row: int) -> str:
        value = self._folded[row]
        return value if isinstance(value, str) else str(value.as_py())


def _clear_winner(found: list[tuple[float, int]]) -> int | None:
    """Return the row of the cheapest explanation, if it is so by far or free; else None."""
    best, *others = sorted(found)
    if others and best[0] > 0 and others[0][0] - best[0] < MARGIN:
        return None
    return best[1]


def explanation_cost(query: Sequence[str], title: str) -> float | None:
    """Return how unlikely it is that a query is this title with noise; None where it cannot be.

    Every word of the query has to be one of the title, in the same order; two of them, or a fifth,
    may differ by one letter left out, added, changed or swapped. Spaces may stand elsewhere. The
    same words cost nothing.

    Args:
        query: its words, folded.
        title: a folded title.
    """
    ours, theirs = "".join(query), title.replace(" ", "")
    least = LEAST_SHARE if len(ours) >= _FEW_LETTERS else LEAST_OF_FEW
    if len(ours) < least * len(theirs):
        return None
    from rapidfuzz.distance import LCSseq

    missing = len(ours) - LCSseq.similarity(ours, theirs)
    if missing > max(2, len(query) // 5):
        return None
    cost = _cost_by_words(query, title.split())
    if cost is not None:
        return cost
    most = 1 if len(ours) < _SHORT else 2
    if missing > most or len(ours) < _LEAST_SPACED * len(theirs) or not _same_digits(ours, theirs):
        return None
    letters = sum(map(len, query)) / len(query)
    return SPACED * (1 + missing) + DROPPED * max(0, len(theirs) - len(ours)) / letters


def _same_digits(query: str, title: str) -> bool:
    """Tell whether the digits of a query are digits of a title in the same order."""
    rest = iter([c for c in title if c.isdigit()])
    return all(any(c == d for d in rest) for c in query if c.isdigit())


def _cost_by_words(query: Sequence[str], title: Sequence[str]) -> float | None:
    slips, cost, at = max(2, len(query) // 5), 0.0, 0
    for word in query:
        while at < len(title) and title[at] != word:
            slip = _slip(word, title[at]) if slips and word not in title[at + 1 :] else None
            if slip is not None:
                slips -= 1
                cost += slip
                break
            at += 1
        if at == len(title):
            return None
        at += 1
    return cost + DROPPED * (len(title) - len(query))


def _slip(word: str, other: str) -> float | None:
    """Return what it costs to take a word for another; None where they differ by more than a slip.

    That is one letter, or two swapped ones; digits are no letters.
    """
    if abs(len(word) - len(other)) > 1 or min(len(word), len(other)) < 2:
        return None
    from rapidfuzz.distance import OSA

    digits = [[c for c in text if c.isdigit()] for text in (word, other)]
    if digits[0] != digits[1] or OSA.distance(word, other, score_cutoff=1) > 1:
        return None
    if sorted(word) == sorted(other):
        return SWAPPED
    return SLIPPED if min(len(word), len(other)) > 2 else None
