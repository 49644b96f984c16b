"""The users of indices of windows that are all of a dimension, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_TABLES = places_in_source(("f", 1, 0, 9))


@pytest.mark.parametrize(
    ("rows", "name", "users"),
    [
        (1, "dynamic_slice.3.0", ["add.16.0", "lt.15.0", "select_n.19.0"]),
        (2, "dynamic_slice.3.0", ["lt.15.0", "add.16.0", "select_n.19.0"]),
        (1, "dynamic-slice.3", ["lt.15.0", "add.16.0", "select_n.19.0"]),
    ],
    ids=["all of the rows", "one of two rows", "of a broadcast"],
)
def test_what_chose_the_start_that_is_zero_is_gone(rows: int, name: str, users: list[str]) -> None:
    """`lax.dynamic_slice(x, (i, i), (1, 2))`, of `x` with one row: the select went ahead of what it read.

    What a pass made of a slice of a broadcast may have had more dimensions.
    """
    body = f"""  %x = f32[{rows},4]{{1,0}} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  %four = s32[] constant(4)
  %add.14.0 = s32[] add(%i, %i){named("add", frame=1)}
  %lt.15.0 = pred[] compare(%add.14.0, %zero), direction=LT{named("lt", frame=1)}
  %add.16.0 = s32[] add(%add.14.0, %four){named("add", frame=1)}
  %select_n.19.0 = s32[] select(%lt.15.0, %add.16.0, %add.14.0){named("select_n", frame=1)}
  ROOT %{name} = f32[1,2]{{1,0}} dynamic-slice(%x, %zero, %select_n.19.0),\
 dynamic_slice_sizes={{1,2}}{named("dynamic_slice", frame=1)}"""
    assert users_of("add.14.0", body, tables=_TABLES) == users


def test_two_dimensions_that_are_left_share_the_comparison() -> None:
    """`x[i:i+1, i:i+2, i:i+4]`, of `x` with one in front: CSE merges the comparisons of the other two."""
    body = f"""  %x = f32[1,4,8]{{2,1,0}} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  %four = s32[] constant(4)
  %eight = s32[] constant(8)
  %mul.7.0 = s32[] multiply(%i, %i){named("mul", frame=1)}
  %lt.10.0 = pred[] compare(%mul.7.0, %zero), direction=LT{named("lt", frame=1)}
  %add.14.0 = s32[] add(%mul.7.0, %four){named("add", frame=1)}
  %select_n.12.0 = s32[] select(%lt.10.0, %add.14.0, %mul.7.0){named("select_n", frame=1)}
  %add.15.0 = s32[] add(%mul.7.0, %eight){named("add", frame=1)}
  %select_n.13.0 = s32[] select(%lt.10.0, %add.15.0, %mul.7.0){named("select_n", frame=1)}
  ROOT %dynamic_slice.1.0 = f32[1,2,4]{{2,1,0}} dynamic-slice(%x, %zero, %select_n.12.0, %select_n.13.0),\
 dynamic_slice_sizes={{1,2,4}}{named("dynamic_slice", frame=1)}"""
    assert users_of("mul.7.0", body, tables=_TABLES) == [
        "add.15.0",
        "select_n.12.0",
        "select_n.13.0",
        "lt.10.0",
        "add.14.0",
    ]
