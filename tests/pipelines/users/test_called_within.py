"""Results of functions that were called within an expression, and once more within another."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_PLACES = places_in_source(
    ("f", 4, 8, 20),
    ("model", 9, 10, 24),
    ("model", 12, 10, 24),
    called_from={1: 2},
)


@pytest.mark.parametrize(
    ("frame", "users"),
    [(2, ["mul.2", "mul.1"]), (3, ["mul.1", "mul.2"])],
    ids=["read twice by who called it", "computed again for another"],
)
def test_who_calls_a_function_in_an_expression_of_its_own_has_a_result_of_its_own(
    frame: int, users: list[str]
) -> None:
    """Each result was an element of the call's tuple, which went before CSE made one of the two."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %q = f32[4]{{0}} parameter(1)
  %exp.1 = f32[4]{{0}} exponential(%p){named("jvp(jit(grow))/exp", frame=1)}
  %div.1 = f32[4]{{0}} divide(%exp.1, %q){named("jvp(jit(grow))/div", frame=1)}
  %mul.1 = f32[4]{{0}} multiply(%div.1, %q){named("transpose(jvp(jit(grow)))/mul", frame=2)}
  %mul.2 = f32[4]{{0}} multiply(%div.1, %p){named("transpose(jvp(jit(grow)))/mul", frame=frame)}
  %add.1 = f32[4]{{0}} add(%exp.1, %exp.1){named("add", frame=3)}
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}, f32[4]{{0}}) tuple(%mul.1, %mul.2, %add.1)"""
    assert users_of("div.1", body, ids="p q r exp.1 div.1 mul.1 mul.2 add.1", tables=_PLACES) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [(2, ["mul.1", "mul.2"]), (1, ["mul.2", "mul.1"])],
    ids=["of the same call", "of another call"],
)
def test_a_like_operation_elsewhere_in_the_function_is_not_that_of_another_call(
    frame: int, users: list[str]
) -> None:
    """`add.2` follows `mul.1`: where it is of the place of `add.1`, either was the result of a call."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %q = f32[4]{{0}} parameter(1)
  %add.1 = f32[4]{{0}} add(%p, %q){named("jvp(jit(grow))/add", frame=1)}
  %exp.1 = f32[4]{{0}} exponential(%p){named("jvp(jit(grow))/exp", frame=1)}
  %mul.1 = f32[4]{{0}} multiply(%add.1, %q){named("jvp(jit(grow))/mul", frame=3)}
  %add.2 = f32[4]{{0}} add(%mul.1, %p){named("jvp(jit(grow))/add", frame=frame)}
  %mul.2 = f32[4]{{0}} multiply(%add.1, %exp.1){named("transpose(jvp(jit(grow)))/mul", frame=3)}
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}) tuple(%add.2, %mul.2)"""
    tables = places_in_source(("f", 4, 8, 20), ("f", 5, 8, 20), ("f", 7, 8, 20))
    assert users_of("add.1", body, ids="p q r add.1 exp.1 mul.1 add.2 mul.2", tables=tables) == users
