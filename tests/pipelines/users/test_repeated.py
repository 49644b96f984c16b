"""Values that the program computes again, as numbers that are missing tell."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("scope", "number", "users"),
    [
        ("", 4, ["mul.1.0", "mul.2.0", "mul.5.0", "mul.4.0"]),
        ("", 3, ["mul.1.0", "mul.2.0", "mul.3.0", "mul.5.0"]),
        ("jvp()/", 4, ["mul.1.0", "mul.2.0", "mul.4.0", "mul.5.0"]),
    ],
    ids=["computed again", "no number is missing", "read by the derivative"],
)
def test_the_last_takes_the_place_of_what_was_computed_again(
    scope: str, number: int, users: list[str]
) -> None:
    """`add.2` would have read another product, numbered 3."""
    add, mul = named(f"{scope}add"), named(f"{scope}mul")
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %c = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %mul.1.0 = f32[8]{{0}} multiply(%p, %halves){mul}
  %add.1.0 = f32[8]{{0}} add(%mul.1.0, %q){add}
  %mul.2.0 = f32[8]{{0}} multiply(%q, %halves){mul}
  %add.2.0 = f32[8]{{0}} add(%mul.2.0, %mul.1.0){add}
  %mul.{number}.0 = f32[8]{{0}} multiply(%add.1.0, %halves){mul}
  %mul.5.0 = f32[8]{{0}} multiply(%add.2.0, %halves){mul}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%add.2.0, %mul.{number}.0, %mul.5.0)"""
    assert users_of("halves", body) == users
