"""How long `hlofuse explore` takes, how large its page is, and how the page feels in Chromium.

    python benchmarks/explore.py [--stack 50000] [--target T] [--device D] [INPUT...]

Each INPUT as it is; with --stack also the first of them stacked to so many instructions. Prints seconds for
replaying and for making the page, its size, seconds until it is open, and milliseconds of a step (median and
slowest of sixty, spread over the whole replay, until laid out, from 1.5 s after opening on) step by step and
on the sheet of all kernels.
What we aim for on a GPT-2 training step: open in 2 s, a step in 100 ms, a file of 5 MB.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from stacked import stacked

from hlofuse.explainer.costs import observed_replay
from hlofuse.explorer import page_html, page_of
from hlofuse.inputs import load, read_text
from hlofuse.ir import Module, parse_module
from hlofuse.pipelines import variant_of

_STEPS = """(view) => {
    const a = window.explorer, n = a.run.length, took = [];
    a.change({ view });
    for (let k = 0; k < 60; k++) {
        a.goTo(Math.floor((n * ((k * 37) % 60)) / 60));
        const start = performance.now();
        a.goTo(a.state.at + 1);
        document.body.getBoundingClientRect();
        took.push(performance.now() - start);
    }
    took.sort((x, y) => x - y);
    return [took[30], took[59]];
}"""


def measure(
    name: str, module: Module, target: str, device: str | None, browser: Browser, folder: Path
) -> None:
    """One line of figures."""
    start = time.perf_counter()
    observed = observed_replay(module, variant_of(target, device))
    replayed = time.perf_counter()
    file = folder / "page.html"
    file.write_text(page_html(page_of({"as XLA": observed})), encoding="utf-8")
    made = time.perf_counter()
    page = browser.new_page(viewport={"width": 1500, "height": 900})
    begun = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    opened = time.perf_counter() - begun
    page.wait_for_timeout(1500)  # as long as anyone looks before the first step
    steps, sheet = page.evaluate(_STEPS, "steps"), page.evaluate(_STEPS, "fusion")
    page.close()
    count, decisions = sum(len(c) for c in module.computations), len(observed.replay.events)
    print(
        f"{name:>24} {count:>8,} {decisions:>9,} {replayed - start:>8.1f} {made - replayed:>6.1f}"
        f" {file.stat().st_size / 1e6:>6.2f} {opened:>6.2f} {steps[0]:>6.0f} {steps[1]:>6.0f}"
        f" {sheet[0]:>6.0f} {sheet[1]:>6.0f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", nargs="*", default=["samples/cpu/gpt2_block/before.hlo"])
    parser.add_argument("--stack", type=int)
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
        if options.stack:
            module = parse_module(stacked(read_text(Path(options.inputs[0])), options.stack))
            measure(module.name, module, options.target, options.device, browser, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
