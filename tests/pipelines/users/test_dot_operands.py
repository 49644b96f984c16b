"""The users of what a matrix product reads in other dimensions, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("name", "users"),
    [("x", ["transpose.1", "rows.1"]), ("jit(f)/reshape", ["rows.1", "transpose.1"])],
    ids=["by a pass", "by the program"],
)
def test_what_is_made_a_matrix_for_a_product_stands_where_that_was(name: str, users: list[str]) -> None:
    """`jnp.einsum("ijk,kl->ijl", x, x.T)`, of which the program makes the other operand first."""
    dimensions = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    body = f"""  %x = s32[3,4,8]{{2,1,0}} parameter(0), metadata={{op_name="x"}}
  %rows.1 = s32[12,8]{{1,0}} bitcast(%x), metadata={{op_name="{name}"}}
  %transpose.1 = s32[8,4,3]{{2,1,0}} transpose(%x), dimensions={{2,1,0}}{named("transpose")}
  %columns.1 = s32[8,12]{{1,0}} bitcast(%transpose.1){named("transpose")}
  ROOT %dot.1 = s32[12,12]{{1,0}} dot(%rows.1, %columns.1), {dimensions}{named("dot_general")}"""
    assert users_of("x", body) == users
