"""Before and after, and two modules: the same quantities on both sides, the differences first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..running import Run
from .browser import Visit
from .conftest import Open

BLOCK = "gpu/gpt2_block"


def test_before_and_after_show_the_same_quantities(explored: Open, samples: Path) -> None:
    seen = explored(samples / BLOCK, address="#split=ends&view=fusion")
    labels = seen.page.locator(".pane-label").all_text_contents()
    assert labels == ["Before fusion: 43 kernels, 60.21 µs", "After fusion: 15 kernels, 26.76 µs (−56%)"]
    for pane in (0, 1):
        costs = seen.page.locator(".pane").nth(pane).locator(".group text:nth-of-type(3)").all_text_contents()
        assert costs
        assert all(re.match(r"(≥ )?[\d.]+ µs · ", cost) for cost in costs), costs
    cells = seen.page.locator("#details table.totals [data-quantity]").all_text_contents()
    assert cells[0] == "kernels4315−28"
    assert [c for c in cells if c.startswith("time")] == ["time est.60.21 µs26.76 µs−56%"]


def test_bars_have_one_scale(explored: Open, samples: Path) -> None:
    seen = explored(samples / BLOCK, address="#split=ends&view=fusion")
    scale = seen.page.evaluate(
        """[...document.querySelectorAll("#panes .group.kernel")].map((g) => {
            const width = (name) => Number(g.querySelector(name).getAttribute("width"));
            return width(".share") / (width(".frame") - 24) / Number(/([\\d.]+) µs/.exec(g.ariaLabel)[1]);
        })"""
    )
    assert max(scale) == pytest.approx(min(scale), rel=0.02)


@pytest.fixture
def devices(explored: Open, samples: Path) -> Visit:
    return explored(samples / BLOCK, "--device", "h100_sxm", "--compare-device", "v100")


def test_what_differs_comes_first_largest_first(devices: Visit) -> None:
    assert devices.page.get_attribute("#tab-differences", "aria-selected") == "true"
    figures = devices.page.evaluate("explorer.panels.differences.found.map((d) => Math.abs(d.change))")
    assert figures == sorted(figures, reverse=True)
    assert len(figures) == 13  # two products have a lower bound on v100, below the time here
    row = devices.page.locator("#panel .row").first
    assert row.locator(".worth").inner_text().startswith("+")
    assert "→" in row.locator(".second").inner_text()
    table = devices.page.locator("#panel table.totals [data-quantity='time est.']")
    assert table.locator("td").all_text_contents() == ["26.76 µs", "≥ 30.58 µs", "+14%"]


def test_a_difference_selects_both_sides(devices: Visit) -> None:
    devices.page.locator("#panel .row", has_text="loop_add_fusion").click()
    for pane in (0, 1):
        marked = devices.page.locator(".pane").nth(pane).locator(".group.marked")
        assert marked.count() == 1
        assert "loop_add_fusion" in str(marked.get_attribute("aria-label"))
    compared = devices.page.locator("#details details", has_text="Compared with v100")
    assert "1.55 µs" in compared.inner_text()
    assert "3.05 µs" in compared.inner_text()
    # The picture says which side is slower.
    assert devices.page.locator(".pane >> nth=1").locator(".group.slower").count() == 13
    assert devices.page.locator(".pane >> nth=0").locator(".group.faster").count() == 13
    assert devices.page.locator(".group.alone, .group.changed").count() == 0


def test_two_dumps(explored: Open, samples: Path) -> None:
    folder = samples / "cartpole/gpu"
    seen = explored(
        folder / "no_concatenate",
        folder / "precomputed_noise",
        "--device",
        "h100_sxm",
        address="#split=runs&view=fusion",
    )
    labels = [label.partition(":")[0] for label in seen.page.locator(".pane-label").all_text_contents()]
    assert labels == ["no_concatenate", "precomputed_noise"]
    second = seen.page.locator("#panel .row .second").all_text_contents()
    assert second[0].startswith("only in precomputed_noise")
    assert any(text.startswith("only in no_concatenate") for text in second)
    assert any(text.startswith("other operations") for text in second)
    seen.page.locator("#panel .row").first.click()
    assert seen.page.evaluate("explorer.view.run") == "1"
    assert "No kernel of no_concatenate computes the same" in seen.details
    assert seen.page.locator(".group.alone").count() > 0


def test_two_releases(explored: Open, samples: Path) -> None:
    seen = explored(samples / "cpu/softmax", "--compare-xla", "0.4.35")
    assert seen.page.locator("#run-picker button").all_text_contents() == ["XLA 0.11.1", "XLA 0.4.35"]
    seen.page.click("#run-picker button >> nth=1")
    assert "XLA 0.4.35" in seen.page.inner_text("#title")


def test_each_side_says_what_it_is(devices: Visit) -> None:
    assert "gpu h100_sxm" in devices.page.inner_text("#title")
    devices.page.click("#run-picker button >> nth=1")
    assert "gpu v100" in devices.page.inner_text("#title")


def test_the_same_twice_differs_in_nothing(explored: Open, samples: Path) -> None:
    seen = explored(samples / "cpu/softmax", samples / "cpu/softmax")
    assert "Both run the same kernels." in seen.page.inner_text("#panel .note")


@pytest.mark.parametrize("text", [["--compare-xla", "x"], ["none.hlo"], ["--compare-device", "none"]])
def test_a_wrong_other_side_is_one_sentence(
    hlofuse: Run, samples: Path, tmp_path: Path, text: list[str]
) -> None:
    out = tmp_path / "page.html"
    result = hlofuse("explore", samples / BLOCK, "--device", "h100_sxm", *text, "-o", out)
    assert result.status == 2
    assert "Traceback" not in result.err
    assert not out.exists()
