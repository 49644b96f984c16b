"""Two directories compared: every module paired by name, one summary."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ..running import Run

SAMPLES = Path(__file__).parents[2] / "samples"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`old` and `new` with a module that is the same, one fused differently, one for each side alone."""
    monkeypatch.chdir(tmp_path)
    for side, softmax in (("old", "before"), ("new", "after")):
        (tmp_path / side).mkdir()
        shutil.copy(SAMPLES / f"cpu/softmax/{softmax}.hlo", f"{side}/softmax.hlo")
        shutil.copy(SAMPLES / "cpu/gpt2_block/after.hlo", f"{side}/block.hlo")
        shutil.copy(SAMPLES / "cpu/gpt2_block/after.hlo", f"{side}/only_{side}.hlo")
    return tmp_path


def test_every_module_is_paired(hlofuse: Run, dumps: Path) -> None:
    result = hlofuse("diff", "old", "new", columns=120)
    assert (result.status, result.err) == (1, "")
    first, second, *rest = result.out.splitlines()
    assert first == ("2 modules compared: 1 the same, 1 fused differently, 1 only in BEFORE, 1 only in AFTER")
    assert second.startswith("kernels 34 → 32 (−2)")
    assert any(line.startswith("softmax") and "6 → 4 (−2)" in line and "2 new" in line for line in rest)
    assert not any(line.startswith("block") for line in rest)
    assert "only in BEFORE: only_old" in result.out
    narrow = hlofuse("diff", "old", "new", columns=30).out
    assert "  hlofuse diff old/softmax.hlo new/softmax.hlo\n" in narrow  # to be copied


def test_the_other_forms(hlofuse: Run, dumps: Path) -> None:
    found = json.loads(hlofuse("diff", "old", "new", "--format", "json").out)
    assert found["schema"] == "hlofuse.diff-many/3"
    assert [m["name"] for m in found["modules"]] == ["softmax", "block"]
    assert found["modules"][0]["fusions"] == {"new": 2}
    documented = (ROOT / "docs/json-diff.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in documented for name in [*found, *found["modules"][0]])
    table = hlofuse("diff", "old", "new", "--format", "markdown").out
    assert "| softmax | 6 → 4 \\(−2\\) |" in table
    refused = hlofuse("diff", "old", "new", "-o", "page.html")
    assert refused.status == 2
    assert "hlofuse explore BEFORE AFTER -o page.html" in refused.err
    assert not Path("page.html").exists()


def test_the_same_directories(hlofuse: Run, dumps: Path) -> None:
    result = hlofuse("diff", "old", "old")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("3 modules, all the same including fusions")


def test_a_broken_module_costs_its_row_only(hlofuse: Run, dumps: Path) -> None:
    Path("new/block.hlo").write_text("HloModule m\n\nENTRY e {\n  nonsense\n}\n", encoding="utf-8")
    result = hlofuse("diff", "old", "new", columns=120)
    assert result.status == 1
    assert "1 not comparable" in result.out
    assert "block: new/block.hlo:" in result.out


def test_a_corpus_is_taken_as_the_passes_leave_it(hlofuse: Run, tmp_path: Path) -> None:
    for side, after in (("a", "after"), ("b", "before")):
        folder = tmp_path / side / "softmax"
        folder.mkdir(parents=True)
        shutil.copy(SAMPLES / "cpu/softmax/before.hlo", folder / "before.hlo")
        shutil.copy(SAMPLES / f"cpu/softmax/{after}.hlo", folder / "after.hlo")
    directories = tmp_path / "a", tmp_path / "b"
    assert hlofuse("diff", *directories).status == 1
    assert "2 vanished" in hlofuse("diff", *directories, "--module", "softmax").out
    assert "2 vanished" in hlofuse("diff", *(d / "softmax" for d in directories)).out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (("old", "empty"), "no module dumps"),
        (("old", "new", "--module", "softmacks"), "did you mean softmax"),
        (("old", "new", "--device-after", "v100"), "needs --device"),
        (("old", "new", "--device", "v1000"), "v1000"),
    ],
)
def test_trouble(hlofuse: Run, dumps: Path, text: tuple[str, ...], message: str) -> None:
    Path("empty").mkdir()
    result = hlofuse("diff", *text)
    assert (result.status, result.out) == (2, "")
    assert message in result.err


def test_nothing_in_common_is_said(hlofuse: Run, dumps: Path) -> None:
    Path("other").mkdir()
    shutil.copy("old/block.hlo", "other/x.hlo")
    result = hlofuse("diff", "old", "other")
    assert result.status == 2
    assert "nothing to compare" in result.err


def test_times_on_a_device(hlofuse: Run) -> None:
    """By the model of kernels; for a library's a lower bound, and that is said."""
    sides = SAMPLES / "gpu/gpt2_block/before.hlo", SAMPLES / "gpu/gpt2_block/after.hlo"
    timed = hlofuse("diff", *sides, "--device", "a100_sxm_80", columns=120).out
    assert "estimated time on a100_sxm_80" in timed
    assert "µs (−" in timed
    found = json.loads(hlofuse("diff", *sides, "--device", "a100_sxm_80", "--format", "json").out)
    before, after = (found[side]["totals"] for side in ("before", "after"))
    assert before["time_us"] > after["time_us"] > after["floor_us"] > 0
    assert after["time_us"] == pytest.approx(after["modelled_us"] + after["floor_us"], abs=1e-4)


def test_modules_of_a_dump_are_paired_whatever_their_numbers(hlofuse: Run, tmp_path: Path) -> None:
    """XLA numbers modules anew in each run; of several with one name the order counts."""
    for side, numbers in (("a", (3, 8, 9)), ("b", (15, 21, 40))):
        folder = tmp_path / side
        folder.mkdir()
        for number, name in zip(numbers, ("jit_f", "jit_f", "jit_softmax"), strict=True):
            head = f"module_{number:04d}.{name}"
            for stage, sample in (
                ("0001.HLO_passes_after_layout_assignment.after_pipeline-start.before_fusion", "before"),
                ("0002.HLO_passes_after_layout_assignment.after_fusion.before_fusion-wrapper", "after"),
            ):
                shutil.copy(SAMPLES / f"cpu/softmax/{sample}.hlo", folder / f"{head}.{stage}.txt")
    directories = tmp_path / "a", tmp_path / "b"
    assert hlofuse("diff", *directories).out.startswith("3 modules, all the same")
    found = json.loads(hlofuse("diff", *directories, "--format", "json").out)
    assert [m["name"] for m in found["modules"]] == ["jit_f#1", "jit_f#2", "jit_softmax"]
    assert all("after_fusion" in file for m in found["modules"] for file in m["files"])
    assert hlofuse("diff", *directories, "--module", "softmax").status == 0
    assert "did you mean jit_softmax" in hlofuse("diff", *directories, "--module", "jit_softmaks").err
