"""Opens pages in a real Chromium."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.run_helpers import BROWSER

needs_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In the locale C, pages lose what they store if the path of the profile is not ASCII.
        env: dict[str, str | float | bool] = {**os.environ, "LC_ALL": "C.UTF-8"}
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"], env=env
        )
        yield browser
        browser.close()


def opened(
    browser: Browser, url: str, *, width: int = 1000, height: int = 800, **options: Any
) -> tuple[Page, list[str]]:
    """Return the open page and a list of its errors and messages, without failed requests."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)  # milliseconds, for a busy machine
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            None if "Failed to load resource" in message.text else complaints.append(message.text)
        ),
    )
    page.goto(url)
    return page, complaints
