"""The order of users where what had read a reshape reads what is in front of it."""

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


@pytest.mark.parametrize(
    ("operation", "users"), [("x", ["bitcast.1", "broadcast.1"]), ("other", ["broadcast.1", "bitcast.1"])]
)
def test_what_is_broadcast_in_front_of_a_reshape_came_behind_it(operation: str, users: list[str]) -> None:
    """Another read the reshape: the like of both was merged."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x = f32[8]{{0}} sine(%p){named("x")}
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%x), dimensions={{0}}{named("broadcast_in_dim")}
  %bitcast.1 = f32[8,1]{{1,0}} bitcast(%x){named(operation)}
  %out = f32[8,1]{{1,0}} cosine(%bitcast.1){named("out")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,1]{{1,0}}) tuple(%broadcast.1, %out)"""
    assert users_of("x", body, ids="p out r x broadcast.1 bitcast.1") == users


@pytest.mark.parametrize(
    ("operation", "first", "users", "of_source"),
    [
        ("x", "o.1", ["u.3", "u.1", "u.2"], ["bitcast.1", "bitcast.2"]),
        ("x", "u.1", ["u.1", "u.3", "u.2"], ["bitcast.1", "bitcast.2"]),
        ("other", "o.1", ["u.1", "u.2", "u.3"], ["bitcast.1", "bitcast.2"]),
    ],
    ids=["met first", "met later", "not of that reshape"],
)
def test_the_last_takes_the_place_of_what_was_reshaped_again(
    operation: str, first: str, users: list[str], of_source: list[str]
) -> None:
    """A broadcast read the second reshape with dimensions of one left out, which was one of the first."""
    lines = {
        "u.1": f"""  %u.1 = f32[1,8]{{1,0}} cosine(%bitcast.1){named("u")}""",
        "o.1": f"""  %bitcast.2 = f32[8]{{0}} bitcast(%x){named(operation)}
  %o.1 = f32[2,8]{{1,0}} broadcast(%bitcast.2), dimensions={{1}}{named("o")}""",
    }
    second = {"u.1": "o.1", "o.1": "u.1"}[first]
    shapes = {"u.1": "f32[1,8]{1,0}", "o.1": "f32[2,8]{1,0}"}
    results = ", ".join((shapes[first], shapes[second], *[shapes["u.1"]] * 2))
    body = f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %x = f32[2,4]{{1,0}} sine(%p){named("x")}
  %bitcast.1 = f32[1,8]{{1,0}} bitcast(%x){named("x")}
{lines[first]}
{lines[second]}
  %u.2 = f32[1,8]{{1,0}} sine(%bitcast.1){named("u")}
  %u.3 = f32[1,8]{{1,0}} tan(%bitcast.1){named("u")}
  ROOT %r = ({results}) tuple(%{first}, %{second}, %u.2, %u.3)"""
    age = "p u.1 o.1 u.2 u.3 r x bitcast.1 bitcast.2"
    assert users_of("bitcast.1", body, ids=age) == users
    assert users_of("x", body, ids=age) == of_source
