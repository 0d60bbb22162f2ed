"""What a user can name to be verified: a paper of the store, a file, or an identifier."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from provenance.works import Reference
from records.errors import UnknownPaper

SUFFIXES = (".bib", ".bbl", ".json", ".md", ".txt")
_ARXIV = re.compile(
    r"^(?:arxiv:|https?://(?:export\.)?arxiv\.org/(?:abs|pdf|html)/)?"
    r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v(?P<version>\d+))?(?:\.pdf)?$",
    re.IGNORECASE,
)
_DOI = re.compile(r"^(?:doi:|https?://(?:dx\.)?doi\.org/)?(?P<doi>10\.\d{4,9}/\S+)$", re.IGNORECASE)


@dataclass(frozen=True)
class Targets:
    """What was named, sorted: papers of the store, bibliographies, and other identifiers."""

    papers: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    identifiers: tuple[Reference, ...] = ()


def sort_targets(names: Sequence[str], known: Container[str]) -> Targets:
    """Sort what a user has named.

    Args:
        names: paper ids of the store, bibliographies, arXiv identifiers or DOIs.
        known: the paper ids of the store.

    Raises:
        UnknownPaper: a name is none of these; says what it could be.
    """
    papers: list[str] = []
    files: list[Path] = []
    identifiers: list[Reference] = []
    for name in dict.fromkeys(name.strip() for name in names):
        reference = identifier(name)
        if name in known:
            papers.append(name)
        elif reference is not None and reference.arxiv_id in known:
            papers.append(str(reference.arxiv_id))
        elif Path(name).suffix.lower() in SUFFIXES or Path(name).is_file():
            files.append(Path(name))
        elif reference is not None:
            identifiers.append(reference.model_copy(update={"position": len(identifiers) + 1}))
        else:
            raise UnknownPaper(
                f"{name!r} is no paper of the store, no bibliography ({', '.join(SUFFIXES)}), no "
                'arXiv identifier and no DOI. The papers: fwp query "SELECT paper_id, title FROM '
                'papers"; add one with: fwp import FOLDER'
            )
    return Targets(tuple(papers), tuple(files), tuple(identifiers))


def identifier(text: str) -> Reference | None:
    """Return a reference that consists of an arXiv identifier or a DOI; None for another text."""
    if match := _ARXIV.match(text):
        version = match["version"]
        return Reference(
            key=text,
            position=1,
            format="plain",
            raw=text,
            arxiv_id=match["id"],
            arxiv_version=int(version) if version else None,
        )
    if match := _DOI.match(text):
        return Reference(key=text, position=1, format="plain", raw=text, doi=match["doi"].lower())
    return None
