"""What single operations of the framework and their rules expand to, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("operation", "users"),
    [("lgamma", ["lgamma.3", "lgamma.2", "lgamma.1"]), ("sub", ["lgamma.3", "lgamma.1", "lgamma.2"])],
)
def test_the_last_user_takes_the_place_of_a_difference_from_a_constant(
    operation: str, users: list[str]
) -> None:
    """`x - 1` became `x + -1`; the framework's own subtraction had a one of its own."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(1)
  %one = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %lgamma.3 = f32[8]{{0}} subtract(%one, %p){named("lgamma")}
  %d = f32[] constant(-1)
  %minus = f32[8]{{0}} broadcast(%d), dimensions={{}}
  %add.1 = f32[8]{{0}} add(%lgamma.3, %minus){named(operation)}
  %lgamma.1 = f32[8]{{0}} add(%add.1, %one){named("lgamma")}
  %lgamma.2 = f32[8]{{0}} add(%lgamma.1, %one){named("lgamma")}
  ROOT %r = (f32[8]{{0}}) tuple(%lgamma.2)"""
    assert users_of("one", body) == users


def _expansion(number: int) -> str:
    """The logarithm of gamma of `x`, in part: `number` is that of what reads its absolute value."""
    return f"""\
  %lgamma.9.0 = f32[8]{{0}} abs(%x){named("lgamma", frame=4)}
  %lgamma.1.0 = pred[8]{{0}} compare(%x, %q), direction=LT{named("lgamma", frame=4)}
  %lgamma.{number}.0 = f32[8]{{0}} floor(%lgamma.9.0){named("lgamma", frame=4)}
  %lgamma.2.0 = f32[8]{{0}} negate(%x){named("lgamma", frame=4)}
  %add.2.0 = f32[8]{{0}} add(%x, %q){named("lgamma", frame=4)}
  %lgamma.3.0 = f32[8]{{0}} select(%lgamma.1.0, %lgamma.2.0, %add.2.0){named("lgamma", frame=4)}"""


@pytest.mark.parametrize(
    ("number", "age", "users"),
    [
        (5, "{kept} {others} r", ["lgamma.9.0", "lgamma.1.0", "add.2.0", "lgamma.2.0"]),
        (5, "{others} {kept} r", ["lgamma.9.0", "lgamma.1.0", "add.2.0", "lgamma.2.0"]),
        (10, "{kept} {others} r", ["lgamma.9.0", "lgamma.1.0", "lgamma.2.0", "add.2.0"]),
        (5, "{others} r {kept}", ["lgamma.9.0", "lgamma.1.0", "lgamma.2.0", "add.2.0"]),
    ],
    ids=["older", "younger", "numbered behind", "made by a pass"],
)
def test_what_reads_a_value_numbered_behind_it_read_an_equal_one(
    number: int, age: str, users: list[str]
) -> None:
    """`lgamma.4` had been the absolute value that `lgamma.5` was made with; CSE met `lgamma.9` first.

    What a pass made since is younger than what reads it, and has a number of that pass.
    """
    kept, others = "lgamma.9.0", f"lgamma.1.0 lgamma.{number}.0 lgamma.2.0 add.2.0 lgamma.3.0"
    ids = f"p q x {age.format(kept=kept, others=others)}"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %x = f32[8]{{0}} negate(%p){named("neg")}
{_expansion(number)}
  ROOT %r = (f32[8]{{0}}, pred[8]{{0}}, f32[8]{{0}}, f32[8]{{0}})\
 tuple(%lgamma.9.0, %lgamma.1.0, %lgamma.{number}.0, %lgamma.3.0)"""
    assert users_of("x", body, ids=ids) == users


@pytest.mark.parametrize(
    ("number", "gone"), [(5, ["add.2.0", "lgamma.2.0"]), (10, ["lgamma.2.0", "add.2.0"])]
)
def test_an_equal_value_stood_where_its_expansion_has_it(number: int, gone: list[str]) -> None:
    """What is read in front of the expansion, and used behind it, stays there."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %x = f32[8]{{0}} negate(%p){named("neg")}
  %slice.1 = f32[4]{{0}} slice(%x), slice={{[0:4]}}{named("slice")}
{_expansion(number)}
  ROOT %r = (f32[8]{{0}}, pred[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[4]{{0}})\
 tuple(%lgamma.9.0, %lgamma.1.0, %lgamma.{number}.0, %lgamma.3.0, %slice.1)"""
    assert users_of("x", body) == ["slice.1", "lgamma.9.0", "lgamma.1.0", *gone]


@pytest.mark.parametrize(
    ("narrow", "users"), [("s64", ["mul.1", "complex.1"]), ("bf16", ["complex.1", "mul.1"])]
)
def test_two_converts_made_one_leave_the_users_as_they_were(narrow: str, users: list[str]) -> None:
    """One from a narrow type cannot have been two; it was moved, with a reshape that is gone behind it."""
    body = f"""  %p = {narrow}[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %convert_element_type.1 = f32[8]{{0}} convert(%p){named("convert_element_type")}
  %mul.1 = f32[8]{{0}} multiply(%convert_element_type.1, %q){named("mul")}
  ROOT %complex.1 = c64[8]{{0}} complex(%convert_element_type.1, %mul.1){named("complex")}"""
    assert users_of("convert_element_type.1", body, ids="p q mul.1 complex.1 convert_element_type.1") == users


@pytest.mark.parametrize(
    ("other", "users"),
    [("spread.1", ["spread.1", "transpose.1"]), ("mul.1", ["transpose.1", "spread.1"])],
    ids=["one reads both", "each reads one"],
)
def test_what_one_operation_spreads_in_two_ways_was_expanded_twice(other: str, users: list[str]) -> None:
    """All distances, `x[:, None] - x[None, :]`, of which one operand was given another layout."""
    body = f"""  %p = f32[8,3]{{1,0}} parameter(0)
  %q = f32[8,3,8]{{2,1,0}} parameter(1)
  %x.1 = f32[8,3]{{1,0}} cosine(%p){named("cos")}
  %spread.1 = f32[8,3,8]{{2,1,0}} broadcast(%x.1), dimensions={{0,1}}{named("sub")}
  %mul.1 = f32[8,3,8]{{2,1,0}} multiply(%q, %spread.1){named("mul")}
  %transpose.1 = f32[3,8]{{1,0}} transpose(%x.1), dimensions={{1,0}}{named("sub")}
  %spread.2 = f32[8,3,8]{{2,1,0}} broadcast(%transpose.1), dimensions={{1,2}}{named("sub")}
  %sub.1 = f32[8,3,8]{{2,1,0}} subtract(%{other}, %spread.2){named("sub")}
  ROOT %r = (f32[8,3,8]{{2,1,0}}, f32[8,3,8]{{2,1,0}}) tuple(%mul.1, %sub.1)"""
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("spread", "users"),
    [(2, ["spread.2", "bitcast.1", "spread.1"]), (1, ["spread.1", "bitcast.1"])],
    ids=["two broadcasts", "one"],
)
def test_the_last_broadcast_takes_the_place_of_the_expansion(spread: int, users: list[str]) -> None:
    """What else reads the value, for a product, stood behind it."""
    other = f"""
  %spread.2 = f32[8,4,3]{{2,1,0}} broadcast(%x.1), dimensions={{0,2}}{named("sub")}"""
    other = other if spread == 2 else ""
    body = f"""  %p = f32[8,3]{{1,0}} parameter(0)
  %x.1 = f32[8,3]{{1,0}} cosine(%p){named("cos")}
  %spread.1 = f32[8,2,3]{{2,1,0}} broadcast(%x.1), dimensions={{0,2}}{named("sub")}{other}
  %bitcast.1 = f32[24]{{0}} bitcast(%x.1){named("cos")}
  ROOT %r = (f32[8,2,3]{{2,1,0}}, f32[8,{4 if spread == 2 else 2},3]{{2,1,0}}, f32[24]{{0}})\
 tuple(%spread.1, %spread.{spread}, %bitcast.1)"""
    assert users_of("x.1", body) == users
