"""`hlofuse reduce`: every module on the way is valid, and the last one still meets the condition."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.reader import parse_module
from hlofuse.judge.reduction import Reduction, is_valid
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

LOOP = TEXTS["loop"]


@pytest.mark.parametrize(
    ("wanted", "opcodes"),
    [
        (("exponential(",), ["parameter", "exponential"]),
        (("negate(",), ["parameter", "negate"]),
        (("exponential(", "negate("), None),
        (("sine(",), ["parameter", "sine"]),
    ],
)
def test_what_is_left_is_small_and_meets_the_condition(
    wanted: tuple[str, ...], opcodes: list[str] | None
) -> None:
    tried: list[str] = []

    def holds(text: str) -> bool:
        tried.append(text)
        return all(w in text for w in wanted)

    reduction = Reduction(parse_module(LOOP), holds)
    text = reduction.run()
    assert all(map(is_valid, tried))
    assert holds(text)
    assert "128" not in text
    assert "unused" not in text
    assert reduction.instructions <= 11 < len(LOOP.splitlines())
    if opcodes is not None:
        assert sorted(i.opcode for i in parse_module(text).entry) == sorted(opcodes)


def test_a_size_of_interest_stays() -> None:
    text = Reduction(parse_module(LOOP), lambda text: "f32[128]" in text and "sine(" in text).run()
    assert "metadata" not in text


def test_a_condition_that_never_holds_is_an_error() -> None:
    with pytest.raises(HlofuseError, match="does not hold for the module itself"):
        Reduction(parse_module(LOOP), lambda text: False)


def test_the_command_writes_the_smallest_module(hlofuse: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "m.hlo", tmp_path / "out.hlo"
    file.write_text(LOOP)
    result = hlofuse("reduce", file, "--while", "grep -q 'negate('", "-o", out)
    assert result.status == 0
    assert "2 instructions of 21; " in result.err
    assert len(list(parse_module(out.read_text()).entry)) == 2
    refused = hlofuse("reduce", file, "--while", "false", "-o", tmp_path / "none.hlo")
    assert refused.status == 2
    assert "does not hold for the module itself\n" in refused.err
    assert not (tmp_path / "none.hlo").exists()


def test_an_interrupted_command_writes_the_smallest_so_far(
    hlofuse: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, out, tries = tmp_path / "m.hlo", tmp_path / "out.hlo", itertools.count()
    file.write_text(LOOP)

    def run(command: str, **_: object) -> subprocess.CompletedProcess[bytes]:
        if next(tries) == 4:
            raise KeyboardInterrupt
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    result = hlofuse("reduce", file, "--while", "true", "-o", out)
    assert result.status == 0
    left = len(list(parse_module(out.read_text()).instructions()))
    assert f"{left} instructions of 21; 4 runs of the command" in result.err
    assert left < 21


def test_values_between_two_of_a_shape_go() -> None:
    """A conversion and its inverse are no step in which the shape stays."""
    text = TEXTS["values_between_two"]
    left = Reduction(parse_module(text), lambda t: "sine(" in t and "negate(" in t).run()
    assert [i.opcode for i in parse_module(left).instructions()] == ["parameter", "sine", "negate"]


def test_calls_and_elements_of_loops_that_nothing_needs_go() -> None:
    text = TEXTS["call_in_a_loop"]
    left = parse_module(Reduction(parse_module(text), lambda t: "while(" in t and "sine(" in t).run())
    assert all(i.opcode != "call" for i in left.instructions())
    (loop,) = (i for i in left.entry if i.opcode == "while")
    assert all(s.rank < 2 for s in loop.shape.tuple_shapes)


def test_equal_parameters_and_computations_are_one() -> None:
    function = "{\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
    text = f"""HloModule m
    f {function}g {function}ENTRY e {{
      x = f32[8] parameter(0)
      y = f32[8] parameter(1)
      z = f32[] parameter(2)
      a = f32[] reduce(x, z), dimensions={{0}}, to_apply=f
      b = f32[] reduce(y, z), dimensions={{0}}, to_apply=g
      ROOT t = (f32[], f32[]) tuple(a, b)
    }}"""
    reduction = Reduction(parse_module(text), lambda t: t.count(" reduce(") == 2)
    module = parse_module(reduction.run())
    assert len(module.computations) == 2
    assert len(module.entry.parameters) <= 2
