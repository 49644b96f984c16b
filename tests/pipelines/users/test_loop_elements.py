"""The users of what the body of a loop takes out of its parameter, where the loop is in a scan's function."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module

from ...running import find
from .lists import HEAD, named, users_in

_SCAN = "while/body/eval_jaxpr"
_KINDS = "(s32[], f32[8]{0}, f32[8]{0})"


def _program(loop: str, body: str) -> str:
    """A `loop` of that name, with the `body`."""
    return f"""{HEAD}
%goes_on {{
  %q = {_KINDS} parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %many = s32[] constant(5)
  ROOT %lt.1 = pred[] compare(%j, %many), direction=LT{named(f"{loop}/cond/lt")}
}}

%body {{
  %p = {_KINDS} parameter(0)
  %i.1 = s32[] get-tuple-element(%p), index=0
  %k.1 = f32[8]{{0}} get-tuple-element(%p), index=1
  %x.1 = f32[8]{{0}} get-tuple-element(%p), index=2
  %one = s32[] constant(1)
  %next.1 = s32[] add(%i.1, %one){named(f"{loop}/body/add")}
{body}
}}

ENTRY %main {{
  %s = {_KINDS} parameter(0)
  ROOT %w.1 = {_KINDS} while(%s), condition=%goes_on, body=%body{named(loop)}
}}
"""


def test_the_tuple_that_a_body_gives_back_is_of_no_call() -> None:
    """It bears the name of the function around. The last clone of `g` took the place of the call."""
    loop = f"{_SCAN}/while"
    body = f"""  %sin.1 = f32[8]{{0}} sine(%k.1){named(f"{loop}/body/jit(g)/sin")}
  %cos.1 = f32[8]{{0}} cosine(%k.1){named(f"{loop}/body/jit(g)/cos")}
  %mul.1 = f32[8]{{0}} multiply(%sin.1, %cos.1){named(f"{loop}/body/jit(g)/mul")}
  %sub.1 = f32[8]{{0}} subtract(%mul.1, %x.1){named(f"{loop}/body/sub")}
  ROOT %r = {_KINDS} tuple(%next.1, %k.1, %sub.1){named(_SCAN)}"""
    assert users_in(_program(loop, body), "k.1", ids_known=True) == ["cos.1", "r", "sin.1"]


@pytest.mark.parametrize(
    ("loop", "equal", "users"),
    [
        (f"{_SCAN}/vmap()/while", "eq", ["eq.1", "while.3"]),
        ("while", "eval_jaxpr/eq", ["while.3", "eq.1"]),
        ("while", "closed_call/eq", ["while.3", "eq.1"]),
    ],
    ids=["of a batch, within a scan", "a scan", "a scan of before"],
)
def test_what_a_loop_over_a_batch_selects_is_not_computed_by_a_function(
    loop: str, equal: str, users: list[str]
) -> None:
    """In a scan's own body it is: the last clone of the function took the place of its call."""
    body = f"""  %eq.1 = pred[8]{{0}} compare(%k.1, %x.1), direction=EQ{named(f"{loop}/body/{equal}")}
  %while.3 = f32[8]{{0}} select(%eq.1, %k.1, %x.1){named(f"{_SCAN}/vmap()/while")}
  ROOT %r = {_KINDS} tuple(%next.1, %x.1, %while.3){named(_SCAN)}"""
    program = _program(loop, body).replace("%body", "%body.clone")
    assert users_in(program, "k.1", ids_known=True) == users


@pytest.mark.parametrize(
    ("result", "users"),
    [("%sub.1, %k.1", ["r", "sin.1", "cos.1"]), ("%k.1, %sub.1", ["cos.1", "r", "sin.1"])],
    ids=["as another element", "as it is"],
)
def test_what_the_function_of_a_scan_gives_back_is_behind_what_it_computes(
    result: str, users: list[str]
) -> None:
    at = "while/body/eval_jaxpr"
    body = f"""  %sin.1 = f32[8]{{0}} sine(%k.1){named(f"{at}/sin")}
  %cos.1 = f32[8]{{0}} cosine(%k.1){named(f"{at}/cos")}
  %mul.1 = f32[8]{{0}} multiply(%sin.1, %cos.1){named(f"{at}/mul")}
  %sub.1 = f32[8]{{0}} subtract(%mul.1, %x.1){named(f"{at}/sub")}
  ROOT %r = {_KINDS} tuple(%next.1, {result})"""
    assert users_in(_program("while", body), "k.1", ids_known=True) == users


def test_what_a_scan_within_a_scan_stacks_was_made_behind_the_call() -> None:
    loop = f"{_SCAN}/while"
    body = f"""  %b.1 = f32[1,8]{{1,0}} bitcast(%k.1){named(_SCAN)}
  %neg.1 = f32[1,8]{{1,0}} negate(%b.1){named(f"{loop}/body/jit(h)/neg")}
  %b.2 = f32[8]{{0}} bitcast(%neg.1){named(f"{loop}/body/jit(h)/neg")}
  %add.1 = f32[8]{{0}} add(%k.1, %x.1){named(f"{loop}/body/eval_jaxpr/add")}
  ROOT %r = {_KINDS} tuple(%next.1, %b.2, %add.1){named(_SCAN)}"""
    assert users_in(_program(loop, body), "k.1", ids_known=True) == ["add.1", "b.1"]


def test_what_the_function_of_a_scan_computes_is_of_its_one_call() -> None:
    """The next operation of that name is not another call's; its tuple went, and the root took the place."""
    loop = "while"
    at = f"{loop}/body/eval_jaxpr"
    body = f"""  %add.1 = f32[8]{{0}} add(%k.1, %x.1){named(f"{at}/add")}
  %div.1 = f32[8]{{0}} divide(%add.1, %x.1){named(f"{at}/div")}
  %add.2 = f32[8]{{0}} add(%div.1, %x.1){named(f"{at}/add")}
  ROOT %r = {_KINDS} tuple(%next.1, %add.1, %add.2){named("while")}"""
    assert users_in(_program(loop, body), "add.1", ids_known=True) == ["div.1", "r"]


def _slices(*starts: int) -> str:
    return "\n".join(
        f"  %s.{k + 1} = f32[1]{{0}} slice(%x.1), slice={{[{k}:{k + 1}]}}{named('while/body/slice')}"
        for k in starts
    )


def test_the_function_of_a_scan_that_was_unrolled_is_called_for_each_turn() -> None:
    """What the next call reads comes behind what is of the call itself."""
    at = "while/body/eval_jaxpr"
    body = f"""{_slices(0, 1)}
  %b.1 = f32[] bitcast(%s.1){named("while/body/squeeze")}
  %b.2 = f32[8]{{0}} broadcast(%b.1), dimensions={{}}{named(f"{at}/sub")}
  %add.1 = f32[8]{{0}} add(%k.1, %b.2){named(f"{at}/add")}
  %mul.1 = f32[8]{{0}} multiply(%add.1, %x.1){named(f"{at}/mul")}
  %b.3 = f32[] bitcast(%s.2){named("while/body/squeeze")}
  %b.4 = f32[8]{{0}} broadcast(%b.3), dimensions={{}}{named(f"{at}/sub")}
  %add.2 = f32[8]{{0}} add(%mul.1, %b.4){named(f"{at}/add")}
  %sin.1 = f32[8]{{0}} sine(%add.1){named(f"{at}/sin")}
  %b.5 = f32[1,8]{{1,0}} bitcast(%add.1){named(f"{at}/add")}
  %neg.1 = f32[1,8]{{1,0}} negate(%b.5){named("while/body/neg")}
  %b.6 = f32[8]{{0}} bitcast(%neg.1){named("while/body/neg")}
  %sub.1 = f32[8]{{0}} subtract(%sin.1, %b.6){named("while/body/sub")}
  ROOT %r = {_KINDS} tuple(%next.1, %sub.1, %add.2){named("while")}"""
    assert users_in(_program("while", body), "add.1", ids_known=True)[0] == "sin.1"


def test_slices_for_the_turns_of_a_scan_come_in_the_order_of_their_calls() -> None:
    """Going backwards, as in a derivative, the last row was taken first."""
    body = f"""{_slices(0, 1)}
  ROOT %r = {_KINDS} tuple(%next.1, %s.1, %s.2){named("while")}"""
    module = parse_module(
        _program("while", body)
        .replace("x.1)", "m.1)")
        .replace("  %one =", f"  %m.1 = f32[8]{{0}} negate(%x.1){named('while/body/neg')}\n  %one =")
    )
    first, second = find(module, "s.1"), find(module, "s.2")
    first.id, second.id = second.id, first.id
    assert users_in(module, "m.1", ids_known=True) == ["s.2", "s.1"]


@pytest.mark.parametrize(
    ("clones", "counted", "users"),
    [
        (".clone.clone.clone.clone", "sub", ["r", "sin.1"]),
        (".clone.clone.clone.clone", "", ["sin.1", "r"]),
        (".clone.clone.clone", "sub", ["sin.1", "r"]),
        (".clone.clone.sunk.clone", "sub", ["r", "sin.1"]),
        (".clone.sunk.clone.clone", "sub", ["sin.1", "r"]),
        (".clone.clone", "sub", ["sin.1", "r"]),
    ],
    ids=["changed", "what counts for it is younger", "dropped", "sunk", "sunk and dropped", "not changed"],
)
def test_a_tuple_was_in_front_where_counters_were_merged(clones: str, counted: str, users: list[str]) -> None:
    """The tuple of the elements as they had been was their first user, and the last took its place."""
    name = named(f"while/body/{counted}") if counted else ""
    body = f"""  %sin.1 = f32[8]{{0}} subtract(%k.1, %x.1){name}
  ROOT %r = {_KINDS} tuple(%next.1, %k.1, %sin.1){named("while")}"""
    program = _program("while", body).replace("%body", f"%body{clones}")
    assert users_in(program, "k.1", ids_known=True) == users


@pytest.mark.parametrize(("element", "users"), [(1, ["sin.1", "r"]), (9, ["r", "sin.1"])])
def test_so_it_was_where_elements_are_younger_than_what_the_body_gives_back(
    element: int, users: list[str]
) -> None:
    """They were put in front of the tuple, in which constants are what the loop was given no more."""
    body = f"""  %sin.1 = f32[8]{{0}} subtract(%k.1, %x.1){named("while/body/sub")}
  ROOT %r = {_KINDS} tuple(%next.1, %k.1, %sin.1)"""
    module = parse_module(_program("while", body))
    inner = find(module, "k.1").computation
    assert inner is not None
    for x in inner:
        x.id = element * 10 + (x.tuple_index or 0) if x.opcode == "get-tuple-element" else x.id + 20
    assert users_in(module, "k.1", ids_known=True) == users


def _changed_body(other: str) -> str:
    """A body cloned for counters that were merged; `k.1` is read by a call and an `other` operation."""
    body = f"""  %sin.1 = f32[8]{{0}} sine(%k.1){named("while/body/jit(g)/sin")}
  %cos.1 = f32[8]{{0}} cosine(%k.1){named("while/body/jit(g)/cos")}
  %mul.1 = f32[8]{{0}} multiply(%sin.1, %cos.1){named("while/body/jit(g)/mul")}
  {other}
  ROOT %r = {_KINDS} tuple(%next.1, %mul.1, %read.2)"""
    return _program("while", body).replace("%body", "%body.clone.clone.sunk.clone")


@pytest.mark.parametrize("age", [0, 500], ids=["of the program", "made anew"])
def test_both_a_call_and_the_tuple_of_a_changed_body_left_a_hole(age: int) -> None:
    other = f"%read.2 = f32[8]{{0}} exponential(%k.1){named('while/body/exp')}"
    module = parse_module(_changed_body(other))
    find(module, "k.1").id += age
    assert users_in(module, "k.1", ids_known=True) == ["sin.1", "cos.1", "read.2"]


def test_a_bitcast_stands_for_who_reads_an_element_of_a_changed_body() -> None:
    other = f"""%read.1 = f32[4,2]{{1,0}} bitcast(%k.1)
  %read.3 = f32[4,2]{{1,0}} exponential(%read.1){named("while/body/exp")}
  %read.2 = f32[8]{{0}} bitcast(%read.3)"""
    assert users_in(_changed_body(other), "k.1", ids_known=True) == ["sin.1", "cos.1", "read.1"]
