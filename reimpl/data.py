"""Word ids on disk, read through the page cache, and the batches that training takes from them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from records.errors import ConfigError, DataError
from reimpl import corpora
from reimpl.corpora import EOS, SPLITS, Source, Split

Ids = NDArray[np.int32]
ABOUT, WORDS = "corpus.json", "vocabulary.txt"
NAMES = ("kjv", "wikitext-103")
REPORT_LINES = 100_000


@dataclass(frozen=True)
class Corpus:
    """The word ids of three splits, memory-mapped, and the words by id, the most frequent first."""

    name: str
    folder: Path
    words: tuple[str, ...]
    train: Ids
    valid: Ids
    test: Ids

    def encode(self, text: str) -> list[int]:
        """Return the ids of words parted by spaces; raises DataError for one that is not known."""
        index = {word: i for i, word in enumerate(self.words)}
        unknown = [word for word in text.split() if word not in index]
        if unknown:
            raise DataError(
                f"{unknown[0]!r} is not among the {len(self.words):,} words of {self.name}; "
                f"write {corpora.UNKNOWN} for a word that is rare"
            )
        return [index[word] for word in text.split()]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words of ``ids``, parted by spaces; ``<eos>`` ends a line."""
        return " ".join(self.words[i] for i in ids).replace(f" {EOS} ", "\n").replace(EOS, "\n")


def corpora_folder(home: Path) -> Path:
    """Return where corpora are kept: ``FWP_CORPORA``, else ``corpora`` in the workspace."""
    return Path(os.environ.get("FWP_CORPORA") or home / "corpora")


def open_corpus(name: str, root: Path) -> Corpus:
    """Return the corpus ``name`` kept below ``root``.

    The King James text is built where it is missing. Raises DataError where WikiText-103 is
    missing, saying how to get it, or files are damaged; ConfigError for an unknown name.
    """
    if name not in NAMES:
        raise ConfigError(f"unknown corpus {name!r}; known: {', '.join(NAMES)}")
    folder = root / name
    if not (folder / ABOUT).exists():
        if name != "kjv":
            raise DataError(
                f"{name} is not in {root}. Fetch it with\n"
                f"  pip install 'fwp-repro[wikitext]' && fwp corpus build {name}\n"
                f"or, where its text files are at hand,\n  fwp corpus build {name} --from FOLDER"
            )
        build(corpora.king_james(), root)
    return _load(name, folder)


def corpus_rows(root: Path) -> list[tuple[str, int, int, int, int, str]]:
    """Return a row for each corpus below ``root``: name, words of each split, types, folder."""
    found = [_load(name, root / name) for name in NAMES if (root / name / ABOUT).exists()]
    return [
        (c.name, len(c.train), len(c.valid), len(c.test), len(c.words), str(c.folder))
        for c in found
    ]


def _load(name: str, folder: Path) -> Corpus:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        words = tuple((folder / WORDS).read_text(encoding="utf-8").split("\n")[:-1])
        splits = {s: np.load(folder / f"{s}.npy", mmap_mode="r") for s in SPLITS}
        wanted = {**about["tokens"], "words": about["words"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder} is damaged ({error}); {_rebuild(name, folder)}") from error
    found = {s: len(ids) for s, ids in splits.items()} | {"words": len(words)}
    if found != wanted:
        raise DataError(f"{folder} has {found}, not {wanted}; {_rebuild(name, folder)}")
    return Corpus(name, folder, words, **splits)


def _rebuild(name: str, folder: Path) -> str:
    return f"remove the folder and build it again: rm -r {folder}; fwp corpus build {name}"


def build(source: Source, root: Path) -> Corpus:
    """Turn a source into files of word ids below ``root``, whole or not at all, and open it.

    Raises DataError where a split is empty, a word of a later split is not in the training split,
    or the counts are not those published; nothing is left then. What is there already is opened.
    """
    folder = root / source.name
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{source.name}.lock"):
            if not (folder / ABOUT).exists():
                _build_in(folder, source)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror}") from error
    return _load(source.name, folder)


def _build_in(folder: Path, source: Source) -> None:
    """Write into a folder beside and rename it."""
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    for left in (folder, partial):
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir()
    try:
        _write(source, partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(source: Source, folder: Path) -> None:
    with _meter(source.name) as advance:
        counts = {split: _count(source.lines[split], advance) for split in SPLITS}
        tokens = {split: sum(each.values()) for split, each in counts.items()}
        words = [EOS, *(word for word, _ in counts["train"].most_common() if word != EOS)]
        _check(source, tokens, len(words))
        index = {word: i for i, word in enumerate(words)}
        for split in SPLITS:
            ids = _ids(source, split, index, advance)
            _save(folder / f"{split}.npy", ids, tokens[split])
    (folder / WORDS).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    about = {
        "name": source.name,
        "read_from": dict(source.names),
        "tokens": tokens,
        "words": len(words),
        "vocabulary_sha256": hashlib.sha256("\n".join(words).encode()).hexdigest(),
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=2), encoding="utf-8")


def _count(lines: Iterable[str], advance: Callable[[], None]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
        counts[EOS] += 1
        advance()
    return counts


def _check(source: Source, tokens: Mapping[Split, int], types: int) -> None:
    for split in SPLITS:
        if not tokens[split]:
            raise DataError(f"{source.names[split]} is empty")
    if source.published is None:
        return
    for split in SPLITS:
        wanted = source.published.tokens[split]
        if tokens[split] != wanted:
            raise DataError(
                f"{source.names[split]} has {tokens[split]:,} tokens, with one {EOS} a line, and "
                f"{source.name} has {wanted:,} ({tokens[split] - wanted:+,}): the file is "
                "truncated, changed or tokenised otherwise"
            )
    if types != source.published.types:
        raise DataError(
            f"{source.names['train']} has {types:,} word types, and {source.name} has "
            f"{source.published.types:,}: it is tokenised otherwise"
        )


def _ids(
    source: Source, split: Split, index: dict[str, int], advance: Callable[[], None]
) -> Iterator[list[int]]:
    """Yield the ids of one line after the other."""
    for number, line in enumerate(source.lines[split], 1):
        try:
            yield [*(index[word] for word in line.split()), index[EOS]]
        except KeyError as error:
            raise DataError(
                f"{source.names[split]}, line {number}: the word {error.args[0]!r} is not in "
                f"{source.names['train']}"
            ) from error
        advance()


def _save(path: Path, lines: Iterable[list[int]], size: int) -> None:
    ids: Any = np.lib.format.open_memmap(path, mode="w+", dtype=np.int32, shape=(size,))
    at = 0
    for line in lines:
        ids[at : at + len(line)] = line
        at += len(line)
    ids.flush()


@contextmanager
def _meter(name: str) -> Iterator[Callable[[], None]]:
    """Show on a terminal how many lines were read; they are read twice."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(
        "[progress.description]{task.description}", "{task.completed:,} lines",
        console=Console(stderr=True),
    ) as bar:  # fmt: skip
        task = bar.add_task(f"reading {name} (twice)", total=None)
        read = count(1)

        def advance() -> None:
            if next(read) % REPORT_LINES == 0:
                bar.advance(task, REPORT_LINES)

        yield advance


@dataclass(frozen=True)
class Batch:
    """Words ``[streams, length]`` and the words after each; ``first`` begins the streams anew."""

    inputs: Ids
    targets: Ids
    first: bool


@dataclass(frozen=True)
class Streams:
    """A text cut into ``batch`` contiguous streams of equal length, read a segment at a time.

    Step s takes segment s mod ``per_epoch`` of every stream. Words that do not fill a segment are
    left out. ``rank`` of ``world`` processes takes its share of the streams, in order.
    """

    ids: Ids
    batch: int
    length: int
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        """Raise ConfigError where the text is too short, or streams cannot be shared out."""
        if self.batch % self.world:
            raise ConfigError(
                f"{self.batch} streams cannot be shared among {self.world} processes evenly"
            )
        if self.per_epoch < 1:
            raise ConfigError(
                f"a text of {len(self.ids):,} words has no segment of {self.length} in "
                f"{self.batch} streams; lower the batch or take a longer text"
            )

    @property
    def per_epoch(self) -> int:
        """Steps until the text has been read."""
        return (len(self.ids) // self.batch - 1) // self.length

    def at(self, step: int) -> Batch:
        """Return the batch of a step from 0 on."""
        each, share = len(self.ids) // self.batch, self.batch // self.world
        segment = step % self.per_epoch
        starts = np.arange(self.rank * share, (self.rank + 1) * share) * each
        places = starts[:, None] + np.arange(self.length + 1) + segment * self.length
        words = self.ids[places]
        return Batch(words[:, :-1], words[:, 1:], segment == 0)
