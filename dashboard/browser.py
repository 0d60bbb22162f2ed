"""A real browser in front of the dashboard, for tests and measurements: Chromium by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from records.errors import ConfigError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ERRORS = '[data-testid="stException"], [data-testid="stAlertContentError"]'
"""What a page shows where something went wrong."""


@contextmanager
def started() -> Iterator[Browser]:
    """Run a browser while the block runs: ``FWP_BROWSER``, or the first of ``NAMES``.

    Raises:
        ConfigError: playwright or the browser is not installed.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise ConfigError(
            "a browser is driven by playwright, which is not installed: pip install playwright"
        ) from error
    path = os.environ.get("FWP_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise ConfigError(
            f"none of {', '.join(NAMES)} is installed, and FWP_BROWSER names no other browser"
        )
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        try:
            yield opened
        finally:
            opened.close()


def visit(page: Page, address: str, title: str) -> float:
    """Open an address and wait until the page of that title has run to its end.

    Returns:
        The seconds from the start of the navigation to then, by the browser's clock.
    """
    page.goto(address)
    page.get_by_role("heading", level=1, name=title, exact=True).wait_for()
    return settle(page)


def settle(page: Page) -> float:
    """Wait until the page's script has come to rest.

    Returns:
        When it did, in seconds since the navigation began.
    """
    return float(page.evaluate(_AT_REST)) / 1e3


_AT_REST = """() => new Promise(resolve => {
  let since = null;
  const look = () => {
    const rests = document.querySelector('[data-test-script-state="notRunning"]');
    since = rests ? since ?? performance.now() : null;
    // a script that was asked for rests for a moment before it starts
    if (since !== null && performance.now() - since > 150) resolve(since);
    else setTimeout(look, 10);
  };
  look();
})"""
