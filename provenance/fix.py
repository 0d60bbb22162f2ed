"""Corrected bibliographies: the BibTeX file again, with what was found wrong put right.

Only fields with a finding change, and only to what a source says; keys, comments, order, all other
fields and every entry that could not be checked stay as they are, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from provenance.bibliography import decode, read_bibliography
from provenance.match import normal_pages
from provenance.works import CitationReport, Work
from records.errors import BibliographyError
from records.files import write_whole

_SPECIAL = re.compile(r"(?<!\\)([&%#_$])")
_PUBLISHED = ("proceedings", "journal")


def write_fixed(source: Path, target: Path, reports: Sequence[CitationReport]) -> int:
    """Write the corrected copy of a BibTeX file; return how many entries were corrected.

    Raises:
        BibliographyError: the source is no BibTeX file, the target is the source itself (by
            another name too), or it cannot be written; nothing is written then.
    """
    require_fixable(source, target)
    try:
        text, _ = decode(source.read_bytes())
        fixed, count = fixed_bibtex(text, reports)
        write_whole(target, fixed.encode("utf-8"))
    except OSError as error:
        raise BibliographyError(
            f"the corrected bibliography {target} cannot be written: {error.strerror or error}"
        ) from error
    return count


def require_fixable(source: Path, target: Path) -> None:
    """Refuse what cannot be corrected, before anything is asked.

    Raises:
        BibliographyError: the source is no BibTeX file or cannot be read, or the target is the
            source itself, by another name too.
    """
    if target.exists() and source.exists() and target.samefile(source):
        raise BibliographyError(
            f"{target} is the bibliography itself; name another file for the corrected copy"
        )
    if any(reference.format != "bibtex" for reference in read_bibliography(source)):
        raise BibliographyError(f"only BibTeX files are corrected, and {source} is none")


def fixed_bibtex(text: str, reports: Sequence[CitationReport]) -> tuple[str, int]:
    """Return the text with its faulty entries corrected, and how many were.

    Args:
        text: a BibTeX file.
        reports: what was found of its entries, in their order.
    """
    out, at, count = [], 0, 0
    ascii_only = text.isascii()
    for report in reports:
        raw = report.reference.raw
        start = text.find(raw, at)
        if not raw or start < 0:
            continue
        fixed = fixed_entry(report, ascii_only=ascii_only)
        count += fixed != raw
        out += [text[at:start], fixed]
        at = start + len(raw)
    return "".join([*out, text[at:]]), count


def fixed_entry(report: CitationReport, *, ascii_only: bool) -> str:
    """Return the text of one entry, corrected as far as its report tells how."""
    raw = report.reference.raw
    if report.existence != "found" or not report.works:
        return raw
    changes = _changes(report)
    for name, value in changes.fields.items():
        raw = _with_field(raw, name, _written(name, value, raw, ascii_only=ascii_only))
    for name in changes.removed:
        raw = _without_field(raw, name)
    if changes.entry_type:
        raw = re.sub(r"^(\s*@\s*)\w+", rf"\g<1>{changes.entry_type}", raw, count=1)
    return raw


# What to change


@dataclass(frozen=True)
class _Changes:
    fields: Mapping[str, str]
    removed: tuple[str, ...] = ()
    entry_type: str | None = None


def _changes(report: CitationReport) -> _Changes:
    """Return the new values of the fields that are wrong, outdated or left out."""
    works, reference = report.works, report.reference
    faults = {
        f.field: f for f in report.findings if f.severity in ("wrong", "outdated", "incomplete")
    }
    published = next((w for w in works if w.kind in _PUBLISHED and w.venue), None)
    fields: dict[str, str] = {}
    if "title" in faults:
        fields["title"] = works[0].title
    listed = next((w.authors for w in works if w.authors and w.authors_complete), ())
    if "authors" in faults and listed:
        fields["author"] = " and ".join(map(_turned, listed))
    if "year" in faults and (year := (published or works[0]).year):
        fields["year"] = str(year)
    for name in ("pages", "volume", "doi"):
        if name in faults and (found := faults[name].found):
            fields[name] = found
    if "arxiv_id" in faults and (found := faults["arxiv_id"].found):
        fields["eprint"] = found
    if "venue" in faults and published is not None:
        return _as_published(published, reference.fields, fields, reference.arxiv_id)
    return _Changes(fields)


def _as_published(
    work: Work, old: Mapping[str, str], fields: dict[str, str], arxiv_id: str | None
) -> _Changes:
    """Return the changes that make an entry cite the publication; arXiv's identifier is kept."""
    is_journal = work.kind == "journal"
    place, other = ("journal", "booktitle") if is_journal else ("booktitle", "journal")
    values = {
        place: work.venue,
        "year": str(work.year) if work.year else None,
        "volume": work.volume,
        "pages": work.pages,
        "doi": work.doi,
    }
    fields |= {name: value for name, value in values.items() if value}
    if arxiv_id and "eprint" not in old and "eprint" not in fields:
        fields |= {"eprint": arxiv_id, "archiveprefix": "arXiv"}
    removed = tuple(name for name in (other, "journaltitle") if name in old)
    return _Changes(fields, removed, "article" if is_journal else "inproceedings")


def _turned(name: str) -> str:
    """Return a name as "Family, Given", particles with the family; one word stays in braces."""
    words = name.split()
    if len(words) == 1:
        return f"{{{name}}}"
    first = next((i for i, w in enumerate(words[1:], 1) if w.islower()), len(words) - 1)
    return f"{' '.join(words[first:])}, {' '.join(words[:first])}"


def _written(name: str, value: str, raw: str, *, ascii_only: bool) -> str:
    """Return a value as BibTeX wants it: characters escaped, capitals and page dashes kept."""
    if name in ("doi", "eprint"):
        return value
    if name == "pages":
        return (normal_pages(value) or value).replace("-", "--")
    text = _SPECIAL.sub(r"\\\1", value)
    if name == "title":
        text = " ".join(_protected(word) for word in text.split())
    return _tex(text) if ascii_only else text


def _protected(word: str) -> str:
    """Put a word with capitals inside in braces, since styles set titles in lower case."""
    return f"{{{word}}}" if re.search(r"\w[^\W\d_a-z]", word) and "{" not in word else word


def _tex(text: str) -> str:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    encoder = UnicodeToLatexEncoder(
        replacement_latex_protection="braces-all", unknown_char_policy="keep"
    )
    return "".join(char if char.isascii() else str(encoder.unicode_to_latex(char)) for char in text)


# Fields of an entry's text


@dataclass(frozen=True)
class _Field:
    """Where a field stands in an entry: its name, its value, and all of it with its comma."""

    start: int
    value: slice
    end: int


def _fields(raw: str) -> dict[str, _Field]:
    """Return where the fields of an entry are, by lower-case name; the first of each name."""
    found: dict[str, _Field] = {}
    head = re.match(r"\s*@\s*\w+\s*[{(]\s*[^,{}()]*,", raw)
    at = head.end() if head else len(raw)
    while match := re.compile(r"\s*(?:%[^\n]*\n\s*)*([\w-]+)\s*=\s*").match(raw, at):
        end = _value_end(raw, match.end())
        stop = len(raw[:end].rstrip())
        comma = re.compile(r"\s*,").match(raw, end)
        after = comma.end() if comma else end
        found.setdefault(match[1].lower(), _Field(match.start(), slice(match.end(), stop), after))
        if comma is None:
            break
        at = after
    return found


def _value_end(raw: str, at: int) -> int:
    """Return where a value ends: at the comma or bracket outside its braces and quotes."""
    depth, quoted = 0, False
    for i in range(at, len(raw)):
        char = raw[i]
        if char == "{":
            depth += 1
        elif char == "}":
            if depth == 0:
                return i
            depth -= 1
        elif char == '"' and depth == 0:
            quoted = not quoted
        elif char in ",)" and depth == 0 and not quoted:
            return i
    return len(raw)


def _with_field(raw: str, name: str, value: str) -> str:
    """Return the entry with a field set: in its place, or as the last one."""
    fields = _fields(raw)
    if name in fields:
        place = fields[name].value
        left, right = ('"', '"') if raw[place.start] == '"' and '"' not in value else ("{", "}")
        return f"{raw[: place.start]}{left}{value}{right}{raw[place.stop :]}"
    end = max((field.end for field in fields.values()), default=raw.find(",") + 1)
    if end <= 0:
        return raw
    comma = "" if raw[:end].rstrip().endswith(",") else ","
    first = min((field.start for field in fields.values()), default=end)
    lead = re.match(r"\s*", raw[first:])
    indent = lead[0] if lead and lead[0] else " "
    return f"{raw[:end]}{comma}{indent}{name} = {{{value}}}{',' if not comma else ''}{raw[end:]}"


def _without_field(raw: str, name: str) -> str:
    """Return the entry without a field."""
    field = _fields(raw).get(name)
    return raw if field is None else raw[: field.start] + raw[field.end :]
