"""Bitcasts that were copied to a layout which differs in dimensions of one."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("shape", "users"),
    [("f32[4,1,8]{2,1,0}", ["slice.2", "slice.1"]), ("f32[8,4]{1,0}", ["slice.1", "slice.2"])],
    ids=["of the same elements in a row", "of others"],
)
def test_the_last_takes_the_place_of_the_copy(shape: str, users: list[str]) -> None:
    """The copy is written into an array, ahead of the two parts."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %mul.1 = f32[32]{{0}} multiply(%p, %p){named("mul")}
  %bitcast.2 = {shape} bitcast(%mul.1){named("mul")}
  %negate.1 = {shape} negate(%bitcast.2)
  %bitcast.1 = f32[1,4,8]{{2,1,0}} bitcast(%mul.1){named("mul")}
  %slice.1 = f32[1,4,4]{{2,1,0}} slice(%bitcast.1), slice={{[0:1], [0:4], [4:8]}}{named("split")}
  %slice.2 = f32[1,4,4]{{2,1,0}} slice(%bitcast.1), slice={{[0:1], [0:4], [0:4]}}{named("split")}
  ROOT %r = ({shape}, f32[1,4,4], f32[1,4,4]) tuple(%negate.1, %slice.1, %slice.2)"""
    assert users_of("bitcast.1", body, ids="p mul.1 slice.1 slice.2 negate.1 r bitcast.1 bitcast.2") == users
