"""Broadcasts that the framework made for one operation each, as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("number", "operation", "listed"),
    [(5, "vmap()/mul", "own other"), (6, "vmap()/mul", "other own"), (5, "mul", "other own")],
)
def test_whoever_a_broadcast_was_made_for_reads_it_first(number: int, operation: str, listed: str) -> None:
    """CSE's walk came to that one first, which the operands of now do not tell."""
    own = f"mul.{number}.0"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[4,8]{{1,0}} parameter(1)
  %mul.4.0 = f32[4,8]{{1,0}} broadcast(%p), dimensions={{1}}{named("vmap()/mul")}
  %mul.2.0 = f32[4,8]{{1,0}} multiply(%q, %mul.4.0){named("mul")}
  %{own} = f32[4,8]{{1,0}} multiply(%mul.4.0, %mul.2.0){named(operation)}
  ROOT %r = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(%mul.2.0, %{own})"""
    names = {"own": own, "other": "mul.2.0"}
    listed_names = [names[it] for it in listed.split()]
    assert users_of("mul.4.0", body, ids=f"p q mul.4.0 mul.2.0 {own} r") == listed_names
