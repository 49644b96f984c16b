"""`hlofuse render` on files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.inputs import load
from ..running import Run
from .modules import FUSED, UNFUSED, chain, needs_graphviz


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unfused.hlo").write_text(UNFUSED)
    (tmp_path / "fused.hlo").write_text(FUSED)
    (tmp_path / "long.hlo").write_text(chain(3_000))
    return tmp_path


@needs_graphviz
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "dot", "gv", "SVG"])
def test_the_suffix_says_what_to_draw(hlofuse: Run, dumps: Path, suffix: str) -> None:
    result = hlofuse("render", "unfused.hlo", "-o", f"out.{suffix}")
    assert result.status == 0, result.err
    start = (dumps / f"out.{suffix}").read_bytes()[:5]
    expected = {"svg": b"<?xml", "png": b"\x89PNG\r", "pdf": b"%PDF-", "dot": b"digra", "gv": b"digra"}
    assert start == expected[suffix.lower()]
    assert sorted(p.name for p in dumps.iterdir()) == sorted(
        ["unfused.hlo", "fused.hlo", "long.hlo", f"out.{suffix}"]
    ), "a temporary file was left"


@pytest.mark.parametrize("name", ["out.jpg", "out", "out.svg.txt"])
def test_an_unknown_suffix_is_refused(hlofuse: Run, dumps: Path, name: str) -> None:
    result = hlofuse("render", "unfused.hlo", "-o", name)
    assert result.status == 2
    assert ".svg, .png, .pdf, .dot" in result.err
    assert not (dumps / name).exists()


def test_a_view_is_chosen_by_the_stage(hlofuse: Run, dumps: Path) -> None:
    assert "cpu fusion: 5 → 1 kernel" in hlofuse("render", "unfused.hlo", "-o", "-").out
    assert "as it is: 3 kernels" in hlofuse("render", "fused.hlo", "-o", "-").out
    assert "as it is: 5 kernels" in hlofuse("render", "unfused.hlo", "-o", "-", "--view", "before").out
    both = hlofuse("render", "unfused.hlo", "-o", "-", "--view", "both").out
    assert "before: entry main" in both
    assert "after: entry main" in both


def test_a_fused_module_is_not_fused_again_unasked(hlofuse: Run, dumps: Path) -> None:
    as_cpu = "render", "fused.hlo", "-o", "-", "--view", "after", "--target", "cpu"
    result = hlofuse(*as_cpu)
    assert result.status == 2
    assert "is a fused module" in result.err
    assert "cpu fusion" in hlofuse(*as_cpu, "--assume-input").out


def test_a_gpu_s_module_is_not_replayed_without_a_device(hlofuse: Run, deviceless: Path) -> None:
    out = deviceless.with_name("x.dot")
    result = hlofuse("render", deviceless, "-o", out, "--view", "both")
    assert result.status == 2
    assert "needs --device" in result.err
    assert not out.exists()


def test_what_is_left_out_is_said_on_standard_error(hlofuse: Run, dumps: Path) -> None:
    result = hlofuse("render", "long.hlo", "-o", "out.dot", "--view", "before", "--max-nodes", "40")
    assert result.status == 0
    assert "3,000 instructions collapsed into" in result.err
    assert "--open part" in result.err


def test_a_mistyped_name_gets_suggestions(hlofuse: Run, dumps: Path) -> None:
    result = hlofuse("render", "fused.hlo", "-o", "out.dot", "--focus", "fusion.2")
    assert result.status == 2
    assert "did you mean fusion" in result.err


def test_standard_output_and_format(hlofuse: Run, dumps: Path) -> None:
    assert hlofuse("render", "fused.hlo", "-o", "-").out.startswith("digraph")
    assert hlofuse("render", "fused.hlo", "-o", "picture", "--format", "dot").status == 0
    assert (dumps / "picture").read_text().startswith("digraph")
    assert "Legend" not in hlofuse("render", "fused.hlo", "-o", "-", "--no-legend").out


@pytest.fixture
def pair(hlofuse: Run, dumps: Path) -> tuple[str, str]:
    """A module, and the one kernel it becomes."""
    assert hlofuse("replay", "unfused.hlo", "-o", "one.hlo").status == 0
    return "unfused.hlo", "one.hlo"


def test_two_modules_side_by_side(hlofuse: Run, pair: tuple[str, str]) -> None:
    """What became of what, by the numbers of AFTER's kernels; what changed has a word."""
    dot = hlofuse("render", *pair, "-o", "-").out
    assert "same program, different fusions: 1 new" in dot
    assert "5 → 1 kernel," in dot
    assert dot.count("<B>new</B>") == 1
    assert "becomes kernel K1" in dot
    assert "before: entry main" in dot
    back = hlofuse("render", *reversed(pair), "-o", "-").out
    assert back.count("<B>vanished</B>") == 1
    one = hlofuse("render", *pair, "-o", "-", "--view", "after").out
    assert "before: entry main" not in one
    assert one.count("<B>new</B>") == 1


def test_two_modules_are_not_replayed(hlofuse: Run, pair: tuple[str, str]) -> None:
    result = hlofuse("render", *pair, "-o", "out.dot", "--target", "cpu")
    assert result.status == 2
    assert "--target needs a replay" in result.err
    assert not Path("out.dot").exists()


def test_focus_on_one_of_two_modules(hlofuse: Run, pair: tuple[str, str]) -> None:
    """A name of either side leads to what it is on the other."""
    dot = hlofuse("render", *pair, "-o", "-", "--focus", "e", "--radius", "0").out
    assert dot.count("<B>exponential</B>") == 2
    kernel = load("one.hlo").entry.root.name
    back = hlofuse("render", *pair, "-o", "-", "--focus", kernel, "--radius", "0")
    assert back.status == 0, back.err
    assert back.out.count("<B>multiply</B>") == 2


def test_a_collapsed_part_names_each_kernel_once(hlofuse: Run, pair: tuple[str, str]) -> None:
    dot = hlofuse("render", *pair, "-o", "-", "--max-nodes", "1").out
    assert "part 1" in dot
    assert "K1, 1" not in dot


def test_of_a_large_module_focus_draws_the_neighbourhood(hlofuse: Run, dumps: Path) -> None:
    near = hlofuse("render", "long.hlo", "-o", "-", "--view", "before", "--focus", "v1500", "--radius", "3")
    assert near.status == 0
    assert near.out.count("<B>negate</B>") == 7
    assert "collapsed" not in near.err
    wide = hlofuse("render", "long.hlo", "-o", "-", "--view", "before", "--focus", "v1500", "--radius", "400")
    assert "only the nearest 250 instructions within radius 400" in wide.err
    assert wide.out.count("<B>negate</B>") == 250


def test_a_line_in_focus_shows_all_its_kernels_and_each_has_its_time(hlofuse: Run, samples: Path) -> None:
    line, place = "programs.py:298", (samples / "gpu" / "gpt2_block", "--device", "h100_sxm")
    kernels = json.loads(hlofuse("kernels", place[0], line, *place[1:], "--format", "json").out)["kernels"]
    dot = hlofuse("render", *place, "-o", "-", "--focus", line, "--radius", "0").out
    assert len(kernels) > 1
    assert all(k["name"] in dot for k in kernels)
    assert dot.count("est. ") == len(kernels)
