"""Results that the program gave a sharding, as XLA's passes leave their users."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("sharding", "users"),
    [(", sharding={replicated}", ["sin.1", "r", "cos.1"]), ("", ["sin.1", "cos.1", "r"])],
)
def test_the_tuple_of_results_is_where_the_reshape_with_the_sharding_was(
    sharding: str, users: list[str]
) -> None:
    """The walk came to that for the second result: behind the first, ahead of what the third is made of."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %abs.1 = f32[8]{{0}} abs(%p){sharding}{named("abs")}
  %sin.1 = f32[8]{{0}} sine(%abs.1){named("sin")}
  %cos.1 = f32[8]{{0}} cosine(%abs.1){named("cos")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%sin.1, %abs.1, %cos.1)"""
    assert users_of("abs.1", body) == users
