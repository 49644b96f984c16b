"""The order of users in front of conditionals whose branches AlgebraicSimplifier swapped."""

from __future__ import annotations

import pytest

from .lists import users_in

_MODULE = """HloModule m

%zero (a: (f32[4])) -> f32[4] {
  %a = (f32[4]{0}) parameter(0)
  ROOT %x = f32[4]{0} get-tuple-element(%a), index=0
}

%one (b: (f32[4])) -> f32[4] {
  %b = (f32[4]{0}) parameter(0)
  ROOT %y = f32[4]{0} get-tuple-element(%b), index=0
}

ENTRY %main (go: pred[], v: f32[4]) -> f32[4] {
  %go = pred[] parameter(0)
  %v = f32[4]{0} parameter(1)
  %up = f32[4]{0} sine(%v)
  %cond.TRUE.0 = (f32[4]{0}) tuple(%up), metadata={op_name="jit(f)/cond"}
  %down = f32[4]{0} cosine(%v)
  %cond.FALSE.0 = (f32[4]{0}) tuple(%down), metadata={op_name="jit(f)/cond"}
  ROOT %cond = f32[4]{0} conditional(%go, %cond.TRUE.0, %cond.FALSE.0), BRANCHES
}
""".replace("BRANCHES", "true_computation=%one, false_computation=%zero")


@pytest.mark.parametrize("ids_known", [False, True])
@pytest.mark.parametrize(("true", "false", "users"), [("2", "1", ["down", "up"]), ("1", "2", ["up", "down"])])
def test_the_branch_for_zero_came_first(true: str, false: str, users: list[str], ids_known: bool) -> None:
    """Numbers of the front end tell that it did."""
    assert users_in(_MODULE.replace("TRUE", true).replace("FALSE", false), "v", ids_known=ids_known) == users
