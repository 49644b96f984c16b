"""Broadcasts of numbers that `where` is given, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_TABLES = places_in_source(
    ("plateau", 1, 9, 12), ("plateau", 1, 5, 16), ("plateau", 9, 5, 16), called_from={3: 1}
)


@pytest.mark.parametrize(
    ("choice", "frame", "users"),
    [
        # The zeros are given to the function.
        ("%zeros, %p", 2, ["lt.1", "select_n.1", "lt.2", "select_n.2"]),
        # A number behind is spread by the function.
        ("%p, %zeros", 2, ["lt.1", "lt.2", "select_n.1", "select_n.2"]),
        # Another comparison of what the second choice is of went, ahead of it.
        ("%zeros, %p", 3, ["lt.1", "select_n.2", "select_n.1", "lt.2"]),
    ],
    ids=["given", "spread", "compared again"],
)
def test_zeros_that_a_function_is_given_are_of_the_program(choice: str, frame: int, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %lt.1 = pred[8]{{0}} compare(%p, %zeros), direction=LT{named("lt", frame=1)}
  %select_n.1 = f32[8]{{0}} select(%lt.1, {choice}){named("jit(_where)/select_n", frame=frame)}
  %lt.2 = pred[8]{{0}} compare(%q, %zeros), direction=LT{named("lt", frame=1)}
  %select_n.2 = f32[8]{{0}} select(%lt.2, {choice.replace("p", "q")}){named("jit(_where)/select_n", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%select_n.1, %select_n.2)"""
    ids = "p q zero zeros lt.1 lt.2 r select_n.1 select_n.2"
    assert users_of("zeros", body, ids=ids, tables=_TABLES) == users


def test_derivative_of_a_choice_has_one_broadcast_of_zeros_for_both_values() -> None:
    call = "transpose(jvp(jit(elu)))"
    choice = named(f"{call}/jit(_where)/select_n", frame=1)
    other = named(f"{call}/jit(_where)/select_n", frame=2)
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %q = pred[8]{{0}} parameter(1)
  %x = f32[8]{{0}} parameter(2)
  %y = f32[8]{{0}} parameter(3)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}{named("jvp()/max")}
  %max.1 = f32[8]{{0}} maximum(%zeros, %x){named("jvp()/max")}
  %select_n.1 = f32[8]{{0}} select(%p, %max.1, %zeros){choice}
  %select_n.2 = f32[8]{{0}} select(%p, %zeros, %max.1){choice}
  %mul.1 = f32[8]{{0}} multiply(%select_n.2, %y){named(f"{call}/mul")}
  %select_n.3 = f32[8]{{0}} select(%q, %zeros, %mul.1){other}
  ROOT %r = f32[8]{{0}} add(%select_n.1, %select_n.3){named(f"{call}/add_any")}"""
    users = users_of("zeros", body, tables=places_in_source(("elu", 1, 5, 16), ("elu", 2, 5, 16)))
    assert users == ["max.1", "select_n.1", "select_n.2", "select_n.3"]
