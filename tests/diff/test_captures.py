"""Two captures compared: what runs, as `explain` counts it, and the flags."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ..running import Run

TUTORIAL = Path(__file__).parents[2] / "samples" / "tutorial"
SLOW, FAST = TUTORIAL / "slow", TUTORIAL / "fast"
_FIGURES = ("kernels", "launches", "bytes", "flop", "time_us", "copies", "temporary_bytes")


@pytest.fixture
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`old/one` and `new/two`: captures of two programs with different names."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SLOW / "loss", "old/one")
    shutil.copytree(FAST / "loss", "new/two")
    return tmp_path


def document(hlofuse: Run, *call: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(hlofuse(*call, "--format", "json").out)
    return found


@pytest.mark.parametrize("only", [None, "after_optimizations", "before"])
def test_the_totals_are_those_of_explain(hlofuse: Run, captures: Path, only: str | None) -> None:
    """By XLA's final module where it is there, else by the replayed one."""
    if only is not None:
        Path("old/one/after_optimizations.hlo").unlink()
    if only == "before":
        Path("old/one/after.hlo").unlink()
    compared = document(hlofuse, "diff", "old", "new")
    for side, folder in (("before", "old"), ("after", "new")):
        explained = document(hlofuse, "explain", folder)["totals"]
        assert {k: compared[side]["totals"][k] for k in _FIGURES} == {k: explained[k] for k in _FIGURES}
    assert compared["after"]["totals"]["from"] == "xla"
    assert compared["before"]["totals"]["from"] == ("xla" if only is None else "replayed")
    note = "before: final kernels are replayed"
    assert (note in hlofuse("diff", "old", "new").out) == (only is not None)


def test_the_only_modules_are_compared_whatever_their_names(hlofuse: Run, captures: Path) -> None:
    plain = hlofuse("diff", "old", "new", columns=120)
    assert plain.status == 1
    assert "kernels 10 → 13 (+3)" in plain.out
    assert "temporary memory 8.91 MB " in " ".join(plain.out.split())
    assert hlofuse("diff", "old/one", "new/two", columns=120).out == plain.out
    shutil.copytree("new/two", "new/three")
    of_several = hlofuse("diff", "old", "new")
    assert of_several.status == 2
    assert "nothing to compare" in of_several.err
    shutil.copytree("old/one", "old/three")
    summary = document(hlofuse, "diff", "old", "new")
    assert [m["name"] for m in summary["modules"]] == ["three"]
    assert summary["modules"][0]["temporary_bytes"] == [8914944, 8912896]


@pytest.mark.parametrize("file", ["after_optimizations.hlo", "after.hlo"])
def test_a_capture_and_a_fused_module_are_compared_as_they_run(
    hlofuse: Run, captures: Path, file: str
) -> None:
    """A module before fusion is compared with the one that enters fusion in the capture."""
    alone = document(hlofuse, "diff", "old", f"new/two/{file}")
    assert [alone[side]["totals"]["kernels"] for side in ("before", "after")] == [10, 13]
    assert alone["same_program"] is False
    assert hlofuse("diff", "new", "new/two/after_optimizations.hlo").status == 0
    assert hlofuse("diff", "new", "new/two/before.hlo").status == 0


def test_flags_that_differ_are_said(hlofuse: Run, captures: Path) -> None:
    assert "XLA flags" not in hlofuse("diff", "old", "new").out
    options = 'xla_dump_to: "/x"\nxla_cpu_use_fusion_emitters: true\nxla_disable_hlo_passes: "a"\n'
    Path("old/one/debug_options").write_text(options, encoding="utf-8")
    stamp = json.loads(Path("new/two/hlofuse.json").read_text(encoding="utf-8"))
    stamp["flags"] = "--xla_disable_hlo_passes=a,b --xla_made_up"
    Path("new/two/hlofuse.json").write_text(json.dumps(stamp), encoding="utf-8")
    assert document(hlofuse, "diff", "old", "new")["flags"] == {
        "xla_cpu_use_fusion_emitters": ["true", None],
        "xla_disable_hlo_passes": ["a", "a,b"],
        "xla_made_up": [None, "true"],
    }
    shown = " ".join(hlofuse("diff", "old", "new").out.split())
    assert "XLA flags that differ: --xla_cpu_use_fusion_emitters true → default" in shown
    Path("new/two/hlofuse.json").unlink()  # nothing states the flags of this side
    assert document(hlofuse, "diff", "old", "new")["flags"] == {}


@pytest.mark.parametrize(
    "sample", ["tutorial/slow", "cpu/gpt2_block", "gpu/gpt2_block", "cartpole/cpu/baseline"]
)
def test_a_caption_counts_the_kernels_of_explain(hlofuse: Run, tmp_path: Path, sample: str) -> None:
    """Also where passes after fusion add kernels that the picture lacks."""
    folder, picture = TUTORIAL.parent / sample, tmp_path / "picture.dot"
    totals = document(hlofuse, "explain", folder)["totals"]
    assert hlofuse("render", folder, "-o", picture).status == 0
    caption = next(line for line in picture.read_text(encoding="utf-8").splitlines() if " moved" in line)
    assert f" → {totals['kernels']} kernels" in caption
