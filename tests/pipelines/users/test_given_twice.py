"""Loops that came out of their bodies, and what they were given, as the played passes leave it."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_TURN = "while/body/eval_jaxpr"


def _two_turns(second: str) -> str:
    """`tanh(c) + x` of a scan in two turns, the first with `element` for both, the other `x` from there."""
    return f"""  %x = f32[3,8]{{1,0}} parameter(0)
  %slice.1 = f32[1,8]{{1,0}} slice(%x), slice={{[0:1], [0:8]}}{named("slice", frame=1)}
  %element = f32[8]{{0}} bitcast(%slice.1){named("slice", frame=1)}
  %tanh.1 = f32[8]{{0}} tanh(%element){named(f"{_TURN}/tanh", frame=2)}
  %add.1 = f32[8]{{0}} add(%tanh.1, %element){named(f"{_TURN}/add", frame=2)}
  %slice.2 = f32[1,8]{{1,0}} slice(%x), slice={{[1:2], [0:8]}}{named("slice", frame=1)}
  %next = f32[8]{{0}} bitcast(%slice.2){named("slice", frame=1)}
  %tanh.2 = f32[8]{{0}} tanh(%add.1){named(f"{_TURN}/tanh", frame=2)}
  %add.2 = f32[8]{{0}} add(%tanh.2, %{second}){named(f"{_TURN}/add", frame=2)}"""


@pytest.mark.parametrize(
    ("second", "users"),
    [("next", ["tanh.1", "add.1"]), ("add.1", ["add.1", "tanh.1"])],
    ids=["carried and gone over", "carried"],
)
def test_what_reads_the_second_of_two_elements_comes_behind(second: str, users: list[str]) -> None:
    """Of one that is given once, the last to read it took the place of the call."""
    body = f"""{_two_turns(second)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%add.2, %next)"""
    assert (
        users_of("element", body, ids="x slice.1 slice.2 r tanh.1 add.1 tanh.2 add.2 element next") == users
    )


_LOOP = """
%condition (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%c), index=0
  %most = s32[] constant(9)
  ROOT %lt.1 = pred[] compare(%k, %most), direction=LT
}

%body (b: (s32[], f32[8])) -> (s32[], f32[8]) {
  ROOT %b = (s32[], f32[8]{0}) parameter(0)
}
"""


@pytest.mark.parametrize(
    ("gone", "users"),
    [(f"{_TURN}/", ["tanh.1", "start"]), ("", ["start", "tanh.1"])],
    ids=["a loop", "no loop"],
)
def test_the_walk_started_from_what_is_left_of_a_loop_as_well(gone: str, users: list[str]) -> None:
    """Two loops, neither counter of which is read, and the first of which had one turn."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %exp.1 = f32[8]{{0}} exponential(%x){named("exp", frame=1)}
  %tanh.1 = f32[8]{{0}} tanh(%exp.1){named(f"{gone}tanh", frame=2)}
  %start = (s32[], f32[8]{{0}}) tuple(%zero, %exp.1){named("while", frame=3)}
  %while.1 = (s32[], f32[8]{{0}}) while(%start), condition=%condition, body=%body{named("while", frame=3)}
  %last = f32[8]{{0}} get-tuple-element(%while.1), index=1{named("while", frame=3)}
  ROOT %add.1 = f32[8]{{0}} add(%tanh.1, %last){named("add", frame=4)}"""
    assert users_of("exp.1", body, head=_LOOP, ids="x zero exp.1 start while.1 last add.1 tanh.1") == users
