"""Every page in a real browser, against one server.

Without a browser these tests are skipped, unless FWP_REQUIRE_BROWSER=1 asks for them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from dashboard.app import PAGES
from dashboard.launch import free_port
from records.models import Run
from records.workspace import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_BROWSE = (
    "import sys; from pathlib import Path; from dashboard.launch import browse\n"
    "sys.exit(browse(Path(sys.argv[1]), port=int(sys.argv[2]), open_browser=False))"
)
ERRORS = '[data-testid="stException"], [data-testid="stAlertContentError"]'
SECONDS = 20_000


def no_browser(why: str) -> Any:
    """Skip, or fail where a browser is required."""
    if os.environ.get("FWP_REQUIRE_BROWSER") == "1":
        pytest.fail(f"FWP_REQUIRE_BROWSER=1, but {why}")
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        no_browser("the package playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("FWP_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        no_browser(f"none of {', '.join(names)} is installed and FWP_BROWSER is not set")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def home(
    filled_home: Path, hostile_batch: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A filled workspace with a second paper that is hostile."""
    folder = Path(shutil.copytree(filled_home, tmp_path_factory.mktemp("browser") / "ws"))
    Workspace(folder).append("import/hostile", hostile_batch)
    return folder


@pytest.fixture(scope="module")
def address(browser: Browser, home: Path) -> Iterator[str]:
    port = free_port("localhost", None)
    server = subprocess.Popen(
        [sys.executable, "-c", _BROWSE, str(home), str(port)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert str(port) in server.stdout.readline()
    yield f"http://localhost:{port}"
    server.send_signal(signal.SIGINT)
    assert server.wait(30) == 0


@pytest.fixture
def paper(home: Path) -> str:
    """The shipped paper; the hostile one comes first in the store."""
    return str(Workspace(home).query("SELECT max(paper_id) FROM claims").rows[0][0])


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(SECONDS)
    opened = context.new_page()
    yield opened
    context.close()


def visit(page: Page, address: str, name: str, **parameters: str) -> None:
    """Open a page and wait until it has run to its end."""
    query = "&".join(f"{key}={quote(value)}" for key, value in parameters.items())
    path = "" if name == "overview" else name
    page.goto(f"{address}/{path}?{query}")
    title = next(title for key, title in PAGES if key == name)
    page.get_by_role("heading", level=1, name=title, exact=True).wait_for()
    settle(page)


def settle(page: Page) -> None:
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def one(home: Path, sql: str) -> Any:
    """Return the first cell of an answer."""
    return Workspace(home).query(sql).rows[0][0]


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", [name for name, _ in PAGES])
def test_every_page_loads_fits_and_stays_local(
    page: Page, address: str, paper: str, name: str, width: int
) -> None:
    asked: set[str | None] = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
    page.set_viewport_size({"width": width, "height": 900})
    visit(page, address, name, paper=paper, record=paper)
    assert page.locator(ERRORS).count() == 0
    assert page.title().startswith(next(title for key, title in PAGES if key == name))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert asked - {None} == {"localhost"}


def test_the_overview_shows_the_stores_numbers(
    page: Page, address: str, paper: str, home: Path
) -> None:
    of_paper = f"paper_id = '{paper}'"
    sql = f"SELECT count(*) FROM side_by_side WHERE verdict = 'reproduced' AND {of_paper}"
    visit(page, address, "overview", paper=paper)
    metric = page.get_by_test_id("stMetric").filter(has_text="Reproduced").first
    assert metric.get_by_test_id("stMetricValue").inner_text() == str(one(home, sql))
    title = one(home, f"SELECT title FROM papers WHERE {of_paper}")
    assert page.locator(".fwp-card h2").inner_text() == title


@pytest.mark.parametrize("name", ["overview", "claims", "evidence", "runs"])
def test_hostile_texts_do_not_run(page: Page, address: str, name: str) -> None:
    visit(page, address, name, paper="0-hostile", record="0-hostile")
    page.wait_for_timeout(300)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator('a[href^="javascript"]').count() == 0
    assert page.locator(ERRORS).count() == 0


def test_sql_refuses_to_read_files(page: Page, address: str) -> None:
    visit(page, address, "sql", q="SELECT * FROM read_csv('/etc/passwd')")
    page.locator(ERRORS).first.wait_for()
    assert "root:" not in page.content()


def test_a_statement_typed_goes_into_the_address(page: Page, address: str) -> None:
    visit(page, address, "sql")
    editor = page.get_by_label("Statement", exact=True)
    editor.fill("SELECT 40 + 2 AS answer")
    editor.press("Control+Enter")
    page.get_by_text("1 row", exact=True).wait_for()
    page.wait_for_url("**/sql?q=SELECT+40*")


def test_a_filter_in_the_address_is_applied(
    page: Page, address: str, paper: str, home: Path
) -> None:
    visit(page, address, "claims", paper=paper, verdict="reproduced")
    of_paper = (
        Workspace(home)
        .query(
            "SELECT count(*) FILTER (verdict = 'reproduced'), count(*) FROM side_by_side "
            f"WHERE paper_id = '{paper}'"
        )
        .rows[0]
    )
    page.get_by_text("{} of {} claims".format(*of_paper)).wait_for()


def test_pages_follow_the_navigation(page: Page, address: str, paper: str) -> None:
    visit(page, address, "overview", paper=paper)
    page.get_by_role("link", name="Evidence").first.click()
    page.get_by_role("heading", level=1, name="Evidence").wait_for()
    assert urlsplit(page.url).path == "/evidence"


def test_a_rebuilt_index_and_a_new_run_are_seen(
    page: Page, address: str, home: Path, run_of: Callable[..., Run]
) -> None:
    workspace = Workspace(home)
    visit(page, address, "runs")
    (before,) = workspace.query("SELECT count(*) FROM runs").rows[0]
    page.get_by_text(f"{before} of {before} runs").wait_for()
    (home / "index.duckdb").unlink()
    workspace.append("run/meanwhile", [run_of("some/claim", "loss", 1.0)])
    page.reload()
    page.get_by_text(f"{before + 1} of {before + 1} runs").wait_for()
    assert page.locator(ERRORS).count() == 0
