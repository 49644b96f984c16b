"""`hlofuse plot`: the figures in the picture are those of the replay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlofuse.account import Account, KernelTimes
from hlofuse.inputs import load
from hlofuse.ir import parse_module
from hlofuse.pipelines import device_of
from hlofuse.plot.bars import plot_kernels, plot_passes
from hlofuse.plot.roofline import plot_roofline
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.render.options import ModulePair, pair_of
from hlofuse.replay import ModuleTexts, replay

from ..render.modules import needs_graphviz
from ..running import Run

GPU = ("--device", "h100_sxm")

DUPLICATES = """HloModule twins

ENTRY main {
  p = f32[4096]{0} parameter(0)
  q = f32[1048576]{0} parameter(1)
  left = f32[4096]{0} negate(p)
  right = f32[4096]{0} negate(p)
  apart = f32[1048576]{0} tanh(q)
  ROOT t = (f32[4096]{0}, f32[4096]{0}, f32[1048576]{0}) tuple(left, right, apart)
}
"""


def labels(dot: str) -> list[str]:
    """The texts, in the order they were drawn."""
    return [t.removesuffix("\\l").removesuffix("\\r") for t in re.findall(r'label="([^"]+)"', dot)]


def test_a_row_for_each_pass_that_changed_something(samples: Path) -> None:
    done = replay(load(samples / "cpu/softmax/before.hlo"), "cpu", [ModuleTexts()])
    found = labels(plot_passes(done, None).dot)
    assert found[0] == "jit_softmax"
    assert {"as it enters", "kernels", "bytes moved"} <= set(found)
    figures = found[found.index("kernels") + 1 : found.index("bytes moved")]
    changed = [p.name for p in done.passes if p.changed]
    assert len(figures) == 1 + len(changed) + 1
    assert (figures[0], figures[-1]) == ("6", "4")
    assert any(row.endswith(f". {changed[-1]}") for row in found)


def test_time_is_plotted_where_there_is_a_model(hlofuse: Run, samples: Path) -> None:
    cpu = hlofuse("plot", samples / "cpu/softmax/before.hlo", "-o", "-").out
    gpu = hlofuse("plot", samples / "gpu/gpt2_block/before.hlo", "-o", "-", *GPU).out
    assert "estimated time" not in labels(cpu)
    assert "estimated time" in labels(gpu)
    changed = hlofuse("plot", samples / "cpu/softmax/before.hlo", "-o", "-", "--disable", "CPU007").out
    assert "Not XLA&#39;s behaviour: without CPU007." in changed


def test_no_byte_of_before_is_lost_or_counted_twice(samples: Path) -> None:
    """What is in several kernels counts in parts, what is in none in a row of its own."""
    done = replay(load(samples / "cpu/softmax/before.hlo"), "cpu")
    pair, final = pair_of(done, ""), done.final
    sides = Account(pair.before), Account(final.module), final.names_at_fusion
    whole = labels(plot_kernels(pair, *sides, "title", most=0).dot)
    assert "4 other kernels" in whole
    assert whole[-2:] == ["29.4 MB", "21.0 MB"]
    lost = ModulePair(pair.before, pair.after, {})
    removed = labels(plot_kernels(lost, *sides, "title").dot)
    assert removed[removed.index("bytes moved") + 1] == "29.4 MB"
    assert "gone: computed in no kernel" in removed


def test_the_roofline_shows_what_computes(samples: Path) -> None:
    device, _ = device_of("gpu", "h100_sxm")
    assert device is not None
    done = replay(load(samples / "gpu/gpt2_block/before.hlo"), "gpu", device=device)
    plot = plot_roofline(done.before, done.after, KernelTimes(device, RELEASE), "title")
    found = labels(plot.dot)
    assert "3.35 TB/s" in found
    assert any("a second, float32" in text for text in found)
    attributes = [lines[0] for lines in plot.tooltips.values()]
    assert sum(text.startswith("after: ") for text in attributes) == 5
    assert any("10 after, that compute nothing or have no estimate" in text for text in found)


def test_names_that_would_stand_one_over_another_share_a_line() -> None:
    module = parse_module(DUPLICATES)
    device, _ = device_of("gpu", "h100_sxm")
    assert device is not None
    found = labels(plot_roofline(module, module, KernelTimes(device, RELEASE), "title").dot)
    assert "left, right" in found
    assert "apart" in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (("-o", "x.svg", "--kind", "roofline"), "asks for --device"),
        (("-o", "x.gif"), "the output's suffix"),
        (("-o", "x.dot", "--kind", "pie"), "pie"),
    ],
)
def test_wrong_words(
    text: tuple[str, ...],
    message: str,
    hlofuse: Run,
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = hlofuse("plot", samples / "cpu/softmax/before.hlo", *text)
    assert result.status == 2
    assert message in result.err
    assert not list(tmp_path.iterdir())


@needs_graphviz
@pytest.mark.parametrize("kind", ["passes", "kernels", "roofline"])
def test_svg_and_png(kind: str, hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    source = samples / "gpu/gpt2_block/before.hlo"
    for suffix, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        file = tmp_path / f"p.{suffix}"
        assert hlofuse("plot", source, *GPU, "--kind", kind, "-o", file).status == 0
        first = file.read_bytes()
        assert first.startswith(start)
        hlofuse("plot", source, *GPU, "--kind", kind, "-o", file)
        assert file.read_bytes() == first
    assert "µs" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_names_from_a_dump_are_text(tmp_path: Path, hlofuse: Run) -> None:
    file = tmp_path / "evil.hlo"
    file.write_text(
        'HloModule "<script>"\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n'
        '  "\\\\N<b>" = f32[8]{0} exponential(p)\n  ROOT r = f32[8]{0} negate("\\\\N<b>")\n}\n',
        encoding="utf-8",
    )
    result = hlofuse("plot", file, "-o", "-", "--kind", "kernels")
    assert "<script>" not in result.out
    assert "<b>" not in result.out
