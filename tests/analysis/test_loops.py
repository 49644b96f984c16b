"""How often kernels in loops run."""

from __future__ import annotations

import re

from hlofuse.analysis.loops import Loop, iterations, outermost_loops
from hlofuse.ir import parse_module

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
    often = {c.name: n for c, n in iterations(parse_module(NESTED)).items()}
    # Called twice, and by a loop that says nothing, which counts once.
    assert often == {
        "main": 1,
        "outer_body": 5,
        "outer_condition": 5 + 1,
        "inner_body": 15,
        "inner_condition": 15,
        "shared": 3,
    }


def test_the_outermost_loops_tell_the_kernels_of_one_turn() -> None:
    assert outermost_loops(parse_module(NESTED)) == (Loop("outer", 5, 2), Loop("endless", None, 1))
