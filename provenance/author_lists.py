"""A cited list of authors against one that a source gives; all pure.

Accents, initials, left-out given names, particles and the order of a name's parts do not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from provenance.match import fold
from provenance.names import compare_names

_CORPORATE = re.compile(
    r"\b(?:team|collaboration|consortium|group|project|community|inc|labs?|research|ai|openai|"
    r"deepmind|google|meta|microsoft|nvidia|institute|university|foundation|authors)\b",
    re.IGNORECASE,
)

_FAMILY = re.compile(r"(?:Mc|Mac|Le|La|De|Di|Du|Van|O['’]|[A-Z][a-z]+[-'’])[A-Z][a-z]+$")
"""Family names with a capital inside: McAllester, LeCun, Cohen-Addad."""

_SHORT_FORMS: Mapping[str, Collection[str]] = {
    "bob": ("robert",),
    "bill": ("william",),
    "dick": ("richard",),
    "ned": ("edward",),
    "ted": ("edward", "theodore"),
    "tony": ("anthony",),
    "peggy": ("margaret",),
    "sasha": ("alexander", "aleksandr", "alexandra"),
    "yuri": ("iouri",),
}
"""Short forms whose letters do not all occur in the name in their order, with these names."""


@dataclass(frozen=True)
class AuthorFault:
    """What is wrong with a cited list: in words, and whether it is only a matter of style."""

    reason: str
    is_style: bool = False


def is_corporate(name: str) -> bool:
    """Tell whether a name is that of an organisation or a team."""
    inner_capital = len(name.split()) == 1 and name[1:] != name[1:].lower()
    return bool(_CORPORATE.search(name)) or (inner_capital and not _FAMILY.match(name))


def compare_author_lists(
    cited: Sequence[str], truncated: bool, listed: Sequence[str]
) -> AuthorFault | None:
    """Return what is wrong with a cited list of authors, None where it agrees.

    Args:
        cited: the names that the reference gives.
        truncated: whether it marks them as not all ("et al.").
        listed: all names that a source gives, in order; not empty.
    """
    if all(map(is_corporate, cited)) or (len(listed) == 1 and is_corporate(listed[0])):
        return None  # a team may stand for its members, and the other way round
    places = _places(cited, listed)
    foreign = [name for name, place in zip(cited, places, strict=True) if place is None]
    if foreign:
        return AuthorFault(f"not among the authors: {'; '.join(foreign)}")
    found = [place for place in places if place is not None]
    if found != sorted(found) or len(set(found)) < len(found):
        return AuthorFault("the authors stand in another order")
    if found[0] != 0:
        return AuthorFault(f"the first author is {listed[0]}")
    if found != list(range(len(found))):
        left_out = [listed[i] for i in range(found[-1]) if i not in found]
        return AuthorFault(f"left out in the middle: {'; '.join(left_out)}")
    if len(found) < len(listed) and not truncated:
        count = len(listed) - len(found)
        return AuthorFault(f'{count} of {len(listed)} authors are left out without "et al."')
    return _spelling(cited, listed)


def _places(cited: Sequence[str], listed: Sequence[str]) -> list[int | None]:
    """Return where each cited name stands in a list; two "J. Bai" are two people, in order."""
    places: list[int | None] = []
    for i, name in enumerate(cited):
        taken = {place for place in places if place is not None}
        if i < len(listed) and i not in taken and compare_names(name, listed[i]) == "same":
            places.append(i)
        else:
            places.append(_place(name, listed, taken))
    return places


def _place(name: str, listed: Sequence[str], taken: Collection[int]) -> int | None:
    """Return where a name stands in a list: the same name, else the one of its family.

    A place that an earlier name has taken is given only where no other will do.
    """
    verdicts = [compare_names(name, other) for other in listed]
    for wanted in ("same", "unclear"):
        found = [i for i, verdict in enumerate(verdicts) if verdict == wanted]
        if found:
            return next((i for i in found if i not in taken), found[0])
    words = sorted(fold(name).split())
    swapped = [i for i, other in enumerate(listed) if sorted(fold(other).split()) == words]
    if swapped:
        return swapped[0]
    near = [i for i, other in enumerate(listed) if _one_family(name, other)]
    return near[0] if len(near) == 1 else None


def _one_family(name: str, other: str) -> bool:
    """Tell whether two names can be one whose family name has parts: particles, double names."""
    one, two = fold(name.partition(",")[0]).split(), fold(other).split()
    given = fold(name.partition(",")[2]).split()
    if "," not in name:
        one, given = fold(name).split(), []
    if len(one) == 1 and not given:
        return one[0] in two[1:]
    joined = "".join(one)
    tail = any("".join(two[i:]) == joined for i in range(1, len(two)))
    if tail or any(len(word) > 3 and word in two[1:] for word in one if given):
        return not given or given[0][:1] == two[0][:1]
    return _typo("".join([*given, *one]), "".join(two))


def _typo(one: str, other: str) -> bool:
    """Tell whether two spellings differ by one or two letters of many."""
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=2) <= 2 and min(len(one), len(other)) >= 8


def _spelling(cited: Sequence[str], listed: Sequence[str]) -> AuthorFault | None:
    """Return that given names are another person's, or only spelt in another way."""
    others = [
        f"{name} (for {other})"
        for name, other in zip(cited, listed, strict=False)
        if compare_names(name, other) == "unclear" and _is_another(name, other)
    ]
    if others:
        return AuthorFault(f"another given name than the author's: {'; '.join(others)}")
    odd = [
        f"{name} ({other})"
        for name, other in zip(cited, listed, strict=False)
        if compare_names(name, other) != "same" and not _one_family_only(name)
    ]
    return AuthorFault(f"spelt otherwise: {'; '.join(odd)}", is_style=True) if odd else None


def _is_another(name: str, other: str) -> bool:
    """Tell whether two people of one family name can hardly be one person.

    Their given names are written out and have no initial in common, and none can be a short form of
    another, as "Hans" of "Johannes".
    """
    ours, theirs = _full_given(name), _full_given(other)
    pairs = [(a, b) for a in ours for b in theirs]
    return bool(pairs) and not any(a[0] == b[0] or _shortens(a, b) for a, b in pairs)


def _full_given(name: str) -> list[str]:
    """Return the given names, none if one of them is an initial."""
    family, comma, given = name.partition(",")
    words = given.split() if comma else family.split()[:-1]
    if any(len(word.strip(".")) < 2 or "." in word or word.isupper() for word in words):
        return []
    return [part for word in words for part in fold(word).split()]


def _shortens(one: str, other: str) -> bool:
    """Tell whether one name's letters occur in the other in their order, or it is known to."""
    short, long = sorted((one, other), key=len)
    rest = iter(long)
    return all(char in rest for char in short) or long in _SHORT_FORMS.get(short, ())


def _one_family_only(name: str) -> bool:
    return len(fold(name).split()) == 1


def share_most(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether two lists are by the same people: one first author, and most names in common."""
    if not one or not other or compare_names(one[0], other[0]) != "same":
        return False
    common = sum(any(compare_names(a, b) == "same" for b in other) for a in one)
    return common >= 0.6 * min(len(one), len(other))
