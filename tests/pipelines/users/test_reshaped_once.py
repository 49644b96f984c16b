"""Values that one reshape was made of for all that read it, until ReshapeMover moved those in front."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.simplified.moved_in_each_place import with_moved_in_turn

from ...running import find
from .lists import HEAD, named, places_in_source, users_of


@pytest.mark.parametrize(
    ("start", "end", "users"),
    [(9, 20, ["mul.2", "mul.1"]), (9, 60, ["mul.1", "mul.2"])],
    ids=["called something", "written in each place"],
)
def test_what_is_taken_at_an_index_is_reshaped_at_once(start: int, end: int, users: list[str]) -> None:
    """`r = x[:, 0]` and then `r * r`, `r * y`; or `x[:, 0] * y` where it is not called anything."""
    tables = places_in_source(("f", 2, 12, 20), ("f", 2 if end == 60 else 3, start, end), ("f", 4, 9, 20))
    body = f"""  %x = f32[8,2]{{1,0}} parameter(0)
  %y = f32[8,1]{{1,0}} parameter(1)
  %s.1 = f32[8,1]{{1,0}} slice(%x), slice={{[0:8], [0:1]}}{named("s", frame=1)}
  %mul.1 = f32[8,1]{{1,0}} multiply(%s.1, %s.1){named("mul", frame=2)}
  %mul.2 = f32[8,1]{{1,0}} multiply(%s.1, %y){named("mul", frame=3)}
  %neg.1 = f32[8,1]{{1,0}} negate(%y){named("neg", frame=3)}
  ROOT %r = (f32[8,1], f32[8,1], f32[8,1]) tuple(%mul.1, %mul.2, %neg.1)"""
    assert users_of("s.1", body, ids="x y s.1 neg.1 r mul.1 mul.2", tables=tables) == users


@pytest.mark.parametrize(
    ("line", "users"),
    [(3, ["mul.2", "mul.1"]), (2, ["mul.1", "mul.2"])],
    ids=["two lines of one call", "one line of two calls"],
)
def test_what_a_function_computes_in_several_places_is_of_one_call(line: int, users: list[str]) -> None:
    """`s = sin(x)` in a function that is inlined: what reads it was moved with it."""
    calls = (("f", 7, 5, 9), ("f", 8, 5, 9))
    tables = places_in_source(("g", 2, 8, 20), ("g", line, 8, 20), *calls, called_from={1: 3, 2: 4})
    body = f"""  %x = f32[8,1]{{1,0}} parameter(0)
  %y = f32[8,1]{{1,0}} parameter(1)
  %sin.1 = f32[8,1]{{1,0}} sine(%x){named("jit(g)/sin")}
  %mul.1 = f32[8,1]{{1,0}} multiply(%sin.1, %y){named("jit(g)/mul", frame=1)}
  %mul.2 = f32[8,1]{{1,0}} multiply(%sin.1, %x){named("jit(g)/mul", frame=2)}
  %multiply.1 = f32[8,1]{{1,0}} multiply(%x, %y){named("div")}
  ROOT %r = (f32[8,1], f32[8,1], f32[8,1]) tuple(%mul.1, %mul.2, %multiply.1)"""
    assert users_of("sin.1", body, ids="x y r multiply.1 sin.1 mul.1 mul.2", tables=tables) == users


def test_what_was_subtracted_takes_the_place_that_it_had() -> None:
    """AlgebraicSimplifier adds the number with the other sign: beside what was not moved nothing was."""
    body = f"""  %x = f32[8,1]{{1,0}} parameter(0)
  %c = f32[] constant(-2)
  %d = f32[] constant(-3)
  %by.1 = f32[8,1]{{1,0}} broadcast(%c), dimensions={{}}
  %by.2 = f32[8,1]{{1,0}} broadcast(%d), dimensions={{}}
  %dot.1 = f32[8,1]{{1,0}} sort(%x), dimensions={{0}}, to_apply=%less{named("sort")}
  %gt.1 = pred[8,1]{{1,0}} compare(%dot.1, %x), direction=GT{named("gt")}
  %add.1 = f32[8,1]{{1,0}} add(%dot.1, %by.1){named("sub")}
  %lt.1 = pred[8,1]{{1,0}} compare(%dot.1, %x), direction=LT{named("lt")}
  %add.2 = f32[8,1]{{1,0}} add(%dot.1, %by.2){named("sub")}
  %multiply.1 = f32[8,1]{{1,0}} multiply(%x, %x){named("div")}
  ROOT %r = (pred[8,1], f32[8,1], pred[8,1], f32[8,1], f32[8,1])\
 tuple(%gt.1, %add.1, %lt.1, %add.2, %multiply.1)"""
    head = """%less (l: f32[], m: f32[]) -> pred[] {
  %l = f32[] parameter(0)
  %m = f32[] parameter(1)
  ROOT %s.1 = pred[] compare(%l, %m), direction=LT
}
"""
    ids = "x dot.1 gt.1 lt.1 r multiply.1 c by.1 add.1 d by.2 add.2"
    assert users_of("dot.1", body, ids=ids, head=head) == ["gt.1", "add.1", "lt.1", "add.2"]


@pytest.mark.parametrize(
    ("frame", "users"),
    [(2, ["mul.2", "mul.1"]), (1, ["mul.1", "mul.2"])],
    ids=["taken where the second reads it", "taken elsewhere"],
)
def test_what_is_taken_in_each_of_two_places_comes_to_its_own_reader_first(
    frame: int, users: list[str]
) -> None:
    """A function of a library, called in two places, takes `x[:, 0]` in each: CSE kept the one met first."""
    lines = [("f", line, 9, 30) for line in (4, 2, 3)]
    tables = places_in_source(*lines)
    body = f"""  %x = f32[8,2]{{1,0}} parameter(0)
  %y = f32[8,1]{{1,0}} parameter(1)
  %s.1 = f32[8,1]{{1,0}} slice(%x), slice={{[0:8], [0:1]}}{named("slice", frame=frame + 1)}
  %mul.1 = f32[8,1]{{1,0}} multiply(%s.1, %y){named("mul", frame=2)}
  %mul.2 = f32[8,1]{{1,0}} multiply(%y, %s.1){named("mul", frame=3)}
  ROOT %r = (f32[8,1], f32[8,1]) tuple(%mul.1, %mul.2)"""
    assert users_of("s.1", body, ids="x y s.1 r mul.1 mul.2", tables=tables) == users


@pytest.mark.parametrize(
    ("dimensions", "shape", "reader", "users"),
    [
        ("1,8", "f32[]", "reduce(%bitcast.1, %zero), dimensions={0}, to_apply=%sum", ["mul.1", "bitcast.1"]),
        ("2,4", "f32[]", "reduce(%bitcast.1, %zero), dimensions={0}, to_apply=%sum", ["bitcast.1", "mul.1"]),
        ("1,8", "f32[8]", "exponential(%bitcast.1)", ["bitcast.1", "mul.1"]),
    ],
    ids=["summed", "grouped for the sum", "read by what is no sum"],
)
def test_what_is_summed_as_it_was_reshaped_read_the_same_reshape(
    dimensions: str, shape: str, reader: str, users: list[str]
) -> None:
    """`r = (x - y).reshape(8)`, `r.sum()` and `r * z`: the sum reads the difference before that is moved."""
    body = f"""  %x = f32[{dimensions}]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %sub.1 = f32[{dimensions}]{{1,0}} subtract(%x, %x){named("sub")}
  %bitcast.1 = f32[8]{{0}} bitcast(%sub.1)
  %sum.1 = {shape} {reader}{named("reduce_sum")}
  %mul.1 = f32[{dimensions}]{{1,0}} multiply(%sub.1, %x){named("mul")}
  %multiply.1 = f32[{dimensions}]{{1,0}} multiply(%x, %x){named("div")}
  ROOT %r = ({shape}, f32[{dimensions}], f32[{dimensions}]) tuple(%sum.1, %mul.1, %multiply.1)"""
    ids = "x zero sub.1 sum.1 r multiply.1 mul.1 bitcast.1"
    assert users_of("sub.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("rows", "taken", "users"),
    [
        (1, "slice", ["cos.1", "tanh.1", "add.1"]),
        (8, "slice", ["add.1", "cos.1", "tanh.1"]),
        (1, "unstack", ["add.1", "cos.1", "tanh.1"]),
    ],
    ids=["an element", "several, not reshaped", "reshaped at once"],
)
def test_who_computes_with_what_another_made_of_an_element_was_moved_later(
    rows: int, taken: str, users: list[str]
) -> None:
    """`tanh(x[0]) * cos(x[0]) + x[0]`: the sum has no two reshapes to read before the others are moved."""
    kind = f"f32[{rows},8]{{1,0}}"
    body = f"""  %x = f32[16,8]{{1,0}} parameter(0)
  %s.1 = {kind} slice(%x), slice={{[0:{rows}], [0:8]}}{named(taken, frame=1)}
  %tanh.1 = {kind} tanh(%s.1){named("while/body/eval_jaxpr/tanh", frame=2)}
  %cos.1 = {kind} cosine(%s.1){named("while/body/eval_jaxpr/cos", frame=3)}
  %mul.1 = {kind} multiply(%tanh.1, %cos.1){named("while/body/eval_jaxpr/mul", frame=4)}
  %add.1 = {kind} add(%mul.1, %s.1){named("while/body/eval_jaxpr/add", frame=4)}
  ROOT %r = ({kind}) tuple(%add.1)"""
    assert users_of("s.1", body, ids="x s.1 r cos.1 tanh.1 mul.1 add.1") == users


@pytest.mark.parametrize(
    ("of", "made", "users"),
    [
        ("while/body/eval_jaxpr/", "r div.1", ["mul.1", "multiply.1"]),
        ("", "div.1 r", ["multiply.1", "mul.1"]),
    ],
    ids=["of a loop of one turn", "of the program"],
)
def test_what_a_loop_of_one_turn_gives_is_reshaped_for_all_that_read_it(
    of: str, made: str, users: list[str]
) -> None:
    """`v @ v` and `v * y` of what a scan over one element gives: the product of vectors was moved, too."""
    body = f"""  %x = f32[1,8]{{1,0}} parameter(0)
  %y = f32[1,8]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %div.1 = f32[1,8]{{1,0}} divide(%x, %y){named(f"{of}div", frame=1)}
  %multiply.1 = f32[1,8]{{1,0}} multiply(%div.1, %div.1){named("dot_general", frame=2)}
  %flat = f32[8]{{0}} bitcast(%multiply.1)
  %reduce.1 = f32[] reduce(%flat, %zero), dimensions={{0}}, to_apply=%sum{named("dot_general", frame=2)}
  %mul.1 = f32[1,8]{{1,0}} multiply(%div.1, %y){named("mul", frame=3)}
  ROOT %r = (f32[], f32[1,8]{{1,0}}) tuple(%reduce.1, %mul.1)"""
    ids = f"x y zero {made} multiply.1 mul.1 flat reduce.1"
    assert users_of("div.1", body, ids=ids) == users


def test_what_was_moved_first_is_in_the_place_of_its_reshape() -> None:
    """`x[0].sum()` and `tanh(x[0]) + x[0]`: the sum read the slice itself before anything was moved."""
    body = """  %x = f32[16,8]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %s.1 = f32[1,8]{1,0} slice(%x), slice={[0:1], [0:8]}
  %bitcast.1 = f32[8]{0} bitcast(%s.1)
  %sum.1 = f32[] reduce(%bitcast.1, %zero), dimensions={0}, to_apply=%sum
  %tanh.1 = f32[1,8]{1,0} tanh(%s.1)
  %add.1 = f32[1,8]{1,0} add(%tanh.1, %s.1)
  ROOT %r = (f32[], f32[1,8]) tuple(%sum.1, %add.1)"""
    module = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n")
    users = [find(module, name) for name in ("add.1", "bitcast.1", "tanh.1")]
    listed = with_moved_in_turn(find(module, "s.1"), users)
    assert [u.name for u in listed] == ["tanh.1", "bitcast.1", "add.1"]
