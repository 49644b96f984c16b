"""Operations that were made anew in front of broadcasts, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("x limit tiny wide.1 r max.1 lt.1 lt.2 sqrt.1", ["max.1", "lt.1"]),
        ("x limit tiny wide.1 r lt.1 lt.2 max.1 sqrt.1", ["lt.1", "max.1"]),
        ("x limit tiny wide.1 r lt.1 max.1 lt.2 sqrt.1", ["max.1", "lt.1"]),
    ],
    ids=["compared last", "compared first", "not sunk"],
)
def test_a_norm_of_rows_that_was_compared_has_readers_by_age(ids: str, users: list[str]) -> None:
    """A comparison that was sunk has its broadcast made right behind it."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %limit = f32[8]{{0}} parameter(1)
  %tiny = f32[8]{{0}} parameter(2)
  %wide.1 = f32[8,4]{{1,0}} broadcast(%limit), dimensions={{0}}{named("broadcast_in_dim")}
  %sqrt.1 = f32[8]{{0}} sqrt(%x){named("sqrt")}
  %lt.1 = pred[8]{{0}} compare(%sqrt.1, %limit), direction=LT{named("lt")}
  %lt.2 = pred[8,4]{{1,0}} broadcast(%lt.1), dimensions={{0}}
  %max.1 = f32[8]{{0}} maximum(%sqrt.1, %tiny){named("max")}
  ROOT %r = (pred[8,4]{{1,0}}, f32[8]{{0}}, f32[8,4]{{1,0}}) tuple(%lt.2, %max.1, %wide.1)"""
    assert users_of("sqrt.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("x y r exp.1 broadcast.1 neg.1 sin.1", ["broadcast.1", "neg.1", "sin.1"]),
        ("x y r exp.1 neg.1 broadcast.1 sin.1", ["sin.1", "broadcast.1", "neg.1"]),
    ],
    ids=["made with its broadcast", "without"],
)
def test_what_was_sunk_has_readers_by_age_behind_its_own_broadcast(ids: str, users: list[str]) -> None:
    """Not all of them were sunk in front of a broadcast like it."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %exp.1 = f32[8]{{0}} exponential(%x){named("exp")}
  %neg.1 = f32[8]{{0}} negate(%exp.1){named("neg")}
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%exp.1), dimensions={{0}}{named("broadcast_in_dim")}
  %sin.1 = f32[8]{{0}} sine(%exp.1){named("sin")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%broadcast.1, %neg.1, %sin.1)"""
    assert users_of("exp.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("gone", "users"),
    [("", ["wide.1", "wide.2"]), ("- ", ["wide.2", "wide.1"])],
    ids=["in front of a broadcast", "in front of a reshape"],
)
def test_what_was_moved_in_front_of_a_broadcast_was_given_that(gone: str, users: list[str]) -> None:
    """`y * y` of `y = broadcast(x)`, which is reshaped as well."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %mul.2.0 = f32[8]{{0}} multiply(%x, %x){named("mul", frame=4)}
  %mul.0.0 = f32[8]{{0}} multiply(%x, %mul.2.0){named("mul", frame=1)}
  %wide.1 = f32[8,4]{{1,0}} broadcast(%mul.0.0), dimensions={{0}}{named("broadcast_in_dim", frame=2)}
  %wide.2 = f32[1,8,4]{{2,1,0}} broadcast(%mul.0.0), dimensions={{1}}{named("stack", frame=3)}
  ROOT %r = (f32[8,4]{{1,0}}, f32[1,8,4]{{2,1,0}}) tuple(%wide.1, %wide.2)"""
    assert users_of("mul.0.0", body, ids=f"x mul.2.0 r mul.0.0 {gone}wide.1 wide.2") == users
