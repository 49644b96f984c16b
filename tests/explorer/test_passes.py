"""The page of a dump directory: every pass, and what it changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hlofuse.account import observed_replay
from hlofuse.compilation import replay_config
from hlofuse.diff import diff
from hlofuse.explorer import page_html, page_of, passes_of, sequence_of
from hlofuse.explorer.model import Passes
from hlofuse.inputs import load
from hlofuse.reports.timeline import dump_sequences, timeline
from hlofuse.reports.timeline.model import PassDump, PassTimeline, Size, Step, step_details
from ..hostile import COLOUR, EVIL, hostile_module
from ..running import Run
from .browser import Visit


@pytest.fixture(scope="module")
def page_file(gpt2_whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the GPT-2 block's dumps."""
    module = load(str(gpt2_whole))
    observed = observed_replay(module, replay_config("gpu", "h100_sxm"))
    sequence = sequence_of(module)
    assert sequence is not None
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(page_html(page_of({"": observed}, passes_of(sequence, module))), encoding="utf-8")
    return file


@pytest.fixture
def seen(browser: Browser, page_file: Path) -> Iterator[Visit]:
    visit = Visit(browser, page_file, "#view=film")
    yield visit
    assert visit.problems == []
    assert set(visit.requests) == {visit.url}
    visit.close()


def rows(seen: Visit) -> list[int]:
    """The listed steps."""
    return list(seen.page.evaluate("explorer.passesView.shown.map((s) => s.n)"))


def test_lists_what_changed_in_order_and_by_size(seen: Visit, gpt2_whole: Path) -> None:
    reported = timeline(dump_sequences(gpt2_whole)[0])
    changed = [n for n, s in enumerate(reported.steps) if s.changed]
    assert rows(seen) == changed
    assert "What each pass did" in seen.details
    first = seen.page.locator("#panes .row").first.inner_text()
    assert "flatten-call-graph" in first
    assert "162 → 197" in first
    seen.page.select_option("#film-order", "weight")
    assert [reported.steps[n].dump.path for n in rows(seen)] == [s.dump.path for s in reported.largest]
    seen.page.check("#film-every")
    assert len(rows(seen)) == len(reported.steps)
    assert "every=1" in seen.page.evaluate("location.hash")


def test_a_pass_tells_what_it_rewrote_line_by_line(seen: Visit) -> None:
    seen.page.click("#panes .row:has-text('0010 algsimp')")
    assert seen.page.inner_text("#details h2") == "algsimp"
    lines = seen.page.locator("#details .lines li").all_text_contents()
    assert any("before: " in line and "divide(broadcast_in_dim.21" in line for line in lines)
    assert any("after: " in line and "multiply(broadcast_in_dim.21" in line for line in lines)
    assert "dump=0010" in seen.page.evaluate("location.hash")
    seen.page.reload()
    seen.page.wait_for_selector("html[data-ready]")
    assert seen.page.inner_text("#details h2") == "algsimp"
    assert "algsimp" in seen.page.inner_text("#panes .row[aria-selected=true]")


def test_words_narrow_the_list(seen: Visit) -> None:
    seen.page.fill("#film-text", "triton")
    listed = seen.page.locator("#panes .row .first").all_inner_texts()
    assert {"0045 triton-gemm-rewriter", "0048 triton-softmax-rewriter"} <= set(listed)
    # Also by what is in the lines: who touched this instruction?
    seen.page.fill("#film-text", "sub.30 =")
    assert seen.page.locator("#panes .row .first").all_inner_texts() == ["0010 algsimp"]
    seen.page.fill("#film-text", "no such thing")
    assert "0 steps" in seen.page.inner_text("#panes .film .note")


def test_the_keyboard_walks_through_the_passes(seen: Visit) -> None:
    page = seen.page
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#details h2") == "call-inliner"
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#details h2") == "flatten-call-graph"
    page.keyboard.press("End")
    assert page.evaluate("explorer.passesView.chosen") == rows(seen)[-1]
    page.keyboard.press("Escape")
    assert page.inner_text("#details h2") == "What each pass did"
    page.focus("#panes .long-list")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#details h2") == "flatten-call-graph"


def test_given_a_directory_the_page_has_it(
    hlofuse: Run, browser: Browser, gpt2_whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    done = hlofuse("explore", gpt2_whole, "--device", "h100_sxm", "-o", out)
    assert done.status == 0, done.err
    visit = Visit(browser, out)
    assert visit.page.locator("#views [data-key=film]").count() == 1
    visit.close()
    (one,) = (f for f in gpt2_whole.iterdir() if ".0057." in f.name)
    for text in ((gpt2_whole, "--no-timeline"), (one,)):
        done = hlofuse("explore", *text, "--device", "h100_sxm", "-o", out)
        assert done.status == 0, done.err
        visit = Visit(browser, out, "#view=film&dump=0010")
        assert visit.page.locator("#views [data-key=film]").count() == 0
        assert visit.problems == []
        visit.close()


def test_times_are_shown_where_files_tell_them(
    hlofuse: Run, browser: Browser, gpt2: Path, tmp_path: Path
) -> None:
    frames = dump_sequences(gpt2)[0].dumps
    for n, frame in enumerate(frames):
        os.utime(frame.path, ns=(10**18 + n * 1_500_000 + (n > 58) * 10**9,) * 2)
    out = tmp_path / "page.html"
    assert hlofuse("explore", gpt2, "--device", "h100_sxm", "-o", out).status == 0
    visit = Visit(browser, out, "#view=film&order=time")
    assert "1.00 s" in visit.page.locator("#panes .row .worth").first.inner_text()
    assert "Bar length: time" in visit.page.inner_text("#panes .film .note")
    visit.close()


def test_damaged_dumps_are_named(hlofuse: Run, browser: Browser, gpt2: Path, tmp_path: Path) -> None:
    (cut,) = (f for f in gpt2.iterdir() if ".0010." in f.name)
    cut.write_text(cut.read_text()[:400])
    out = tmp_path / "page.html"
    assert hlofuse("explore", gpt2, "--device", "h100_sxm", "-o", out).status == 0
    visit = Visit(browser, out, "#view=film&dump=0010")
    assert "cannot be read" in visit.details
    visit.page.keyboard.press("Escape")
    assert "1 dump cannot be read" in visit.details
    visit.close()


def test_hostile_dumps_are_text_and_nothing_else(browser: Browser, tmp_path: Path) -> None:
    before = hostile_module(EVIL + COLOUR, op_name="s/o", source_file="a.py")
    after = hostile_module(EVIL + COLOUR, op_name="s/o", source_file="a.py")
    for i in list(after.instructions()):
        if i.opcode == "exponential":
            i.opcode = "tanh"
    found = diff(before, after)
    evil = f"p{EVIL}{COLOUR}"
    first = Step(PassDump(Path(evil), after=evil), None, after=Size(7, 3, 0))
    second = Step(
        PassDump(Path(evil), 1, evil, evil), first.dump, changed=True, weight=1, header=(evil,), problem=evil
    )
    passes = Passes(PassTimeline(evil, (first, second), (evil,)), {1: step_details(found)}, 0)
    observed = observed_replay(before, replay_config("cpu", None))
    file = tmp_path / "page.html"
    file.write_text(page_html(page_of({"": observed}, passes)), encoding="utf-8")
    visit = Visit(browser, file, "#view=film&every=1")
    assert len(rows(visit)) == 2
    for n in rows(visit):
        visit.page.evaluate(f"explorer.passesView.choose({n})")
        assert EVIL in visit.details
    assert visit.page.locator("#details .lines li").count() == 2
    assert visit.page.evaluate("window.pwned") is None
    assert visit.page.locator("img").count() == 0
    assert "\x1b" not in visit.page.content()
    assert "\u202e" not in visit.page.content()
    assert visit.problems == []
    visit.close()
