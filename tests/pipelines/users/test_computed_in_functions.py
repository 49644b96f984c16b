"""What a function and its caller compute alike of a value, as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("difference", "users"),
    [("jit(isclose)/sub", ["and.2", "and.1"]), ("sub", ["and.1", "and.2"])],
    ids=["the function was given the value", "it may have been given what is computed of it"],
)
def test_readers_in_a_function_that_computed_the_same_come_behind(difference: str, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = pred[8]{{0}} parameter(1)
  %x.1 = f32[8]{{0}} sine(%p){named("sin")}
  %is_finite.1 = pred[8]{{0}} is-finite(%x.1){named("is_finite")}
  %sub.1 = f32[8]{{0}} subtract(%x.1, %p){named(difference)}
  %and.1 = pred[8]{{0}} and(%is_finite.1, %q){named("jit(isclose)/and")}
  %not.1 = pred[8]{{0}} not(%and.1){named("not")}
  %and.2 = pred[8]{{0}} and(%is_finite.1, %not.1){named("and")}
  ROOT %r = (pred[8]{{0}}, f32[8]{{0}}) tuple(%and.2, %sub.1)"""
    ids = "p q x.1 is_finite.1 not.1 and.2 r and.1 sub.1"
    if difference == "sub":
        ids = "p q x.1 is_finite.1 sub.1 not.1 and.2 r and.1"
    assert users_of("is_finite.1", body, ids=ids) == users
