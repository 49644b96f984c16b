"""What each pass did, on a whole dump directory, a damaged one, and ones made up for the purpose."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.timeline import dump_sequences, timeline
from hlofuse.reports.timeline.model import Step
from ..running import Golden, Run
from .dump_directory import ALL, FUSED, PLAIN, SECOND, SIMPLER, STAGES, write


def steps(folder: Path) -> dict[str, Step]:
    return {s.dump.name: s for s in timeline(dump_sequences(folder)[0]).steps}


def test_each_pass_in_figures(tmp_path: Path) -> None:
    found = steps(write(tmp_path, ALL))
    assert [name for name, s in found.items() if s.changed] == [
        "0001 simplification.algsimp",
        "0002 fusion.fusion",
    ]
    simplified = found["0001 simplification.algsimp"]
    assert simplified.opcodes == (("divide", 1, 0), ("multiply", 0, 1))
    assert [(r.removed, r.added) for r in simplified.rewrites] == [(("divide",), ("multiply",))]
    fused = found["0002 fusion.fusion"]
    assert fused.fusions == (("new", 1),)
    assert fused.before is not None
    assert fused.after is not None
    assert (fused.before.kernels, fused.after.kernels) == (3, 1)


def test_times_are_those_of_writing(tmp_path: Path) -> None:
    found = timeline(dump_sequences(write(tmp_path, ALL))[0])
    assert found.seconds == 1.0
    assert [s.seconds for s in found.steps] == [None, 0.25, 0.25, 0.25, 0.25]


@pytest.mark.parametrize("times", [[9, 8, 7, 6, 5], [5, 5, 6, 6, 7]])
def test_there_are_no_times_where_files_were_copied(tmp_path: Path, times: list[int]) -> None:
    write(tmp_path, ALL)
    for stage, t in zip(STAGES, times, strict=True):
        os.utime(tmp_path / f"module_0000.jit_f.{stage}.txt", ns=(0, t * SECOND))
    found = timeline(dump_sequences(tmp_path)[0])
    assert found.seconds is None
    assert "copied" in found.times


def test_a_corpus_folder_has_times_where_its_files_kept_them(tmp_path: Path) -> None:
    for k, name in enumerate(("before", "01-cse", "02-dce", "after")):
        (tmp_path / f"{name}.hlo").write_text(ALL[0])
        os.utime(tmp_path / f"{name}.hlo", ns=(0, k * SECOND // 4))
    copied = timeline(dump_sequences(tmp_path)[0])
    assert (copied.seconds, "copied" in copied.times) == (None, True)
    os.utime(tmp_path / "after.hlo", ns=(0, 2 * SECOND // 4))  # a copy of the last with its time
    assert timeline(dump_sequences(tmp_path)[0]).seconds == 0.5


def test_a_gpt2_block(gpt2_whole: Path, hlofuse: Run, golden: Golden) -> None:
    result = hlofuse("timeline", gpt2_whole, columns=100)
    assert (result.status, result.err) == (0, "")
    golden("timeline/gpt2_block.txt", result.out)


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_other_forms(tmp_path: Path, hlofuse: Run, golden: Golden, form: str) -> None:
    result = hlofuse("timeline", write(tmp_path, ALL), "--format", form)
    golden(f"timeline/small.{form}", result.out)


def test_every_dump_is_compared_with_the_one_ahead_of_it(gpt2_whole: Path) -> None:
    found = timeline(dump_sequences(gpt2_whole)[0])
    assert len(found.steps) == 98
    assert found.notes == ()
    for before, step in zip(found.steps, found.steps[1:], strict=False):
        assert step.since is before.dump
        assert step.before == before.after
        # What was counted before, plus what is said to have come and gone, is what is counted after.
        assert step.before is not None
        assert step.after is not None
        gained = sum(a - b for _, b, a in step.opcodes)
        assert step.before.instructions + gained == step.after.instructions
    passes = [s.dump.after for s in found.largest[:2]]
    assert passes == ["priority-fusion", "dce"]


def test_damage_is_told_and_passed_over(gpt2: Path, hlofuse: Run) -> None:
    def dump(number: int) -> Path:
        return next(gpt2.glob(f"*.{number:04d}.*"))

    cut = dump(58)
    cut.write_text(cut.read_text()[:9000])
    dump(59).write_text("")
    dump(10).unlink()
    packed = dump(60)
    (gpt2 / f"{packed.name}.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    found = timeline(dump_sequences(gpt2)[0])
    by_number = {s.dump.number: s for s in found.steps}
    assert by_number[58].problem is not None
    assert by_number[59].problem == "it is empty"
    since = by_number[60].since
    assert since is not None
    assert since.number == 57
    assert by_number[60].fusions == (("new", 6), ("merged", 3))
    assert "1 dump is missing (10)" in found.notes[0]
    assert "2 dumps cannot be read" in found.notes[1]
    result = hlofuse("timeline", gpt2)
    assert result.status == 0
    assert "since 0057" in result.out


def test_two_compilations_in_one_folder_are_not_taken_for_one_in_silence(tmp_path: Path) -> None:
    write(tmp_path, ALL)
    other = "module_0000.jit_f.0001.simplification.after_dce.before_pipeline-end.txt"
    (tmp_path / other).write_text(SIMPLER)
    assert "two compilations" in timeline(dump_sequences(tmp_path)[0]).notes[0]


def test_a_directory_without_dumps_between_passes(tmp_path: Path, hlofuse: Run) -> None:
    for stage in (STAGES[0], STAGES[-1]):
        (tmp_path / f"module_0000.jit_f.{stage}.txt").write_text(PLAIN if stage == STAGES[0] else FUSED)
    out = hlofuse("timeline", tmp_path).out
    assert "--xla_dump_hlo_pass_re" in out
    assert "1 new" in out


def test_several_modules_are_listed_and_one_is_chosen(tmp_path: Path, hlofuse: Run) -> None:
    write(tmp_path, ALL)
    write(tmp_path, ALL, "host1.module_0007.jit_g")
    listed = hlofuse("timeline", tmp_path, columns=200)
    assert (listed.status, listed.out) == (2, "")
    assert "has 2 modules; select one with --module:" in listed.err
    assert "host1.module_0007.jit_g" in listed.err
    only = json.loads(hlofuse("timeline", tmp_path, "--module", "jit_g", "--format", "json").out)
    assert [m["module"] for m in only["modules"]] == ["host1.module_0007.jit_g"]
    assert "2 with changes" in hlofuse("timeline", tmp_path, "--module", "jit_g").out
    both = json.loads(hlofuse("timeline", tmp_path, "--all", "--format", "json").out)
    assert [f["module"] for f in both["films"]] == ["module_0000.jit_f", "host1.module_0007.jit_g"]


def test_wrong_input(tmp_path: Path, hlofuse: Run) -> None:
    (tmp_path / "host0").mkdir()
    write(tmp_path / "host0", ALL)
    assert "module_0000.jit_f" in hlofuse("timeline", tmp_path).out  # dumps one folder below
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", ALL, "module_0000.jit_g")
    assert "give one of them" in hlofuse("timeline", tmp_path).err
    single = hlofuse("timeline", tmp_path / "host0" / f"module_0000.jit_f.{STAGES[0]}.txt")
    assert (single.status, "is a single dump" in single.err) == (2, True)
    assert hlofuse("timeline", tmp_path / "nowhere").status == 2
    with pytest.raises(HlofuseError, match="no module jit_h"):
        dump_sequences(tmp_path / "host0", "jit_h")


def test_names_cannot_steer_the_terminal(tmp_path: Path, hlofuse: Run) -> None:
    write(tmp_path, ALL, "module_0000.jit_\x1b[31mf")
    for form in ("text", "markdown"):
        assert "\x1b" not in hlofuse("timeline", tmp_path, "--format", form).out


def test_a_corpus_folder_is_a_film(samples: Path, hlofuse: Run) -> None:
    out = hlofuse("timeline", samples / "gpu" / "softmax").out
    assert "1 merged" in out
    # Another module than the one there is asked for; of several they are listed.
    other = hlofuse("timeline", samples / "gpu" / "softmax", "--module", "nope")
    assert (other.status, other.out) == (2, "")
    assert "has no module nope" in other.err
    assert "select one with --module: gpt2_block, softmax" in hlofuse("timeline", samples / "gpu").err
    assert hlofuse("timeline", samples / "gpu", "--module", "softmax").out == out
    single = hlofuse("trace-op", samples / "tutorial/slow", "dot_general.1")
    assert single.out == hlofuse("trace-op", samples / "tutorial/slow/loss", "dot_general.1").out


def test_explain_points_to_the_film(gpt2_whole: Path, hlofuse: Run) -> None:
    out = hlofuse("explain", gpt2_whole, "--details", "--device", "h100_sxm", "--limit", "1", columns=200).out
    assert f"hlofuse timeline {gpt2_whole}" in out
