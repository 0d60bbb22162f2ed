from __future__ import annotations

from datetime import date

import pytest

from provenance.sources.arxiv import Version, parse_versions


def test_versions_come_in_order_with_what_was_read_of_them() -> None:
    # the history of arXiv 2102.11174: the title of v2 is not on record
    facts = {
        "versions": [
            {"version": 3, "posted": "2021-06-09", "title": "Now"},
            {"version": 1, "posted": "2021-02-22", "title": "Then"},
            {"version": 2, "posted": "23 Feb 2021"},
        ]
    }
    assert parse_versions(facts) == [
        Version(1, date(2021, 2, 22), "Then"),
        Version(2, None, None),
        Version(3, date(2021, 6, 9), "Now"),
    ]


def test_a_paper_without_a_history_has_no_versions() -> None:
    assert parse_versions({}) == []


@pytest.mark.parametrize("entry", ["v1", {}, {"version": "1"}, None])
def test_a_version_in_another_form_is_refused(entry: object) -> None:
    with pytest.raises(ValueError, match="a version is a table with a number"):
        parse_versions({"versions": [entry]})
