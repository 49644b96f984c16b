"""The users of what is computed in front of two reshapes, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_MOVED = "p negate.1 mul.1 mul.2 r cos.1 row.1 spread.1"
_OF_PROGRAM = "p cos.1 row.1 spread.1 negate.1 mul.1 mul.2 r"


@pytest.mark.parametrize(
    ("name", "age", "of_value", "of_reshape"),
    [
        ("cos", _MOVED, ["spread.1", "row.1"], ["mul.2", "mul.1"]),
        ("mul", _MOVED, ["row.1", "spread.1"], ["mul.1", "mul.2"]),
        ("cos", _OF_PROGRAM, ["row.1", "spread.1"], ["mul.1", "mul.2"]),
    ],
    ids=["both reshape the value", "one is of another operation", "of the program"],
)
def test_what_reads_a_reshape_reshaped_reads_the_value(
    name: str, age: str, of_value: list[str], of_reshape: list[str]
) -> None:
    """`cos(x)[:, :, None]`, of which one product read a reshape of its own."""
    body = f"""  %p = f32[1,4]{{1,0}} parameter(0)
  %cos.1 = f32[1,4]{{1,0}} cosine(%p){named("cos")}
  %row.1 = f32[4]{{0}} bitcast(%cos.1){named(name)}
  %negate.1 = f32[4]{{0}} negate(%row.1){named("neg")}
  %spread.1 = f32[1,4,1]{{2,1,0}} bitcast(%cos.1){named("cos")}
  %mul.1 = f32[1,4,1]{{2,1,0}} multiply(%spread.1, %spread.1){named("mul")}
  %mul.2 = f32[1,4,1]{{2,1,0}} subtract(%spread.1, %mul.1){named("sub")}
  ROOT %r = (f32[4]{{0}}, f32[1,4,1]{{2,1,0}}) tuple(%negate.1, %mul.2)"""
    assert users_of("cos.1", body, ids=age) == of_value
    assert users_of("spread.1", body, ids=age) == of_reshape


@pytest.mark.parametrize(
    ("name", "users"),
    [("bitcast_convert_type", ["sin.1", "bits.1", "flat.1"]), ("reshape", ["flat.1", "sin.1", "bits.1"])],
    ids=["of what the bits are", "of the value"],
)
def test_bits_that_are_reshaped_come_behind(name: str, users: list[str]) -> None:
    body = f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %flat.1 = s32[8]{{0}} bitcast(%p){named(name)}
  %first.1 = s32[1]{{0}} slice(%flat.1), slice={{[0:1]}}{named("slice")}
  %sin.1 = f32[2,4]{{1,0}} sine(%p){named("sin")}
  %bits.1 = s32[2,4]{{1,0}} bitcast(%p){named("bitcast_convert_type")}
  %neg.1 = s32[2,4]{{1,0}} negate(%bits.1){named("neg")}
  ROOT %r = (s32[1]{{0}}, f32[2,4]{{1,0}}, s32[2,4]{{1,0}}) tuple(%first.1, %sin.1, %neg.1)"""
    assert users_of("p", body) == users


@pytest.mark.parametrize(
    ("flat", "users"), [("f32[2,4]{1,0}", ["exp.1", "neg.1"]), ("f32[4,2]{1,0}", ["neg.1", "exp.1"])]
)
def test_the_last_reader_of_bits_takes_the_place_of_their_reshape(flat: str, users: list[str]) -> None:
    """The reshape reads the value itself since; what has the dimensions of the value was none."""
    body = f"""  %p = f32[4,2]{{1,0}} parameter(0)
  %flat.1 = {flat.replace("f32", "s32")} bitcast(%p){named("bitcast_convert_type", frame=1)}
  %first.1 = s32[1,1]{{1,0}} slice(%flat.1), slice={{[0:1],[0:1]}}{named("slice")}
  %bits.1 = s32[4,2]{{1,0}} bitcast(%p){named("bitcast_convert_type", frame=1)}
  %neg.1 = s32[4,2]{{1,0}} negate(%bits.1){named("neg")}
  %exp.1 = s32[4,2]{{1,0}} not(%bits.1){named("not")}
  ROOT %r = (s32[1,1]{{1,0}}, s32[4,2]{{1,0}}, s32[4,2]{{1,0}}) tuple(%first.1, %neg.1, %exp.1)"""
    assert users_of("bits.1", body) == users
