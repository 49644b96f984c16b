"""Remainders of divisions by a power of two, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("operation", "users"),
    [("rem", ["choice", "exp.1", "sign", "negated"]), ("abs", ["sign", "negated", "choice", "exp.1"])],
)
def test_the_choice_takes_the_place_of_the_remainder(operation: str, users: list[str]) -> None:
    """x % 4, which is (x < 0 ? -x : x) & 3 with the sign of x, ahead of another user."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %x.1 = s32[8]{{0}} not(%p){named("not")}
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %sign = pred[8]{{0}} compare(%x.1, %zero), direction=LT{named(operation)}
  %negated = s32[8]{{0}} negate(%x.1){named(operation)}
  %choice = s32[8]{{0}} select(%sign, %negated, %x.1){named(operation)}
  %exp.1 = s32[8]{{0}} abs(%x.1){named("exp")}
  ROOT %r = (s32[8]{{0}}, s32[8]{{0}}) tuple(%choice, %exp.1)"""
    body = body.replace("  %zero", "  %c = s32[] constant(0)\n  %zero")
    assert users_of("x.1", body) == users
