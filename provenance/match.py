"""Titles, names, venues and identifiers: normal forms and comparisons, all pure."""

from __future__ import annotations

import difflib
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

_NEW_ARXIV_ID = re.compile(r"^(\d{2})(\d{2})\.(\d{4,5})(v\d+)?$")
_OLD_ARXIV_ID = re.compile(r"^[a-z-]+(?:\.[A-Z]{2})?/(\d{2})(\d{2})\d{3}(v\d+)?$")
_TEX_ACCENT = re.compile(r"""\\["'`^~=.]|\\[uvHcdbkr](?=[\s{])\s*""")
_VOLUME_WORDS = {
    "pmlr",
    "r",
    "v",
    "vol",
    "volume",
    "of",
    "proceedings",
    "machine",
    "learning",
    "research",
}
_PROCEEDINGS = re.compile(
    r"^(?:proceedings of )?(?:the )?(?:\d+(?:st|nd|rd|th) )?(?:annual )?", re.I
)

_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "ı": "i"})

_GREEK = str.maketrans(
    {chr(code): unicodedata.name(chr(code)).split()[-1].lower() for code in range(0x3B1, 0x3CA)}
)


@dataclass(frozen=True)
class Venue:
    """A conference of one year; ``series`` is the key of ``venues.toml`` (DBLP's stream key)."""

    series: str
    year: int

    def __str__(self) -> str:
        return f"{self.series} {self.year}"


@dataclass(frozen=True, order=True)
class Month:
    """A calendar month."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year}-{self.month:02d}"

    def following(self) -> Month:
        """Return the next month."""
        return Month(self.year + self.month // 12, self.month % 12 + 1)


@cache
def fold(text: str) -> str:
    """Return the text's letters and digits in lower case, without accents, as spaced words.

    Greek letters are spelled out, whether they are written as such or as TeX commands; ``+`` and
    ``#`` stay, as in C++ and C#. TeX accents and braces are dropped.
    """
    plain = _TEX_ACCENT.sub("", text).replace("{", "").replace("}", "")
    decomposed = unicodedata.normalize("NFKD", plain.casefold().translate(_LETTERS))
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+|[+#]", bare.translate(_GREEK)))


def same_title(one: str, other: str) -> bool:
    """Tell whether two titles are the same but for case, accents, punctuation and spacing."""
    folded = fold(one).replace(" ", "")
    return folded == fold(other).replace(" ", "") if folded else one == other


def nearest_title(title: str, candidates: Iterable[str]) -> tuple[str, float] | None:
    """Return the most similar title and its similarity in 0..1 (difflib's ratio), if any."""
    folded = fold(title)
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(folded)
    best: tuple[str, float] | None = None
    for candidate in candidates:
        matcher.set_seq1(fold(candidate))
        floor = best[1] if best else 0.0
        if matcher.real_quick_ratio() > floor and matcher.quick_ratio() > floor:
            ratio = matcher.ratio()
            if ratio > floor:
                best = candidate, ratio
    return best


def arxiv_month(arxiv_id: str) -> Month | None:
    """Return the month in which an arXiv identifier was given out; None for another kind of id.

    It is the month of the first announcement (arXiv help, "Availability of submissions"), which
    can come after the month of submission but never before it.
    """
    match = _NEW_ARXIV_ID.match(arxiv_id) or _OLD_ARXIV_ID.match(arxiv_id)
    if match is None or not 1 <= int(match[2]) <= 12:
        return None
    short_year = int(match[1])
    return Month(short_year + (1900 if short_year > 90 else 2000), int(match[2]))


def normal_pages(pages: str) -> str | None:
    """Return a page range in one form: ``pp. 9355--66`` is ``9355-9366``; None if unreadable."""
    bare = re.sub(r"^.*:|^\s*(?:pp?\.|pages?)\s*|[{}]|[.,\s]+$", "", pages, flags=re.I).strip()
    bare = re.sub(r"\s*(?:[-‐-―−]+|\bto\b)\s*", "-", bare)
    match = re.fullmatch(r"(\d+)-(\d+)", bare)
    if match and len(match[2]) < len(match[1]):
        return f"{match[1]}-{match[1][: -len(match[2])]}{match[2]}"
    return bare if re.fullmatch(r"\w+(?:-\w+)?", bare) else None


def volume_number(volume: str) -> str | None:
    """Return the number of a PMLR volume however it is written ("PMLR 139", "v139"), or None."""
    words = re.findall(r"[^\W\d_]+|\d+", volume.partition(":")[0].lower())
    numbers = [word for word in words if word.isdigit()]
    reissue = "r" if "r" in words else ""
    known = {word for word in words if not word.isdigit()} <= _VOLUME_WORDS
    return f"{reissue}{numbers[0]}".upper() if known and len(numbers) == 1 else None


def stated_year(text: str) -> str | None:
    """Return the one year that a text names ("2021a", "July 2021"), or None."""
    years = set(re.findall(r"(?<!\d)((?:19|20)\d\d)(?!\d)", text))
    return years.pop() if len(years) == 1 else None


def normal_value(field: str, value: str) -> str:
    """Return a form in which equal values of a field are equal, however they are written."""
    readers: dict[str, Callable[[str], object]] = {
        "venue": parse_venue,
        "pages": normal_pages,
        "volume": volume_number,
        "year": stated_year,
    }
    read = readers[field](value) if field in readers else None
    return str(read) if read is not None else fold(value)


def parse_day(text: str) -> date | None:
    """Parse a date written as 2021-02-22; None for any other form."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        return None


@cache
def _series_by_name() -> dict[str, str]:
    text = Path(__file__).with_name("venues.toml").read_text(encoding="utf-8")
    return {fold(name): key for key, names in tomllib.loads(text).items() for name in [key, *names]}


def venue_series(name: str) -> str | None:
    """Return the series that a full conference name denotes, or None.

    The name may be led by "Proceedings of the 38th"; otherwise it has to be the whole name, so
    that "International Conference on Machine Learning and Applications" is not taken for ICML.
    """
    stripped = _PROCEEDINGS.sub("", " ".join(name.split()))
    return _series_by_name().get(fold(stripped))


def parse_venue(text: str) -> Venue | None:
    """Parse a conference name followed by its year, such as "icml 2021"; None for anything else.

    A name with an ordinal ("35th ...") is not read, since nothing here tells whether that is right.
    """
    if ordinals(text):
        return None
    match = re.match(r"^(.*\S)[\s,]+(\d{4})$", text.strip())
    series = venue_series(match[1]) if match else None
    return Venue(series, int(match[2])) if match and series else None


def series_mentioned(text: str) -> list[str]:
    """Return the series whose acronym or name occurs in a text as whole words, in order."""
    folded = f" {fold(text)} "
    found = [(folded.find(f" {name} "), key) for name, key in _series_by_name().items()]
    return list(dict.fromkeys(key for position, key in sorted(found) if position >= 0))


def series_names(series: str) -> list[str]:
    """Return the names under which sources write a series, folded; none for an unknown one."""
    return [name for name, key in _series_by_name().items() if key == series]


def ordinals(text: str) -> list[int]:
    """Return the ordinal numbers of a text: "the 35th volume" gives [35]."""
    return [int(number) for number in re.findall(r"\b(\d+)(?:st|nd|rd|th)\b", text)]
