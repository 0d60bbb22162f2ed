from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.match import (
    Month,
    Venue,
    arxiv_month,
    nearest_title,
    normal_pages,
    ordinals,
    parse_venue,
    same_title,
    series_mentioned,
    stated_year,
    venue_series,
    volume_number,
)


@pytest.mark.parametrize(
    "other",
    [
        "Linear transformers are secretly fast weight programmers.",
        "LINEAR TRANSFORMERS ARE SECRETLY FAST-WEIGHT PROGRAMMERS",
        "Linear  Transformers\nAre Secretly Fast Weight Programmers",
    ],
)
def test_case_punctuation_and_spacing_do_not_make_another_title(other: str) -> None:
    assert same_title("Linear Transformers Are Secretly Fast Weight Programmers", other)


@pytest.mark.parametrize(
    "other",
    [
        "Linear Transformers Are Secretly Fast Weight Memory Systems",  # the title of arXiv v1
        "Linear Transformers Are Secretly Fast Weight Programmers in PyTorch",
        "Learning Associative Inference Using Fast Weight Memory",  # Schlag's ICLR 2021 paper
    ],
)
def test_other_words_make_another_title(other: str) -> None:
    assert not same_title("Linear Transformers Are Secretly Fast Weight Programmers", other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("β-VAE", r"$\beta$-VAE", True),
        ("Learning C++", "Learning C#", False),
        ("???", "!!", False),
        ("Café", "Cafe", True),
    ],
)
def test_symbols_count_where_they_carry_meaning(one: str, other: str, same: bool) -> None:
    assert same_title(one, other) is same


@pytest.mark.parametrize(
    ("volume", "number"),
    [("PMLR 139", "139"), ("139", "139"), ("v139", "139"), ("PMLR v139", "139"),
     ("Proceedings of Machine Learning Research 139", "139"), ("PMLR 139:9355-9366", "139"),
     ("volume 139 of Proceedings of Machine Learning Research", "139"), ("PMLR-139", "139"),
     ("pmlr r3", "R3"), ("volumes 138 and 139", None), ("vol. 139", "139"),
     ("PMLR, volume R3", "R3"), ("Neurocomputing 568", None)],
)  # fmt: skip
def test_a_volume_has_one_number_however_it_is_written(volume: str, number: str | None) -> None:
    assert volume_number(volume) == number


@given(st.text())
def test_a_title_is_the_same_as_itself(title: str) -> None:
    assert same_title(title, title)


def test_the_nearest_title_is_found_with_its_similarity() -> None:
    found = nearest_title("Fast Weight Programmers", ["Slow", "Fast Weight Memory", "Fast"])
    assert found is not None
    assert found[0] == "Fast Weight Memory"
    assert 0.5 < found[1] < 1


def test_no_titles_have_no_nearest() -> None:
    assert nearest_title("x", []) is None


@pytest.mark.parametrize(
    ("arxiv_id", "month"),
    [
        ("2102.11174", Month(2021, 2)),
        ("2102.11174v3", Month(2021, 2)),
        ("0704.0001", Month(2007, 4)),
        ("hep-th/9901001", Month(1999, 1)),
        ("math.GT/0309136", Month(2003, 9)),
        ("2113.00001", None),
        ("10.5555/3295222", None),
        ("", None),
    ],
)
def test_an_arxiv_identifier_tells_its_month(arxiv_id: str, month: Month | None) -> None:
    assert arxiv_month(arxiv_id) == month


def test_december_is_followed_by_january() -> None:
    assert Month(2024, 12).following() == Month(2025, 1)


@pytest.mark.parametrize(
    "pages",
    [
        "pp. 9355-66",
        "pages 9355–9366",
        "9355--9366",
        "9355-9366",
        "9355–9366",
        "9355– 9366",
        "9355 to 9366.",
        "{9355--9366}",
        "PMLR 139:9355-9366",
        " 9355 - 9366 ",
    ],
)
def test_page_ranges_have_one_form(pages: str) -> None:
    assert normal_pages(pages) == "9355-9366"


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("ICML", "icml"),
        ("Proceedings of the 38th International Conference on Machine Learning", "icml"),
        ("International Conference on Learning Representations", "iclr"),
        ("International Conference on Machine Learning and Applications", None),
        ("Asian Conference on Machine Learning", "acml"),
        ("Proceedings of Machine Learning Research", None),
        ("CoRR", None),
    ],
)
def test_a_conference_is_recognised_by_its_whole_name(name: str, series: str | None) -> None:
    assert venue_series(name) == series


@pytest.mark.parametrize(
    ("text", "venue"),
    [
        ("icml 2021", Venue("icml", 2021)),
        ("NeurIPS, 2021", Venue("nips", 2021)),
        ("arXiv 2021", None),
        ("Proceedings of the 35th International Conference on Machine Learning 2021", None),
        ("icml", None),
        ("2021", None),
    ],
)
def test_a_venue_is_a_known_series_and_a_year(text: str, venue: Venue | None) -> None:
    assert parse_venue(text) == venue


def test_series_are_found_in_a_sentence_as_whole_words() -> None:
    # the record's sentence about PMLR v130; "oracle" holds "acl" and names no conference
    assert series_mentioned("the 35th ICLR-adjacent AISTATS volume") == ["iclr", "aistats"]
    assert series_mentioned("an oracle") == []


def test_ordinals_are_read() -> None:
    assert ordinals("the 35th and the 2nd, not 24 nor x3rd") == [35, 2]


@pytest.mark.parametrize(
    ("text", "year"),
    [("2021a", "2021"), ("{2021}", "2021"), ("July 2021", "2021"), ("2021-07-18", "2021"),
     ("2020 or 2021", None), ("soon", None), ("120213", None)],
)  # fmt: skip
def test_a_year_is_read_where_there_is_one(text: str, year: str | None) -> None:
    assert stated_year(text) == year
