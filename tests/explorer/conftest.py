"""Pages to open in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hlofuse.account import observed_replay
from hlofuse.compilation import replay_config
from hlofuse.explorer import page_html, page_of
from hlofuse.inputs import load
from hlofuse.ir import Module
from ..running import Run
from ..timeline.conftest import gpt2
from .browser import Visit

__all__ = ["gpt2"]

Open = Callable[..., Visit]


def target_of(sample: str) -> str:
    """The target that a folder of the samples is for."""
    return "gpu" if "gpu" in sample.split("/") else "cpu"


def _html(module: Module, target: str, device: str | None) -> str:
    return page_html(page_of({"as XLA": observed_replay(module, replay_config(target, device))}))


@cache
def _sample_html(file: Path, target: str, device: str | None) -> str:
    return _html(load(str(file)), target, device)


@pytest.fixture
def visit(browser: Browser, samples: Path, tmp_path: Path) -> Iterator[Open]:
    """`visit("cpu/softmax")` opens the page of a sample, or of a module, at an address like `#step=3`."""
    open_ones: list[Visit] = []

    def make(
        what: str | Module,
        address: str = "",
        *,
        target: str = "",
        device: str | None = None,
        dark: bool = False,
    ) -> Visit:
        name = target or (target_of(what) if isinstance(what, str) else "cpu")
        if name == "gpu" and device is None:
            device = "h100_sxm"
        if isinstance(what, str):
            html = _sample_html(samples / what / "before.hlo", name, device)
        else:
            html = _html(what, name, device)
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8")
        found = Visit(browser, file, address, dark=dark)
        open_ones.append(found)
        return found

    yield make
    for one in open_ones:
        one.close()


@pytest.fixture(scope="session")
def written() -> dict[tuple[str, ...], str]:
    """The pages that `explored` has written, by the arguments of the command."""
    return {}


@pytest.fixture
def explored(
    browser: Browser, hlofuse: Run, tmp_path: Path, written: dict[tuple[str, ...], str]
) -> Iterator[Open]:
    """`explored(INPUT, "--source", folder, address="#tab=source")`: the page that the command writes."""
    open_ones: list[Visit] = []

    def make(*arguments: object, address: str = "") -> Visit:
        file, given = tmp_path / f"explored{len(open_ones)}.html", tuple(map(str, arguments))
        if given in written:
            file.write_text(written[given], encoding="utf-8")
        else:
            result = hlofuse("explore", *arguments, "-o", file)
            assert result.status == 0, result.err
            written[given] = file.read_text(encoding="utf-8")
        found = Visit(browser, file, address)
        open_ones.append(found)
        return found

    yield make
    for one in open_ones:
        assert one.problems == []
        one.close()
