"""Results of calls that no tuple of the call was a user of, or that it had twice."""

from __future__ import annotations

import pytest

from .lists import HEAD, loop_of, named, users_in, users_of


@pytest.mark.parametrize(
    ("written", "users"),
    [
        ("bitcast(%mul.1)", ["row", "next"]),
        (f"broadcast(%mul.1), dimensions={{1}}{named('while/body/broadcast_in_dim')}", ["next", "row"]),
    ],
    ids=["reshaped", "read otherwise"],
)
def test_what_is_carried_and_written_as_well_was_in_the_tuple_twice(written: str, users: list[str]) -> None:
    """A recurrent cell returns its state as what it gives, too; `tanh.1` makes the call end in a tuple."""
    kinds = "(s32[], f32[8], f32[3,8], f32[8])"
    body = f"""%body (b: {kinds}) -> {kinds} {{
  %b = {kinds} parameter(0)
  %k = s32[] get-tuple-element(%b), index=0
  %h = f32[8]{{0}} get-tuple-element(%b), index=1
  %ys = f32[3,8]{{1,0}} get-tuple-element(%b), index=2
  %one = s32[] constant(1)
  %zero = s32[] constant(0)
  %add.1 = s32[] add(%k, %one){named("while/body/add")}
  %tanh.1 = f32[8]{{0}} tanh(%h){named("while/body/jit(cell)/tanh")}
  %mul.1 = f32[8]{{0}} multiply(%tanh.1, %h){named("while/body/jit(cell)/mul")}
  %row = f32[1,8]{{1,0}} {written}
  %out = f32[3,8]{{1,0}} dynamic-update-slice(%ys, %row, %k, %zero){named("while/body/dynamic_update_slice")}
  ROOT %next = {kinds} tuple(%add.1, %mul.1, %out, %tanh.1)
}}
"""
    assert users_in(HEAD + body + loop_of("body", kinds), "mul.1", ids_known=True) == users


def test_a_bitcast_of_a_result_was_in_no_tuple() -> None:
    """It was put in front of the products that read it."""
    body = f"""  %p = f32[2,4,8]{{2,1,0}} parameter(0)
  %exp.1 = f32[2,4,8]{{2,1,0}} exponential(%p){named("jit(silu)/exp")}
  %mul.1 = f32[2,4,8]{{2,1,0}} multiply(%p, %exp.1){named("jit(silu)/mul")}
  %bitcast.1 = f32[8,8]{{1,0}} bitcast(%mul.1){named("jit(silu)/mul")}
  %dot.1 = f32[8,8]{{1,0}} custom-call(%bitcast.1), custom_call_target="a"{named("dot_general")}
  %dot.2 = f32[8,8]{{1,0}} custom-call(%bitcast.1), custom_call_target="b"{named("dot_general")}
  ROOT %r = (f32[8,8], f32[8,8], f32[2,4,8]) tuple(%dot.1, %dot.2, %exp.1)"""
    assert users_of("bitcast.1", body) == ["dot.1", "dot.2"]
