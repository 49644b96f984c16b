"""Random integers: those below a power of two take no more than the lower bits."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _drawn(k: int, *, remainder: str) -> str:
    """Bits out of one word of a key, and what is left of them."""
    call = "vmap(jit(_randint))"
    bits = f"""
  %key.{k} = u32[8]{{0}} parameter({k})
  %shift_left.{k} = u32[8]{{0}} shift-left(%key.{k}, %number){named(f"{call}/shift_left")}
  %add.{k} = u32[8]{{0}} add(%shift_left.{k}, %number){named(f"{call}/add")}"""
    of_remainder = f" %add.{k}, %span), " if remainder == "and" else f" %add.{k}, %other), "
    metadata = named(f"{call}/rem").removeprefix(", ")
    return f"{bits}\n  %rem.{k} = u32[8]{{0}} {remainder}({of_remainder.strip()} {metadata}"


@pytest.mark.parametrize(
    ("remainders", "users"),
    [
        (("and", "remainder"), ["shift_left.1", "add.1", "shift_left.0", "add.0"]),
        (("and", "and"), ["shift_left.1", "add.1", "shift_left.0", "add.0"]),
        (("remainder", "and"), ["shift_left.0", "add.0", "shift_left.1", "add.1"]),
    ],
)
def test_what_drew_the_higher_bits_is_gone(remainders: tuple[str, str], users: list[str]) -> None:
    """It had been in front of what drew the lower ones."""
    body = f"""  %c = u32[] constant(13)
  %number = u32[8]{{0}} broadcast(%c), dimensions={{}}{named("vmap(jit(_randint))")}
  %d = u32[] constant(31)
  %span = u32[8]{{0}} broadcast(%d), dimensions={{}}{named("vmap(jit(_randint))/rem")}
  %other = u32[8]{{0}} parameter(2){_drawn(0, remainder=remainders[0])}{_drawn(1, remainder=remainders[1])}
  ROOT %r = (u32[8]{{0}}, u32[8]{{0}}) tuple(%rem.0, %rem.1)"""
    assert users_of("number", body) == users


@pytest.mark.parametrize(
    ("function", "users"),
    [("jit(_randint)", ["add.1", "lt.1"]), ("jit(_normal)", ["lt.1", "add.1"])],
)
def test_the_last_takes_the_place_of_the_sum_with_the_least(function: str, users: list[str]) -> None:
    body = f"""  %x = u32[8]{{0}} parameter(0)
  %y = s32[8]{{0}} parameter(1)
  %numbers = s32[8]{{0}} convert(%x){named(f"{function}/convert_element_type")}
  %lt.1 = pred[8]{{0}} compare(%numbers, %y), direction=LT{named("lt")}
  %add.1 = s32[8]{{0}} add(%numbers, %y){named("add")}
  ROOT %r = (pred[8]{{0}}, s32[8]{{0}}) tuple(%lt.1, %add.1)"""
    assert users_of("numbers", body) == users
