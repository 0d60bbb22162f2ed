"""Citations made from known works by changing one thing in each, be it a fault or none; pure.

The labels follow from the change, so any number can be made; the same seed makes the same ones.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from provenance.author_lists import is_corporate
from provenance.known_works import accepted_papers, cited_works
from provenance.match import fold
from provenance.works import CitationVerdict, ReferenceFormat, Work


@dataclass(frozen=True)
class Draft:
    """A citation before it is written down; ``preprint`` cites the arXiv entry in its place."""

    title: str
    authors: tuple[str, ...]
    year: int | None
    venue: str | None
    pages: str | None = None
    doi: str | None = None
    arxiv_id: str | None = None
    truncated: bool = False
    preprint: bool = False

    def bibtex(self) -> str:
        """Return the draft as an entry."""
        names = " and ".join([*self.authors, *(["others"] if self.truncated else [])])
        place = {"journal": f"arXiv preprint arXiv:{self.arxiv_id}"}
        if not self.preprint:
            place = {"booktitle": self.venue or "", "pages": self.pages or ""}
            place["eprint"] = self.arxiv_id or ""
        year = str(self.year or "")
        fields = {"title": self.title, "author": names, **place, "year": year, "doi": self.doi}
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        kind = "article" if self.preprint else "inproceedings"
        return "\n".join([f"@{kind}{{cited,", *lines, "}"])

    def plain(self) -> str:
        """Return the draft as a line of a list in natbib's style."""
        names = ", ".join(self.authors)
        if self.truncated:
            names += ", et al"
        elif len(self.authors) > 1:
            names = f"{', '.join(self.authors[:-1])} and {self.authors[-1]}"
        pages = f", pp. {self.pages}" if self.pages else ""
        place = f"In {self.venue}{pages}, " if self.venue else ""
        if self.preprint:
            place = f"arXiv preprint arXiv:{self.arxiv_id}, "
        return f"{names}. {self.title}. {place}{self.year}."


Change = Callable[[Draft, random.Random], "Draft | None"]


@dataclass(frozen=True)
class Kind:
    """A kind of change: the verdict that it deserves, and the field that is at fault, if any.

    ``change`` returns None for a draft that does not allow the change; ``only_bibtex`` says that
    the change would not show in running text.
    """

    name: str
    change: Change
    verdict: CitationVerdict = "correct"
    field: str | None = None
    only_bibtex: bool = False


@dataclass(frozen=True)
class Made:
    """A citation that was made: its text, and the kind of change in it."""

    kind: Kind
    number: int
    form: ReferenceFormat
    raw: str


def make_citations(each: int, seed: int) -> list[Made]:
    """Return ``each`` citations for every kind of change, BibTeX and running text in turn."""
    rng = random.Random(seed)
    works = [w for w in accepted_papers() if len(fold(w.title).split()) >= 4]
    accepted = [_draft(work) for work in works]
    well_known = [_draft(work, arxiv_id) for work, arxiv_id in cited_works() if work.authors]
    pools = (accepted, well_known)
    return [made for kind in KINDS for made in _of_kind(kind, pools, each, rng)]


def _draft(work: Work, arxiv_id: str | None = None) -> Draft:
    return Draft(
        work.title, work.authors, work.year, work.venue, work.pages, work.doi, arxiv_id,
        preprint=work.kind == "preprint",
    )  # fmt: skip


def _of_kind(
    kind: Kind, pools: tuple[Sequence[Draft], Sequence[Draft]], each: int, rng: random.Random
) -> Iterator[Made]:
    accepted, well_known = [rng.sample(pool, len(pool)) for pool in pools]
    half = min(each // 2, len(well_known))
    made = 0
    for drafted in [*well_known[:half], *accepted, *well_known[half:]]:
        changed = kind.change(drafted, rng)
        if changed is None:
            continue
        plain = made % 2 and not kind.only_bibtex
        made += 1
        text = changed.plain() if plain else changed.bibtex()
        yield Made(kind, made, "plain" if plain else "bibtex", text)
        if made == each:
            return


def _set(**changes: Callable[[Draft, random.Random], Any]) -> Change:
    """Return the change that sets fields; none where a new value is None or the old one."""

    def change(draft: Draft, rng: random.Random) -> Draft | None:
        values = {name: make(draft, rng) for name, make in changes.items()}
        if any(value is None or value == getattr(draft, name) for name, value in values.items()):
            return None
        return replace(draft, **values)

    return change


def _published(change: Change) -> Change:
    """Return the change for drafts of publications only."""
    return lambda draft, rng: None if draft.preprint else change(draft, rng)


# Titles


def _long_words(title: str) -> list[int]:
    return [i for i, word in enumerate(title.split()) if len(word) > 4]


def _drop_word(draft: Draft, rng: random.Random) -> str | None:
    words, places = draft.title.split(), _long_words(draft.title)
    if len(places) < 4:
        return None
    del words[rng.choice(places)]
    return " ".join(words)


def _other_word(draft: Draft, rng: random.Random) -> str | None:
    words, places = draft.title.split(), _long_words(draft.title)
    if len(places) < 4:
        return None
    words[rng.choice(places)] = rng.choice(("Hyperbolic", "Quantised", "Byzantine", "Sinusoidal"))
    return " ".join(words)


def _swap_words(draft: Draft, rng: random.Random) -> str | None:
    words, places = draft.title.split(), _long_words(draft.title)
    if len(places) < 3:
        return None
    i, j = rng.sample(places, 2)
    if words[i].lower() == words[j].lower():
        return None
    words[i], words[j] = words[j], words[i]
    return " ".join(words)


def _other_tail(draft: Draft, rng: random.Random) -> str | None:
    main, colon, _ = draft.title.partition(": ")
    tails = ("A Unified View of Memory", "Bridging Theory and Practice", "Towards General Agents")
    return f"{main}: {rng.choice(tails)}" if colon and len(main) >= 12 else None


def _longer(draft: Draft, rng: random.Random) -> str:
    return f"{draft.title} {rng.choice(('in PyTorch', 'for Large Graphs', 'at Scale'))}"


def _slip(draft: Draft, rng: random.Random) -> str | None:
    words = draft.title.split()
    places = [i for i, word in enumerate(words) if len(word) > 7 and word.isalpha()]
    if not places or len(words) < 5:
        return None
    i = rng.choice(places)
    at = rng.randrange(2, len(words[i]) - 2)
    words[i] = words[i][:at] + words[i][at + 1] + words[i][at] + words[i][at + 2 :]
    return " ".join(words)


def _main_title(draft: Draft, _: random.Random) -> str | None:
    main, colon, _tail = draft.title.partition(": ")
    return main if colon and len(main.split()) >= 3 else None


# Authors


_SUFFIXES = (" III", " II", " Jr.", " Jr")


def _foreign(rng: random.Random) -> str:
    return rng.choice(accepted_papers()).authors[-1]


def _appended(draft: Draft, rng: random.Random) -> tuple[str, ...] | None:
    if any(map(is_corporate, draft.authors)):
        return None
    return (*draft.authors, _foreign(rng))


def _swapped(draft: Draft, rng: random.Random) -> tuple[str, ...] | None:
    names = list(draft.authors)
    if len(names) < 3:
        return None
    i = rng.randrange(len(names) - 1)
    names[i], names[i + 1] = names[i + 1], names[i]
    return tuple(names)


def _one_left_out(draft: Draft, rng: random.Random) -> tuple[str, ...] | None:
    if len(draft.authors) < 4:
        return None
    i = rng.randrange(1, len(draft.authors) - 1)
    return draft.authors[:i] + draft.authors[i + 1 :]


def _one_replaced(draft: Draft, rng: random.Random) -> tuple[str, ...] | None:
    if len(draft.authors) < 3:
        return None
    i = rng.randrange(1, len(draft.authors))
    return (*draft.authors[:i], _foreign(rng), *draft.authors[i + 1 :])


def _initials(draft: Draft, _: random.Random) -> tuple[str, ...] | None:
    if any(name.endswith(_SUFFIXES) for name in draft.authors):
        return None
    return tuple(map(_with_initials, draft.authors))


def _with_initials(name: str) -> str:
    *given, family = name.split()
    first = next((i for i, word in enumerate(given) if word.islower()), len(given))
    initials = [f"{word[0]}." for word in given[:first]]
    return " ".join([*initials, *given[first:], family])


def _turned(draft: Draft, _: random.Random) -> tuple[str, ...] | None:
    if any(name.endswith(_SUFFIXES) for name in draft.authors):
        return None
    return tuple(
        f"{name.split()[-1]}, {' '.join(name.split()[:-1])}" if " " in name else name
        for name in draft.authors
    )


_STROKES = str.maketrans("ŁłØøĐÐđðı", "LlOoDDddi")


def _ascii(draft: Draft, _: random.Random) -> tuple[str, ...]:
    plain = [unicodedata.normalize("NFKD", name.translate(_STROKES)) for name in draft.authors]
    return tuple(name.encode("ascii", "ignore").decode() for name in plain)


def _middle_names_left_out(draft: Draft, _: random.Random) -> tuple[str, ...]:
    return tuple(
        f"{words[0]} {words[2]}" if len(words) == 3 and words[1].endswith(".") else name
        for name in draft.authors
        for words in [name.split()]
    )


# Places


_NAMES: Mapping[str, Sequence[str]] = {
    "International Conference on Machine Learning": (
        "ICML", "Proc. ICML", "International Conference on Machine Learning (ICML)",
        "Proc. Int. Conf. on Machine Learning (ICML)", "Int. Conf. on Machine Learning",
    ),
    "International Conference on Learning Representations": (
        "ICLR", "International Conference on Learning Representations (ICLR)",
        "Proc. of the International Conference on Learning Representations",
        "Int. Conf. on Learning Representations (ICLR)",
    ),
    "Neural Information Processing Systems": (
        "NeurIPS", "NIPS", "Advances in Neural Information Processing Systems",
        "Proc. Advances in Neural Information Processing Systems (NIPS)",
        "Thirty-third Conference on Neural Information Processing Systems",
    ),
    "Annual Meeting of the Association for Computational Linguistics": (
        "ACL", "Proc. ACL", "Proceedings of the Annual Meeting of the Association for "
        "Computational Linguistics",
    ),
}  # fmt: skip
_ELSEWHERE = (
    "Advances in Neural Information Processing Systems",
    "International Conference on Machine Learning",
    "International Conference on Learning Representations",
    "AISTATS",
    "CVPR",
    "Annual Meeting of the Association for Computational Linguistics",
    "Conference on Learning Theory",
)


def _other_name(draft: Draft, rng: random.Random) -> str | None:
    names = _NAMES.get(draft.venue or "")
    return rng.choice(names) if names else None


def _elsewhere(draft: Draft, rng: random.Random) -> str:
    return rng.choice([venue for venue in _ELSEWHERE if (draft.venue or "") not in venue])


def _pmlr(draft: Draft, _: random.Random) -> str | None:
    is_icml = draft.venue == "International Conference on Machine Learning"
    return "Proceedings of Machine Learning Research" if is_icml else None


def _other_pages(draft: Draft, rng: random.Random) -> str | None:
    if not draft.pages:
        return None
    first, _, last = draft.pages.partition("-")
    shift = rng.choice((7, 100, 1000))
    return f"{int(first) + shift}-{int(last) + shift}"


def _as_preprint(draft: Draft, _: random.Random) -> Draft | None:
    return None if draft.preprint or not draft.arxiv_id else replace(draft, preprint=True)


def _preprint_as_is(draft: Draft, _: random.Random) -> Draft | None:
    return draft if draft.preprint else None


def _year(step: int) -> Change:
    return _published(_set(year=lambda d, _: d.year and d.year + step))


_IDS = ("2406.03428", "2412.20324", "2410.03810")
_DOIS = ("10.18653/v1/w18-6319", "10.18653/v1/p16-1162")


def _other_id(draft: Draft, rng: random.Random) -> str:
    return rng.choice(_IDS)


def _other_doi(draft: Draft, rng: random.Random) -> str:
    return rng.choice([doi for doi in _DOIS if doi != draft.doi])


KINDS = (
    Kind("a word of the title left out", _set(title=_drop_word), "wrong", "title"),
    Kind("a word of the title replaced", _set(title=_other_word), "wrong", "title"),
    Kind("two words of the title swapped", _set(title=_swap_words), "wrong", "title"),
    Kind("an invented subtitle", _set(title=_other_tail), "wrong", "title"),
    Kind("words added to the title", _set(title=_longer), "wrong", "title"),
    Kind("an author appended", _set(authors=_appended), "wrong", "authors"),
    Kind(
        "the last author left out",
        _set(authors=lambda d, _: d.authors[:-1] if len(d.authors) > 2 else None),
        "wrong", "authors",
    ),
    Kind("an author in the middle left out", _set(authors=_one_left_out), "wrong", "authors"),
    Kind("an author replaced", _set(authors=_one_replaced), "wrong", "authors"),
    Kind("two authors swapped", _set(authors=_swapped), "wrong", "authors"),
    Kind(
        "the first author replaced",
        _set(authors=lambda d, r: (_foreign(r), *d.authors[1:]) if len(d.authors) > 1 else None),
        "wrong", "authors",
    ),
    Kind("the year before", _year(-1), "wrong", "year"),
    Kind("the year after", _year(+1), "wrong", "year"),
    Kind("another venue", _published(_set(venue=_elsewhere)), "wrong", "venue"),
    Kind("other pages", _published(_set(pages=_other_pages)), "wrong", "pages"),
    Kind("another work's arXiv identifier", _set(arxiv_id=_other_id), "wrong", "arxiv_id", True),
    Kind("another work's DOI", _set(doi=_other_doi), "wrong", "doi", True),
    Kind("a preprint since published", _as_preprint, "outdated", "venue"),
    Kind("no author", _set(authors=lambda *_: ()), "incomplete", "authors", True),
    Kind(
        "no year", _set(year=lambda d, _: 0 if d.year else None), "incomplete", "year", True
    ),
    Kind(
        "no venue",
        lambda d, _: replace(d, venue="", arxiv_id=None, doi=None) if d.venue else None,
        "incomplete", "venue",
    ),
    Kind("nothing", lambda draft, _: draft),
    Kind("lower case", _set(title=lambda d, _: d.title[:1] + d.title[1:].lower())),
    Kind("braces", _set(title=lambda d, _: f"{{{d.title}}}"), only_bibtex=True),
    Kind("no subtitle", _set(title=_main_title)),
    Kind("a slip in the title", _set(title=_slip)),
    Kind("initials", _set(authors=_initials)),
    Kind("family names first", _set(authors=_turned)),
    Kind("names without accents", _set(authors=_ascii)),
    Kind("middle names left out", _set(authors=_middle_names_left_out)),
    Kind(
        "et al.",
        _set(
            authors=lambda d, r: d.authors[: r.randint(1, 2)] if len(d.authors) > 3 else None,
            truncated=lambda *_: True,
        ),
    ),
    Kind("another name of the venue", _published(_set(venue=_other_name))),
    Kind("the venue with its year", _published(_set(venue=lambda d, _: f"{d.venue} {d.year}"))),
    Kind("PMLR as the series", _published(_set(venue=_pmlr))),
    Kind("no pages", _published(_set(pages=lambda d, _: "" if d.pages else None))),
    Kind(
        "page dashes",
        _published(_set(pages=lambda d, _: d.pages.replace("-", "--") if d.pages else None)),
    ),
    Kind("a preprint that is one", _preprint_as_is),
)  # fmt: skip
"""Kinds of change: first the faults, then what is none."""
