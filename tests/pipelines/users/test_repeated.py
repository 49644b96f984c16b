"""Values that the program computes again, as numbers that are missing tell."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("scope", "number", "users"),
    [
        ("", 4, ["mul.1.0", "mul.2.0", "mul.5.0", "mul.4.0"]),
        ("", 3, ["mul.1.0", "mul.2.0", "mul.3.0", "mul.5.0"]),
        ("jvp()/", 4, ["mul.1.0", "mul.2.0", "mul.4.0", "mul.5.0"]),
    ],
    ids=["computed again", "no number is missing", "read by the derivative"],
)
def test_the_last_takes_the_place_of_what_was_computed_again(
    scope: str, number: int, users: list[str]
) -> None:
    """`add.2` would have read another product, numbered 3."""
    add, mul = named(f"{scope}add"), named(f"{scope}mul")
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %c = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %mul.1.0 = f32[8]{{0}} multiply(%p, %halves){mul}
  %add.1.0 = f32[8]{{0}} add(%mul.1.0, %q){add}
  %mul.2.0 = f32[8]{{0}} multiply(%q, %halves){mul}
  %add.2.0 = f32[8]{{0}} add(%mul.2.0, %mul.1.0){add}
  %mul.{number}.0 = f32[8]{{0}} multiply(%add.1.0, %halves){mul}
  %mul.5.0 = f32[8]{{0}} multiply(%add.2.0, %halves){mul}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%add.2.0, %mul.{number}.0, %mul.5.0)"""
    assert users_of("halves", body) == users


@pytest.mark.parametrize(
    ("factor", "users"),
    [("y", ["mul.1", "mul.7", "mul.2", "mul.5"]), ("z", ["mul.1", "mul.2", "mul.5", "mul.7"])],
    ids=["both factors are read", "no such product"],
)
def test_the_way_back_tells_of_a_product_that_was_computed_again(factor: str, users: list[str]) -> None:
    """x * y was written in two places, 1 and 3, and what derives the second one is there."""
    forward, back = "jvp()", "transpose(jvp())"
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %z = f32[8]{{0}} parameter(2)
  %ct = f32[8]{{0}} parameter(3)
  %mul.1 = f32[8]{{0}} multiply(%x, %y){named(f"{forward}/mul", frame=1)}
  %add.1 = f32[8]{{0}} add(%mul.1, %z){named(f"{forward}/add", frame=4)}
  %sub.1 = f32[8]{{0}} subtract(%mul.1, %add.1){named(f"{forward}/sub", frame=5)}
  %mul.2 = f32[8]{{0}} multiply(%sub.1, %x){named(f"{forward}/mul", frame=2)}
  %mul.5 = f32[8]{{0}} multiply(%mul.2, %x){named(f"{back}/mul", frame=2)}
  %mul.7 = f32[8]{{0}} multiply(%x, %ct){named(f"{back}/mul", frame=3)}
  %mul.8 = f32[8]{{0}} multiply(%{factor}, %ct){named(f"{back}/mul", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.5, %mul.7, %mul.8)"""
    assert users_of("x", body) == users


@pytest.mark.parametrize(
    ("place", "users"), [(3, ["mul.1", "mul.4", "exp.1"]), (1, ["mul.1", "exp.1", "mul.4"])]
)
def test_the_way_back_tells_of_a_square_that_was_computed_again(place: int, users: list[str]) -> None:
    """It goes through a square by one product."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %ct = f32[8]{{0}} parameter(1)
  %mul.1 = f32[8]{{0}} multiply(%x, %x){named("jvp()/mul", frame=1)}
  %add.1 = f32[8]{{0}} add(%mul.1, %ct){named("jvp()/add", frame=4)}
  %sub.1 = f32[8]{{0}} subtract(%mul.1, %add.1){named("jvp()/sub", frame=5)}
  %exp.1 = f32[8]{{0}} maximum(%sub.1, %x){named("jvp()/exp", frame=2)}
  %mul.4 = f32[8]{{0}} multiply(%x, %ct){named("transpose(jvp())/mul", frame=place)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.1, %mul.4)"""
    assert users_of("x", body) == users


def test_signs_of_an_index_are_told_of_once() -> None:
    """`x[i, i]` compares `i` with zero for each dimension, the second time as number 2, which is missing."""
    body = f"""  %i = s32[] parameter(0)
  %n = s32[] parameter(1)
  %x = f32[8,4]{{1,0}} parameter(2)
  %zero = s32[] constant(0)
  %eight = s32[] constant(8)
  %four = s32[] constant(4)
  %k = s32[] negate(%i){named("neg")}
  %lt.1.0 = pred[] compare(%k, %zero), direction=LT{named("lt", frame=1)}
  %add.1.0 = s32[] add(%k, %eight){named("add", frame=1)}
  %select_n.1.0 = s32[] select(%lt.1.0, %add.1.0, %k){named("select_n", frame=1)}
  %add.2.0 = s32[] add(%k, %four){named("add", frame=1)}
  %select_n.2.0 = s32[] select(%lt.1.0, %add.2.0, %k){named("select_n", frame=1)}
  %dynamic_slice.1.0 = f32[1,1]{{1,0}} dynamic-slice(%x, %select_n.1.0, %select_n.2.0),\
 dynamic_slice_sizes={{1,1}}{named("dynamic_slice", frame=1)}
  %lt.3.0 = pred[] compare(%n, %zero), direction=LT{named("lt", frame=2)}
  ROOT %r = (f32[1,1]{{1,0}}, pred[]) tuple(%dynamic_slice.1.0, %lt.3.0)"""
    assert users_of("k", body) == ["lt.1.0", "add.1.0", "select_n.1.0", "select_n.2.0", "add.2.0"]
