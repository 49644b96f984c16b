"""The order of users where a scalar was stacked with others."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("dimension", "operation", "users"),
    [
        (1, "negate", ["bitcast.1", "concatenate.1"]),
        (0, "negate", ["concatenate.1", "bitcast.1"]),
        (1, "reverse", ["concatenate.1", "bitcast.1"]),
    ],
    ids=["scalar", "vector", "not moved"],
)
def test_the_scalar_itself_was_there_before_what_stacks_it(
    dimension: int, operation: str, users: list[str]
) -> None:
    attribute = ", dimensions={0}" if operation == "reverse" else ""
    shape = ("f32[16,1]{1,0}", "f32[8,2]{1,0}")[dimension]
    body = f"""  %p = f32[8,1]{{1,0}} parameter(0)
  %x = f32[8,1]{{1,0}} {operation}(%p){attribute}{named("x")}
  %concatenate.1 = {shape} concatenate(%x, %p), dimensions={{{dimension}}}{named("concatenate")}
  %bitcast.1 = f32[8]{{0}} bitcast(%x){named("x")}
  ROOT %r = ({shape}, f32[8]{{0}}) tuple(%concatenate.1, %bitcast.1)"""
    assert users_of("x", body) == users
