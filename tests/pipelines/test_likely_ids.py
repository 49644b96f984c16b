"""The age of instructions, guessed from their names where no ids are at hand, as XLA's protos have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids import guess_ids


def by_age(body: str) -> list[str]:
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n")
    guess_ids(module)
    return [x.name for x in sorted(module.entry.instructions, key=lambda x: x.id)]


def named(op_name: str) -> str:
    return f', metadata={{op_name="jit(f)/{op_name}"}}'


def test_the_program_is_older_than_what_passes_named_after_opcodes() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %multiply.1.0 = f32[8]{{0}} multiply(%p, %p){named("div")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%multiply.1.0, %exp.1.0)"""
    assert by_age(body)[:3] == ["p", "exp.1.0", "multiply.1.0"]


def test_what_a_pass_cloned_under_its_name_is_young_as_well() -> None:
    """The framework counts from 1; the first clone gets 0."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.NUMBER.0 = f32[8]{{0}} multiply(%p, %p){named("mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.NUMBER.0, %exp.1.0)"""
    assert by_age(body.replace("NUMBER", "1"))[:3] == ["p", "mul.1.0", "exp.1.0"]
    assert by_age(body.replace("NUMBER", "0"))[:3] == ["p", "exp.1.0", "mul.0.0"]


def test_in_a_loop_all_may_be_clones() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.0.0 = f32[8]{{0}} multiply(%p, %p){named("while/body/eval_jaxpr/mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("while/body/eval_jaxpr/exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.0.0, %exp.1.0)"""
    assert by_age(body)[:3] == ["p", "mul.0.0", "exp.1.0"]


def test_the_broadcast_of_a_clone_was_made_anew() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %rsqrt.NUMBER.0 = f32[8]{{0}} rsqrt(%p){named("rsqrt")}
  %mul.6.0 = f32[8,2]{{1,0}} broadcast(%rsqrt.NUMBER.0), dimensions={{0}}{named("mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8,2]{{1,0}}, f32[8]{{0}}) tuple(%mul.6.0, %exp.1.0)"""
    assert by_age(body.replace("NUMBER", "0"))[:4] == ["p", "exp.1.0", "rsqrt.0.0", "mul.6.0"]
    assert by_age(body.replace("NUMBER", "1"))[:4] == ["p", "rsqrt.1.0", "mul.6.0", "exp.1.0"]
