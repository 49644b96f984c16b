"""The users of values of which converts were moved in front of what was computed of them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("convert", "users"),
    [
        ("convert(%p)", ["mul.1", "mul.2", "convert.1"]),
        (f"convert(%p){named('convert_element_type')}", ["mul.1", "convert.1", "mul.2"]),
    ],
    ids=["moved", "of the program"],
)
def test_converts_stand_where_the_concatenate_stood(convert: str, users: list[str]) -> None:
    """`concatenate([p, p * 2, p * 3])`, of which only the whole was made bytes."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %two.1 = f32[4]{{0}} parameter(1)
  %mul.1 = f32[4]{{0}} multiply(%p, %two.1){named("mul")}
  %convert.2 = s8[4]{{0}} convert(%mul.1)
  %convert.1 = s8[4]{{0}} {convert}
  %three.1 = f32[4]{{0}} parameter(2)
  %mul.2 = f32[4]{{0}} multiply(%p, %three.1){named("mul")}
  %convert.3 = s8[4]{{0}} convert(%mul.2)
  ROOT %r = s8[12]{{0}} concatenate(%convert.2, %convert.1, %convert.3), dimensions={{0}}"""
    assert users_of("p", body) == users


def test_a_part_that_is_one_number_everywhere_had_a_convert_as_well() -> None:
    """`concatenate([p * 0, p, p * 3])`, with a number spread in front: what is computed of none is folded."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %zero.1 = s8[] constant(0)
  %none.1 = s8[4]{{0}} broadcast(%zero.1), dimensions={{}}
  %convert.1 = s8[4]{{0}} convert(%p)
  %three.1 = f32[4]{{0}} parameter(1)
  %mul.1 = f32[4]{{0}} multiply(%p, %three.1){named("mul")}
  %convert.2 = s8[4]{{0}} convert(%mul.1)
  ROOT %r = s8[12]{{0}} concatenate(%none.1, %convert.1, %convert.2), dimensions={{0}}"""
    assert users_of("p", body) == ["mul.1", "convert.1"]
