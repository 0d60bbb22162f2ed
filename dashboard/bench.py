"""``fwp bench dashboard``: how fast the pages are in a browser, over a large store.

The store is the one that ships, filled up with made papers, claims, runs and points of curves. A
page is ready when its heading stands there and its script has come to rest, by the browser's clock
from the start of the navigation; a filter is applied when the count of what is left has changed.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from dashboard import browser, launch
from dashboard.titles import PAGES
from records.models import Claim, Evidence, Metric, Paper, Record, Run
from records.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass(frozen=True)
class Size:
    """How much the measured store holds; the store that ships is no smaller than ``SMALL``."""

    papers: int = 100
    claims: int = 1_000
    runs: int = 1_000
    metrics: int = 1_000_000


SMALL = Size(papers=70, claims=600, runs=650, metrics=50_000)


@dataclass(frozen=True)
class Timing:
    """Seconds that one thing took, each time."""

    what: str
    seconds: tuple[float, ...]
    wanted: float

    @property
    def median(self) -> float:
        """The median of them."""
        return median(self.seconds)


@dataclass(frozen=True)
class Measured:
    """All that was measured; ``megabytes`` is the peak of the server, None where it is unknown."""

    held: dict[str, int]
    built: float
    timings: tuple[Timing, ...]
    megabytes: float | None
    errors: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return it for a JSON document."""
        return {
            "store": self.held,
            "index_built_seconds": round(self.built, 2),
            "timings": [
                {
                    "what": t.what,
                    "median_seconds": round(t.median, 3),
                    "seconds": [round(s, 3) for s in t.seconds],
                    "wanted_seconds": t.wanted,
                }
                for t in self.timings
            ],
            "server_peak_megabytes": self.megabytes,
            "pages_with_errors": list(self.errors),
        }

    def text(self) -> str:
        """Return it as a table."""
        held = ", ".join(f"{number:,} {name}" for name, number in self.held.items())
        lines = [f"{held}; index built in {self.built:.1f} s", ""]
        for t in self.timings:
            low, high = min(t.seconds), max(t.seconds)
            lines.append(
                f"{t.what:<28} {t.median * 1e3:7.0f} ms  ({low * 1e3:.0f} to {high * 1e3:.0f}, "
                f"n = {len(t.seconds)}; wanted below {t.wanted * 1e3:.0f})"
            )
        peak = "unknown here" if self.megabytes is None else f"{self.megabytes:.0f} MB"
        lines += [f"{'peak memory of the server':<28} {peak:>10}  (wanted below 500 MB)"]
        return "\n".join([*lines, *(f"error on the page: {name}" for name in self.errors)])


def measure(size: Size, repeats: int, say: Callable[[str], None]) -> Measured:
    """Fill a store, serve it, and time every page and the filters.

    Raises:
        ConfigError: there is no browser, or the server does not start.
    """
    with tempfile.TemporaryDirectory() as folder, browser.started() as opened:
        workspace = open_workspace(Path(folder) / "ws")
        paper = _fullest(workspace)
        say("Filling a store ...")
        fill(workspace, size)
        began = time.perf_counter()
        held = _held(workspace)
        built = time.perf_counter() - began
        port = launch.free_port("localhost", 0)
        address = f"http://localhost:{port}"
        with launch.serving(workspace.home, "localhost", port) as server:
            launch.wait_until_ready(server, address)
            context = opened.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.set_default_timeout(60_000)
            pages = _addresses(address, paper)
            failed = list(_warm(page, pages))
            timings = [*_pages(page, pages, repeats, say), *_filters(page, pages, repeats, say)]
            return Measured(held, built, tuple(timings), peak_megabytes(server.pid), tuple(failed))


def fill(workspace: Workspace, size: Size) -> None:
    """Add made papers, claims, runs and points until the store holds as much as ``size`` says."""
    held = _held(workspace)
    workspace.append("import/made", list(_made_records(size, held)))
    runs, points = size.runs - held["runs"], size.metrics - held["metrics"]
    each = max(1, math.ceil(points / max(1, runs)))
    for number in range(runs):
        workspace.append(f"run/made-{number}", [_made_run(number, min(each, points))])
        points -= min(each, points)


def _fullest(workspace: Workspace) -> str:
    """Return the paper with the most claims."""
    sql = "SELECT paper_id FROM claims GROUP BY paper_id ORDER BY count(*) DESC LIMIT 1"
    return str(workspace.query(sql).rows[0][0])


def _held(workspace: Workspace) -> dict[str, int]:
    names = ("papers", "claims", "runs", "metrics")
    counts = ", ".join(f"(SELECT count(*) FROM {name})" for name in names)
    return dict(zip(names, workspace.query(f"SELECT {counts}").rows[0], strict=True))


def _made_records(size: Size, held: dict[str, int]) -> Iterator[Record]:
    yield Evidence(
        evidence_id="made", source="made for a measurement", authority="note",
        grade="transcribed", kind="note",
    )  # fmt: skip
    for number in range(size.papers - held["papers"]):
        yield Paper(paper_id=f"made-{number}", title=f"Made paper {number}", evidence_id="made")
    for number in range(size.claims - held["claims"]):
        yield Claim(
            claim_id=f"made-0/claim-{number}", paper_id="made-0", kind="synthetic",
            locator=f"Sec. {number % 7}", statement=f"The made loss {number} is small",
            metric="loss", claimed=float(number), conditions={"number": number},
            experiment="made", evidence_id="made",
        )  # fmt: skip


def _made_run(number: int, points: int) -> Run:
    started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    curve = [Metric(name="loss", value=1.0 / step, step=step) for step in range(1, points)]
    return Run(
        run_id=f"made-{number:06}", experiment="made", config={"number": number}, seed=number,
        code_version="made", environment={"device": "none"}, started=started,
        finished=started + timedelta(minutes=1),
        metrics=(Metric(name="loss", value=number, claim_id=f"made-0/claim-{number}"), *curve),
    )  # fmt: skip


def _addresses(address: str, paper: str) -> dict[str, str]:
    """Return the address of every page, by its title."""
    chosen = f"?paper={paper}&record={paper}"
    return {
        title: f"{address}/{'' if name == 'overview' else name}{chosen}" for name, title in PAGES
    }


def _warm(page: Page, pages: dict[str, str]) -> Iterator[str]:
    """Open every page once; yield the titles of those that show an error."""
    for title, at in pages.items():
        browser.visit(page, at, title)
        if page.locator(browser.ERRORS).count():
            yield title


def _pages(
    page: Page, pages: dict[str, str], repeats: int, say: Callable[[str], None]
) -> Iterator[Timing]:
    for title, at in pages.items():
        say(f"Opening {title} {repeats} times ...")
        seconds = [browser.visit(page, at, title) for _ in range(repeats)]
        yield Timing(f"page {title}", tuple(seconds), 1.5)


def _filters(
    page: Page, pages: dict[str, str], repeats: int, say: Callable[[str], None]
) -> Iterator[Timing]:
    """Time a filter of the Claims and of the Runs page: from the click to the new count."""
    for title, option, noun in (("Claims", "synthetic", "claims"), ("Runs", "capacity", "runs")):
        say(f"Filtering {title} {repeats} times ...")
        browser.visit(page, pages[title], title)
        count = page.get_by_text(f" {noun}", exact=False).filter(has_text=" of ").first
        seconds = []
        for _ in range(repeats):
            before = count.inner_text()
            began = time.perf_counter()
            page.get_by_role("button", name=option, exact=True).first.click()
            page.wait_for_function(
                "([old, noun]) => [...document.querySelectorAll('[data-testid=stText]')]"
                ".some(e => e.innerText.includes(' of ') && e.innerText.includes(noun)"
                " && e.innerText !== old)",
                arg=[before, noun],
                polling=10,
            )
            seconds.append(time.perf_counter() - began)
            browser.settle(page)
        yield Timing(f"filter on {title}", tuple(seconds), 0.3)


def peak_megabytes(pid: int) -> float | None:
    """Return the most memory that a process has held, in MB of 10⁶ bytes; None off Linux."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    peak = next((line for line in lines.splitlines() if line.startswith("VmHWM:")), None)
    return None if peak is None else int(peak.split()[1]) * 1024 / 1e6
