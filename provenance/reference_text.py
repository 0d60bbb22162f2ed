"""References as running text: plain or Markdown lists and ``\\bibitem``s, taken apart.

There is no grammar of references, so this reads the styles that the field uses (APA, natbib, IEEE,
links, short mentions) and leaves out what it cannot tell: a part that is missing is better than one
that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from provenance.bibtex import basis_in
from provenance.identifiers import (
    bare_arxiv_id,
    find_identifiers,
    names_only_arxiv,
    without_identifiers,
)
from provenance.match import fold, series_mentioned
from provenance.names import split_authors
from provenance.tex import plain_text
from provenance.works import Reference, ReferenceFormat

_YEAR = r"(?P<year>(?:1[89]|20)\d\d)(?P<letter>[a-z])?"
_QUOTED = re.compile(
    r"[“\"](?P<title>[^“”\"]{3,400}?)[”\"]|(?<!\w)‘(?P<single>[^‘’]{8,400})’(?!\w)"
)
_APA = re.compile(rf"^(?P<authors>[^()]{{2,4000}}?)[\s.,]*\({_YEAR}[^)]*\)[.,:]?\s+(?P<rest>\S.*)$")
_BRACKETED = re.compile(
    r"^(?P<title>[^\[\]()]{3,300}?(?:\s\([^()]{1,40}\))?)\s*"
    r"[\[(](?P<inner>[^\[\]()]*(?:et al|\d{4})[^\[\]()]*)[\])]\.?$"
)
_LABEL = re.compile(rf"^[^.()]{{2,80}}?(?:et al\.?)?,?\s*\(?{_YEAR}\)?\.\s+(?=[^.]{{3,}}[.,])")
_LINK = re.compile(r"\[(?P<text>[^\[\]]{2,500})\]\((?P<url>[^()\s]+(?:\([^()\s]*\))?[^()\s]*)\)")
_PAGES = re.compile(
    r"(?:\b(?:pp?|pages?)\b\.?\s*)(?P<a>[A-Za-z]?\d+(?::\d+)?)(?:\s*[-–—]+\s*(?P<b>[A-Za-z]?\d+(?::\d+)?))?"
    r"|(?<![\d.:-])(?P<c>\d{1,6})\s*[-–—]+\s*(?P<d>\d{1,6})(?![\d.]*\d|\s*(?:[A-Z][a-z]+\s+)?(?:19|20)\d\d)"
)
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATES = re.compile(
    rf"\b\d{{1,2}}\s*[-–]+\s*\d{{1,2}}\s+{_MONTHS}\b|\b{_MONTHS}\s+\d{{1,2}}\s*[-–]+\s*\d{{1,2}}\b",
    re.I,
)
_VOLUME = re.compile(
    r"\bPMLR[\s,:]*(?P<pmlr>\d{1,3})(?!\d)|\bvol(?:ume|\.)?\s*(?P<named>\w+)", re.IGNORECASE
)
_STOP = "".join(
    rf"(?<!\b{word})"
    for word in ("Proc", "Int", "Intl", "Conf", "Trans", "Adv", "Symp", "J", "Mach", "Learn", "Res",
                 "Inf", "Process", "Syst", "Sci", "Comput", "Lett", "Rev", "Ann", "Assoc", "Am",
                 "Math", "Phys", "Stat", "Nat", "Commun", "Artif", "Intell", "Vis", "Recognit",
                 "Anal", "Neural", "Annu", "Nat", "Soc", "Eng")
) + r"\.\s"  # fmt: skip
"""The end of a sentence, after no abbreviation that names of journals have."""
_AFTER_VENUE = re.compile(
    rf"[,.]?\s*(?:\bpp?\.|\bpages?\b|\bvol(?:ume|\.)?\s|\bPMLR\b|\bURL\b|\bpublished\b)|,\s*\d|{_STOP}|\s*\(\s*(?:vol|pp)|"
    rf",\s*{_YEAR}|;\s|,\s*(?:virtual|online)\b",
    re.IGNORECASE,
)
_PARTICLE = re.compile(
    r"(?:^|\s)(?:[^\W\d_a-z]|Jr|Sr|St|Md|Mst|Mohd|Ph|vs|al|Dr|Proc|Int|Conf|J|Trans|Adv|Lett|Eng|Univ|Inc)$"
)
_PARTICLES = frozenset(
    re.findall(
        r"\w+", "al and ben bin da de del della den der des di dos du el la le ten ter van von y"
    )
)
_VANCOUVER = re.compile(r"(?:[^\W\d_a-z][\w’' -]*? [A-Z]{1,3}, )+[^\W\d_a-z][\w’' -]*? [A-Z]{1,3}")
_ELIDED = re.compile(r"[dl][’'][A-Z]")
_SPACING_ACCENTS = str.maketrans(dict.fromkeys("´¨`ˆ˜¸˙˘ˇ˚", "\ue000"))
_WORKS = re.compile(
    r"arxiv|doi\.org|openreview\.net|mlr\.press|aclanthology|neurips\.cc|nips\.cc|thecvf", re.I
)
_NO_TITLE = re.compile(
    r"^(?:pdf|arxiv|paper|code|link|url|html|doi|project(?: page)?|website|github|slides|video|"
    r"blog|here|bib(?:tex)?|abs|openreview|https?:.*|[\d.v]+)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Parts:
    """What has been told of one reference so far; ``rest`` is the text that names the place."""

    title: str | None = None
    authors: str = ""
    year: str | None = None
    rest: str = ""
    explicit_venue: str | None = None
    names: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)


def parse_reference(
    text: str, key: str, position: int, line: int = 1, form: ReferenceFormat = "plain"
) -> Reference:
    """Take one reference apart, whatever its style."""
    clean = _repaired(text)
    ids = find_identifiers(clean)
    basis = basis_in(clean)
    parts = _split(_without_basis(clean))
    authors, truncated = _names(parts)
    rest = parts.rest
    year = parts.year or _last_year(rest)
    venue = parts.explicit_venue if parts.explicit_venue is not None else _venue(rest)
    if venue is not None and (names_only_arxiv(venue) or not fold(venue)):
        venue = None
    return Reference(
        key=key,
        position=position,
        line=line,
        format=form,
        raw=text,
        title=_title(parts.title),
        authors=tuple(authors),
        truncated=truncated,
        year=int(year) if year else None,
        venue=venue,
        volume=_volume(rest),
        pages=_pages(rest),
        doi=ids.doi,
        arxiv_id=parts.extra.get("arxiv_id") or ids.arxiv_id,
        arxiv_version=ids.arxiv_version,
        openreview_id=ids.openreview_id,
        url=ids.url,
        basis=basis,
        problems=() if parts.title else ("no title could be told from the rest",),
    )


def _repaired(text: str) -> str:
    """Return the text in one line, without control characters and with detached accents dropped.

    PDF extraction leaves "J ´ urgen" or "weight¨" behind; without the accent the letters are right.
    """
    text = "".join(c if c.isprintable() or c.isspace() else " " for c in text)
    marked = text.translate(_SPACING_ACCENTS)
    marked = re.sub(r"(?<=\w) \ue000 (?=[a-z])|\ue000(?=\w)|(?<=\w)\ue000", "", marked)
    text = " ".join(marked.replace("\ue000", " ").split())
    return re.sub(r"(?<=\d)([-–—]) (?=\d)|(?<=\d) ([-–—])(?=\d)", lambda m: m[1] or m[2], text)


def _without_basis(text: str) -> str:
    return re.sub(
        r"\(?\b(?:per|according to) (?:the |its )?arxiv[^).;]*field\)?", "", text, flags=re.I
    )


# Which part is what


def _split(text: str) -> _Parts:
    """Tell title, authors, year and the rest, by the first style that fits."""
    if fields := _labelled(text):
        return fields
    linked, text = _linked_title(text)
    bare = _emphasis_off(without_identifiers(text)).strip(" .,;-–—")
    if linked:
        return _beside_link(linked, bare)
    quoted = _quoted(bare)
    if quoted and len((quoted.title or "").split()) > 2:
        return quoted
    for style in (_bracketed, _apa, _springer, _sentences, _title_first):
        if parts := style(bare):
            return parts
    return quoted or _Parts(title=bare or None)


def _labelled(text: str) -> _Parts | None:
    """Read "title: "..."; authors: [...]; year: 2020; venue: preprint", in any order."""
    found = dict(re.findall(r"(?:^|[;{,]\s*)(\w+):\s*(\"[^\"]*\"|\[[^\]]*\]|[^;\"\[\]]+)", text))
    fields = {name.lower(): value.strip().strip('"[]').strip() for name, value in found.items()}
    if "title" not in fields or not {"authors", "author", "year", "venue"} & fields.keys():
        return None
    names = fields.get("authors") or fields.get("author") or ""
    arxiv = bare_arxiv_id(fields.get("arxiv_id") or fields.get("arxiv", ""))
    venue = fields.get("venue") or fields.get("journal") or fields.get("booktitle")
    return _Parts(
        title=fields["title"],
        authors=names,
        year=fields.get("year"),
        rest=" ".join(fields.get(name, "") for name in ("pages", "volume")),
        explicit_venue=venue or "",
        names=tuple(part.strip() for part in names.split(",") if part.strip()),
        extra={"arxiv_id": arxiv[0]} if arxiv else {},
    )


def _linked_title(text: str) -> tuple[str | None, str]:
    """Return the text of a Markdown link that is a title, and the text without its link."""
    for link in _LINK.finditer(text):
        words = _emphasis_off(link["text"]).strip()
        if _NO_TITLE.match(words) or len(words.split()) < 2 or not _WORKS.search(link["url"]):
            continue
        return words, text[: link.start()] + " \ue001 " + text[link.end() :]
    return None, _LINK.sub(r"\g<text>", text)


def _beside_link(title: str, text: str) -> _Parts:
    before, _, after = text.partition("\ue001")
    apa = _APA.match(f"{before.strip()} x") if before.strip() else None
    year = apa["year"] if apa else None
    authors = apa["authors"] if apa else before
    if not re.search(r"[A-Z]\w+", authors) or len(authors) > 1000:
        authors = ""
    inner = re.match(r"^[\s,.;:-]*\((?P<inner>[^()]*)\)", after)
    if not authors and inner and re.search(r"et al|&|\band\b", inner["inner"]):
        names, years = _inner(inner["inner"])
        return _Parts(title=title, authors=names, year=years, rest=_inner_rest(inner["inner"]))
    rest = after.strip(" ,.;:-–")
    if not authors and (named := re.match(r"^(?P<names>[^,;()]{2,80}?\bet al\.?)[,.]?\s*", rest)):
        authors, rest = named["names"], rest[named.end() :]
    return _Parts(title=title, authors=authors.strip(" ,;:-–"), year=year, rest=rest)


def _quoted(text: str) -> _Parts | None:
    """Read 'Authors, "Title," venue, year' and '"Title" (Authors, year)'."""
    match = _QUOTED.search(text)
    if match is None:
        return None
    whole = match["title"] or match["single"]
    goes_on = re.match(r"\s*[:\u2014]|\s+(?!in\b)[a-z]", text[match.end() :])
    if goes_on and not whole.rstrip().endswith((",", ".", "?", "!")):
        return None  # a title that begins with a quotation
    title = whole.strip(" ,.")
    before, after = text[: match.start()].strip(" ,.;:"), text[match.end() :].strip(" ,.;:")
    before = re.sub(r"^[A-Z][\w-]{1,12}:\s+", "", before)  # "KDA: Kimi Team"
    if apa := _APA.match(f"{before} x"):
        return _Parts(title=title, authors=apa["authors"], year=apa["year"], rest=after)
    inner = re.match(r"^\((?P<inner>[^()]*)\)", after)
    if not before and inner and re.search(r"et al|&|\band\b|^\w+,? \d{4}", inner["inner"]):
        names, year = _inner(inner["inner"])
        return _Parts(title=title, authors=names, year=year, rest=_inner_rest(inner["inner"]))
    return _Parts(title=title, authors=before, rest=after)


def _bracketed(text: str) -> _Parts | None:
    """Read "Title (Authors, VENUE 2025)" and "Title [Authors, 2022]"."""
    match = _BRACKETED.match(text)
    if match is None or not re.search(r"et al|&|\band\b", match["inner"]):
        return None
    names, year = _inner(match["inner"])
    return _Parts(
        title=match["title"].strip(), authors=names, year=year, rest=_inner_rest(match["inner"])
    )


def _inner(text: str) -> tuple[str, str | None]:
    """Return the authors and the year of a bracket such as "Schlag et al., ICLR 2025"."""
    names = re.split(r"(?<=et al)\.?,?\s|,\s*(?=[^,]*\d{4})", text, maxsplit=1)[0]
    years = re.findall(_YEAR, text)
    return names.strip(" ,"), years[-1][0] if years else None


def _inner_rest(text: str) -> str:
    parts = re.split(r"(?<=et al)\.?,?\s|,\s*(?=[^,]*\d{4})", text, maxsplit=1)
    return parts[1].strip() if len(parts) > 1 else ""


def _apa(text: str) -> _Parts | None:
    """Read "Authors (2021). Title. Venue, ..."."""
    match = _APA.match(text)
    if match is None or not _may_be_authors(match["authors"]):
        return None
    title, rest = _title_and_place(match["rest"])
    if not rest and (first := _title_first(title)) is not None:  # "Title, ICML 2021"
        title, rest = first.title or title, first.rest
    return _Parts(title=title, authors=match["authors"], year=match["year"], rest=rest)


def _springer(text: str) -> _Parts | None:
    """Read "Ha, D., Le, Q.V.: Title. In: Venue, pp. 1-2 (2017)"."""
    match = re.match(
        r"^(?P<authors>[^:]{2,2000}?\.(?:,? et al\.?)?):\s+(?P<rest>[^\W\d_a-z\"].*)$", text
    )
    if match is None or not _may_be_authors(match["authors"]) or "," not in match["authors"]:
        return None
    title, rest = _title_and_place(match["rest"])
    return _Parts(title=title, authors=match["authors"], rest=rest)


def _sentences(text: str) -> _Parts | None:
    """Read "Authors. Title. Venue, year." with or without a label before the authors."""
    text = _LABEL.sub("", text) if len(_LABEL.sub("", text)) > 40 else text
    authors, rest = _first_sentence(text)
    if not rest or not _may_be_authors(authors):
        return None
    year = None
    if match := re.match(
        rf"^\(?{_YEAR}\)?[.,]\s+(?P<rest>.*)$", rest
    ):  # ACM: Authors. 2021. Title.
        year, rest = match["year"], match["rest"]
    title, place = _title_and_place(rest)
    if tail := re.search(rf",\s*{_YEAR}$", title) if not place else None:
        title, place = title[: tail.start()], title[tail.start() :]
    return _Parts(title=title, authors=authors, year=year, rest=place)


def _title_first(text: str) -> _Parts | None:
    """Read "Title, ICML 2021": a title, then a venue that is known by its name."""
    match = re.match(rf"^(?P<title>.{{8,400}}?)[,.]\s+(?P<rest>[^,.]{{2,80}}?\s{_YEAR}.*)$", text)
    if match is None or not series_mentioned(match["rest"]):
        return None
    return _Parts(title=match["title"], rest=match["rest"])


def _first_sentence(text: str) -> tuple[str, str]:
    """Split after the first full stop (or ? or !) that ends a sentence and no initial."""
    for match in re.finditer(r"[.?!](?=[\s”\"])\s*", text):
        before = text[: match.start()]
        if (
            match[0][0] == "."
            and _PARTICLE.search(before)
            and not _ends_list(before, text[match.end() :])
        ):
            continue
        mark = "" if match[0][0] == "." else match[0][0]
        return (before + mark).strip(), text[match.end() :].strip()
    return text.strip(" ."), ""


def _title_and_place(text: str) -> tuple[str, str]:
    """Split after the title; one that asks a question can go on after it, if a place follows."""
    title, rest = _first_sentence(text)
    more, place = _first_sentence(rest)
    if title.endswith(("?", "!")) and place and not re.match(r"in[\s:]", rest, re.IGNORECASE):
        return f"{title} {more}", place
    return title, rest


def _ends_list(before: str, after: str) -> bool:
    """Tell whether an author list ends here although an initial or "al" stands before the stop.

    "Behrouz, A., et al. Titans: ..." and "Schmidhuber, J. Linear transformers are ...".
    """
    if re.search(r"\bal$", before):
        return bool(re.match(r"[A-Z\"“*0-9(]", after))
    if _VANCOUVER.fullmatch(before):
        return bool(re.match(r"[^\W\d_a-z]", after))
    words = after.split()[:4]
    run_on = re.match(r"(?:,|&|and\b|[A-Z]\.|[A-Z][\w’'-]+,)", after)
    lower = [
        word
        for word in words[1:]
        if word[:1].islower() and word not in ("and", "van", "von", "de", "der", "den", "et")
    ]
    return (
        bool(words)
        and not run_on
        and len(lower) >= 1
        and bool(re.search(r",\s*(?:[^\W\d_a-z][.\s-]*)+$", before))
    )


def _may_be_authors(text: str) -> bool:
    """Tell whether a text can be a list of names: mostly capitalised words, few small ones."""
    if re.search(r"\bet al\b|\bteam\b|\bcollaboration\b", text, re.IGNORECASE):
        return len(text) < 600
    words = re.findall(r"[^\W\d_][\w’'.-]*", text)
    lower = [w for w in words if w[:1].islower() and w not in _PARTICLES and not _ELIDED.match(w)]
    if not words or lower:
        return False
    return "," in text or bool(re.search(r"\band\b|&|;", text)) or 2 <= len(words) <= 5


# What the parts say


def _names(parts: _Parts) -> tuple[list[str], bool]:
    text = parts.authors.strip(" ,;:&")
    if parts.names:
        names, truncated = list(parts.names), False
    elif not text or not _may_be_authors(text):
        return [], False
    else:
        text = re.sub(r",?\s*(?:…|\.\s?\.\s?\.)\s*(?:&|and|,)?\s*", ", … ", text)
        gap = "…" in text
        text = text.split(", …")[0] if gap else text
        names, truncated = split_authors(text)
        truncated = truncated or gap
    kept = [name for name in names if fold(name) not in ("et al", "others", "al")]
    return kept, truncated or len(kept) < len(names)


def _title(text: str | None) -> str | None:
    bare = _emphasis_off(text or "").strip(' .,;:-–—“”"')
    bare = re.sub(r"\s*\[(?:pdf|arxiv|code|paper|link|online)\]$", "", bare, flags=re.I)
    return bare or None


def _emphasis_off(text: str) -> str:
    """Drop Markdown's and TeX's marks of emphasis and code."""
    text = re.sub(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    return text.replace("`", "").replace("**", "").replace("*", "")


def _last_year(text: str) -> str | None:
    bare = _PAGES.sub(" ", re.sub(r"\d{4}\.\d{4,5}", " ", text))
    found = re.findall(r"(?<!\d)((?:1[89]|20)\d\d)[a-z]?(?![\d.]*\d)", bare)
    return found[-1] if found else None


def _pages(text: str) -> str | None:
    bare = _DATES.sub(" ", text)
    for match in _PAGES.finditer(bare):
        if match["a"]:
            return f"{match['a']}-{match['b']}" if match["b"] else match["a"]
        years = all(re.fullmatch(r"(?:19|20)\d\d", part) for part in (match["c"], match["d"]))
        if not years:
            return f"{match['c']}-{match['d']}"
    return None


def _volume(text: str) -> str | None:
    match = _VOLUME.search(text)
    if match:
        return match["pmlr"] or match["named"]
    placed = re.search(r",\s*(\d{1,4})(?:\s*\(\d+\))?\s*[,:]\s*(?:pp?\.\s*)?\d+\s*[-–—]", text)
    return placed[1] if placed else None


def _venue(rest: str) -> str | None:
    """Return the name of the place of publication at the beginning of what follows the title."""
    text = re.sub(
        r"^(?:in|presented at|to appear in|accepted at|published in)(?::|(?=\s))\s*",
        "",
        rest,
        flags=re.I,
    )
    text = re.sub(r"^[^.()]{3,120}\(eds?\.?\),?\s*", "", text, flags=re.I)
    text = text.strip(" ,.;:()")
    if re.match(rf"^{_YEAR}[a-z]?$", text) or not re.search(r"[^\W\d_]{2,}", text):
        return None
    with_year = re.match(rf"^(?P<name>[^,.;()]{{2,60}}?\s{_YEAR})(?=$|[\s,.;()])", text)
    end = _AFTER_VENUE.search(text)
    name = text[: end.start()] if end else text
    if with_year and len(with_year["name"]) > len(name):
        name = with_year["name"]
    name = re.sub(rf"^{_YEAR}\b[\s,.]*\(?", "", name.strip(" ,.;:-–—"))
    name += ")" * (name.count("(") > name.count(")"))
    named = any(char.isalpha() and not char.islower() for char in name)
    return name if named and 2 <= len(name) <= 200 else None


# Lists


_MARKER = re.compile(r"^\s*(?:[-*+•]\s+|\[(?P<number>\w{1,12})\]:?\s+|\(?\d{1,3}[.)]\s+)")
_BIBITEM = re.compile(
    r"\\bibitem\s*(?:\[(?P<label>(?:[^\[\]{}]|\{[^{}]*\}|\[[^\]]*\])*)\])?\s*\{(?P<key>[^}]*)\}"
)


def parse_list(text: str, form: ReferenceFormat) -> list[Reference]:
    """Return the references of a plain or Markdown text, one an item, paragraph or table row.

    In Markdown only what looks like a reference counts: a link to a paper, or a name and a year.
    """
    items = _items(text)
    if form == "markdown":
        items = [item for item in items if _looks_like_reference(item[1])]
    return [
        parse_reference(words, key or f"#{n}", n, line, form)
        for n, (line, words, key) in enumerate(items, start=1)
    ]


def _items(text: str) -> list[tuple[int, str, str | None]]:
    """Return (line, text, key) of each item: wrapped lines belong to the item before them."""
    lines = text.splitlines()
    marked = sum(bool(_MARKER.match(line)) for line in lines)
    items: list[tuple[int, str, str | None]] = []
    open_item = False
    for number, line in enumerate(lines, start=1):
        marker = _MARKER.match(line)
        words = line[marker.end() :] if marker else line
        if not line.strip() or re.match(r"^\s*(?:#{1,6}\s|```|\|?\s*:?-{3,})", line):
            open_item = False
        elif (
            marker
            or not open_item
            or (marked == 0 and not line[:1].isspace() and _one_a_line(lines))
        ):
            label = marker["number"] if marker else None
            items.append((number, words.strip(" |"), f"[{label}]" if label else None))
            open_item = True
        else:
            line_, before, key = items[-1]
            items[-1] = (line_, f"{before} {line.strip()}", key)
    return [item for item in items if re.search(r"[^\W\d_]{3,}", item[1])]


def _one_a_line(lines: Sequence[str]) -> bool:
    """Tell whether a text without markers has one reference a line: each has a year or id."""
    filled = [line for line in lines if line.strip()]
    dated = [line for line in filled if re.search(r"(?:19|20)\d\d|\d{4}\.\d{4,5}", line)]
    return len(dated) >= 0.9 * len(filled)


def _looks_like_reference(text: str) -> bool:
    if _WORKS.search(text) or re.search(r"arxiv[:\s]\s*\d{4}\.\d{4,5}|\b10\.\d{4,9}/", text, re.I):
        return True
    named = re.search(
        r"\bet al\b|[A-Z][\w’'-]+,\s+(?:[A-Z]\.\s*)+|[A-Z]\w+ (?:and|&) [A-Z]\w+", text
    )
    return bool(named and re.search(r"(?:19|20)\d\d", text))


def parse_bbl(text: str) -> list[Reference]:
    """Return the references of a ``.bbl`` file as BibTeX writes it, with their keys."""
    references = []
    heads = list(_BIBITEM.finditer(text))
    for n, head in enumerate(heads, start=1):
        end = heads[n].start() if n < len(heads) else len(text)
        raw = re.sub(
            r"\\end\{thebibliography\}.*", "", text[head.start() : end], flags=re.S
        ).strip()
        body = raw[head.end() - head.start() :]
        words = re.sub(r"\\newblock\b", ". ", body)
        words = re.sub(
            r"\\(?:emph|textit|textbf|textsc|url|href)\b|\\(?:em|it|bf|sc)\b", " ", words
        )
        plain = re.sub(r"\s+([.,])|([.,?!])\s*\.(?=\s)", r"\1\2", plain_text(words))
        line = text.count("\n", 0, head.start()) + 1
        parsed = parse_reference(plain, head["key"].strip() or f"#{n}", n, line, "bbl")
        references.append(parsed.model_copy(update={"raw": raw}))
    return references
