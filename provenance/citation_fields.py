"""Where and when a cited work appeared, held against what sources say of it; all pure.

Venue, year, pages and volume. The owner of the proceedings, DBLP and the publisher decide; what
only a catalogue says is not enough to call a citation wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provenance.identity import posted_year
from provenance.match import fold, normal_pages, series_mentioned, series_names, volume_number
from provenance.works import CitationFinding, Reference, Work
from records.models import Severity

_SERIES_OF_VOLUMES = re.compile(r"\bPMLR\b|proceedings of machine learning research", re.IGNORECASE)
_WORKSHOP = re.compile(r"workshop|\bws\b|symposium on.*@", re.IGNORECASE)
_REPORT = re.compile(r"technical report|tech\.? rep|manuscript|thesis|blog", re.IGNORECASE)
PUBLISHED = ("proceedings", "journal")
"""Kinds of works that are publications."""

_DECISIVE = ("proceedings", "dblp", "crossref")
TRUSTED = ("proceedings", "dblp", "arxiv", "authors", "crossref")
"""Authorities of which any that agrees with a citation keeps it from being called wrong."""


def finding(
    field: str,
    severity: Severity | None,
    reason: str,
    cited: object = None,
    source: Work | None = None,
    found: object = None,
) -> CitationFinding:
    """Return a finding; without a severity the field is confirmed."""
    return CitationFinding(
        field=field,
        outcome="contradicted" if severity else "confirmed",
        severity=severity,
        cited=None if cited is None else str(cited),
        found=None if found is None else str(found),
        source=source.source if source else None,
        reason=reason,
        evidence_ids=(source.evidence_id,) if source else (),
    )


def _unknown(reason: str, cited: str, work: Work, found: str | None = None) -> CitationFinding:
    """Return that a source leaves open whether a venue is right."""
    return CitationFinding(
        field="venue", outcome="unavailable", cited=cited, found=found, reason=reason,
        source=work.source, evidence_ids=(work.evidence_id,),
    )  # fmt: skip


def of_venue(
    reference: Reference, works: Sequence[Work], published: Sequence[Work]
) -> Iterator[CitationFinding]:
    certain = [w for w in published if _knows_venue(w)]
    if reference.venue is None:
        yield from _no_venue(reference, certain)
        return
    cited = reference.venue
    if not published:
        yield _no_publication(reference, works)
        return
    agreeing = next((w for w in certain or published if _same_venue(reference, w)), None)
    if agreeing is not None:
        yield finding("venue", None, f"{agreeing.source} has it", cited, agreeing, agreeing.venue)
        if agreeing.kind == "proceedings" and _is_in_journal_field(reference):
            reason = "a conference stands in the journal field of an @article"
            yield finding("entry_type", "style", reason, "article", agreeing, "inproceedings")
        return
    work = certain[0] if certain else published[0]
    if _WORKSHOP.search(cited):
        reason = "a workshop is cited, and only the later publication was found"
        yield _unknown(reason, cited, work, _where(work))
    elif _may_be_acronym_of_other(cited, work):
        reason = "whether one venue's name stands for the other is not known"
        yield _unknown(reason, cited, work, _where(work))
    elif not certain:
        reason = f"{work.source} names another venue, and is not reliable in that"
        yield _unknown(reason, cited, work, _where(work))
    elif _REPORT.search(cited):
        reason = "cited as a report, and published since"
        yield finding("venue", "outdated", reason, cited, work, _where(work))
    else:
        yield finding("venue", "wrong", "published elsewhere", cited, work, _where(work))


def _knows_venue(work: Work) -> bool:
    """Tell whether a source is reliable in where a work appeared.

    Catalogues are so only with DBLP's key, or for journals.
    """
    return work.authority in TRUSTED or work.dblp_key is not None or work.kind == "journal"


def _is_in_journal_field(reference: Reference) -> bool:
    named = reference.entry_type == "article" and "journal" in reference.fields
    return named and not _SERIES_OF_VOLUMES.search(reference.venue or "")


def _no_venue(reference: Reference, certain: Sequence[Work]) -> Iterator[CitationFinding]:
    """Judge a reference without venue: a preprint that has been published, or a gap."""
    if not certain or reference.title is None:
        return
    work = certain[0]
    if reference.arxiv_id or _cites_preprint(reference):
        reason = "cited as a preprint, and published since"
        yield finding("venue", "outdated", reason, "preprint", work, _where(work))
    elif not (reference.url or reference.doi or reference.openreview_id):
        reason = "no venue is given, and the work has been published"
        yield finding("venue", "incomplete", reason, None, work, _where(work))


def _cites_preprint(reference: Reference) -> bool:
    place = " ".join(
        [reference.fields.get("journal", ""), reference.fields.get("howpublished", "")]
    )
    return bool(
        re.search(r"arxiv|preprint|corr\b", f"{place} {reference.url or ''}", re.IGNORECASE)
    )


def _no_publication(reference: Reference, works: Sequence[Work]) -> CitationFinding:
    """Judge a venue of a work that no source knows to be published there: it is no proof.

    What is known to have appeared at a workshop has not appeared at the conference beside it.
    """
    cited = reference.venue or ""
    workshop = next((w for w in works if w.kind == "workshop" and w.authority in _DECISIVE), None)
    if workshop is None:
        return _unknown(f"{works[0].source} has the work and no publication of it", cited, works[0])
    if _WORKSHOP.search(cited):
        reason = f"{workshop.source} has it at a workshop"
        return finding("venue", None, reason, cited, workshop, workshop.venue)
    reason = "it appeared at a workshop, not at the conference itself"
    return finding("venue", "wrong", reason, cited, workshop, _where(workshop))


def _where(work: Work) -> str:
    return f"{work.venue or work.series} {work.year or ''}".strip()


def _same_venue(reference: Reference, work: Work) -> bool:
    """Tell whether the cited venue can be that of a work, in the words of either."""
    cited = reference.venue or ""
    if _WORKSHOP.search(cited) and work.kind != "workshop":
        return False
    if _SERIES_OF_VOLUMES.search(cited):
        volume, own = volume_number(reference.volume or ""), volume_number(work.volume or "")
        return volume is None or own is None or volume == own
    named = series_mentioned(cited)
    if work.series and named:
        return work.series in named
    names = [work.venue or "", *(series_names(work.series) if work.series else ())]
    return any(_alike(cited, name) for name in names)


def _may_be_acronym_of_other(cited: str, work: Work) -> bool:
    """Tell whether one of two venues that are not known by name is an acronym, the other not."""
    if work.series or series_mentioned(cited):
        return False
    lengths = [len(_words(cited)), len(_words(work.venue or ""))]
    return 1 in lengths and max(lengths) > 1


def _alike(one: str, other: str) -> bool:
    """Tell whether two names of a journal or conference can be of one, words being shortened."""
    ours, theirs = _words(one), _words(other)
    if not ours or not theirs:
        return False
    short, long = sorted((ours, theirs), key=len)
    if len(short) == 1 and len(long) > 2 and short[0] == "".join(word[0] for word in long):
        return True
    rest = iter(long)
    return all(any(_stands_for(word, whole) for whole in rest) for word in short)


def _words(name: str) -> list[str]:
    bare = re.sub(r"\([^()]*\)|\b(?:19|20)\d\d\b|\b\d+(?:st|nd|rd|th)\b", " ", name)
    small = {"of", "the", "on", "in", "and", "for", "proceedings", "proc", "annual", "a"}
    return [word for word in fold(bare).split() if word not in small and not word.isdigit()]


def _stands_for(word: str, whole: str) -> bool:
    return whole.startswith(word) or word.startswith(whole)


def of_year(
    reference: Reference, works: Sequence[Work], published: Sequence[Work]
) -> Iterator[CitationFinding]:
    """Hold the year against that of what is cited: the publication, or any time of the preprint."""
    if reference.year is None:
        return
    decisive = [w for w in published if w.year and w.authority in _DECISIVE]
    others = [w for w in published if w.year and w.authority != "semantic_scholar"]
    final = {w.year: w for w in reversed(decisive or others) if w.year}
    preprints = [w for w in works if w.kind == "preprint" and w.year]
    first = [w.year for w in preprints if w.year]
    if (posted := posted_year(next((w.arxiv_id for w in works if w.arxiv_id), None))) is not None:
        first.append(posted)
    if reference.year in final:
        work = final[reference.year]
        yield finding("year", None, f"{work.source} has it", reference.year, work, work.year)
    elif reference.venue is not None and final and _names_published(reference, published):
        work = final[max(final)] if len(final) == 1 else next(iter(reversed(final.values())))
        hint = "; that is the preprint's year" if reference.year in first else ""
        reason = f"{_where(work)}{hint}"
        yield finding("year", "wrong", reason, reference.year, work, work.year)
    elif first or final:
        yield from _preprint_year(reference, works, sorted({*first, *final}))


def _names_published(reference: Reference, published: Sequence[Work]) -> bool:
    return any(_same_venue(reference, work) for work in published)


def _preprint_year(
    reference: Reference, works: Sequence[Work], known: Sequence[int]
) -> Iterator[CitationFinding]:
    """Judge a year that need not be that of the publication.

    From the first posting to the publication any year can be meant, and up to the present version
    of the preprint where it is cited as one; for a preprint whose present version is not known, a
    later year is left open.
    """
    assert reference.year is not None
    work = works[0]
    ends = [w.last_year for w in works if w.last_year]
    published = any(w.kind in PUBLISHED for w in works)
    last = max([*known, *(ends if reference.arxiv_id or not published else ())])
    if known[0] <= reference.year <= last:
        yield finding("year", None, f"{work.source} has it", reference.year, work)
    elif reference.year < known[0] or published or ends:
        found = f"{known[0]}-{last}" if last > known[0] else known[0]
        reason = f"the work is of {found}"
        yield finding("year", "wrong", reason, reference.year, work, known[-1])


def of_pages(reference: Reference, published: Sequence[Work]) -> Iterator[CitationFinding]:
    cited = normal_pages(reference.pages or "")
    known = [(w, normal_pages(w.pages or "")) for w in published if w.pages]
    if cited is None or not known or not _names_published(reference, published):
        return
    for work, pages in known:
        if pages == cited or (pages or "").split("-")[0] == cited:
            yield finding(
                "pages", None, f"{work.source} has them", reference.pages, work, work.pages
            )
            return
    reliable = [w for w, p in known if p and "-" in p and w.authority in _DECISIVE]
    if reliable and "-" in cited:
        work = reliable[0]
        reason = f"{work.source} has other pages"
        yield finding("pages", "wrong", reason, reference.pages, work, work.pages)


def of_volume(reference: Reference, published: Sequence[Work]) -> Iterator[CitationFinding]:
    cited = re.sub(r"\D", "", reference.volume or "")
    known = [(w, re.sub(r"\D", "", w.volume or "")) for w in published if w.volume]
    if not cited or not known or not _names_published(reference, published):
        return
    for work, volume in known:
        if volume == cited:
            yield finding(
                "volume", None, f"{work.source} has it", reference.volume, work, work.volume
            )
            return
    reliable = [w for w, v in known if v and w.authority in _DECISIVE]
    if reliable:
        work = reliable[0]
        reason = f"{work.source} has another volume"
        yield finding("volume", "wrong", reason, reference.volume, work, work.volume)
