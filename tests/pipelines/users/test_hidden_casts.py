"""Users of results that were made narrow and wide again."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_as_guessed

_PLACES = places_in_source(("layer", 2, 8, 20), ("layer", 2, 7, 40), ("optimizer", 9, 8, 20))


@pytest.mark.parametrize(
    ("wide", "listed"),
    [("convert_element_type", ["two.1", "one.1"]), ("jvp()/convert_element_type", ["one.1", "two.1"])],
)
def test_a_derivative_was_narrow_if_others_are_made_wide_outside(wide: str, listed: list[str]) -> None:
    """`(x + bias).astype(bf16)`: the derivative of `bias` has the place of that sum and may be wide."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = bf16[32]{{0}} parameter(1)
  %add.1 = f32[32]{{0}} add(%p, %p){named("jvp()/add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named("jvp()/convert_element_type", frame=2)}
  %wide.1 = f32[32]{{0}} convert(%q){named(wide, frame=3)}
  %mul.1 = f32[32]{{0}} multiply(%p, %p){named("transpose(jvp())/mul", frame=1)}
  %one.1 = f32[32]{{0}} negate(%mul.1){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%mul.1){named("two", frame=3)}
  %sum.1 = f32[32]{{0}} add(%two.1, %wide.1){named("sum", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %sum.1)"""
    assert users_as_guessed("mul.1", body, tables=_PLACES) == listed


def test_what_was_narrow_itself_is_told_of_once() -> None:
    """A sum in bf16, made wide, of a function that makes another narrow: only its convert went."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = bf16[32]{{0}} parameter(1)
  %add.1 = f32[32]{{0}} add(%p, %p){named("jvp()/add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named("jvp()/convert_element_type", frame=2)}
  %convert.1 = f32[32]{{0}} convert(%q)
  %add.2 = f32[32]{{0}} add(%convert.1, %convert.1){named("jvp()/add", frame=1)}
  %one.1 = f32[32]{{0}} negate(%add.2){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%add.2){named("two", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %two.1)"""
    assert users_as_guessed("add.2", body, tables=_PLACES) == ["two.1", "one.1"]
