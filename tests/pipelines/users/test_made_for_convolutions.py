"""Pads and copies in front of libraries' convolutions, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("target", "users"), [("__cudnn$convForward", ["pad.2", "pad.1"]), ("other", ["pad.1", "pad.2"])]
)
def test_pads_by_the_name_of_what_a_call_gave_are_not_of_the_call(target: str, users: list[str]) -> None:
    """The call gives back what it derives by, too: it ended in a tuple, the first user."""
    convolved = "(f32[4]{0}, u8[0]{0}) custom-call"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %tanh.1 = f32[8]{{0}} tanh(%p){named("jvp(jit(act))/tanh")}
  %mul.1 = f32[8]{{0}} multiply(%p, %tanh.1){named("jvp(jit(act))/mul")}
  %pad.1 = f32[9]{{0}} pad(%mul.1, %zero), padding=0_1{named("jvp(jit(act))/mul")}
  %conv.1 = {convolved}(%pad.1, %p), custom_call_target="{target}"{named("conv")}
  %pad.2 = f32[10]{{0}} pad(%mul.1, %zero), padding=0_2
  %conv.2 = {convolved}(%pad.2, %p), custom_call_target="{target}"{named("transpose/conv")}
  %back.1 = f32[8]{{0}} multiply(%tanh.1, %p){named("transpose(jvp(jit(act)))/mul")}
  %both = ((f32[4]{{0}}, u8[0]{{0}}), (f32[4]{{0}}, u8[0]{{0}})) tuple(%conv.1, %conv.2)
  ROOT %r = (((f32[4]{{0}}, u8[0]{{0}}), (f32[4]{{0}}, u8[0]{{0}})), f32[8]{{0}}) tuple(%both, %back.1)"""
    ids = "p zero conv.1 conv.2 back.1 both r tanh.1 mul.1 pad.1 pad.2"
    assert users_of("mul.1", body, ids=ids) == users
