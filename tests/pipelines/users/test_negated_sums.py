"""Sums of what is negated elsewhere as well, as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("negated", "users"), [("neg", ["neg.1", "reduce_sum.1"]), ("mul", ["reduce_sum.1", "neg.1"])]
)
def test_the_sum_of_negated_values_was_made_behind_all_others(negated: str, users: list[str]) -> None:
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %mul.1 = f32[8,4]{{1,0}} multiply(%p, %p){named("mul")}
  %reduce_sum.1 = f32[8]{{0}} reduce(%mul.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %negate.1.0 = f32[8]{{0}} negate(%reduce_sum.1){named(negated)}
  %neg.1 = f32[8,4]{{1,0}} negate(%mul.1){named("neg")}
  ROOT %r = (f32[8]{{0}}, f32[8,4]{{1,0}}) tuple(%negate.1.0, %neg.1)"""
    assert users_of("mul.1", body, ids="p zero mul.1 neg.1 r reduce_sum.1 negate.1.0") == users
