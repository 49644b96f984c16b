"""The order of users where a slice was taken in front of a reshape."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("age", "operation", "users"),
    [
        ("p c out r x slice.1 bitcast.1", "x", ["bitcast.1", "slice.1"]),
        ("p x slice.1 c out r bitcast.1", "x", ["slice.1", "bitcast.1"]),
        ("p c out r x slice.1 bitcast.1", "other", ["slice.1", "bitcast.1"]),
    ],
    ids=["of what a pass made", "of the program", "not that reshape"],
)
def test_the_slice_came_when_the_reshape_had_been_there(age: str, operation: str, users: list[str]) -> None:
    """ReshapeMover made `x` with a reshape behind it, of which the program took a slice."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x = f32[8]{{0}} sine(%p){named("x")}
  %slice.1 = f32[2]{{0}} slice(%x), slice={{[6:8]}}{named("slice")}
  %c = f32[2]{{0}} cosine(%slice.1){named("c")}
  %bitcast.1 = f32[4,2]{{1,0}} bitcast(%x){named(operation)}
  %out = f32[4,2]{{1,0}} cosine(%bitcast.1){named("out")}
  ROOT %r = (f32[2]{{0}}, f32[4,2]{{1,0}}) tuple(%c, %out)"""
    assert users_of("x", body, ids=age) == users
