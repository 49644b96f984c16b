"""Numbers that functions spread, each call for itself, as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of

SOFTPLUS = "jvp(jit(softplus))"


def _two_calls(frame: int) -> str:
    """The walk comes to what the second call chooses first, then to the first call for the maximum."""
    calls = "\n".join(
        f"""  %select_n.{k} = f32[8]{{0}} select(%p, %x, %zeros){named(f"{SOFTPLUS}/select_n", frame=at)}
  %max.{k} = f32[8]{{0}} maximum(%{x}, %zeros){named(f"{SOFTPLUS}/max", frame=at)}
  %mul.{k} = f32[8]{{0}} multiply(%select_n.{k}, %max.{k}){named("jvp()/mul", frame=9)}"""
        for k, x, at in ((1, "x", 2), (2, "mul.1", frame))
    )
    return f"""  %x = f32[8]{{0}} parameter(0)
  %p = pred[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
{calls}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.2)"""


@pytest.mark.parametrize(
    ("frame", "users"),
    [(3, "max.2 select_n.2 max.1 select_n.1"), (2, "max.2 select_n.2 max.1 select_n.1")],
    ids=["in two places", "in a loop"],
)
def test_users_in_a_call_are_as_it_was_cloned_where_a_pass_made_the_number(frame: int, users: str) -> None:
    ids = "x p zero mul.1 mul.2 r max.1 select_n.1 - - - max.2 - select_n.2 - - zeros"
    assert users_of("zeros", _two_calls(frame), ids=ids) == users.split()


def test_calls_in_different_places_are_not_one() -> None:
    """No other operation between the two tells them apart."""
    ids = "x p zero mul.1 mul.2 r max.2 select_n.2 - max.1 select_n.1 - - zeros"
    assert users_of("zeros", _two_calls(3), ids=ids) == ["max.2", "select_n.2", "max.1", "select_n.1"]
