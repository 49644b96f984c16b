"""How long `hlofuse explore` takes, how large its page is, and how the page feels in Chromium.

    python benchmarks/explore.py [--stack 50000] [--layers 20000] [--target T] [--device D] [INPUT...]

Each INPUT as it is; with --stack also the first of them stacked to so many instructions, with --layers the
same as layers, each in a scope of its own that reads the layer before it. Prints seconds for replaying and
for making the page, its size, seconds of processor time until it is open, and milliseconds of it for a
step (median and slowest of sixty, spread over the whole replay, until laid out, from 1.5 s after opening on)
step by step and in the picture of all kernels.
The aim at 20,000 instructions: open in 1 s, a step in 50 ms, a file of 5 MB.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright
from stacked import stacked

from hlofuse.account import observed_replay
from hlofuse.compilation import replay_config
from hlofuse.explorer import page_html, page_of
from hlofuse.inputs import load, read_text
from hlofuse.ir import Module, parse_module


def processor_ms(session: CDPSession) -> float:
    """What the page's main thread has worked so far."""
    reported = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(float(m["value"]) for m in reported if m["name"] == "TaskDuration")


def steps(page: Page, session: CDPSession, view: str) -> tuple[float, float]:
    """The median and the slowest of sixty steps, until laid out, spread over the replay."""
    page.evaluate(f"explorer.change({{ view: '{view}' }})")
    length, took = page.evaluate("explorer.run.length"), []
    for k in range(60):
        page.evaluate(f"explorer.goTo({length * (k * 37 % 60) // 60})")
        page.wait_for_timeout(20)
        before = processor_ms(session)
        page.evaluate("explorer.goTo(explorer.state.at + 1); document.body.getBoundingClientRect().width")
        took.append(processor_ms(session) - before)
    return sorted(took)[30], max(took)


def measure(
    name: str, module: Module, target: str, device: str | None, browser: Browser, folder: Path
) -> None:
    """One line of figures."""
    start = time.perf_counter()
    observed = observed_replay(module, replay_config(target, device))
    replayed = time.perf_counter()
    file = folder / "page.html"
    file.write_text(page_html(page_of({"as XLA": observed})), encoding="utf-8")
    created = time.perf_counter()
    page = browser.new_page(viewport={"width": 1500, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    opened = processor_ms(session) / 1000
    page.wait_for_timeout(1500)  # as long as anyone looks before the first step
    single, sheet = steps(page, session, "steps"), steps(page, session, "fusion")
    page.close()
    count, decisions = sum(len(c) for c in module.computations), len(observed.replay.events)
    print(
        f"{name:>24} {count:>8,} {decisions:>9,} {replayed - start:>8.1f} {created - replayed:>6.1f}"
        f" {file.stat().st_size / 1e6:>6.2f} {opened:>6.2f} {single[0]:>6.0f} {single[1]:>6.0f}"
        f" {sheet[0]:>6.0f} {sheet[1]:>6.0f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", nargs="*", default=["samples/cpu/gpt2_block/before.hlo"])
    parser.add_argument("--stack", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--device")
    options = parser.parse_args()
    print(
        f"{'module':>24} {'count':>8} {'decisions':>9} {'replay s':>8} {'page s':>6} {'MB':>6} {'open s':>6}"
        f" {'step':>6} {'worst':>6} {'sheet':>6} {'worst':>6}"
    )
    path = next(
        (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in options.inputs:
            module = load(name)
            measure(module.name, module, options.target, options.device, browser, Path(folder))
        for size, layers in ((options.stack, False), (options.layers, True)):
            if not size:
                continue
            module = parse_module(stacked(read_text(Path(options.inputs[0])), size, layers=layers))
            measure(module.name, module, options.target, options.device, browser, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
