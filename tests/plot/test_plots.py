"""`hlofuse plot`: the figures in the picture are those of the replay."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hlofuse import open as hlofuse_open
from hlofuse.account import Account
from hlofuse.compilation import ModuleTexts, compile
from hlofuse.inputs import load
from hlofuse.plot.figure import plot_kernels, plot_passes
from hlofuse.render import drawing
from hlofuse.render.scene import ModulePair, pair_of
from ..render.modules import texts
from ..running import Run

GPU = ("--device", "h100_sxm")


def labels(svg: str) -> list[str]:
    """The texts, in the order they were drawn."""
    return texts(svg).split("\n")


def test_a_row_for_each_pass_that_changed_something(samples: Path) -> None:
    done = compile(load(samples / "cpu/softmax/before.hlo"), "cpu", [ModuleTexts()])
    found = labels(plot_passes(done, None).to_svg())
    assert found[0] == "jit_softmax"
    assert {"fusion input", "kernels", "bytes moved"} <= set(found)
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
    assert "Settings differ from XLA's: without CPU007." in changed


def test_no_byte_of_before_is_lost_or_counted_twice(samples: Path) -> None:
    """What is in several kernels counts in parts, what is in none in a row of its own."""
    done = compile(load(samples / "cpu/softmax/before.hlo"), "cpu")
    pair = pair_of(done)
    sides = Account(pair.before), Account(done.final), done.names_at_fusion
    whole = labels(plot_kernels(pair, *sides, "title", most=0).to_svg())
    assert "… 4 more kernels" in whole
    assert whole[-2:] == ["29.4 MB", "21.0 MB"]
    lost = ModulePair(pair.before, pair.after, {})
    removed = labels(plot_kernels(lost, *sides, "title").to_svg())
    assert "29.4 MB" in removed
    assert removed.index("removed: no kernel computes it") > removed.index("ynn_fusion")  # it takes nothing


@pytest.mark.parametrize("sample", ["gpt2_block", "softmax"])
@pytest.mark.parametrize("kind", ["passes", "kernels"])
def test_no_text_is_small_or_lies_over_another(kind: str, sample: str, browser: Browser, samples: Path,
                                               tmp_path: Path, hlofuse: Run) -> None:  # fmt: skip
    file = tmp_path / "plot.svg"
    assert hlofuse("plot", samples / "gpu" / sample, *GPU, "--kind", kind, "-o", file).status == 0
    page = browser.new_page(viewport={"width": 2000, "height": 1400})
    page.goto(file.as_uri())
    areas = page.evaluate(
        """() => [...document.querySelectorAll("text")].map(t => {
             const r = t.getBoundingClientRect();
             return [t.textContent, parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a,
                     r.left, r.top, r.right, r.bottom]; })"""
    )
    page.close()
    assert min(size for _, size, *_ in areas) >= 11
    for n, (text, _, left, top, right, bottom) in enumerate(areas):
        for other, _, l2, t2, r2, b2 in areas[:n]:
            # A line of text has room above and below its letters.
            apart = right <= l2 or r2 <= left or bottom - 3 <= t2 or b2 - 3 <= top
            assert apart, f"{text!r} lies over {other!r}"


def test_bars_carry_final_names_lines_and_iterations(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    out = hlofuse("plot", samples / "gpu/gpt2_block", *GPU, "--kind", "kernels", "-o", "-").out
    assert "loop_multiply_fusion (fusion.21)" in labels(out)
    assert "programs.py:305" in labels(out)
    loop = hlofuse("plot", samples / "cartpole/gpu/scan", *GPU, "--kind", "kernels", "-o", "-").out
    assert "programs.py:144, ×10,000" in labels(loop)
    cpu = hlofuse("plot", samples / "cpu/softmax", "--kind", "kernels", "-o", "-").out
    assert any(label.startswith("programs.py:") for label in labels(cpu))


def test_plots_as_svg_need_no_graphviz(
    hlofuse: Run, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "engine", lambda: pytest.fail("Graphviz is used"))
    for kind in ("passes", "kernels"):
        file = tmp_path / f"{kind}.svg"
        result = hlofuse("plot", samples / "gpu/softmax", *GPU, "--kind", kind, "-o", file)
        assert result.status == 0, result.err
        assert f"wrote {file} (" in result.err
        assert "open it in a browser; the wheel zooms" in result.err
        assert file.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("text", "message"), [(("-o", "x.gif"), "a plot is an SVG"), (("-o", "x.svg", "--kind", "pie"), "pie")]
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


@pytest.mark.parametrize("kind", ["passes", "kernels"])
def test_the_same_module_gives_the_same_bytes(kind: str, hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    source, file = samples / "gpu/gpt2_block/before.hlo", tmp_path / "p.svg"
    assert hlofuse("plot", source, *GPU, "--kind", kind, "-o", file).status == 0
    first = file.read_bytes()
    assert first.startswith(b"<?xml")
    hlofuse("plot", source, *GPU, "--kind", kind, "-o", file)
    assert file.read_bytes() == first
    assert "µs" in file.read_text(encoding="utf-8")


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


def test_memory_over_the_schedule(samples: Path) -> None:
    """XLA's own module: 8,914,944 bytes at the peak."""
    svg = hlofuse_open(samples / "tutorial/slow/loss").plot("memory").to_svg()
    assert "8.91 MB of temporary arrays alive at the peak, 3 arrays" in svg
    assert svg.count("<polyline") == 2
