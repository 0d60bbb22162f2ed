from __future__ import annotations

import pytest

from provenance.names import compare_authors, compare_names, share_an_author, split_authors

PAPER = ["Imanol Schlag", "Kazuki Irie", "Jürgen Schmidhuber"]


@pytest.mark.parametrize(
    "text",
    [
        "Imanol Schlag; Kazuki Irie; Jürgen Schmidhuber",
        "Schlag, Imanol and Irie, Kazuki and Schmidhuber, Jürgen",
        "Imanol Schlag, Kazuki Irie, and Jürgen Schmidhuber",
        "Imanol Schlag, Kazuki Irie and Jürgen Schmidhuber",
        "I. Schlag, K. Irie, J. Schmidhuber",
        "Schlag, I., Irie, K., & Schmidhuber, J.",
        "Schlag, I., Irie, K., and Schmidhuber, J.",
        "Imanol Schlag, Kazuki Irie & Jürgen Schmidhuber",
        "Schlag, Irie, and Schmidhuber",
        "Schlag, Imanol, Kazuki Irie, and Jürgen Schmidhuber",
        "Imanol Schlag | Kazuki Irie | Jürgen Schmidhuber",
        "Imanol Schlag\nKazuki Irie\nJürgen Schmidhuber",
        r"Schlag, Imanol and Irie, Kazuki and Schmidhuber, J{\"u}rgen",
        r"Imanol Schlag and Kazuki Irie and J\"urgen Schmidhuber",
        "Imanol Schlag, Kazuki Irie, Juergen Schmidhuber",
        "Imanol Schlag, Kazuki Irie, Jurgen Schmidhuber",
        "Imanol Schlag et al.",
        "Schlag, Imanol and others",
        "Schlag I, Irie K, Schmidhuber J",
    ],
)
def test_every_way_to_write_the_authors_is_the_same(text: str) -> None:
    assert compare_authors(text, PAPER) == "same"


@pytest.mark.parametrize(
    "text",
    [
        "Kazuki Irie; Imanol Schlag; Jürgen Schmidhuber",
        "Imanol Schlag; Kazuki Irie",
        "Imanol Schlag and Kazuki Irie",
        "Kazuki Irie, Imanol Schlag and Jürgen Schmidhuber",
        "Imanol Schlag; Kazuki Irie; Jürgen Schmidhuber; Somebody Else",
        "Yang et al.",
    ],
)
def test_another_order_number_or_family_is_different(text: str) -> None:
    assert compare_authors(text, PAPER) == "different"


@pytest.mark.parametrize(
    "text", ["Irie K, Schlag I, Schmidhuber J", "Irie, Schlag, Schmidhuber", "Yang, S., Wang, B."]
)
def test_a_list_that_can_be_read_in_several_ways_is_never_called_different(text: str) -> None:
    assert compare_authors(text, PAPER) == "unclear"


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("Krzysztof Marcin Choromanski", "Krzysztof Choromanski", "same"),
        ("Michael Smith", "J. Michael Smith", "same"),
        ("Tamás Sarlós", "Tamas Sarlos", "same"),
        ("YW Teh", "Yee Whye Teh", "same"),
        ("Aäron van den Oord", "A. Oord", "same"),
        ("Wei Wang 0001", "Wei Wang", "same"),
        ("Martin Luther King Jr.", "King, Martin Luther", "same"),
        (r"Bernhard Sch{\"o}lkopf", "Bernhard Schölkopf", "same"),
        ("Robert Tibshirani", "Bob Tibshirani", "unclear"),
        ("Jürgen Schmidhuber", "Joan Schmidhuber", "unclear"),
        ("Jürgen Schmidhuber", "Kazuki Irie", "different"),
    ],
)
def test_only_another_family_name_makes_another_person(one: str, other: str, found: str) -> None:
    assert compare_names(one, other) == found
    assert compare_names(other, one) == found


def test_an_author_list_is_cut_short_by_et_al() -> None:
    assert split_authors("A. One, B. Two, et al.") == (["A. One", "B. Two"], True)
    assert split_authors("Lovelace, Ada") == (["Lovelace, Ada"], False)
    assert split_authors("Hejna, III, Donald Joseph and Doe, Jane")[0] == [
        "Hejna, Donald Joseph",
        "Doe, Jane",
    ]


def test_a_corporate_author_is_one_name() -> None:
    assert split_authors("Kimi Team") == (["Kimi Team"], False)


def test_lists_share_an_author_by_more_than_the_family_name() -> None:
    assert share_an_author(["J. Schmidhuber"], PAPER)
    assert not share_an_author(["Yoshua Bengio"], PAPER)
    assert not share_an_author(["Songlin Yang"], ["Liu Yang"])
