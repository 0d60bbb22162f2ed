from __future__ import annotations

import pytest

from provenance.match import Venue
from provenance.sources.pmlr import parse_volume_header


def test_the_header_of_v139_says_icml_2021() -> None:
    text = "Volume 139: International Conference on Machine Learning, 18-24 July 2021, Virtual"
    header = parse_volume_header(text)
    assert header is not None
    assert (header.volume, header.venue) == ("139", Venue("icml", 2021))
    assert (header.dates, header.place) == ("18-24 July 2021", "Virtual")


def test_a_header_without_a_place_is_read() -> None:
    # as the record transcribed it on 2026-10-04
    text = "Volume 139: International Conference on Machine Learning, 18-24 July 2021"
    header = parse_volume_header(text)
    assert header is not None
    assert header.venue == Venue("icml", 2021)


def test_a_name_with_commas_is_not_cut() -> None:
    text = (
        "Volume 81: Conference on Fairness, Accountability and Transparency, "
        "23-24 February 2018, New York, NY, USA"
    )
    header = parse_volume_header(text)
    assert header is not None
    assert header.conference == "Conference on Fairness, Accountability and Transparency"
    assert header.venue is None


def test_a_span_of_two_months_keeps_the_year() -> None:
    # PMLR's template prints the month of the first day only: "29-3 October 2020"
    header = parse_volume_header("Volume 1: ICML, 29-3 October 2020, X")
    assert header is not None
    assert header.year == 2020


def test_a_reissue_has_its_letter() -> None:
    header = parse_volume_header("Volume R3: AISTATS, 4-7 January 2001, Key West")
    assert header is not None
    assert header.volume == "R3"


@pytest.mark.parametrize("text", ["", "Volume 139", "Proceedings of ICML 2021", "Volume x: y, z"])
def test_anything_else_is_not_a_header(text: str) -> None:
    assert parse_volume_header(text) is None


def test_non_breaking_spaces_are_spaces() -> None:
    header = parse_volume_header("Volume\xa0139: ICML,\xa018-24 July 2021")
    assert header is not None
    assert header.volume == "139"
