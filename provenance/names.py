"""Author names as sources write them: lists taken apart, names compared, all pure.

Two names are the same, different, or neither: a given name that differs can be a nickname, a second
name or a slip, so only a family name that differs makes another person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from provenance.match import fold

Comparison = Literal["same", "different", "unclear"]

_SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}
_TRUNCATED = re.compile(r"[\s,;&.…]*\b(?:et al\.?|and others|others)\s*$", re.I)
_INITIALS_LAST = re.compile(
    r"^([^\W\d_a-z][\w’'-]+(?:\s[^\W\d_a-z][\w’'-]+)*)\s([^\W\d_a-z]{1,3})$"
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.?[\s-]*){1,3}")


def split_authors(text: str) -> tuple[list[str], bool]:
    """Return the names of an author list, and whether it is cut short ("et al.", "and others").

    Of several ways to read it, the first of ``_readings``.
    """
    whole = _TRUNCATED.sub("", text.strip())
    return _readings(whole)[0], whole != text.strip()


def _readings(text: str) -> list[list[str]]:
    """Return the ways to take an author list apart, the likeliest first.

    Names are separated by semicolons (or bars, or lines), by "and" (or "&"), or by commas, which
    stand inside "Family, Given" as well.
    """
    text = re.sub(r"\s*(?:\||\n)\s*", ";", text.strip(" ;,"))
    text = re.sub(r"\s*,?\s*(?:&|\band\b)\s*", " and ", text)
    if ";" in text:
        return [_clean(text.replace(" and ", ";").split(";"))]
    chunks = text.split(" and ")
    pieces = _clean(piece for chunk in chunks for piece in chunk.split(","))
    pieces = [piece for piece in pieces if fold(piece) not in _SUFFIXES]
    if "," not in text:
        return [_clean(chunks)]
    turned = len(chunks) > 1 and all(chunk.count(",") == 1 for chunk in chunks)
    if len(pieces) > 2 and not turned and all(_is_full(piece) for piece in pieces):
        return [pieces]
    bibtex = _clean(chunks)
    pairs = [f"{a}, {b}" for a, b in zip(pieces[::2], pieces[1::2], strict=False)]
    first_turned = [", ".join(pieces[:2]), *pieces[2:]]
    readings = [pieces, bibtex, first_turned]
    if len(pieces) % 2 == 0:
        readings.append(pairs)
    if any(_INITIALS.fullmatch(piece) for piece in pieces) and len(pieces) % 2 == 0:
        return [pairs, *readings]
    if len(pieces) == 2 and len(chunks) == 1 and " " not in pieces[0]:
        return [first_turned, *readings]
    return [bibtex, *readings] if turned else readings


def _is_full(name: str) -> bool:
    """Tell whether this is "Given Family" and not "Family" or "Family GF"."""
    last = name.split()[-1]
    return " " in name and not (len(last) <= 3 and last.isupper())


def _clean(names: Iterable[str]) -> list[str]:
    return [name.strip(" ,") for name in names if name.strip(" ,")]


def compare_authors(asserted: str, listed: Sequence[str]) -> Comparison:
    """Compare an author list as it is written with the names that a source lists, in order.

    Where commas leave open how to read the list, it is the same if one reading is, and otherwise
    unclear.
    """
    whole = _TRUNCATED.sub("", asserted.strip())
    readings = _readings(whole)
    found = {_compare_lists(names, listed, whole != asserted.strip()) for names in readings}
    if "same" in found:
        return "same"
    return "different" if found == {"different"} and len(readings) == 1 else "unclear"


def _compare_lists(names: Sequence[str], listed: Sequence[str], truncated: bool) -> Comparison:
    if len(names) != len(listed) and not (truncated and len(names) < len(listed)):
        return "different"
    found = {compare_names(a, b) for a, b in zip(names, listed, strict=False)}
    if "different" in found:
        return "different"
    return "unclear" if "unclear" in found else "same"


def compare_names(one: str, other: str) -> Comparison:
    """Compare two names; accents, case, order of parts and left-out given names do not count."""
    found = _compare_parts(one, other)
    if found == "different" and (_INITIALS_LAST.match(one) or _INITIALS_LAST.match(other)):
        return _compare_parts(*(_INITIALS_LAST.sub(r"\1, \2", name) for name in (one, other)))
    return found


def _compare_parts(one: str, other: str) -> Comparison:
    given, family = _parts(one)
    other_given, other_family = _parts(other)
    if family != other_family:
        return "different"
    return "same" if _compatible(given, other_given) else "unclear"


def share_an_author(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether some name of the one list can be one of the other; a surname is not enough."""
    return any(compare_names(a, b) == "same" for a in one for b in other)


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
