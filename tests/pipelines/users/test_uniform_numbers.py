"""Uniform random numbers, to which the program added zero."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _numbers(bound: str, operation: str) -> str:
    return f"""  %x = f32[8]{{0}} parameter(0)
  %p = pred[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %number = f32[] constant({bound})
  %max.1 = f32[8]{{0}} broadcast(%number), dimensions={{}}{named(operation)}
  %max.2 = f32[8]{{0}} maximum(%max.1, %x){named(operation)}
  %select_n.1 = f32[8]{{0}} select(%p, %max.2, %max.1){named("select_n")}
  %max.3 = f32[8]{{0}} maximum(%max.1, %y){named(operation)}
  %select_n.2 = f32[8]{{0}} select(%p, %max.3, %max.1){named("select_n")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%select_n.1, %select_n.2)"""


@pytest.mark.parametrize(
    ("bound", "operation", "users"),
    [
        ("0", "jit(_uniform)/max", ["max.2", "max.3", "select_n.1", "select_n.2"]),
        ("-1", "jit(_uniform)/max", ["max.2", "select_n.1", "select_n.2", "max.3"]),
        ("0", "vmap()/cond/jit(_uniform)/max", ["max.2", "select_n.1", "select_n.2", "max.3"]),
        ("0", "jit(relu)/max", ["max.2", "select_n.1", "select_n.2", "max.3"]),
    ],
    ids=["zero", "another bound", "one for each of a batch", "no random numbers"],
)
def test_the_sums_with_zero_are_gone(bound: str, operation: str, users: list[str]) -> None:
    ids = "x p y number max.1 - max.2 select_n.1 max.3 select_n.2 r"
    assert users_of("max.1", _numbers(bound, operation), ids=ids) == users
