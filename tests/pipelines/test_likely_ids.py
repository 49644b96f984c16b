"""The age of instructions, guessed where no ids are at hand, as XLA's protos have it."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.guess import guess_ids

from .gpu_cases import Case, cases


def by_age(body: str) -> list[str]:
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n")
    guess_ids(module)
    ordered = sorted(module.entry.instructions, key=lambda x: x.id)
    return [x.name for x in ordered if x.opcode != "tuple"]


def named(op_name: str) -> str:
    return f', metadata={{op_name="jit(f)/{op_name}"}}'


def test_the_program_is_older_than_what_passes_named_after_opcodes() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %multiply.1.0 = f32[8]{{0}} multiply(%p, %p){named("div")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%multiply.1.0, %exp.1.0)"""
    assert by_age(body) == ["p", "exp.1.0", "multiply.1.0"]


def test_what_a_pass_cloned_under_its_name_is_young_as_well() -> None:
    """The framework counts from 1; the first clone gets 0."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.NUMBER.0 = f32[8]{{0}} multiply(%p, %p){named("mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.NUMBER.0, %exp.1.0)"""
    assert by_age(body.replace("NUMBER", "1")) == ["p", "mul.1.0", "exp.1.0"]
    assert by_age(body.replace("NUMBER", "0")) == ["p", "exp.1.0", "mul.0.0"]


def test_in_a_loop_all_may_be_clones() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.0.0 = f32[8]{{0}} multiply(%p, %p){named("while/body/eval_jaxpr/mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("while/body/eval_jaxpr/exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.0.0, %exp.1.0)"""
    assert by_age(body) == ["p", "mul.0.0", "exp.1.0"]


def test_bitcasts_go_by_their_numbers_alone() -> None:
    """The operand is the younger one: another pass put it there."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %bitcast.9.0 = f32[2,4]{{1,0}} bitcast(%p)
  %exp.1.0 = f32[2,4]{{1,0}} exponential(%bitcast.9.0){named("exp")}
  ROOT %bitcast.3.0 = f32[8]{{0}} bitcast(%exp.1.0)"""
    assert by_age(body) == ["p", "exp.1.0", "bitcast.3.0", "bitcast.9.0"]


def test_a_computation_of_which_nothing_is_known_keeps_the_order_of_the_text() -> None:
    body = """  %p = f32[8]{0} parameter(0)
  %b = f32[8]{0} negate(%p)
  ROOT %a = f32[8]{0} negate(%b)"""
    assert by_age(body) == ["p", "b", "a"]


def pairs_in_order(case: Case) -> tuple[int, int]:
    """Of pairs that may cost the same (one shape, or two bitcasts): how many stand as in XLA, of how many."""
    module = parse_module(case.before)
    guess_ids(module)
    assert case.ids is not None
    right = total = 0
    for computation in module.computations:
        known = case.ids.computations.get(computation.name)
        if computation.fusion is not None or known is None:
            continue
        alike: dict[str, list[Instruction]] = defaultdict(list)
        for x in computation:
            if x.opcode not in ("parameter", "constant", "tuple") and x.name in known.by_name:
                alike["bitcast" if x.opcode == "bitcast" else str(x.shape)].append(x)
        for group in alike.values():
            for a, b in combinations(group, 2):
                total += 1
                right += (a.id < b.id) == (known.by_name[a.name] < known.by_name[b.name])
    return right, total


@pytest.mark.parametrize(("archive", "share"), [("gpu", 0.98), ("gpu-models", 0.94)])
def test_nearly_all_pairs_stand_as_in_xla(archive: str, share: float) -> None:
    counts = [pairs_in_order(case) for case in cases(archive).values()]
    total = sum(total for _, total in counts)
    assert total > 10_000
    assert sum(right for right, _ in counts) >= share * total
