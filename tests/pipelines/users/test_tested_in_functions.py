"""Values that a function and its caller test for being finite, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("read", "users"), [("p", ["and.2", "and.1"]), ("q", ["and.1", "and.2"])], ids=["its own", "given"]
)
def test_who_joins_a_test_of_what_the_function_reads_had_another(read: str, users: list[str]) -> None:
    """Where the walk meets the caller's first, what read the other comes behind."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %is_finite.1 = pred[8]{{0}} is-finite(%p){named("is_finite")}
  %abs.1 = f32[8]{{0}} abs(%{read}){named("jit(isclose)/abs")}
  %le.1 = pred[8]{{0}} compare(%abs.1, %q), direction=LE{named("jit(isclose)/le")}
  %and.1 = pred[8]{{0}} and(%is_finite.1, %le.1){named("jit(isclose)/and")}
  %not.1 = pred[8]{{0}} not(%and.1){named("not")}
  ROOT %and.2 = pred[8]{{0}} and(%is_finite.1, %not.1){named("and")}"""
    assert users_of("is_finite.1", body) == users
