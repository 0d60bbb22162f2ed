"""Author names as sources write them: lists taken apart, names compared, all pure.

Two names are the same, different, or neither: a given name that differs can be a nickname, a second
name or a slip, so only a family name that differs makes another person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from provenance.match import fold

Comparison = Literal["same", "different", "unclear"]

_SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}
_TRUNCATED = re.compile(r"[\s,;]*\b(?:et al\.?|and others|others)\s*$", re.I)


def split_authors(text: str) -> tuple[list[str], bool]:
    """Return the names of an author list, and whether it is cut short ("et al.", "and others").

    Reads names separated by semicolons, by "and" (BibTeX's "Family, Given" among them) and by
    commas.
    """
    whole = _TRUNCATED.sub("", text.strip())
    if ";" in whole:
        parts = whole.split(";")
    elif re.search(r"\band\b", whole):
        parts = [p for chunk in re.split(r"\s+and\s+", whole) for p in _comma_list(chunk)]
    else:
        parts = _comma_list(whole)
    return [name for part in parts if (name := part.strip(" ,"))], whole != text.strip()


def _comma_list(text: str) -> list[str]:
    """Split "A B, C D" at its commas, but not the one name "Family, Given"."""
    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    is_list = len(pieces) > 2 or (len(pieces) == 2 and all(" " in piece for piece in pieces))
    return pieces if is_list else [text]


def compare_authors(asserted: str, listed: Sequence[str]) -> Comparison:
    """Compare an author list as it is written with the names that a source lists, in order."""
    names, truncated = split_authors(asserted)
    if len(names) != len(listed) and not (truncated and len(names) < len(listed)):
        return "different"
    found = {compare_names(a, b) for a, b in zip(names, listed, strict=False)}
    if "different" in found:
        return "different"
    return "unclear" if "unclear" in found else "same"


def compare_names(one: str, other: str) -> Comparison:
    """Compare two names; accents, case, order of parts and left-out given names do not count."""
    given, family = _parts(one)
    other_given, other_family = _parts(other)
    if family != other_family:
        return "different"
    return "same" if _compatible(given, other_given) else "unclear"


def share_an_author(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether some family name stands in both lists."""
    return bool({_parts(name)[1] for name in one} & {_parts(name)[1] for name in other})


def _parts(name: str) -> tuple[list[str], str]:
    """Return the given names and the family name's last word, in the form that is compared."""
    family, comma, given = name.partition(",")
    ordered = f"{given} {family}" if comma and fold(given) not in _SUFFIXES else name
    words = [w for w in ordered.replace(".", " ").split() if fold(w) not in _SUFFIXES]
    words = [word for word in words if not word.isdigit()] or [name]
    return [part for word in words[:-1] for part in _given(word)], _plain(words[-1])


def _given(word: str) -> list[str]:
    """Return the given names of a word; capitals in a row, as in "YW", are initials."""
    initials = len(word) in (2, 3) and word.isupper()
    return [_plain(letter) for letter in word] if initials else _plain(word).split()


def _plain(word: str) -> str:
    """Fold a word, and write ae, oe and ue as a, o and u: Jürgen, Juergen and Jurgen are one."""
    return re.sub(r"([aou])e", r"\1", fold(word))


def _compatible(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether the shorter list of given names can be the longer one with names left out."""
    short, long = sorted((one, other), key=len)
    rest = iter(long)
    return all(any(_may_be(name, full) for full in rest) for name in short)


def _may_be(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[:1] == other[:1])
