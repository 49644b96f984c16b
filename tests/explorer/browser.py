"""A Chromium to open pages in: the machine's own, else the one that playwright has downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, sync_playwright

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


_IDLE: list[Page] = []
"""Blank pages of earlier visits: to open one more takes as long as to show a module in it."""


class Visit:
    """A page that is open, with all that went wrong on it; `close` leaves it blank for the next visit."""

    def __init__(self, browser: Browser, file: Path, address: str = "", *, dark: bool = False) -> None:
        self.page: Page = _IDLE.pop() if _IDLE else browser.new_context().new_page()
        self.page.set_viewport_size({"width": 1400, "height": 900})
        self.page.emulate_media(media="screen", color_scheme="dark" if dark else "light")
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._log)
        self.page.on("pageerror", self._fail)
        self.page.on("request", self._request)
        self.url = file.as_uri()
        self.page.goto(self.url + address)
        self.page.wait_for_selector("html[data-ready]")

    def close(self) -> None:
        self.page.goto("about:blank")
        self.page.mouse.move(-1, -1)
        self.page.remove_listener("console", self._log)
        self.page.remove_listener("pageerror", self._fail)
        self.page.remove_listener("request", self._request)
        _IDLE.append(self.page)

    def _log(self, message: ConsoleMessage) -> None:
        self.problems.append(message.text)

    def _fail(self, error: Error) -> None:
        self.problems.append(str(error))

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

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
