"""Converts that an operation makes of its own operand, while what is beside it made another of the same."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_PLACES = places_in_source(
    ("normalize", 5, 8, 20), ("mean", 9, 8, 20), ("square", 12, 8, 20), ("optimizer", 3, 8, 20)
)


def _normalized(call: str, reduced: str = "") -> str:
    """`x - mean(x)` and `mean(x * x)`, in single precision; the difference is given a convert of its own."""
    return f"""  %p = bf16[8,4]{{1,0}} parameter(0)
  %none = f32[] constant(0)
  %x.1 = f32[8,4]{{1,0}} convert(%p){named(f"{call}convert_element_type", frame=1)}
{reduced or _REDUCED}{named(f"{call}reduce_sum", frame=2)}
  %less.1 = f32[8,4]{{1,0}} broadcast(%sum.1), dimensions={{0}}{named(f"{call}sub", frame=1)}
  %sub.1 = f32[8,4]{{1,0}} subtract(%x.1, %less.1){named(f"{call}sub", frame=1)}
  %square.1 = f32[8,4]{{1,0}} multiply(%x.1, %x.1){named(f"{call}square", frame=3)}
  %mul.1 = f32[8,4]{{1,0}} multiply(%x.1, %square.1){named("transpose(jvp())/mul", frame=3)}
  ROOT %r = (f32[8,4], f32[8,4]) tuple(%sub.1, %mul.1)"""


_REDUCED = "  %sum.1 = f32[8]{0} reduce(%x.1, %none), dimensions={1}, to_apply=%sum"
_GROUPED = f"""  %flat.1 = f32[8,4]{{1,0}} bitcast(%x.1){named("jvp()/convert_element_type", frame=1)}
  %sum.1 = f32[8]{{0}} reduce(%flat.1, %none), dimensions={{1}}, to_apply=%sum"""


@pytest.mark.parametrize(
    ("call", "is_own_first"),
    [
        ("jvp()/", True),
        ("transpose(jvp())/checkpoint/rematted_computation/", True),
        ("transpose(jvp())/", False),
    ],
)
def test_what_is_computed_again_converts_as_the_program_does(call: str, is_own_first: bool) -> None:
    """HloCSE kept the convert of the difference; a derivative makes none for itself."""
    users = users_of("x.1", _normalized(call), tables=_PLACES)
    assert (users == ["sub.1", "sum.1", "square.1", "mul.1"]) is is_own_first


def test_a_reshape_that_a_pass_put_in_is_read_where_the_reduction_is() -> None:
    """It has a copy of the metadata of the convert."""
    users = users_of("x.1", _normalized("jvp()/", _GROUPED), tables=_PLACES)
    assert users == ["sub.1", "flat.1", "square.1", "mul.1"]


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p none square.1 convert_element_type.1 sub.1 sum.1 r", ["sub.1", "sum.1", "square.1"]),
        ("p none convert_element_type.1 sub.1 square.1 sum.1 r", ["sum.1", "sub.1", "square.1"]),
    ],
    ids=["read another one", "made in order"],
)
def test_who_is_older_than_the_convert_that_was_kept_read_another_one(ids: str, users: list[str]) -> None:
    body = f"""  %p = f16[8,4]{{1,0}} parameter(0)
  %none = f32[] constant(0)
  %convert_element_type.1 = f32[8,4]{{1,0}} convert(%p){named("convert_element_type")}
  %sum.1 = f32[8]{{0}} reduce(%convert_element_type.1, %none), dimensions={{1}}, to_apply=%sum
  %sub.1 = f32[8,4]{{1,0}} subtract(%convert_element_type.1, %convert_element_type.1){named("sub")}
  %square.1 = f32[8,4]{{1,0}} multiply(%convert_element_type.1, %convert_element_type.1){named("square")}
  ROOT %r = (f32[8]{{0}}, f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%sum.1, %sub.1, %square.1)"""
    assert users_of("convert_element_type.1", body, ids=ids) == users
