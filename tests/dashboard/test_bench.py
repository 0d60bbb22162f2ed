"""The measurement of the dashboard, over the store that ships."""

from __future__ import annotations

import os

import pytest

from dashboard import bench, browser
from dashboard.titles import PAGES
from records.errors import ConfigError
from records.workspace import Workspace


def test_a_store_is_filled_up_to_the_wanted_numbers(fresh: Workspace) -> None:
    size = bench.Size(papers=65, claims=560, runs=4, metrics=500)
    bench.fill(fresh, size)
    held = fresh.query(
        "SELECT (SELECT count(*) FROM papers), (SELECT count(*) FROM claims), "
        "(SELECT count(*) FROM runs), (SELECT count(*) FROM metrics)"
    ).rows[0]
    assert held == (65, 560, 4, 500)
    measured = fresh.query("SELECT count(*) FROM verdicts WHERE measured IS NOT NULL").rows[0]
    assert measured == (4,)


def test_a_table_says_medians_and_what_was_wanted() -> None:
    timing = bench.Timing("page Runs", (0.2, 0.1, 0.6), 1.5)
    found = bench.Measured({"runs": 1_000}, 2.0, (timing,), 123.4, ("Runs",))
    text = found.text()
    assert "200 ms  (100 to 600, n = 3; wanted below 1500)" in text
    assert "123 MB" in text
    assert "error on the page: Runs" in text
    assert found.json()["timings"][0]["median_seconds"] == 0.2


def test_memory_of_a_process_that_is_not_there_is_unknown() -> None:
    assert bench.peak_megabytes(2**22 + 1) is None


def test_without_a_browser_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("FWP_BROWSER", raising=False)
    with (
        pytest.raises(ConfigError, match=r"is not installed|none of chromium"),
        browser.started(),
    ):
        pass


@pytest.mark.browser
def test_every_page_and_filter_is_timed() -> None:
    size = bench.Size(papers=62, claims=550, runs=1, metrics=1)
    try:
        found = bench.measure(size, 1, lambda _line: None)
    except ConfigError as error:
        if os.environ.get("FWP_REQUIRE_BROWSER") == "1":
            raise
        pytest.skip(str(error))
    pages = [f"page {title}" for _, title in PAGES]
    assert [t.what for t in found.timings] == [*pages, "filter on Claims", "filter on Runs"]
    assert all(0 < t.median < 60 for t in found.timings)
    assert found.errors == ()
