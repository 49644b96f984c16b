"""The users of what is scattered into itself, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("name", "array", "users"),
    [
        ("x", "x", ["scatter.1", "cos.1", "updates.1"]),
        ("jit(f)/reshape", "x", ["updates.1", "scatter.1", "cos.1"]),
        ("x", "y", ["updates.1", "cos.1"]),
    ],
    ids=["itself", "reshaped by the program", "into another"],
)
def test_the_reshape_of_updates_was_appended(name: str, array: str, users: list[str]) -> None:
    """`x.at[jnp.array([[0], [0]])].add(x)`."""
    dimensions = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}"
    dimensions += ", index_vector_dim=1, to_apply=%sum"
    body = f"""  %x = f32[2,4]{{1,0}} parameter(0), metadata={{op_name="x"}}
  %y = f32[2,4]{{1,0}} parameter(1)
  %zero = s32[] constant(0)
  %at.1 = s32[2,1]{{1,0}} broadcast(%zero), dimensions={{}}
  %updates.1 = f32[2,1,4]{{2,1,0}} bitcast(%x), metadata={{op_name="{name}"}}
  %scatter.1 = f32[2,4]{{1,0}} scatter(%{array}, %at.1, %updates.1), {dimensions}{named("scatter-add")}
  %cos.1 = f32[2,4]{{1,0}} cosine(%x){named("cos")}
  ROOT %r = (f32[2,4]{{1,0}}, f32[2,4]{{1,0}}) tuple(%scatter.1, %cos.1)"""
    assert users_of("x", body) == users
