"""What reads a number that was broadcast for operations ReshapeMover moved."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_DIVISIONS = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %multiply.1 = f32[8]{{0}} multiply(%p, %halves){named("div")}
  %multiply.2 = f32[8]{{0}} multiply(%multiply.1, %halves){named("div")}
  %multiply.3 = f32[8]{{0}} multiply(%multiply.2, %halves){named("div")}
  ROOT %r = (f32[8]{{0}}) tuple(%multiply.3)"""


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p half r multiply.1 multiply.3 halves multiply.2", ["multiply.1", "multiply.3", "multiply.2"]),
        ("p half r multiply.3 halves multiply.1 multiply.2", ["multiply.1", "multiply.2", "multiply.3"]),
    ],
    ids=["moved together", "met behind the broadcast's own"],
)
def test_of_divisions_those_older_than_the_reciprocal_were_moved_or_merged(
    ids: str, users: list[str]
) -> None:
    """What was moved with the first is in front. What CSE appended is in the order of its walk."""
    assert users_of("halves", _DIVISIONS, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p mul.2 add.1 r multiply.7 half mul.1 mul.3 halves", ["mul.1", "mul.3", "mul.2"]),
        ("p mul.2 add.1 r multiply.7 mul.3 half mul.1 halves", ["mul.1", "mul.2", "mul.3"]),
    ],
    ids=["together", "apart"],
)
def test_what_was_moved_together_read_one_broadcast(ids: str, users: list[str]) -> None:
    """What is made anew one after the other; what came before another pass's work was given it later."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %mul.1 = f32[8]{{0}} multiply(%p, %halves){named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %halves){named("mul")}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %halves){named("jit(g)/mul")}
  %add.1 = f32[8]{{0}} add(%mul.3, %mul.3){named("add")}
  %multiply.7 = f32[8]{{0}} multiply(%add.1, %add.1){named("div")}
  ROOT %r = (f32[8]{{0}}) tuple(%multiply.7)"""
    assert users_of("halves", body, ids=ids) == users
