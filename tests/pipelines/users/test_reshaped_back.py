"""What was computed in front of a reshape and reshaped back, as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("ids", "first", "users"),
    [
        ("p r mul.1 mul.2 add_any.1 sum.1", "sine", "sum.1 mul.2 mul.1"),
        ("p r mul.1 mul.2 add_any.1 sum.1", "negate", "mul.1 mul.2 sum.1"),
        ("p add_any.1 sum.1 mul.1 mul.2 r", "sine", "mul.1 mul.2 sum.1"),
    ],
    ids=["moved", "maybe of negated values", "of the program"],
)
def test_a_reduction_past_the_reshape_stands_in_front_of_who_read_the_one_back(
    ids: str, first: str, users: str
) -> None:
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %add_any.1 = f32[8,4]{{1,0}} add(%p, %p){named("add_any")}
  %mul.1 = f32[8,4]{{1,0}} {first}(%add_any.1){named("mul")}
  %mul.2 = f32[8,4]{{1,0}} multiply(%p, %add_any.1){named("mul")}
  %sum.1 = f32[4]{{0}} reduce(%add_any.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, f32[4]{{0}}) tuple(%mul.1, %mul.2, %sum.1)"""
    assert users_of("add_any.1", body, ids=f"zero {ids}") == users.split()


def test_what_was_inlined_behind_a_reader_of_its_result_was_not_moved() -> None:
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %select_n.1 = f32[8,4]{{1,0}} maximum(%p, %p){named("jit(g)/select_n")}
  %concatenate.1 = f32[16,4]{{1,0}} concatenate(%select_n.1, %p), dimensions={{0}}{named("concatenate")}
  %max.1 = f32[4]{{0}} reduce(%select_n.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  ROOT %r = (f32[16,4]{{1,0}}, f32[4]{{0}}) tuple(%concatenate.1, %max.1)"""
    ids = "zero p concatenate.1 r select_n.1 max.1"
    assert users_of("select_n.1", body, ids=ids) == ["concatenate.1", "max.1"]
