"""Slices of what is reversed, as the played passes leave its users."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("dimension", "users"),
    [(0, ["sum.1", "update.1"]), (1, ["update.1", "sum.1"])],
    ids=["a slice of it", "another reverse"],
)
def test_the_last_takes_the_place_of_a_slice_that_was_taken_ahead_of_a_reverse(
    dimension: int, users: list[str]
) -> None:
    """`flip(x)[:2] * 2`, which is `flip(x[2:]) * 2`."""
    body = f"""  %x = f32[4,2]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %k = s32[] constant(0)
  %rev.1 = f32[4,2]{{1,0}} reverse(%x), dimensions={{0}}{named("jit(_flip)/rev")}
  %slice.1 = f32[2,2]{{1,0}} slice(%x), slice={{[2:4], [0:2]}}{named("slice")}
  %reverse.1 = f32[2,2]{{1,0}} reverse(%slice.1), dimensions={{{dimension}}}{named("slice")}
  %update.1 = f32[4,2]{{1,0}} dynamic-update-slice(%rev.1, %reverse.1, %k, %k){named("update")}
  %sum.1 = f32[2]{{0}} reduce(%rev.1, %zero), dimensions={{0}}, to_apply=%sum{named("sum")}
  ROOT %r = (f32[4,2]{{1,0}}, f32[2]{{0}}) tuple(%update.1, %sum.1)"""
    assert users_of("rev.1", body) == users
