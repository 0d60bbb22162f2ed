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

from dashboard.browser import ERRORS, started
from dashboard.browser import visit as visit_page
from dashboard.launch import free_port
from dashboard.titles import PAGES
from provenance.evidence import Archive, Exchange
from records.errors import ConfigError
from records.models import Evidence, Run
from records.workspace import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

_BROWSE = (
    "import sys; from pathlib import Path; from dashboard.launch import browse\n"
    "sys.exit(browse(Path(sys.argv[1]), port=int(sys.argv[2]), open_browser=False))"
)
SECONDS = 20_000


def no_browser(why: str) -> Any:
    """Skip, or fail where a browser is required."""
    if os.environ.get("FWP_REQUIRE_BROWSER") == "1":
        pytest.fail(f"FWP_REQUIRE_BROWSER=1, but {why}")
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        with started() as opened:
            yield opened
    except ConfigError as error:
        no_browser(str(error))


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
    title = next(title for key, title in PAGES if key == name)
    visit_page(page, f"{address}/{path}?{query}", title)


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


@pytest.mark.parametrize("name", ["overview", "claims", "evidence", "citations", "runs"])
def test_hostile_texts_do_not_run(page: Page, address: str, name: str) -> None:
    visit(page, address, name, paper="0-hostile", record="0-hostile")
    page.wait_for_timeout(300)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator('a[href^="javascript"]').count() == 0
    assert page.locator(ERRORS).count() == 0


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY claims TO '/tmp/claims.csv'",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "SET memory_limit = '1TB'",
        "DELETE FROM claims",
    ],
)
def test_sql_refuses_what_is_no_question(page: Page, address: str, statement: str) -> None:
    visit(page, address, "sql", q=statement)
    page.locator(ERRORS).first.wait_for()
    assert "root:" not in page.content()
    assert page.get_by_test_id("stDataFrame").count() == 0


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


def test_a_cell_of_a_table_leads_to_its_claim(
    page: Page, address: str, paper: str, home: Path
) -> None:
    visit(page, address, "claims", paper=paper, part="tables", table="Table 2")
    link = page.locator(".fwp-table td a").first
    wanted = one(home, "SELECT claim_id FROM claims WHERE locator = 'Table 2' ORDER BY ordinal")
    link.click()
    page.get_by_text(wanted).first.wait_for()
    assert quote(wanted, safe="") in page.url


def test_citations_are_counted_and_searched(
    page: Page, address: str, paper: str, home: Path
) -> None:
    links = one(home, "SELECT count(*) FROM citations")
    visit(page, address, "citations", paper=paper)
    page.get_by_text(f"{links} of {links} links").wait_for()
    words = page.get_by_label("Words", exact=True)
    words.fill("kimi linear")
    words.press("Enter")
    page.get_by_text(f"1 of {links} links").wait_for()
    page.wait_for_url("**words=kimi+linear*")


def test_archived_pages_are_text(page: Page, address: str, home: Path, hostile_text: str) -> None:
    url = "https://example.org/page"
    headers = (("Content-Type", "text/html"),)
    exchange = Exchange("S", url, url, 200, (), headers, hostile_text.encode())
    kept = Archive(home / "evidence").store(exchange)
    Workspace(home).append(
        "import/captured",
        [
            Evidence(
                evidence_id=kept.evidence_id, source="S", authority="note", grade="captured",
                kind="page", url=url, sha256=kept.sha256,
            )
        ],
    )  # fmt: skip
    visit(page, address, "evidence", source=kept.evidence_id)
    page.get_by_text("The sha256 is right").wait_for()
    assert hostile_text in page.locator("[data-testid=stCode]").last.inner_text()
    assert page.evaluate("typeof window.hacked") == "undefined"


def test_what_is_written_into_the_memory_comes_back(page: Page, address: str) -> None:
    visit(page, address, "memory", pairs="A=3 A=7", d="4", beta="1")
    table = page.get_by_test_id("stDataFrame").first
    table.locator("td").nth(4).wait_for(state="attached")
    cells = [cell.text_content() for cell in table.locator("td").all()]
    assert cells == ["A", "7", "✗ 3 or 7", "✓ 7", "✓ 7"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["overview", "claims", "evidence", "memory"])
def test_texts_stand_out_from_their_ground(
    browser: Browser, address: str, paper: str, name: str, scheme: Any
) -> None:
    context = browser.new_context(color_scheme=scheme)
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    visit(page, address, name, paper=paper, record=paper)
    page.wait_for_timeout(800)  # texts that were just replaced fade out
    least = page.evaluate(_LEAST_CONTRAST)
    context.close()
    assert least["ratio"] >= 4.5, least  # WCAG 2.2, 1.4.3, level AA


_LEAST_CONTRAST = """() => {
  const numbers = colour => { const c = colour.match(/[\\d.]+/g).map(Number);
    return colour.includes('srgb') ? [...c.slice(0, 3).map(x => x * 255), c[3] ?? 1]
                                   : [...c.slice(0, 3), c[3] ?? 1]; };
  const over = (top, under) => top.slice(0, 3).map((x, i) => x * top[3] + under[i] * (1 - top[3]));
  const light = rgb => { const [r, g, b] = rgb.map(x => { const c = x / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = element => { const layers = [];
    for (let e = element; e; e = e.parentElement)
      layers.unshift(numbers(getComputedStyle(e).backgroundColor));
    return layers.reduce((under, top) => over(top, under), [255, 255, 255]); };
  let least = {ratio: 21};
  const kinds = 'p, li, dd, dt, th, td, h1, h2, h3, pre, label, .fwp-badge > span, .fwp-small';
  for (const element of document.querySelectorAll(`[data-testid=stMain] :is(${kinds})`)) {
    // a slider's number stands above its thumb, whose colour is not its ground
    if (!element.innerText?.trim() || element.closest('[data-testid=stSlider]')) continue;
    if (!element.getClientRects().length) continue;
    const under = ground(element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const ink = numbers(getComputedStyle(element).color);
    const seen = over([...ink.slice(0, 3), ink[3] * opacity], under);
    const [a, b] = [light(seen), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const text = element.innerText.slice(0, 60);
    if (ratio < least.ratio) least = {ratio, text, ink: seen, under};
  }
  return least;
}"""
