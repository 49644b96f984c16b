"""Calls are inlined one after another, as the ids behind CallInliner have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.inlined_calls import in_order_of_cloning


def order(*lines: str) -> list[str]:
    body = "\n".join(
        f'  %{name} = f32[8]{{0}} {rest}, metadata={{op_name="jit(m)/{path}"}}'
        for name, rest, path in (line.split(" | ") for line in lines)
    )
    given = [name for line in lines if not (name := line.split(" | ")[0]).startswith("bit")]
    results = ", ".join(f"%{name}" for name in given)
    shape = ", ".join("f32[8]{0}" for _ in given)
    root = f"  ROOT %tuple.1.0 = ({shape}) tuple({results})"
    given_first = "  %p = f32[8]{0} parameter(0)\n  %zero = f32[] constant(0)\n"
    text = f"HloModule m\n\nENTRY %main {{\n{given_first}{body}\n{root}\n}}\n"
    entry = parse_module(text).entry
    inlined = [x for x in entry if x.opcode not in ("parameter", "tuple") and x.name != "zero"]
    return [x.name for x in in_order_of_cloning(entry, inlined)]


def test_a_call_is_cloned_whole_before_the_next_one() -> None:
    """The sine of the first call is written behind the second call, which does not need it."""
    found = order(
        "exp.1.0 | exponential(%p) | jit(f)/exp",
        "neg.1.0 | negate(%exp.1.0) | jit(f)/neg",
        "tanh.1.0 | tanh(%neg.1.0) | jit(g)/tanh",
        "sin.2.0 | sine(%tanh.1.0) | jit(g)/sin",
        "sin.1.0 | sine(%exp.1.0) | jit(f)/sin",
    )
    assert found == ["exp.1.0", "neg.1.0", "sin.1.0", "tanh.1.0", "sin.2.0"]


def test_numbers_tell_two_calls_of_one_function_that_share_an_operation() -> None:
    found = order(
        "exp.1.0 | exponential(%p) | jit(f)/exp",
        "mul.1.0 | multiply(%exp.1.0, %p) | jit(f)/mul",
        "mul.2.0 | multiply(%mul.1.0, %p) | jit(g)/mul",
        "mul.3.0 | multiply(%exp.1.0, %mul.2.0) | jit(f)/mul",
    )
    assert found == ["exp.1.0", "mul.1.0", "mul.2.0", "mul.3.0"]


def test_numbers_tell_them_apart_where_the_text_has_other_calls_scattered() -> None:
    found = order(
        "exp.1.0 | exponential(%p) | jit(f)/exp",
        "mul.1.0 | multiply(%exp.1.0, %p) | jit(f)/mul",
        "mul.2.0 | multiply(%mul.1.0, %p) | jit(g)/mul",
        "tanh.1.0 | tanh(%mul.2.0) | jit(g)/tanh",
        "sin.2.0 | sine(%tanh.1.0) | jit(h)/sin",
        "mul.3.0 | multiply(%exp.1.0, %sin.2.0) | jit(f)/mul",
        "sin.1.0 | sine(%mul.2.0) | jit(g)/sin",
    )
    assert found == ["exp.1.0", "mul.1.0", "mul.2.0", "tanh.1.0", "sin.1.0", "sin.2.0", "mul.3.0"]


def test_what_is_made_of_nothing_stands_in_front_of_the_call_that_reads_it() -> None:
    found = order(
        "bit.1.0 | bitcast(%p) | jit(g)/bit",
        "exp.1.0 | exponential(%p) | jit(f)/exp",
        "tanh.1.0 | multiply(%exp.1.0, %bit.1.0) | jit(g)/tanh",
        "sin.2.0 | sine(%tanh.1.0) | jit(g)/sin",
        "sin.1.0 | sine(%exp.1.0) | jit(f)/sin",
    )
    assert found == ["exp.1.0", "sin.1.0", "bit.1.0", "tanh.1.0", "sin.2.0"]


def test_a_call_is_whole_where_no_numbers_tell() -> None:
    found = order(
        "exp.1.0 | exponential(%p) | jit(f)/exp",
        "tanh.1.0 | tanh(%exp.1.0) | jit(g)/tanh",
        "sin.1.0 | sine(%exp.1.0) | jit(f)/sin",
    )
    assert found == ["exp.1.0", "sin.1.0", "tanh.1.0"]


def test_what_a_loops_body_calls_once_is_one_call_though_nothing_connects_it() -> None:
    found = order(
        "exp.1.0 | exponential(%p) | while/body/eval_jaxpr/exp",
        "neg.1.0 | negate(%p) | while/body/jit(g)/neg",
        "mul.1.0 | multiply(%neg.1.0, %neg.1.0) | while/body/eval_jaxpr/mul",
    )
    assert found == ["neg.1.0", "exp.1.0", "mul.1.0"]


def test_a_constant_of_calls_that_cannot_be_told_apart_stands_where_it_is_written() -> None:
    found = order(
        "exp.1.0 | exponential(%p) | jit(f)/exp",
        "bit.1.0 | bitcast(%p) | jit(f)/bit",
        "mul.1.0 | multiply(%exp.1.0, %p) | jit(f)/mul",
        "mul.2.0 | multiply(%mul.1.0, %p) | jit(g)/mul",
        "tanh.1.0 | tanh(%mul.2.0) | jit(g)/tanh",
        "sin.2.0 | sine(%tanh.1.0) | jit(h)/sin",
        "mul.3.0 | multiply(%exp.1.0, %sin.2.0) | jit(f)/mul",
        "add.1.0 | add(%bit.1.0, %mul.3.0) | jit(f)/add",
        "sin.1.0 | sine(%mul.2.0) | jit(g)/sin",
    )
    assert found[:3] == ["exp.1.0", "bit.1.0", "mul.1.0"]
    assert found[-2:] == ["mul.3.0", "add.1.0"]


def test_the_upper_bound_of_a_clip_is_cloned_before_the_lower_one() -> None:
    """The call is of minimum(upper, maximum(lower, x)), the clamp of (lower, x, upper)."""
    found = order(
        "max.0.0 | broadcast(%zero), dimensions={} | jit(clip)/max",
        "min.0.0 | broadcast(%zero), dimensions={} | jit(clip)/min",
        "clamp.1 | clamp(%max.0.0, %p, %min.0.0) | jit(clip)/min",
    )
    assert found == ["min.0.0", "max.0.0", "clamp.1"]


def test_what_a_call_within_gives_back_is_there_before_some_of_it_is_read() -> None:
    """The quotient is for the derivative, which comes last."""
    found = order(
        "max.1.0 | maximum(%p, %p) | jvp(jit(f))/jit(clip)/max",
        "exp.1.0 | exponential(%max.1.0) | jvp(jit(f))/exp",
        "div.2.0 | divide(%exp.1.0, %p) | jvp(jit(f))/div",
        "div.1.0 | divide(%max.1.0, %p) | jvp(jit(f))/jit(clip)/div",
        "neg.1.0 | negate(%div.1.0) | transpose(jvp(jit(f)))/neg",
    )
    assert found == ["max.1.0", "div.1.0", "exp.1.0", "div.2.0", "neg.1.0"]


def test_calls_within_that_read_each_other_stay_apart() -> None:
    """Numbers agree with the text: the second call reads what is made of a result of the first."""
    found = order(
        "max.1.0 | maximum(%p, %p) | jit(f)/jit(g)/max",
        "div.1.0 | divide(%max.1.0, %p) | jit(f)/jit(g)/div",
        "exp.1.0 | exponential(%max.1.0) | jit(f)/exp",
        "max.2.0 | maximum(%exp.1.0, %div.1.0) | jit(f)/jit(g)/max",
        "div.2.0 | divide(%max.2.0, %p) | jit(f)/jit(g)/div",
    )
    assert found == ["max.1.0", "div.1.0", "exp.1.0", "max.2.0", "div.2.0"]


def test_the_width_that_uniform_numbers_are_multiplied_by_is_cloned_ahead_of_their_bound() -> None:
    """It is one: nothing multiplies by it, and what needs another one reads it."""
    found = order(
        "exp.1.0 | exponential(%p) | jit(_uniform)/exp",
        "max.1.0 | maximum(%exp.1.0, %p) | jit(_uniform)/max",
        "tanh.1.0 | tanh(%max.1.0) | jit(g)/tanh",
        "mul.1.0 | broadcast(%zero), dimensions={} | jit(_uniform)/mul",
        "sub.1.0 | subtract(%tanh.1.0, %mul.1.0) | jit(g)/sub",
    )
    assert found == ["exp.1.0", "mul.1.0", "max.1.0", "tanh.1.0", "sub.1.0"]


def test_what_only_a_loop_is_given_was_cloned_with_the_call_that_the_loop_is_of() -> None:
    """The tuple of what it is given is another one since, and none of the call's."""
    op = 'metadata={op_name="jit(m)/jit(f)/'
    text = f"""HloModule m

%body {{
  ROOT %t = (f32[8]{{0}}, f32[8]{{0}}) parameter(0)
}}

%condition {{
  %t = (f32[8]{{0}}, f32[8]{{0}}) parameter(0)
  ROOT %true = pred[] constant(true)
}}

ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %one = f32[] constant(1)
  %exp.1.0 = f32[8]{{0}} exponential(%p), {op}exp"}}
  %ones.1.0 = f32[8]{{0}} broadcast(%one), dimensions={{}}, {op}broadcast_in_dim"}}
  %tuple.7.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.1.0, %ones.1.0)
  %while.1.0 = (f32[8]{{0}}, f32[8]{{0}}) while(%tuple.7.0), condition=%condition, body=%body, {op}while"}}
  %result.0 = f32[8]{{0}} get-tuple-element(%while.1.0), index=0
  ROOT %neg.1.0 = f32[8]{{0}} negate(%result.0), {op}neg"}}
}}
"""
    entry = parse_module(text).entry
    inlined = [x for x in entry if "jit(f)" in (x.op_name or "")]
    assert [x.name for x in in_order_of_cloning(entry, inlined)] == [
        "exp.1.0",
        "ones.1.0",
        "while.1.0",
        "neg.1.0",
    ]
