"""What is read through a transpose that moved nothing, since what read it was made anew."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_MATRIX = "f32[8,16]{1,0}"


@pytest.mark.parametrize(
    ("name", "users"),
    [("multiply", ["multiply.2", "multiply.1"]), ("mul", ["mul.1", "mul.2"])],
    ids=["made anew", "of the program"],
)
def test_of_what_was_made_anew_for_a_transpose_the_second_comes_first(name: str, users: list[str]) -> None:
    """The first was made anew before there were two bitcasts behind that of the transpose."""
    body = f"""  %p = {_MATRIX} parameter(0)
  %exp.1 = {_MATRIX} exponential(%p){named("exp")}
  %bitcast.1 = f32[128]{{0}} bitcast(%p)
  %{name}.1 = {_MATRIX} multiply(%exp.1, %exp.1){named("mul")}
  %{name}.2 = {_MATRIX} multiply(%exp.1, %exp.1){named("mul")}
  ROOT %r = (f32[128]{{0}}, {_MATRIX}, {_MATRIX}) tuple(%bitcast.1, %{name}.1, %{name}.2)"""
    made = f"{name}.1 {name}.2"
    ids = f"p exp.1 r bitcast.1 {made}" if name == "multiply" else f"p exp.1 {made} r bitcast.1"
    assert users_of("exp.1", body, ids=ids) == users


def test_a_reduction_that_read_the_transpose_comes_behind_it() -> None:
    """It was appended when it was given the value itself."""
    body = f"""  %p = {_MATRIX} parameter(0)
  %zero = f32[] constant(0)
  %exp.1 = {_MATRIX} exponential(%p){named("exp")}
  %reduce.1 = f32[8]{{0}} reduce(%exp.1, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %bitcast.1 = f32[128]{{0}} bitcast(%p)
  %sine.1 = {_MATRIX} sine(%exp.1){named("sin")}
  ROOT %r = (f32[8]{{0}}, f32[128]{{0}}, {_MATRIX}) tuple(%reduce.1, %bitcast.1, %sine.1)"""
    assert users_of("exp.1", body, ids="p zero exp.1 r reduce.1 bitcast.1 sine.1") == ["sine.1", "reduce.1"]


def _spread(small: str, unread: str = "") -> str:
    spread = "f32[4,8,16]{2,1,0}"
    return f"""  %p = f32[1,8,16]{{2,1,0}} parameter(0)
  %turned = f32[8,16,1]{{1,0,2}} parameter(1)
  %given = {spread} parameter(2)
  %q = {spread} negate(%given){named("neg")}
  %bitcast.1 = f32[8,16]{{1,0}} bitcast({small})
  %broadcast.1 = {spread} broadcast(%bitcast.1), dimensions={{1,2}}{named("mul")}
  %sine.1 = {spread} sine(%q){named("sin")}
  %multiply.1 = {spread} multiply(%sine.1, %broadcast.1){named("mul")}
  %cosine.1 = {spread} cosine(%q){named("cos")}
  %multiply.2 = {spread} multiply(%cosine.1, %broadcast.1){named("mul")}
{unread}  ROOT %r = ({spread}, {spread}) tuple(%multiply.1, %multiply.2)"""


_AGES = "p turned given q r bitcast.1 sine.1 broadcast.1 multiply.1 cosine.1 multiply.2"


@pytest.mark.parametrize(
    ("small", "users"),
    [("%p", ["multiply.1", "multiply.2"]), ("%turned", ["multiply.2", "multiply.1"])],
    ids=["row-major", "in another layout"],
)
def test_a_broadcast_becomes_no_other_if_what_it_spreads_had_another_layout(
    small: str, users: list[str]
) -> None:
    """Its dimensions would have to change places: the bitcast behind it stays, until that goes as a whole."""
    assert users_of("broadcast.1", _spread(small), ids=_AGES) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        (f"{_AGES} convolution.1", ["multiply.1", "multiply.2"]),
        (_AGES.replace("r bit", "convolution.1 r bit"), ["multiply.2", "multiply.1"]),
    ],
    ids=["younger than the root", "older"],
)
def test_the_walk_starts_from_what_nobody_reads_in_the_order_of_age(ids: str, users: list[str]) -> None:
    """Which of two equal broadcasts stays is whichever CSE meets first."""
    unread = "  %convolution.1 = f32[4,8,16]{2,1,0} negate(%multiply.2)\n"
    assert users_of("broadcast.1", _spread("%p", unread), ids=ids) == users


@pytest.mark.parametrize(
    ("copied", "users"),
    [("exponential.1", ["sin.1", "cos.1"]), ("exp.1", ["cos.1", "sin.1"])],
    ids=["for each that reads it row-major", "once, for a transpose that moves nothing"],
)
def test_what_had_another_layout_was_copied_for_each(copied: str, users: list[str]) -> None:
    """Of the readers of one copy the last takes the place of the bitcast back to its layout."""
    name = named("exp")
    body = f"""  %p = {_MATRIX} parameter(0)
  %exp.1 = {_MATRIX} exponential(%p){name}
  %bitcast.1 = f32[128]{{0}} bitcast(%p)
  %exponential.1 = {_MATRIX} exponential(%p){name}
  %transpose.1 = f32[16,8]{{1,0}} transpose(%{copied}), dimensions={{1,0}}{name}
  %sin.1 = f32[16,8]{{1,0}} sine(%transpose.1){named("sin")}
  %cos.1 = f32[16,8]{{1,0}} cosine(%transpose.1){named("cos")}
  ROOT %r = (f32[128]{{0}}, {_MATRIX}, {_MATRIX}, f32[16,8]{{1,0}}, f32[16,8]{{1,0}}) \
tuple(%bitcast.1, %exp.1, %exponential.1, %sin.1, %cos.1)"""
    ids = "p exp.1 sin.1 cos.1 r bitcast.1 exponential.1 transpose.1"
    assert users_of("transpose.1", body, ids=ids) == users
