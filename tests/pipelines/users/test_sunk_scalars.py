"""Numbers that are spread, and what was computed with them, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _norm(name: str, shape: str) -> str:
    """`where(norm < 2 * max, x, 2) * 2 * 2`, where both the norm and its maximum were spread to `shape`."""
    by = "broadcast.9.0" if shape == "8" else "p"
    return f"""  %x = f32[8]{{0}} parameter(0)
  %norm = f32[] parameter(1)
  %max = f32[] parameter(2)
  %p = pred[8]{{0}} parameter(3)
  %two = f32[] constant(2)
  %twos = f32[8]{{0}} broadcast(%two), dimensions={{}}
  %{name} = f32[] multiply(%max, %two){named("mul")}
  %lt.9.0 = pred[] compare(%norm, %{name}), direction=LT{named("lt")}
  %broadcast.9.0 = pred[{shape}]{{0}} broadcast(%lt.9.0), dimensions={{}}
  %select_n.1 = f32[8]{{0}} select(%{by}, %x, %twos){named("select_n")}
  %mul.1 = f32[8]{{0}} multiply(%select_n.1, %twos){named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %twos){named("mul")}
  ROOT %r = (f32[8]{{0}}, pred[{shape}]{{0}}) tuple(%mul.2, %broadcast.9.0)"""


@pytest.mark.parametrize(
    ("name", "shape", "users"),
    [
        ("mul.9.0", "8", "mul.2 select_n.1 mul.1"),
        ("multiply.9.0", "8", "select_n.1 mul.1 mul.2"),
        ("mul.9.0", "16", "select_n.1 mul.1 mul.2"),
    ],
    ids=["sunk", "made by a pass anew", "of another shape"],
)
def test_the_last_takes_the_place_of_what_is_computed_of_scalars(name: str, shape: str, users: str) -> None:
    ids = f"x norm max p two twos select_n.1 - mul.1 mul.2 r {name} lt.9.0 broadcast.9.0"
    assert users_of("twos", _norm(name, shape), ids=ids) == users.split()
