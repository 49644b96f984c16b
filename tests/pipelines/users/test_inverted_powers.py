"""Divisions by powers, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize("reader", ["exponential", "negate"])
def test_the_difference_of_exponents_comes_behind(reader: str) -> None:
    """`exp(x) / exp(y)` became `exp(x - y)`, which its derivative inverts. Others are read in place."""
    power = "" if reader == "negate" else f"\n  %exp.9 = f32[8]{{0}} exponential(%subtract.1){named('div')}"
    body = f"""  %x.1 = f32[8]{{0}} parameter(0)
  %y.1 = f32[8]{{0}} parameter(1)
  %value.1 = f32[8]{{0}} negate(%x.1){named("neg")}
  %exp.1 = f32[8]{{0}} exponential(%value.1){named("exp")}
  %subtract.1 = f32[8]{{0}} subtract(%value.1, %y.1){named("div")}{power}
  %negate.1 = f32[8]{{0}} negate(%subtract.1){named("transpose(jvp())/div")}
  %neg.1 = f32[8]{{0}} negate(%value.1){named("neg")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.1, %negate.1, %neg.1)"""
    users = ["exp.1", "neg.1", "subtract.1"] if power else ["exp.1", "subtract.1", "neg.1"]
    ids = "x.1 y.1 value.1 exp.1 neg.1 r subtract.1 exp.9 negate.1"
    assert users_of("value.1", body, ids=ids) == users
