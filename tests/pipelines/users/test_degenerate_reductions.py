"""Reductions over dimensions of one, of which nothing is left, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("width", "frame", "users"),
    [(1, 2, ["mul.1", "add.1"]), (2, 2, ["add.1", "mul.1"]), (1, 1, ["add.1", "mul.1"])],
    ids=["max(x) + x", "x + x", "rolled"],
)
def test_the_last_reader_takes_the_place_of_the_reduction(width: int, frame: int, users: list[str]) -> None:
    """(max(x, keepdims=True) + x) * sum(x, keepdims=True) along the last dimension."""
    shape = f"f32[8,{width}]{{1,0}}"
    body = f"""  %p = {shape} parameter(0)
  %exp.1 = {shape} exponential(%p){named("exp")}
  %add.1 = {shape} add(%exp.1, %exp.1){named("add", frame=1)}
  %mul.1 = {shape} multiply(%add.1, %exp.1){named("mul", frame=frame)}
  ROOT %r = ({shape}) tuple(%mul.1)"""
    assert users_of("exp.1", body) == users


@pytest.mark.parametrize(
    ("width", "other", "users"),
    [
        (1, "clip/square", ["select_n.1", "gt.1"]),
        (1, "square", ["gt.1", "select_n.1"]),
        (2, "clip/square", ["gt.1", "select_n.1"]),
    ],
    ids=["one element", "another operation", "two elements"],
)
def test_what_reads_a_sum_elsewhere_reads_the_only_element(width: int, other: str, users: list[str]) -> None:
    """`where(s > 0, s, 1)` of a sum of squares, for parameters of several shapes."""
    shape, mask = f"f32[{width}]{{0}}", f"pred[{width}]{{0}}"
    body = f"""  %p = {shape} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %c = {shape} parameter(2)
  %zero = f32[] constant(0)
  %square.1 = {shape} multiply(%p, %p){named("clip/square")}
  %gt.1 = {mask} compare(%square.1, %c), direction=GT{named("clip/gt")}
  %select_n.1 = {shape} select(%gt.1, %square.1, %c){named("clip/jit(_where)/select_n")}
  %square.2 = f32[8]{{0}} multiply(%q, %q){named(other)}
  %reduce_sum.2 = f32[] reduce(%square.2, %zero), dimensions={{0}}, to_apply=%sum{named("clip/reduce_sum")}
  %gt.2 = pred[] compare(%reduce_sum.2, %zero), direction=GT{named("clip/gt")}
  ROOT %r = ({shape}, pred[]) tuple(%select_n.1, %gt.2)"""
    assert users_of("square.1", body) == users


@pytest.mark.parametrize(
    ("name", "users"), [("reduce_sum", ["back", "div.1"]), ("reshape", ["div.1", "back"])]
)
def test_the_reshape_made_with_a_reduction_is_its_first_reader(name: str, users: list[str]) -> None:
    """Another read the reduction through it until AlgebraicSimplifier; one of the program stays in place."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %low = f32[] constant(0)
  %reduce.1 = f32[8]{{0}} reduce(%p, %low), dimensions={{1}}, to_apply=%sum{named("reduce_sum", frame=1)}
  %div.1 = f32[8,1,4]{{2,1,0}} broadcast(%reduce.1), dimensions={{0}}{named("div", frame=1)}
  %back = f32[8,1]{{1,0}} bitcast(%reduce.1){named(name, frame=1)}
  %neg.1 = f32[8,1]{{1,0}} negate(%back){named("neg", frame=1)}
  ROOT %r = (f32[8,1,4]{{2,1,0}}, f32[8,1]{{1,0}}) tuple(%div.1, %neg.1)"""
    assert users_of("reduce.1", body, ids="p low div.1 reduce.1 back neg.1 r") == users


@pytest.mark.parametrize(
    ("other", "last", "users"),
    [
        ("exp.1", "jit(_take)/gather", ["flat", "sub.1"]),
        ("p", "jit(_take)/gather", ["sub.1", "flat"]),
        ("exp.1", "while/body/eval_jaxpr/neg", ["sub.1", "flat"]),
    ],
    ids=["x - max(x)", "x - y", "read in a loop"],
)
def test_the_largest_of_a_softmax_of_one_element_stood_ahead_of_the_difference(
    other: str, last: str, users: list[str]
) -> None:
    body = f"""  %p = f32[1]{{0}} parameter(0)
  %exp.1 = f32[1]{{0}} exponential(%p){named("exp")}
  %sub.1 = f32[1]{{0}} subtract(%exp.1, %{other}){named("sub")}
  %flat = f32[] bitcast(%exp.1){named(last)}
  ROOT %r = (f32[1]{{0}}, f32[]) tuple(%sub.1, %flat)"""
    assert users_of("exp.1", body) == users
