"""`why` of names that are not there at the fusion input: what the passes before fusion made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.trace.provenance import Change
from ..passes.packed import archive
from ..running import Golden, Run, lowered

PROGRAM = """HloModule m

squared {
  p = f32[64,64]{1,0} parameter(0)
  ROOT square = f32[64,64]{1,0} multiply(p, p)
}

ENTRY e {
  a = f32[64,64]{1,0} parameter(0)
  one = f32[] constant(1)
  ones = f32[64,64]{1,0} broadcast(one), dimensions={}
  same = f32[64,64]{1,0} multiply(a, ones)
  waves = f32[64,64]{1,0} cosine(same)
  equal = f32[64,64]{1,0} cosine(a)
  inner = f32[64,64]{1,0} call(waves), to_apply=squared
  sum = f32[64,64]{1,0} add(inner, equal)
  unused = f32[64,64]{1,0} sine(a)
  flat = f32[4096]{0} reshape(sum)
  ROOT out = f32[4096]{0} exponential(flat)
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("names", ["same", "unused", "equal out", "p inner", "ones out"])
def test_text(hlofuse: Run, golden: Golden, file: Path, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    monkeypatch.chdir(file.parent)  # the command to copy names the input
    result = hlofuse("why", file.name, *names.split(), "--target", "cpu")
    assert result.status == 0
    report = re.split(r"hlofuse\s+DIR\.\n", result.out)[1]
    golden(f"why/before_fusion_{names.replace(' ', '_')}.txt", report)


def test_json_and_markdown_say_the_same(hlofuse: Run, file: Path) -> None:
    found = json.loads(hlofuse("why", file, "same", "--target", "cpu", "--format", "json").out)
    assert found["instruction"]["name"] == "a"
    assert found["before_fusion"] == [{"name": "same", "what": "replaced", "pass": "algsimp", "by": "a"}]
    text = hlofuse("why", file, "unused", "--target", "cpu", "--format", "markdown").out
    assert "## unused was removed by dce: unused.\n" in text
    unchanged = json.loads(hlofuse("why", file, "a", "--target", "cpu", "--format", "json").out)
    assert "before_fusion" not in unchanged


def test_an_unknown_name_is_compared_with_names_that_are_no_longer_there(hlofuse: Run, file: Path) -> None:
    result = hlofuse("why", file, "unusd", "--target", "cpu")
    assert result.status != 0
    assert "unused" in result.err


@pytest.mark.parametrize(
    ("target", "device"), [("gpu", "h100_sxm"), ("gpu-legacy", "h100_sxm"), ("gpu", "mi350")]
)
def test_every_backend(hlofuse: Run, file: Path, target: str, device: str) -> None:
    for line in PROGRAM.splitlines():
        name, equals, _ = line.replace("ROOT", "").strip().partition(" = ")
        if equals:
            assert hlofuse("why", file, name, "--target", target, "--device", device).status == 0, name


@pytest.mark.parametrize("program", ["attention_grad", "gpt2_train_step", "rk4"])
def test_every_instruction_of_a_program_survives_or_was_removed_by_a_pass(program: str) -> None:
    module = parse_module(archive("cpu")[f"programs/{program}"]["before"])
    span = lowered(module, "cpu")
    provenance, left = span.provenance, span.module
    there = {i.name for i in left.instructions()}
    for i in module.instructions():
        assert provenance is not None
        fate = provenance.fate(i.name)
        assert fate is not None
        if fate.survivor is None:
            last = fate.changes[-1]
            assert (last.what, last.by) == ("removed", None)
            assert last.pass_name
        else:
            assert fate.survivor in there
    assert left.listeners == []
    assert print_module(left) == print_module(lowered(module, "cpu").module)


def test_without_a_pipeline_of_the_target_the_same_question_has_an_answer() -> None:
    module = parse_module(PROGRAM)
    span = lowered(module, "gpu-legacy", load_device("v100"))
    assert span.provenance is not None
    fate = span.provenance.fate("unused")
    assert fate is not None
    assert fate.changes == (Change("unused", "removed", "dce"),)
    assert span.module.find("unused") is None
