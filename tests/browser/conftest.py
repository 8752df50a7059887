"""A browser for the tests that click: Debian's chromium, driven by Playwright, offline unless a test says otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser a file; skips aloud where Playwright or chromium is absent.

    Not one for the whole run: while Playwright runs, the thread has an event loop, and other tests start theirs.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is in the `browser` extra")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on the PATH: apt install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Callable[..., Any]:
    """Open an address in a context of its own: ``with open_page(url, **options) as page``.

    `page.trouble` collects console errors, uncaught errors and violations; `page.asked` every request. Options are those of
    `new_context`; the context is offline unless ``offline=False`` is given.
    """

    @contextmanager
    def opened(url: str, **options: Any) -> Iterator[Any]:
        context = chromium.new_context(**{"offline": True, **options})
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.trouble, page.asked = [], []
        page.on("console", lambda message: page.trouble.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        try:
            page.goto(url)
            yield page
        finally:
            context.close()

    return opened
