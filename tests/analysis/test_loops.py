"""How often kernels in loops run."""

from __future__ import annotations

import re

from hlofuse.account import Account
from hlofuse.analysis.kernels import Loop, outermost_loops
from hlofuse.ir import parse_module
from hlofuse.reports.stats.model import statistics

NESTED = """HloModule nested

inner_body {
  i = f32[8] parameter(0)
  ROOT twice = f32[8] add(i, i)
}

inner_condition {
  j = f32[8] parameter(0)
  ROOT go = pred[] constant(true)
}

outer_body {
  o = f32[8] parameter(0)
  half = f32[8] negate(o)
  ROOT inner = f32[8] while(half), condition=inner_condition, body=inner_body, TRIPS{3}
}

outer_condition {
  k = f32[8] parameter(0)
  ROOT on = pred[] constant(true)
}

shared {
  s = f32[8] parameter(0)
  ROOT c = f32[8] cosine(s)
}

ENTRY main {
  p = f32[8] parameter(0)
  outer = f32[8] while(p), condition=outer_condition, body=outer_body, TRIPS{5}
  once = f32[8] call(outer), to_apply=shared
  again = f32[8] call(once), to_apply=shared
  ROOT endless = f32[8] while(again), condition=outer_condition, body=shared
}
"""
NESTED = re.sub(r"TRIPS\{(\d)\}", r'backend_config={"known_trip_count":{"n":"\1"}}', NESTED)


def test_loops_in_loops_multiply_and_calls_add_up() -> None:
    # `shared` is called twice, and by a loop that says nothing, which counts once, as does its condition.
    # With a known trip count nothing evaluates the condition.
    often = {
        "main": 1,
        "outer_body": 5,
        "outer_condition": 1,
        "inner_body": 15,
        "inner_condition": 0,
        "shared": 3,
    }
    module = parse_module(NESTED)
    account = Account(module, backend="cpu")
    assert {c.name: account.runs(c) for c in module.computations} == often
    assert {c.name: c.iterations for c in statistics(module).computations} == often
    assert all(
        r.runs == often[r.instruction.computation.name] for r in account.rows if r.instruction.computation
    )


def test_the_condition_of_a_loop_of_known_trip_count_launches_nothing() -> None:
    """One that asks the device counts where the number of iterations is not known."""
    text = """HloModule m

body {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT next = s32[] add(i, one)
}

condition {
  j = s32[] parameter(0)
  end = s32[] constant(7)
  ROOT less = pred[] compare(j, end), direction=LT
}

ENTRY main {
  p = s32[] parameter(0)
  ROOT loop = s32[] while(p), condition=condition, body=bodyCOUNT
}
"""
    counted = parse_module(text.replace("COUNT", ', backend_config={"known_trip_count":{"n":"7"}}'))
    unknown = parse_module(text.replace("COUNT", ""))
    assert outermost_loops(counted) == (Loop("loop", 7, 1),)
    assert outermost_loops(unknown) == (Loop("loop", None, 2),)
    assert [Account(m).totals.launches for m in (counted, unknown)] == [7, 2]


def test_the_outermost_loops_tell_the_kernels_of_one_turn() -> None:
    assert outermost_loops(parse_module(NESTED)) == (Loop("outer", 5, 2), Loop("endless", None, 1))
