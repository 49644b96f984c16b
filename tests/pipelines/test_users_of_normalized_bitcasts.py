"""Bitcasts to another layout than row-major, each case as XLA's records show it."""

from __future__ import annotations

from .test_users_by_age import named, users_of


def test_the_second_user_takes_the_place_of_the_bitcast_behind_a_bitcast() -> None:
    """The two became one, made anew, with its users as they stood."""
    body = f"""  %p = f32[8,32]{{1,0}} parameter(0)
  %bitcast.1.0 = f32[2,4,32]{{2,1,0}} bitcast(%p)
  %negate.1.0 = f32[2,4,32]{{2,1,0}} negate(%bitcast.1.0){named("neg")}
  %multiply.1.0 = f32[2,4,32]{{2,1,0}} multiply(%bitcast.1.0, %negate.1.0){named("mul")}
  ROOT %r = (f32[2,4,32]{{2,1,0}}) tuple(%multiply.1.0)"""
    made = "p r bitcast.1.0 negate.1.0 multiply.1.0"
    assert users_of("bitcast.1.0", body, ids=made) == ["multiply.1.0", "negate.1.0"]
    there = "p negate.1.0 multiply.1.0 r bitcast.1.0"
    assert users_of("bitcast.1.0", body, ids=there) == ["negate.1.0", "multiply.1.0"]
