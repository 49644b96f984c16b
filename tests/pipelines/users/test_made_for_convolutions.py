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


@pytest.mark.parametrize(
    ("target", "users"),
    [
        ("__cudnn$convForward", ["bitcast.1", "subtract.1", "multiply.1", "multiply.2"]),
        ("other", ["bitcast.1", "multiply.1", "multiply.2", "subtract.1"]),
    ],
)
def test_the_last_that_had_a_copy_of_its_own_is_behind_what_a_convolution_reads(
    target: str, users: list[str]
) -> None:
    """Behind that was a bitcast which layout normalization made again, for nobody."""
    matrix, convolved = "f32[4,8]{1,0}", "(f32[4]{0}, u8[0]{0})"
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = {matrix} parameter(1)
  %transpose.1 = {matrix} transpose(%p), dimensions={{1,0}}
  %bitcast.1 = f32[4,8,1]{{2,1,0}} bitcast(%transpose.1)
  %conv.1 = {convolved} custom-call(%bitcast.1, %q), dim_labels=bf0_oi0->bf0, \
custom_call_target="{target}"{named("conv")}
  %multiply.1 = {matrix} multiply(%transpose.1, %q){named("mul")}
  %multiply.2 = {matrix} multiply(%multiply.1, %transpose.1){named("mul")}
  %subtract.1 = {matrix} subtract(%multiply.2, %transpose.1){named("sub")}
  ROOT %r = ({convolved}, {matrix}) tuple(%conv.1, %subtract.1)"""
    ids = "p q conv.1 r transpose.1 bitcast.1 multiply.1 multiply.2 subtract.1"
    assert users_of("transpose.1", body, ids=ids) == users
