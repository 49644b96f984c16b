"""The order of users that are bitcasts, of which AlgebraicSimplifier made some out of two."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_BODY = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %sin.1 = f32[4,8]{{1,0}} sine(%p){named("div")}
  %turned.1 = f32[4,8,1,1]{{3,2,1,0}} bitcast(%sin.1){named("div")}
  %first.1 = f32[4,8,1,1]{{3,2,1,0}} cosine(%turned.1){named("cos")}
  %reshaped.1 = f32[4,1,1,8]{{3,2,1,0}} bitcast(%sin.1){named("div")}
  %second.1 = f32[4,1,1,8]{{3,2,1,0}} cosine(%reshaped.1){named("cos")}
  ROOT %r = (f32[4,8,1,1]{{3,2,1,0}}, f32[4,1,1,8]{{3,2,1,0}}) tuple(%first.1, %second.1)"""


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p sin.1 r reshaped.1 first.1 second.1 turned.1", ["reshaped.1", "turned.1"]),
        ("p sin.1 r second.1 first.1 reshaped.1 turned.1", ["turned.1", "reshaped.1"]),
    ],
    ids=["merged later", "both are reshapes of the program"],
)
def test_a_bitcast_of_a_bitcast_is_appended(ids: str, users: list[str]) -> None:
    """As where a convolution reads in another layout what the program reshaped."""
    assert users_of("sin.1", _BODY, ids=ids) == users


@pytest.mark.parametrize(
    ("name", "users"), [("transpose", ["reshaped.1", "turned.1"]), ("reshape", ["turned.1", "reshaped.1"])]
)
def test_a_transpose_that_moves_nothing_is_a_bitcast_later_than_reshapes(name: str, users: list[str]) -> None:
    body = _BODY.replace(f"bitcast(%sin.1){named('div')}", f"bitcast(%sin.1){named('exp')}")
    body = body.replace("[4,1,1,8]{3,2,1,0}", "[2,16]{1,0}")
    turned = f"bitcast(%sin.1){named(name)}"
    body = body.replace(f"bitcast(%sin.1){named('exp')}", turned, 1)
    assert users_of("sin.1", body, ids="p sin.1 r first.1 reshaped.1 second.1 turned.1") == users


@pytest.mark.parametrize(
    ("copied", "users"),
    [("split", ["split.1", "bitcast.1"]), ("other", ["bitcast.1", "split.1"])],
    ids=["of the reshape", "of something else"],
)
def test_a_copy_of_a_reshape_read_the_value_behind_it(copied: str, users: list[str]) -> None:
    """Of what was made anew itself: one product read the reshape as it is, another one a copy of it."""
    body = f"""  %p = f32[8,64,32]{{2,1,0}} parameter(0)
  %q = f32[32,16,32]{{2,1,0}} parameter(1)
  %transpose.1 = f32[8,64,32]{{2,1,0}} transpose(%p), dimensions={{0,1,2}}{named("dot_general")}
  %add.1 = f32[8,64,32]{{2,1,0}} add(%transpose.1, %transpose.1){named("add")}
  %split.1 = f32[32,16,32]{{2,1,0}} bitcast(%add.1){named("split")}
  %dot.1 = f32[32,16,32]{{2,1,0}} custom-call(%split.1, %q), custom_call_target="__cublas$gemm"
  %bitcast.1 = f32[8,4,16,32]{{3,2,1,0}} bitcast(%add.1)
  %transpose.2 = f32[8,4,32,16]{{3,2,1,0}} transpose(%bitcast.1), dimensions={{0,1,3,2}}{named(copied)}
  ROOT %r = (f32[32,16,32]{{2,1,0}}, f32[8,4,32,16]{{3,2,1,0}}) tuple(%dot.1, %transpose.2)"""
    assert users_of("add.1", body) == users
