"""Numbers compared in their total order, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("name", "users"),
    [("select.1", ["xor.1", "compare.1", "select.1"]), ("select_n.1", ["compare.1", "xor.1", "select_n.1"])],
)
def test_what_is_flipped_was_made_before_the_comparison(name: str, users: list[str]) -> None:
    """Unless the program says the same itself."""
    by = named("select_n") if name == "select_n.1" else ""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %bits = s32[8]{{0}} bitcast(%p)
  %c.0 = s32[] constant(0)
  %zero = s32[8]{{0}} broadcast(%c.0), dimensions={{}}
  %compare.1 = pred[8]{{0}} compare(%bits, %zero), direction=LT
  %c.1 = s32[] constant(2147483647)
  %max = s32[8]{{0}} broadcast(%c.1), dimensions={{}}
  %xor.1 = s32[8]{{0}} xor(%max, %bits)
  ROOT %{name} = s32[8]{{0}} select(%compare.1, %xor.1, %bits){by}"""
    assert users_of("bits", body) == users
