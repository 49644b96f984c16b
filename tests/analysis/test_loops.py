"""How often kernels in loops run."""

from __future__ import annotations

import operator
import re
from itertools import product

import pytest

from hlofuse.account import Account
from hlofuse.analysis.kernels import Loop, outermost_loops, trip_count_of
from hlofuse.ir import parse_module
from hlofuse.reports.stats import statistics
from ..fixtures import companion_texts

TEXTS = companion_texts(__file__)

NESTED = TEXTS["nested"]
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
    text = TEXTS["condition_loop_known"]
    counted = parse_module(text.replace("COUNT", ', backend_config={"known_trip_count":{"n":"7"}}'))
    unknown = parse_module(text.replace("COUNT", ""))
    assert outermost_loops(counted) == (Loop("loop", 7, 1),)
    assert outermost_loops(unknown) == (Loop("loop", None, 2),)
    assert [Account(m).totals.launches for m in (counted, unknown)] == [7, 2]


def test_the_outermost_loops_tell_the_kernels_of_one_turn() -> None:
    assert outermost_loops(parse_module(NESTED)) == (Loop("outer", 5, 2), Loop("endless", None, 1))


COUNTING = TEXTS["counting"]


def counting(start: int, step: int, end: int, direction: str = "LT", type: str = "s8") -> str:
    values = {"TYPE": type, "START": start, "STEP": step, "END": end, "DIRECTION": direction}
    return re.sub("TYPE|START|STEP|END|DIRECTION", lambda m: str(values[m[0]]), COUNTING)


def counted(start: int, step: int, end: int, direction: str) -> int | None:
    """The iterations of such a loop over s8, run; None for one that wraps around."""
    goes_on = getattr(operator, direction.lower())
    trips = 0
    while goes_on(start, end):
        start, trips = start + step, trips + 1
        if not -128 <= start <= 127:
            return None
    return trips


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "EQ", "NE"])
def test_a_loop_without_annotation_is_counted(direction: str) -> None:
    """Behind copies, conversions, tuples and fusions; a loop that wraps around or has no end is not."""
    for start, end, step in product((-128, -3, 0, 7, 127), (-128, -4, 0, 8, 127), (-3, -1, 1, 100)):
        (loop,) = outermost_loops(parse_module(counting(start, step, end, direction)))
        assert loop.trips == counted(start, step, end, direction), (start, step, end)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("start = s32[] constant(0)", "start = s32[] parameter(1)"),
        ("one = s8[] constant(1)", "one = s8[] copy(i)"),
        ("one = s8[] constant(1)", "one = s8[] constant(0)"),
        ("tuple(y, next, end)", "tuple(y, next, next)"),
        ("tuple(y, next, end)", "tuple(y, end, next)"),
        ("ROOT goes = pred[] fusion", "goes = pred[] fusion"),
        ("copied = s32[] copy(start)", "copied = f32[] convert(start)"),
        ("start = s32[] constant(0)", "start = s32[] constant(257)"),
    ],
)
def test_a_loop_of_unknown_length_is_not_counted(old: str, new: str) -> None:
    text = counting(0, 1, 8)
    assert old in text
    text = text.replace(old, new)
    if "ROOT goes" in old:  # a second condition may end it earlier
        never = '  never = pred[] custom-call(j), custom_call_target="f"'
        more = f"{never}\n  ROOT both = pred[] and(goes, never)\n}}"
        text = text.replace("calls=less\n}", f"calls=less\n{more}")
    module = parse_module(text)
    (loop,) = outermost_loops(module)
    assert loop.trips is None
    assert Account(module, backend="cpu").totals.most_iterations == (8 if "ROOT goes" in old else None)


def test_a_bound_of_an_enclosing_loop_is_found() -> None:
    """The inner loop counts to an element that the outer one carries as it is."""
    text = counting(0, 2, 9)
    outer = """
outer_body {
  o = (f32[8], s8[], s8[]) parameter(0)
  from = s8[] constant(5)
  bound.1 = s8[] get-tuple-element(o), index=2
  n = s8[] get-tuple-element(o), index=1
  unit = s8[] constant(1)
  m = s8[] add(n, unit)
  z = f32[8] get-tuple-element(o), index=0
  again = (f32[8], s8[], s8[]) tuple(z, from, bound.1)
  inner = (f32[8], s8[], s8[]) while(again), condition=condition, body=body
  z.1 = f32[8] get-tuple-element(inner), index=0
  kept = s8[] get-tuple-element(inner), index=2
  ROOT out = (f32[8], s8[], s8[]) tuple(z.1, m, kept)
}

outer_condition {
  oc = (f32[8], s8[], s8[]) parameter(0)
  oj = s8[] get-tuple-element(oc), index=1
  ob = s8[] get-tuple-element(oc), index=2
  ROOT og = pred[] compare(oj, ob), direction=LT
}

ENTRY main"""
    text = text.replace("\nENTRY main", outer)
    text = text.replace(
        "while(init), condition=condition, body=body",
        "while(init), condition=outer_condition, body=outer_body",
    )
    module = parse_module(text)
    trips = {i.name: trip_count_of(i) for i in module.instructions() if i.opcode == "while"}
    assert trips == {"inner": 2, "loop": 9}
