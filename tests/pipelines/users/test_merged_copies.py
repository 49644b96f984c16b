"""Copies of a value in another layout, made for each use of it."""

from __future__ import annotations

import pytest

from .lists import named, users_of

CONV = "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, custom_call_target="
FORWARD = f'custom-call(%x, %transpose.1), {CONV}"__cudnn$convForward"'


def _weight_and(back: str) -> str:
    """A convolution's weight that is stepped along itself, and what else reads it."""
    return f"""  %w = f32[3,3,8,8]{{3,2,1,0}} parameter(0){named("w")}
  %x = f32[4,8,16,16]{{3,2,1,0}} parameter(1)
  %rate = f32[] constant(0.5)
  %transpose.1 = f32[8,8,3,3]{{3,2,1,0}} transpose(%w), dimensions={{3,2,0,1}}{named("w")}
  %conv = (f32[4,8,16,16]{{3,2,1,0}}, u8[0]{{0}}) {FORWARD}
  %y = f32[4,8,16,16]{{3,2,1,0}} get-tuple-element(%conv), index=0
{back}  %broadcast.1 = f32[8,8,3,3]{{3,2,1,0}} broadcast(%rate), dimensions={{}}{named("mul")}
  %multiply.1 = f32[8,8,3,3]{{3,2,1,0}} multiply(%transpose.1, %broadcast.1){named("mul")}
  %subtract.1 = f32[8,8,3,3]{{3,2,1,0}} subtract(%transpose.1, %multiply.1){named("sub")}
"""


def test_the_last_takes_the_place_of_the_convolutions_bitcast() -> None:
    """The walk comes to the subtraction's copy ahead of that of the product which it reads."""
    body = _weight_and("") + "  ROOT %r = (f32[4,8,16,16], f32[8,8,3,3]) tuple(%y, %subtract.1)"
    assert users_of("transpose.1", body) == ["conv", "multiply.1", "subtract.1"]


@pytest.mark.parametrize(
    ("target", "users"),
    [
        ("__cudnn$convBackwardInput", ["conv", "subtract.1", "back", "multiply.1"]),
        ("other", ["conv", "multiply.1", "back", "subtract.1"]),
    ],
    ids=["a convolution, with a bitcast of its own", "no convolution"],
)
def test_further_bitcasts_are_merged_first(target: str, users: list[str]) -> None:
    """The second convolution's goes when CSE made the two one, the first only after that."""
    call = f'custom-call(%y, %transpose.1), {CONV}"{target}"'
    back = f"""  %back = (f32[4,8,16,16]{{3,2,1,0}}, u8[0]{{0}}) {call}
  %z = f32[4,8,16,16]{{3,2,1,0}} get-tuple-element(%back), index=0
"""
    body = _weight_and(back) + "  ROOT %r = (f32[4,8,16,16], f32[8,8,3,3]) tuple(%z, %subtract.1)"
    assert users_of("transpose.1", body) == users


def test_copies_that_were_merged_before_the_last_normalization_stand_as_they_were_met() -> None:
    """So they were where convolutions have features last: the bitcasts came behind them all."""
    body = _weight_and("").replace("bf01_oi01->bf01", "b01f_o01i->b01f")
    body += "  ROOT %r = (f32[4,8,16,16], f32[8,8,3,3]) tuple(%y, %subtract.1)"
    assert users_of("transpose.1", body) == ["conv", "subtract.1", "multiply.1"]
