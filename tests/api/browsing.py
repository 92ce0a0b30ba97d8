"""A real browser before a server that listens on a port."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.api.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.api.house import House

CHROMIUM = "/usr/bin/chromium"


@contextmanager
def browsing(folder: Path) -> Iterator[tuple[House, str, Browser]]:
    """A house, where it is served, and a browser; all end with the block."""
    with (
        serving(folder) as (house, url),
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        yield house, url, browser


def complaints_of(page: Page) -> list[str]:
    """What the browser finds wrong with what it is shown from now on, filled as it does."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints
