"""The order of users of a scalar with products of which some were made of two."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_BODY = f"""  %p = f32[] parameter(0)
  %c = f32[] constant(3)
  %d = f32[] constant(6)
  %rate.1 = f32[] exponential(%p){named("exp")}
  %multiply.1 = f32[] multiply(%rate.1, %d){named("sgd/mul")}
  %mul.1 = f32[] multiply(%rate.1, %c){named("mul")}
  %neg.1 = f32[] negate(%rate.1){named("neg")}
  ROOT %r = (f32[], f32[], f32[]) tuple(%multiply.1, %mul.1, %neg.1)"""


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p c rate.1 mul.1 neg.1 r d multiply.1", ["mul.1", "neg.1", "multiply.1"]),
        ("p c rate.1 d multiply.1 mul.1 neg.1 r", ["multiply.1", "mul.1", "neg.1"]),
    ],
    ids=["made by a pass", "of the program"],
)
def test_a_product_with_the_product_of_two_numbers_is_appended(ids: str, users: list[str]) -> None:
    """As where a rate of learning is scaled, and what it is then is scaled again."""
    assert users_of("rate.1", _BODY, ids=ids) == users
