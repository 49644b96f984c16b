"""First elements that an associative scan takes twice, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_FRAME = 1


def _program(size: int, *, behind: str = "slice", frame: int = _FRAME) -> str:
    """What a scan does at its innermost, of a value that something else reads before and behind."""
    return f"""  %p = f32[{size}]{{0}} parameter(0)
  %zero.1 = f32[] constant(0)
  %x.1 = f32[{size}]{{0}} sine(%p){named("sin")}
  %first.1 = f32[1]{{0}} slice(%x.1), slice={{[0:1]}}{named("slice", frame=_FRAME)}
  %second.1 = f32[1]{{0}} slice(%x.1), slice={{[1:2]}}{named(behind, frame=frame)}
  %m.1 = f32[1]{{0}} multiply(%first.1, %second.1){named("mul", frame=2)}
  %pad.1 = f32[2]{{0}} pad(%first.1, %zero.1), padding=0_1{named("pad", frame=_FRAME)}
  %last.1 = f32[{size}]{{0}} negate(%x.1){named("neg")}
  %n.1 = f32[1]{{0}} negate(%first.1){named("neg", frame=3)}
  ROOT %t = (f32[1]{{0}}, f32[2]{{0}}, f32[{size}]{{0}}, f32[1]{{0}}) tuple(%m.1, %pad.1, %last.1, %n.1)"""


@pytest.mark.parametrize("size", [2, 3])
def test_what_the_second_of_two_slices_was_read_by_comes_behind(size: int) -> None:
    assert users_of("first.1", _program(size)) == ["pad.1", "m.1", "n.1"]


@pytest.mark.parametrize("size", [2, 3])
def test_the_last_user_takes_the_place_of_the_second_slice(size: int) -> None:
    assert users_of("x.1", _program(size)) == ["first.1", "last.1", "second.1"]


@pytest.mark.parametrize(
    "body",
    [_program(4), _program(3, behind="split"), _program(3, frame=4)],
    ids=["every other of four is two", "another operation", "another place"],
)
def test_one_of_no_scan_was_taken_once(body: str) -> None:
    assert users_of("first.1", body) == ["m.1", "pad.1", "n.1"]
    assert users_of("x.1", body) == ["first.1", "second.1", "last.1"]
