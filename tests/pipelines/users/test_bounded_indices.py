"""What interpolation reads around the place that it found, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _interpolated(function: str, bound: str = "minimum") -> str:
    """Between the two points around a place: of `xs` and `ys`, and then of `zs` alike."""

    def at(operation: str) -> str:
        return named(f"jit({function})/{operation}")

    return f"""  %xs = f32[9]{{0}} parameter(0)
  %ys = f32[9]{{0}} parameter(1)
  %zs = f32[9]{{0}} parameter(2)
  %found = s32[] parameter(3)
  %t = f32[] parameter(4)
  %near = pred[] parameter(5)
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %minus = s32[] constant(-1)
  %last = s32[] constant(8)
  %max.1 = s32[] maximum(%one, %found){at("jit(clip)/max")}
  %i = s32[] {bound}(%last, %max.1){at("jit(clip)/min")}
  %x.1 = f32[1]{{0}} dynamic-slice(%xs, %i), dynamic_slice_sizes={{1}}{at("dynamic_slice")}
  %add.1.0 = s32[] add(%i, %minus){at("sub")}
  %lt.1 = pred[] compare(%add.1.0, %zero), direction=LT{at("lt")}
  %add.2.0 = s32[] add(%i, %last){at("add")}
  %select_n.1 = s32[] select(%lt.1, %add.2.0, %add.1.0){at("select_n")}
  %y.1 = f32[1]{{0}} dynamic-slice(%ys, %i), dynamic_slice_sizes={{1}}{at("dynamic_slice")}
  %y.2 = f32[1]{{0}} dynamic-slice(%ys, %select_n.1), dynamic_slice_sizes={{1}}{at("dynamic_slice")}
  %y.3 = f32[] bitcast(%y.2){at("dynamic_slice")}
  %add.3 = f32[] add(%y.3, %t){at("add")}
  %select_n.2 = f32[] select(%near, %y.3, %add.3){at("jit(_where)/select_n")}
  %z.1 = f32[1]{{0}} dynamic-slice(%zs, %i), dynamic_slice_sizes={{1}}{at("dynamic_slice")}
  ROOT %r = (f32[1]{{0}}, f32[1]{{0}}, f32[], f32[1]{{0}}) tuple(%x.1, %y.1, %select_n.2, %z.1)"""


@pytest.mark.parametrize(
    ("bound", "users"),
    [
        ("minimum", ["add.1.0", "y.1", "x.1", "z.1", "add.2.0"]),
        ("add", ["x.1", "add.1.0", "add.2.0", "y.1", "z.1"]),
    ],
)
def test_reads_stand_where_comparisons_with_zero_were(bound: str, users: list[str]) -> None:
    """The place before was computed last; counted from the end it was made one sum with the place later."""
    assert users_of("i", _interpolated("_interp", bound)) == users


@pytest.mark.parametrize(
    ("function", "users"),
    [("_interp", ["select_n.2", "add.3"]), ("between", ["add.3", "select_n.2"])],
)
def test_interpolation_reads_a_point_anew_for_each_use(function: str, users: list[str]) -> None:
    """A walk comes to the choice of the value ahead of the sum with it."""
    assert users_of("y.3", _interpolated(function)) == users


@pytest.mark.parametrize(
    ("function", "users"),
    [("jit(take)/", ["select_n.1", "z.1", "lt.1"]), ("", ["lt.1", "z.1", "select_n.1"])],
    ids=["in a call", "by itself"],
)
def test_the_sum_that_counts_from_the_end_stood_behind_a_comparison(function: str, users: list[str]) -> None:
    """Of what a call made the last was in front already: nothing took the place of the sum."""
    body = f"""  %i = s32[] parameter(0)
  %ys = f32[9]{{0}} parameter(1)
  %zero = s32[] constant(0)
  %back = s32[] constant(-1)
  %last = s32[] constant(8)
  %sub.1 = s32[] add(%i, %back){named("sub")}
  %lt.1 = pred[] compare(%sub.1, %zero), direction=LT{named(f"{function}lt")}
  %add.1 = s32[] add(%i, %last){named(f"{function}add")}
  %select_n.1 = s32[] select(%lt.1, %add.1, %sub.1){named(f"{function}select_n")}
  %y.1 = f32[1]{{0}} dynamic-slice(%ys, %select_n.1), dynamic_slice_sizes={{1}}{named(f"{function}slice")}
  %z.1 = s32[] multiply(%sub.1, %last){named("mul")}
  ROOT %r = (f32[1]{{0}}, s32[]) tuple(%y.1, %z.1)"""
    assert users_of("sub.1", body) == users
