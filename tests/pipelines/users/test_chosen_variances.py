"""The users of variances, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("call", "reader", "users"),
    [
        ("jit(_var)", "max", ["sub.1", "max.1"]),
        ("jvp(jit(_var))", "max", ["sub.1", "max.1"]),
        ("jit(_var)", "jit(_var)/max", ["max.1", "sub.1"]),
        ("jit(_mean)", "max", ["max.1", "sub.1"]),
    ],
    ids=["a variance", "derived", "read in the function", "a mean"],
)
def test_the_last_takes_the_place_of_the_choice_of_the_variance(
    call: str, reader: str, users: list[str]
) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(0.125)
  %by = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %multiply.1 = f32[8]{{0}} multiply(%p, %by){named(f"{call}/div", frame=1)}
  %max.1 = f32[] reduce(%multiply.1, %c), dimensions={{0}}, to_apply=%sum{named(reader, frame=2)}
  %all = f32[8]{{0}} broadcast(%max.1), dimensions={{}}{named("sub", frame=2)}
  %sub.1 = f32[8]{{0}} subtract(%all, %multiply.1){named("sub", frame=2)}
  ROOT %r = (f32[8]{{0}}) tuple(%sub.1)"""
    assert users_of("multiply.1", body, ids="p c max.1 all sub.1 r multiply.1 by") == users
