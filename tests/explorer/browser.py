"""A Chromium to open pages in: the machine's own, else the one that playwright has downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Headless; tests that get none are left out, and the report of the run says so."""
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Error as e:
            pytest.skip(f"no Chromium to test the page in (tools/get_browser installs one): {e}")
        yield browser
        browser.close()


class Visit:
    """A page that is open, with all that went wrong on it."""

    def __init__(self, browser: Browser, file: Path, address: str = "", *, dark: bool = False) -> None:
        context = browser.new_context(
            viewport={"width": 1400, "height": 900}, color_scheme="dark" if dark else "light"
        )
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.problems.append(m.text))
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.url = file.as_uri()
        self.page.goto(self.url + address)
        self.page.wait_for_selector("html[data-ready]")

    @property
    def at(self) -> int:
        """Decisions applied."""
        return int(self.page.evaluate("explorer.state.at"))

    @property
    def details(self) -> str:
        return self.page.inner_text("#details")

    def kernels(self) -> set[str]:
        """The kernels there are at this step, by name."""
        return set(
            self.page.evaluate(
                """() => { const s = explorer.state, found = [];
                for (let b = 0; b < explorer.run.boxes; b++) if (s.isKernel(b)) found.push(s.nameOf(b));
                return found; }"""
            )
        )
