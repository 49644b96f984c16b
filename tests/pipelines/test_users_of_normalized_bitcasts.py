"""Bitcasts to another layout than row-major, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.grouped_reductions import with_grouped_where_met

from .test_users_by_age import HEAD, named, users_of


def test_the_second_user_takes_the_place_of_the_bitcast_behind_a_bitcast() -> None:
    """The two became one, made anew, with its users as they stood."""
    body = f"""  %p = f32[8,32]{{1,0}} parameter(0)
  %bitcast.1.0 = f32[2,4,32]{{2,1,0}} bitcast(%p)
  %negate.1.0 = f32[2,4,32]{{2,1,0}} negate(%bitcast.1.0){named("neg")}
  %multiply.1.0 = f32[2,4,32]{{2,1,0}} multiply(%bitcast.1.0, %negate.1.0){named("mul")}
  ROOT %r = (f32[2,4,32]{{2,1,0}}) tuple(%multiply.1.0)"""
    made = "p r bitcast.1.0 negate.1.0 multiply.1.0"
    assert users_of("bitcast.1.0", body, ids=made) == ["multiply.1.0", "negate.1.0"]
    there = "p negate.1.0 multiply.1.0 r bitcast.1.0"
    assert users_of("bitcast.1.0", body, ids=there) == ["negate.1.0", "multiply.1.0"]


@pytest.mark.parametrize("first", ["reduce_sum.1", "pad.1"])
def test_the_bitcast_that_a_grouped_reduction_brought_is_merged_where_the_walk_meets_it(first: str) -> None:
    body = f"""  %p = f32[2,4,32]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x.1 = f32[8,32]{{1,0}} bitcast(%p){named("add_any")}
  %pad.1 = f32[16,32]{{1,0}} pad(%x.1, %zero), padding=0_8x0_0
  %reduce_sum.1 = f32[32]{{0}} reduce(%x.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  ROOT %r = (f32[16,32]{{1,0}}, f32[32]{{0}}) tuple(%pad.1, %reduce_sum.1)"""
    module = parse_module(f"{HEAD}\nENTRY %main {{\n{body}\n}}\n")
    by_name = {x.name: x for x in module.entry}
    pad, total, grouped = by_name["pad.1"], by_name["reduce_sum.1"], by_name["x.1"]
    uses = {(grouped, u): u.name != first for u in (pad, total)}
    expected = [total, pad] if first == total.name else [pad, total]
    for users in ([pad, total], [total, pad]):
        assert with_grouped_where_met(grouped, users, uses) == expected
