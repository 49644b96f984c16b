"""What reads a number that was broadcast for operations ReshapeMover moved."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_DIVISIONS = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %multiply.1 = f32[8]{{0}} multiply(%p, %halves){named("div")}
  %multiply.2 = f32[8]{{0}} multiply(%multiply.1, %halves){named("div")}
  %multiply.3 = f32[8]{{0}} multiply(%multiply.2, %halves){named("div")}
  ROOT %r = (f32[8]{{0}}) tuple(%multiply.3)"""


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p half r multiply.1 multiply.3 halves multiply.2", ["multiply.1", "multiply.3", "multiply.2"]),
        ("p half r multiply.3 halves multiply.1 multiply.2", ["multiply.1", "multiply.2", "multiply.3"]),
    ],
    ids=["moved together", "met behind the broadcast's own"],
)
def test_of_divisions_those_older_than_the_reciprocal_were_moved_or_merged(
    ids: str, users: list[str]
) -> None:
    """What was moved with the first is in front. What CSE appended is in the order of its walk."""
    assert users_of("halves", _DIVISIONS, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p mul.2 add.1 r multiply.7 half mul.1 mul.3 halves", ["mul.1", "mul.3", "mul.2"]),
        ("p mul.2 add.1 r multiply.7 mul.3 half mul.1 halves", ["mul.1", "mul.2", "mul.3"]),
    ],
    ids=["together", "apart"],
)
def test_what_was_moved_together_read_one_broadcast(ids: str, users: list[str]) -> None:
    """What is made anew one after the other; what came before another pass's work was given it later."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %mul.1 = f32[8]{{0}} multiply(%p, %halves){named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %halves){named("mul")}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %halves){named("jit(g)/mul")}
  %add.1 = f32[8]{{0}} add(%mul.3, %mul.3){named("add")}
  %multiply.7 = f32[8]{{0}} multiply(%add.1, %add.1){named("div")}
  ROOT %r = (f32[8]{{0}}) tuple(%multiply.7)"""
    assert users_of("halves", body, ids=ids) == users


_TWO_TURNS = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(1)
  %ones = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %exp.1 = f32[8]{{0}} exponential(%p){named("exp")}
  %add.1 = f32[8]{{0}} add(%exp.1, %ones){named("add")}
  %exp.2 = f32[8]{{0}} exponential(%add.1){named("exp")}
  %add.2 = f32[8]{{0}} add(%exp.2, %ones){named("add")}
  %div.1 = f32[8]{{0}} divide(%ones, %add.1){named("div")}
  %div.2 = f32[8]{{0}} divide(%ones, %add.2){named("div")}
  %multiply.7 = f32[8]{{0}} multiply(%p, %p){named("div")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%div.1, %div.2, %multiply.7)"""


def test_what_was_moved_in_a_later_turn_stands_in_front() -> None:
    """What reads another that was moved was moved in another turn, with another broadcast."""
    ids = "p c r multiply.7 exp.1 exp.2 add.1 add.2 div.1 div.2 ones"
    assert users_of("ones", _TWO_TURNS, ids=ids) == ["div.1", "div.2", "add.1", "add.2"]


def test_what_was_moved_later_was_given_an_older_broadcast_later() -> None:
    ids = "p c ones r multiply.7 exp.1 exp.2 add.1 add.2 div.1 div.2"
    assert users_of("ones", _TWO_TURNS, ids=ids) == ["add.1", "add.2", "div.1", "div.2"]


@pytest.mark.parametrize(
    ("shape", "users"),
    [
        ("f32[8]{0}", ["mul.1", "mul.3", "mul.4", "mul.2", "mul.5"]),
        ("f32[8,1]{1,0}", ["mul.1", "mul.3", "mul.2", "mul.4", "mul.5"]),
    ],
    ids=["moved and moved back", "of another shape in the program"],
)
def test_what_was_left_filled_the_holes_of_those_that_were_moved(shape: str, users: list[str]) -> None:
    """Reshapes took the places of those; the first of them was the last to go."""
    reshape = "add" if shape == "f32[8]{0}" else "bitcast"
    operands = {k: f"%mul.{k}, %p" if reshape == "add" else f"%mul.{k}" for k in (1, 3)}
    lines = "\n  ".join(
        f"%mul.{k} = f32[8]{{0}} multiply(%x.{k}, %halves){named('mul')}" for k in range(1, 6)
    )
    arguments = "\n  ".join(f"%x.{k} = f32[8]{{0}} parameter({k})" for k in range(1, 6))
    body = f"""  %p = f32[8]{{0}} parameter(0)
  {arguments}
  %c = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%c), dimensions={{}}
  {lines}
  %read.1 = {shape} {reshape}({operands[1]}){named("read")}
  %read.3 = {shape} {reshape}({operands[3]}){named("read")}
  %multiply.7 = f32[8]{{0}} multiply(%p, %p){named("div")}
  ROOT %r = ({shape}, f32[8]{{0}}, {shape}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%read.1, %mul.2,\
 %read.3, %mul.4, %mul.5, %multiply.7)"""
    read = "read.1 read.3"
    young, old = (read, "") if reshape == "bitcast" else ("", read)
    ids = f"p x.1 x.2 x.3 x.4 x.5 c mul.2 mul.4 mul.5 {old} r multiply.7 mul.1 mul.3 halves {young}"
    assert users_of("halves", body, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p half r mul.1 halves sin.1 mul.2", ["mul.2", "mul.1"]),
        ("p half r halves mul.1 sin.1 mul.2", ["mul.1", "mul.2"]),
    ],
    ids=["the only younger one", "made next"],
)
def test_what_stands_for_the_broadcasts_own_reader_is_younger(ids: str, users: list[str]) -> None:
    """A choice by a negated predicate, which was made anew with the two sides swapped."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %mul.2 = f32[8]{{0}} multiply(%p, %halves){named("mul")}
  %sin.1 = f32[8]{{0}} sine(%mul.2){named("sin")}
  %mul.1 = f32[8]{{0}} multiply(%sin.1, %halves){named("mul")}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.1)"""
    assert users_of("halves", body, ids=ids) == users
