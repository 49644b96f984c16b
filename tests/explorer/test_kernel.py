"""What the page says about a kernel is what `hlofuse explain` says, and complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hlofuse.inputs import load
from hlofuse.ir import parse_module
from ..fixtures import companion_texts
from ..running import Run
from .browser import Visit
from .conftest import Open

TEXTS = companion_texts(__file__)

BLOCK = "gpu/gpt2_block"


def facts(seen: Visit) -> dict[str, str]:
    """The table of figures of the kernel on show."""
    rows = seen.page.locator("#details .kernel > dl").first
    terms, values = rows.locator("dt").all_text_contents(), rows.locator("dd").all_text_contents()
    return dict(zip(terms, values, strict=True))


@pytest.fixture
def added(explored: Open, samples: Path) -> Visit:
    return explored(samples / BLOCK, address="#show=loop_add_fusion")


def test_it_has_its_names_figures_and_lines(added: Visit) -> None:
    found = facts(added)
    assert found["final name"] == "loop_add_fusion"
    assert found["at the end of fusion"] == "fusion.27"
    assert found["earlier names"] == "add.13.0"
    assert found["time"] == "1.55 µs (6% of the total), launch included"
    assert found["bound"] == "launch-bound"
    assert found["moved"] == "1.84 MB (1.70 MB read, 131 kB written)"
    assert found["work"] == "393 kFLOP"
    assert found["source"].startswith("programs.py:305")
    assert "measured" not in found


def test_a_measured_time_is_shown_where_there_is_one(added: Visit) -> None:
    added.page.evaluate(
        "() => { const k = explorer.run.kernels.find((k) => k.name === 'loop_add_fusion');"
        " k.measured = 1.8; explorer.showBox(k.box); }"
    )
    assert facts(added)["measured"] == "1.80 µs"


def test_it_lists_what_it_reads_and_writes(added: Visit) -> None:
    reads = added.page.locator("#details details", has_text="Reads 3 values").locator("li")
    assert reads.all_text_contents() == [
        "gemm_fusion_dot.7 f32[8,256,128]{2,1,0} · 1.05 MB",
        "xs_1_.1 f32[4,64,128]{2,1,0} · 131 kB",
        "gemm_fusion_dot.6 f32[4,256,128]{2,1,0} · 524 kB",
    ]
    writes = added.page.locator("#details details", has_text="Writes 131 kB")
    assert "f32[4,64,128]{2,1,0}" in writes.inner_text()
    assert "result of the program" in writes.inner_text()
    reads.first.locator("button").click()
    assert added.page.inner_text("#details h2") == "gemm_fusion_dot.7"
    assert "read by loop_add_fusion" in added.details


def test_it_says_why_its_neighbours_are_kernels_of_their_own(added: Visit) -> None:
    why = added.page.locator("#details details", has_text="Why not fused with its neighbours")
    assert why.locator("li").count() == 2
    assert "PF002" in why.locator("li").first.inner_text()
    why.get_by_role("button", name="PF002").first.click()
    assert "PF002" in added.page.inner_text("#details summary >> nth=0")
    assert "refused" in added.page.inner_text("#details .badge")


def test_its_hlo_is_that_of_the_final_module(added: Visit, samples: Path) -> None:
    pre = added.page.locator("#details pre.hlo")
    assert pre.text_content() == "…"
    added.page.click("#details summary:has-text('HLO text')")
    added.page.wait_for_selector("#details pre.hlo:has-text('fusion(')")
    text = str(pre.text_content())
    head, body = text.split("\n\n", 1)
    assert head.startswith("loop_add_fusion = f32[4,64,128]{2,1,0} fusion(")
    assert "metadata" not in text
    final = load(str(samples / BLOCK / "after.hlo"))
    fusion = final.find("fusion.27")
    assert fusion is not None
    assert body.count(" = ") - body.count("to_apply") >= len(list(fusion.fused_computation))
    added.page.click("#details button:has-text('Copy')")
    added.page.wait_for_selector("#details button:has-text('Copied'), #details button:has-text('Selected')")


LOOP = TEXTS["loop"].replace("KNOWN", '"known_trip_count":{"n":"100"}')


def test_a_kernel_in_a_loop_counts_all_iterations(visit: Open) -> None:
    seen = visit(parse_module(LOOP), "#view=fusion", target="gpu")
    row = seen.page.locator("#panel .row", has_text="exponential").first
    row.click()
    each, total = re.findall(r"([\d.]+) µs", facts(seen)["time"])[:2]
    assert float(total) == pytest.approx(100 * float(each), abs=1)
    assert row.locator(".worth").inner_text() == f"{total} µs"


def test_a_kernel_that_a_later_pass_added_opens_by_name_from_lists_and_links(
    explored: Open, samples: Path
) -> None:
    seen = explored(samples / "cartpole/gpu/no_concatenate", "--device", "h100_sxm", address="#show=copy.23")
    assert facts(seen)["final name"] == "copy.23"
    assert "Added by a pass after fusion" in seen.details
    seen.page.keyboard.press("Escape")
    assert seen.details.startswith("Verdict")
    seen.page.locator("#panel .row", has_text="4 × copy.23").click()
    seen.page.locator("#panel .row", has_text="copy.24").click()
    assert facts(seen)["final name"] == "copy.24"
    seen.page.fill("#search", "copy.25")
    seen.page.keyboard.press("Enter")
    assert facts(seen)["final name"] == "copy.25"


@pytest.mark.parametrize("sample", [BLOCK, "cpu/softmax", "cartpole/gpu/scan"])
def test_figures_are_those_of_explain(explored: Open, hlofuse: Run, samples: Path, sample: str) -> None:
    device = () if "cpu" in sample else ("--device", "h100_sxm")
    seen = explored(samples / sample, *device)
    report = json.loads(hlofuse("explain", samples / sample, *device, "--format", "json").out)
    run = seen.page.evaluate("({ after: explorer.run.after, before: explorer.run.before })")
    assert run == {"after": report["after"], "before": report["before"]}
    kernels = seen.page.evaluate(
        "explorer.run.kernels.map((k) => [k.name, k.bytes, k.us, k.floor, k.iterations])"
    )
    assert [[k["name"], k["bytes"], k["floor"], k["runs"]] for k in report["kernels"]] == [
        [name, moved, floor, runs] for name, moved, _, floor, runs in kernels
    ]
    for own, (name, _, us, *_) in zip(report["kernels"], kernels, strict=True):
        assert (us is None) == (own["time_us"] is None), name
        assert us is None or us == pytest.approx(own["time_us"], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("sample", [BLOCK, "cpu/softmax"])
def test_the_page_opens_as_the_report_does(explored: Open, hlofuse: Run, samples: Path, sample: str) -> None:
    device = () if "cpu" in sample else ("--device", "h100_sxm")
    seen = explored(samples / sample, *device)
    lines = [
        line.strip() for line in hlofuse("explain", samples / sample, *device, columns=200).out.splitlines()
    ]
    first, *shown = (
        seen.page.inner_text("#title"),
        *seen.page.locator("#details .verdict > p").all_text_contents(),
    )
    assert first.startswith(lines[0])
    start = lines.index(shown[0])
    until = next(
        n for n, line in enumerate(lines) if line.startswith(("Slowest kernels", "Kernels that move most"))
    )
    report = [line for line in lines[start:until] if line]
    assert shown[: len(report)] == report
