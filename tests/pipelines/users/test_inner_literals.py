"""Numbers that a function uses as well as functions that are called in it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("inner", "ids_known", "users"),
    [
        ("jit(roll)/jit(remainder)", True, ["add.1", "sub.1", "rem.1"]),
        ("jit(roll)/jit(remainder)", False, ["sub.1", "add.1", "rem.1"]),
        ("jit(roll)", True, ["rem.1", "add.1", "sub.1"]),
    ],
    ids=["called in it", "of ages nothing is known", "its own"],
)
def test_what_calls_in_a_function_read_comes_behind(inner: str, ids_known: bool, users: list[str]) -> None:
    """What the function itself reads comes by age."""
    body = f"""  %x = s32[8]{{0}} parameter(0)
  %size = s32[] constant(40)
  %all = s32[8]{{0}} broadcast(%size), dimensions={{}}{named("jit(roll)")}
  %rem.1 = s32[8]{{0}} remainder(%x, %all){named(f"{inner}/rem")}
  %sub.1 = s32[8]{{0}} subtract(%all, %rem.1){named("jit(roll)/sub")}
  %add.1 = s32[8]{{0}} add(%sub.1, %all){named("jit(roll)/add")}
  ROOT %or.1 = s32[8]{{0}} or(%sub.1, %add.1){named("or")}"""
    ids = "x size or.1 all - rem.1 - add.1 sub.1" if ids_known else "x size all rem.1 sub.1 - add.1 or.1"
    assert users_of("all", body, ids=ids, ids_known=ids_known) == users


@pytest.mark.parametrize(
    ("met", "users"),
    [("select_n.1, %add.1", ["select_n.1", "add.1"]), ("add.1, %select_n.1", ["add.1", "select_n.1"])],
    ids=["met by the call first", "by the function"],
)
def test_a_call_that_is_met_first_was_given_the_number(met: str, users: list[str]) -> None:
    """`where(p, ones, x) - (x + ones)`: a one of the call's own would have been kept."""
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %one = f32[] constant(1)
  %ones = f32[8]{{0}} broadcast(%one), dimensions={{}}{named("jit(hypot)")}
  %select_n.1 = f32[8]{{0}} select(%p, %ones, %x){named("jit(hypot)/jit(_where)/select_n")}
  %add.1 = f32[8]{{0}} add(%x, %ones){named("jit(hypot)/add")}
  ROOT %sub.1 = f32[8]{{0}} subtract(%{met}){named("sub")}"""
    assert users_of("ones", body, ids="p x one sub.1 - ones select_n.1 - add.1") == users
