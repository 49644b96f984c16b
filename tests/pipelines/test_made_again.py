"""What numbers in loops tell of what was made again, as XLA gave them to such ones."""

from __future__ import annotations

import re

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.guess import guess_ids
from hlofuse.pipelines.likely_ids.made_again import made_again_by_numbers
from hlofuse.pipelines.likely_ids.maker import Maker

NAME = "region_0.5.sunk.clone"


def body(*lines: str) -> str:
    """A module of a loop around these operations of f32[8]; what they read comes last."""
    operations = "\n".join(
        re.sub(r"^(\S+) = (\S+)\((.*?)\) (\S+)$", r'  %\1 = f32[8]{0} \2(\3), metadata={op_name="\4"}', x)
        for x in lines
    )
    return f"""HloModule m

%{NAME} {{
  %p = (f32[8]{{0}}) parameter(0)
  %x = f32[8]{{0}} get-tuple-element(%p), index=0
{operations}
  ROOT %tuple.1 = (f32[8]{{0}}) tuple(%{lines[-1].split()[0]})
}}

%condition {{
  %q = (f32[8]{{0}}) parameter(0)
  ROOT %more = pred[] constant(true)
}}

ENTRY %main {{
  %a = (f32[8]{{0}}) parameter(0)
  ROOT %while = (f32[8]{{0}}) while(%a), condition=%condition, body=%{NAME}
}}
"""


def made_again(*lines: str) -> list[str]:
    module = parse_module(body(*lines))
    loop = next(c for c in module.computations if c.name == NAME)
    makers = {x: Maker.FRONT_END for x in loop if x.opcode not in ("parameter", "get-tuple-element", "tuple")}
    return [x.name for x in made_again_by_numbers(loop, makers, frozenset())]


MUL = "jit(f)/while/body/mul"


@pytest.mark.parametrize(("number", "found"), [(1, []), (9, ["mul.9.0"])])
def test_what_is_read_by_something_of_a_lower_number_was_made_again(number: int, found: list[str]) -> None:
    lines = (
        f"mul.{number}.0 = multiply(%x, %x) {MUL}",
        f"exp.1.0 = exponential(%mul.{number}.0) jit(f)/while/body/exp",
        f"mul.3.0 = multiply(%exp.1.0, %x) {MUL}",
        f"mul.4.0 = multiply(%mul.3.0, %x) {MUL}",
    )
    assert made_again(*lines) == found


def test_what_cse_kept_for_something_older_was_not() -> None:
    """XLA keeps what it meets first, whatever is computed of the other one."""
    later = [f"mul.{k}.0 = multiply(%mul.{k - 1}.0, %x) {MUL}" for k in range(10, 14)]
    lines = (
        f"mul.9.0 = multiply(%x, %x) {MUL}",
        f"mul.3.0 = multiply(%mul.9.0, %x) {MUL}",
        *later,
        f"add.1.0 = add(%mul.13.0, %mul.3.0) {MUL}",
    )
    assert made_again(*lines) == []


def test_one_that_reads_many_of_higher_numbers_took_the_name_of_another() -> None:
    many = [f"mul.{k}.0 = multiply(%x, %x) {MUL}" for k in range(5, 8)]
    sums = (
        "add.1.0 = add(%mul.5.0, %mul.6.0) jit(f)/while/body/add",
        "add.2.0 = add(%add.1.0, %mul.7.0) jit(f)/while/body/add",
    )
    assert made_again(*many, *sums, f"mul.3.0 = multiply(%add.2.0, %x) {MUL}") == []


def test_what_a_clone_called_comes_behind_what_is_its_own() -> None:
    """Its instructions are as old among themselves as those of what was cloned."""
    module = parse_module(
        body(
            "exp.1.0 = exponential(%x) jit(f)/while/body/jit(g)/exp",
            "neg.1.0 = negate(%exp.1.0) jit(f)/while/body/neg",
        )
    )
    guess_ids(module)
    loop = next(c for c in module.computations if c.name == NAME)
    order = [x.name for x in sorted(loop, key=lambda x: x.id) if x.name in ("exp.1.0", "neg.1.0")]
    assert order == ["neg.1.0", "exp.1.0"]


def test_what_reads_that_and_was_named_by_a_pass_was_made_again_as_well() -> None:
    """ReshapeMover moves the reshape of a mean that keeps its dimensions from one reader to the next."""
    root = "rsqrt.5.0 = rsqrt(%mul.9.0) jit(f)/while/body/sqrt"
    module = parse_module(
        body(
            f"mul.9.0 = multiply(%x, %x) {MUL}",
            f"mul.3.0 = multiply(%mul.9.0, %x) {MUL}",
            "abs.1.0 = abs(%mul.3.0) jit(f)/while/body/abs",
            root,
            "add.1.0 = add(%abs.1.0, %rsqrt.5.0) jit(f)/while/body/add",
        )
    )
    makers = guess_ids(module)
    found = {x.name: maker for x, maker in makers.items()}
    assert found["mul.9.0"] == found["rsqrt.5.0"] == Maker.SIMPLIFIER_AGAIN
    assert found["abs.1.0"] == Maker.FRONT_END
