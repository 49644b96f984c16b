"""Reductions over dimensions of one, of which nothing is left, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("width", "frame", "users"),
    [(1, 2, ["mul.1", "add.1"]), (2, 2, ["add.1", "mul.1"]), (1, 1, ["add.1", "mul.1"])],
    ids=["max(x) + x", "x + x", "rolled"],
)
def test_the_last_reader_takes_the_place_of_the_reduction(width: int, frame: int, users: list[str]) -> None:
    """(max(x, keepdims=True) + x) * sum(x, keepdims=True) along the last dimension."""
    shape = f"f32[8,{width}]{{1,0}}"
    body = f"""  %p = {shape} parameter(0)
  %exp.1 = {shape} exponential(%p){named("exp")}
  %add.1 = {shape} add(%exp.1, %exp.1){named("add", frame=1)}
  %mul.1 = {shape} multiply(%add.1, %exp.1){named("mul", frame=frame)}
  ROOT %r = ({shape}) tuple(%mul.1)"""
    assert users_of("exp.1", body) == users
