"""Loops of one turn, the body of which was put in the place of the loop."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.calls.unrolled_loops import last_unrolled

from .lists import HEAD, loop_of, named, users_in, users_of

_BODY = "jvp(net)/while/body/closed_call"
_BACK = "transpose(jvp(net))/while/body/closed_call/checkpoint"


def test_the_end_of_what_was_cloned() -> None:
    text = f"""{HEAD}
ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %abs.1 = f32[8]{{0}} abs(%p){named("abs")}
  %mul.1 = f32[8]{{0}} multiply(%abs.1, %p){named(f"{_BODY}/mul")}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %p){named(f"{_BODY}/mul")}
  %neg.1 = f32[8]{{0}} negate(%mul.2){named("neg")}
  %exp.1 = f32[8]{{0}} exponential(%neg.1){named("exp")}
  %sin.1 = f32[8]{{0}} sine(%exp.1){named("sin")}
  %cos.1 = f32[8]{{0}} cosine(%sin.1){named("cos")}
  %log.1 = f32[8]{{0}} log(%cos.1){named("log")}
  ROOT %mul.3 = f32[8]{{0}} multiply(%log.1, %p){named(f"{_BODY}/mul")}
}}
"""
    entry = parse_module(text).entry
    ids = {x.name: x.id for x in entry}
    assert last_unrolled(entry) == ids["mul.2"]


def test_what_was_cloned_with_the_body_was_not_moved() -> None:
    """A gather was made anew before that, and all that came out of the body is younger."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %i = s32[2,1]{{1,0}} parameter(1)
  %root.1 = f32[8]{{0}} abs(%p){named("abs")}
  %multiply.9 = f32[8]{{0}} multiply(%root.1, %p){named("div")}
  %add_any.1 = f32[8]{{0}} add(%multiply.9, %p){named(f"{_BODY}/add_any")}
  %mul.1 = f32[8]{{0}} multiply(%add_any.1, %p){named(f"{_BODY}/mul")}
  %mul.2 = f32[8]{{0}} multiply(%add_any.1, %mul.1){named(f"{_BODY}/mul")}
  ROOT %r = (f32[8], f32[8], f32[8]) tuple(%root.1, %mul.1, %mul.2)"""
    assert users_of("add_any.1", body, ids="p i root.1 r multiply.9 add_any.1 mul.1 mul.2") == [
        "mul.1",
        "mul.2",
    ]


def test_the_same_in_the_body_of_another_loop() -> None:
    kinds = "(s32[], f32[8])"
    inner = "while/body/closed_call/while/body/closed_call"
    text = f"""{HEAD}
%body (t: {kinds}) -> {kinds} {{
  %t = {kinds} parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %p = f32[8]{{0}} get-tuple-element(%t), index=1
  %multiply.9 = f32[8]{{0}} multiply(%p, %p){named("while/body/closed_call/div")}
  %add.1 = f32[8]{{0}} add(%multiply.9, %p){named(f"{inner}/add")}
  %mul.1 = f32[8]{{0}} multiply(%add.1, %p){named(f"{inner}/mul")}
  %mul.2 = f32[8]{{0}} multiply(%add.1, %mul.1){named(f"{inner}/mul")}
  ROOT %r = {kinds} tuple(%i, %mul.2)
}}

{loop_of("body", kinds)}"""
    module = parse_module(text)
    body = next(c for c in module.computations if c.name == "body")
    ages = "t i p r multiply.9 add.1 mul.1 mul.2".split()
    for x in body:
        x.id = ages.index(x.name)
    assert users_in(module, "add.1", ids_known=True) == ["mul.1", "mul.2"]


def test_what_is_made_again_for_a_derivative_is_no_result() -> None:
    """A scale is stacked as well, in a body that is all in one function."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %exp.1 = f32[8]{{0}} exponential(%q){named(f"{_BODY}/exp")}
  %div.1 = f32[8]{{0}} divide(%exp.1, %p){named(f"{_BODY}/div")}
  %abs.1 = f32[8]{{0}} abs(%div.1){named(f"{_BODY}/abs")}
  %mul.1 = f32[8]{{0}} multiply(%div.1, %abs.1){named(f"{_BODY}/mul")}
  %bitcast.1 = f32[1,8]{{1,0}} bitcast(%div.1){named(f"{_BODY}/div")}
  %mul.2 = f32[8]{{0}} multiply(%div.1, %q){named(f"{_BACK}/mul")}
  %square.1 = f32[1,8]{{1,0}} multiply(%bitcast.1, %bitcast.1){named("square")}
  ROOT %r = (f32[1,8], f32[8], f32[8]) tuple(%square.1, %mul.2, %mul.1)"""
    users = users_of("div.1", body, ids="p q square.1 r exp.1 div.1 abs.1 mul.1 mul.2 bitcast.1")
    assert users == ["abs.1", "mul.1", "bitcast.1", "mul.2"]


def test_what_a_body_stacks_has_its_readers_in_order() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[1,8]{{1,0}} parameter(1)
  %mul.1 = f32[8]{{0}} multiply(%p, %p){named(f"{_BODY}/mul")}
  %bitcast.1 = f32[1,8]{{1,0}} bitcast(%mul.1){named(f"{_BODY}/mul")}
  %square.1 = f32[1,8]{{1,0}} multiply(%bitcast.1, %bitcast.1){named("square")}
  %sub.1 = f32[1,8]{{1,0}} subtract(%q, %bitcast.1){named("sub")}
  ROOT %r = (f32[1,8], f32[1,8]) tuple(%square.1, %sub.1)"""
    assert users_of("bitcast.1", body, ids="p q square.1 sub.1 r mul.1 bitcast.1") == ["square.1", "sub.1"]


def test_reductions_had_left_before_slices_were_cloned() -> None:
    body = f"""  %p = f32[1,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[8]{{0}} bitcast(%p)
  %reduce_max.1 = f32[] reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named(f"{_BODY}/max")}
  %slice.1 = f32[7]{{0}} slice(%bitcast.1), slice={{[1:8]}}{named(f"{_BODY}/slice")}
  %slice.2 = f32[1]{{0}} slice(%bitcast.1), slice={{[0:1]}}{named(f"{_BODY}/slice")}
  ROOT %r = (f32[], f32[7], f32[1]) tuple(%reduce_max.1, %slice.1, %slice.2)"""
    users = users_of("bitcast.1", body, ids="p zero r slice.1 slice.2 bitcast.1 reduce_max.1")
    assert users == ["reduce_max.1", "slice.1", "slice.2"]
