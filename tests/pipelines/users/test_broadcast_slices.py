"""Slices of what a scan goes over, broadcast and computed with, as the played passes leave their users."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("opcode", "dimensions", "users"),
    [
        ("broadcast", ", dimensions={0}", ["mul.1", "rows.1"]),
        ("negate", "", ["rows.1", "mul.1"]),
    ],
)
def test_a_reshape_that_broadcasts_read_comes_behind_what_was_moved(
    opcode: str, dimensions: str, users: list[str]
) -> None:
    """What reads it in other ways reads the reshape that was there first."""
    slice_ = named("while/body/jit(dynamic_index_in_dim)/dynamic_slice")
    result = "f32[8,4]{1,0}" if opcode == "broadcast" else "f32[8]{0}"
    body = f"""  %p = f32[3,8]{{1,0}} parameter(0)
  %k = s32[] parameter(1)
  %zero = s32[] constant(0)
  %dynamic_slice.1 = f32[1,8]{{1,0}} dynamic-slice(%p, %k, %zero), dynamic_slice_sizes={{1,8}}{slice_}
  %rows.1 = f32[8]{{0}} bitcast(%dynamic_slice.1){slice_}
  %read.1 = {result} {opcode}(%rows.1){dimensions}{named("while/body/sub")}
  %mul.1 = f32[1,8]{{1,0}} multiply(%dynamic_slice.1, %dynamic_slice.1){named("while/body/mul")}
  ROOT %r = ({result}, f32[1,8]{{1,0}}) tuple(%read.1, %mul.1)"""
    assert users_of("dynamic_slice.1", body, ids="p k zero dynamic_slice.1 mul.1 rows.1 read.1 r") == users
