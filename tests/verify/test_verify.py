"""`verify`: agreement, and what is said where there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.verify import find_cases, verify
from ..fixtures import read_cases
from ..inputs.dump_directories import FULL, dump
from ..running import Golden, Run

AFTER_FUSION = Path(__file__).parent.parent / "passes" / "after_fusion.hlo"


def test_the_samples_agree_with_xla(samples: Path) -> None:
    cases, skipped = find_cases(samples / "cpu")
    cases += find_cases(samples / "cartpole" / "cpu")[0]
    report = verify(cases)
    assert (len(cases), skipped) == (8, [])
    assert report.agrees
    for v in report.verdicts:
        assert (v.error, v.difference) == (None, None)
        assert v.fusion_names == v.fusions > 0
        assert all(p.changed_actual == p.changed_xla for p in v.passes)


def test_several_processes_say_the_same(samples: Path) -> None:
    cases, _ = find_cases(samples / "cartpole" / "cpu")
    several, one = (
        [(v.name, v.exact, v.passes, v.fusions) for v in verify(cases[:3], jobs=jobs).verdicts]
        for jobs in (2, 1)
    )
    assert several == one


@pytest.fixture
def broken(tmp_path: Path, samples: Path) -> Path:
    """A corpus in which XLA seems to have done something else to softmax."""
    for folder in ("cpu/softmax", "cartpole/cpu/precomputed_noise"):
        shutil.copytree(samples / folder, tmp_path / Path(folder).name)
    for file in ("01-fusion.hlo", "after.hlo"):
        path = tmp_path / "softmax" / file
        text = path.read_text()
        assert "divide(%broadcast.4, %param_0.4)" in text
        path.write_text(
            text.replace("divide(%broadcast.4, %param_0.4)", "multiply(%broadcast.4, %param_0.4)")
        )
    return tmp_path


def test_a_difference_is_shown_from_both_sides(hlofuse: Run, golden: Golden, broken: Path) -> None:
    result = hlofuse("verify", broken, "-j1")
    assert result.status == 1
    golden("verify/difference.txt", result.out)
    result = hlofuse("verify", broken, "-j1", "--format", "markdown")
    golden("verify/difference.md", result.out)
    result = hlofuse("verify", broken, "-j1", "--format", "json")
    report = json.loads(result.out)
    assert (report["schema"], report["agrees"], report["modules"], report["exact"]) == (
        "hlofuse.verify/3",
        False,
        2,
        1,
    )


def test_agreement_in_one_line(hlofuse: Run, golden: Golden, samples: Path) -> None:
    result = hlofuse("verify", samples / "cpu", "--module", "softmax", "-v")
    assert result.status == 0
    golden("verify/agreement.txt", result.out)


def test_two_files(hlofuse: Run, samples: Path) -> None:
    folder = samples / "cpu" / "softmax"
    assert hlofuse("verify", folder / "before.hlo", folder / "after.hlo").status == 0
    result = hlofuse("verify", folder / "before.hlo", folder / "before.hlo")
    assert result.status == 1
    assert "broadcast_divide_fusion" in result.out


def test_files_of_the_wrong_moment_are_said_to_be_that(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    """The two files that XLA writes unasked: a difference between them says nothing about a replay."""
    text = (samples / "cpu" / "softmax" / "before.hlo").read_text()
    before = tmp_path / "module_0001.jit_softmax.before_optimizations.txt"
    before.write_text(text)
    after = tmp_path / "module_0001.jit_softmax.cpu_after_optimizations.txt"
    after.write_text(text.replace("HloModule jit_softmax", "HloModule jit_softmax, is_scheduled=true"))
    for form in ("text", "markdown"):
        result = hlofuse("verify", before, after, "--format", form)
        assert result.status == 1
        phrase = " ".join(result.out.replace("\\", "").split())
        assert "BEFORE is a module before the fusion passes" in phrase
        assert "AFTER is the module after all optimizations" in phrase


def test_a_module_that_cannot_be_read_does_not_stop_the_rest(hlofuse: Run, broken: Path) -> None:
    (broken / "softmax" / "before.hlo").write_text("HloModule broken\n\nENTRY %main {\n  nonsense\n}\n")
    result = hlofuse("verify", broken, "-j1")
    assert result.status == 1
    assert "Kernels agree: 1 of 1\n" in result.out
    assert "softmax  not compared" in result.out


def test_a_pass_that_xla_did_not_need(hlofuse: Run, broken: Path) -> None:
    """The dump after `fusion` is gone, as if that pass had changed nothing."""
    (broken / "precomputed_noise" / "01-fusion.hlo").unlink()
    result = hlofuse("verify", broken, "--module", "precomputed_noise")
    assert result.status == 1
    assert "differs after fusion" in result.out


def test_wrong_calls(hlofuse: Run, tmp_path: Path, samples: Path) -> None:
    assert "does not exist" in hlofuse("verify", tmp_path / "no").err
    before = samples / "cpu" / "softmax" / "before.hlo"
    result = hlofuse("verify", before)
    assert result.status == 2
    assert "give hlofuse verify BEFORE AFTER" in result.err
    assert hlofuse("verify", before, before, "--module", "x").status == 2
    result = hlofuse("verify", before.parent, before)
    assert (result.status, result.out) == (2, "")
    assert f"hlofuse verify {before.parent}, or two files" in result.err
    assert "no target" in hlofuse("verify", samples / "cpu", "--target", "abacus").err
    assert (
        "the same on every device"
        in hlofuse("verify", samples / "cpu", "--target", "cpu", "--device", "h100_sxm").err
    )
    assert "no module dumps" in hlofuse("verify", tmp_path).err


def test_dump_directories_and_what_they_lack(tmp_path: Path) -> None:
    dump(tmp_path, FULL, "jit_f", 1)
    dump(tmp_path, ["before_optimizations"], "jit_g", 2)
    cases, skipped = find_cases(tmp_path)
    assert [c.name for c in cases] == ["jit_f"]
    assert cases[0].passes is not None
    assert [name for name, _ in cases[0].passes] == ["fusion", "fusion-wrapper"]
    assert "module_0002.jit_g: no dump" in skipped[0]
    with pytest.raises(HlofuseError, match="no dump at the fusion input"):
        find_cases(tmp_path, module="jit_g")


def test_a_directory_with_nothing_to_compare_says_which_flags_to_give(tmp_path: Path) -> None:
    for number in range(12):
        dump(tmp_path, ["before_optimizations"], "jit_g", number)
    with pytest.raises(HlofuseError, match=r"(?s)nothing to verify.*… 9 more: no .*\nXLA_FLAGS=.*pass_re"):
        find_cases(tmp_path)


def test_two_files_that_do_not_belong_together_are_told(hlofuse: Run, samples: Path) -> None:
    softmax, block = samples / "cpu/softmax", samples / "cpu/gpt2_block"
    same = hlofuse("verify", softmax / "before.hlo", softmax / "before.hlo")
    assert same.status == 1
    assert "AFTER has no fusions." in same.out
    other = hlofuse("verify", softmax / "before.hlo", block / "after.hlo", columns=100)
    assert other.status == 1
    assert "BEFORE is jit_softmax, AFTER is jit_gpt2_block: different programs." in other.out
    right = hlofuse("verify", softmax / "before.hlo", softmax / "after.hlo")
    assert (right.status, "AFTER" in right.out) == (0, False)


TWO_RESULTS = """HloModule jit_several_heroes

ENTRY %e (x: f32[64,32], y: f32[64,32]) -> (f32[64,32], f32[64,32]) {
  %x = f32[64,32]{1,0} parameter(0)
  %y = f32[64,32]{1,0} parameter(1)
  %a.1 = f32[64,32]{1,0} add(%x, %y)
  %m.1 = f32[64,32]{1,0} multiply(%a.1, %x)
  %s.1 = f32[64,32]{1,0} subtract(%a.1, %y)
  %d.1 = f32[64,32]{1,0} divide(%m.1, %s.1)
  ROOT %t.1 = (f32[64,32]{1,0}, f32[64,32]{1,0}) tuple(%d.1, %s.1)
}
"""


def test_final_modules_are_compared_by_what_they_launch(hlofuse: Run, tmp_path: Path) -> None:
    case = next(c for c in read_cases(AFTER_FUSION) if c.name == "several_heroes")
    folder = tmp_path / "several_heroes"
    folder.mkdir()
    (folder / "before.hlo").write_text(TWO_RESULTS)
    final = folder / "after_optimizations.hlo"
    final.write_text(case.section("EXPECT", "h100_sxm"))
    given = ("--until", "end", "--target", "gpu", "--device", "h100_sxm")
    early = tmp_path / "module_0001.jit_several_heroes.before_optimizations.txt"
    reshaped = "(1)\n  %i = f32[64,32] reshape(%y)"
    early.write_text(TWO_RESULTS.replace("(1)", reshaped).replace("1, %y", "1, %i"))
    for paths in ((folder,), (folder / "before.hlo", final), (early, final)):
        result = hlofuse("verify", *paths, *given)
        assert (result.status, "the same kernel names  1 of 1" in result.out) == (0, True), result.out
    final.write_text(final.read_text().replace("loop_divide_subtract_fusion", "loop_divide_fusion"))
    result = hlofuse("verify", folder, *given)
    assert result.status == 1
    assert "0 of 1 kernel names are XLA's; missing: loop_divide_fusion" in result.out
    report = json.loads(hlofuse("verify", folder, *given, "--format", "json").out)
    assert report["verdicts"][0]["final"]["renamed"] == ["loop_divide_fusion"]
    assert "loop\\_divide\\_fusion" in hlofuse("verify", folder, *given, "--format", "markdown").out
    final.unlink()
    result = hlofuse("verify", folder, *given)
    assert result.status == 2
    assert "no after_optimizations.hlo" in result.err


def test_kernels_lead_and_the_order_of_results_is_a_note(hlofuse: Run, tmp_path: Path) -> None:
    before, after = tmp_path / "before.hlo", tmp_path / "after.hlo"
    before.write_text(TWO_RESULTS)
    assert hlofuse("replay", before, "--target", "gpu", "--device", "h100_sxm", "-o", after).status == 0
    call = ("verify", before, after, "--target", "gpu", "--device", "h100_sxm")
    assert "\nKernels agree: 1 of 1\n  exact on target gpu   1 of 1\n" in hlofuse(*call).out
    text = after.read_text()
    for old, new in ((", index=0", ", index=@"), (", index=1", ", index=0"), (", index=@", ", index=1")):
        text = text.replace(old, new)
    after.write_text(text.replace("tuple(%d.2, %s.2.clone.1)", "tuple(%s.2.clone.1, %d.2)"))
    result = hlofuse(*call)
    assert result.status == 1
    assert "\nKernels agree: 1 of 1 (order of results inside one kernel differs)\n" in result.out
    assert json.loads(hlofuse(*call, "--format", "json").out)["verdicts"][0]["reordered"] == 1
    after.write_text(after.read_text().replace("divide(", "maximum("))
    assert "\nKernels agree: 0 of 1\n" in hlofuse(*call).out
