"""Derivatives of `logaddexp`, with infinities taken out; XLA was asked for one in a scan and one outside."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _replaced(name: str, x: str, place: str) -> str:
    return f"""
  %eq.{name} = pred[8]{{0}} compare(%{x}, %inf), direction=EQ{named(f"{place}/eq")}
  %{name} = f32[8]{{0}} select(%eq.{name}, %zero, %{x}){named(f"{place}/select_n")}"""


def _difference(name: str, a: str, b: str, place: str) -> str:
    return f"\n  %{name} = f32[8]{{0}} subtract(%{a}, %{b}){named(f'{place}/sub')}"


@pytest.mark.parametrize(
    ("place", "users"),
    [("jvp()", ["left", "result", "right"]), ("jvp()/while/body/eval_jaxpr", ["right", "left", "result"])],
)
def test_the_result_was_compared_for_each_operand(place: str, users: list[str]) -> None:
    """What the result had for the second operand came last, and in front where all was called."""
    body = """  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %z = f32[8]{0} parameter(2)
  %c = f32[] constant(0)
  %d = f32[] constant(inf)
  %zero = f32[8]{0} broadcast(%c), dimensions={}
  %inf = f32[8]{0} broadcast(%d), dimensions={}"""
    body += _replaced("left", "x", place) + _replaced("result", "z", place)
    body += _difference("of.left", "left", "result", place)
    body += _replaced("right", "y", place) + _difference("of.right", "right", "result", place)
    assert (
        users_of("zero", f"{body}\n  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%of.left, %of.right)")
        == users
    )


def test_zeros_that_something_else_reads_are_left_as_they_are() -> None:
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %c = f32[] constant(0)
  %zero = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %gt = pred[8]{{0}} compare(%x, %zero), direction=GT{named("gt")}
  %where = f32[8]{{0}} select(%gt, %zero, %x){named("select_n")}
  %of.x = f32[8]{{0}} subtract(%where, %y){named("sub")}
  %of.y = f32[8]{{0}} subtract(%y, %where){named("sub")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%of.x, %of.y)"""
    assert users_of("zero", body) == ["gt", "where"]
