"""Fusion plans: what they change in a replay, and what the searches find against XLA's greedy queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hlofuse.compilation import Compilation, compile, replay_config
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.rules.priority_fusion.conditions import BITCAST_FIRST
from hlofuse.rules.settings import PLANNED, Intervention
from hlofuse.search.fusion_plan import Outcome, PlanResult, _Plans, search_fusion_plan, with_steps

GPU = replay_config("gpu", "h100_sxm")
# Three kernels of their own for XLA. With the broadcast in memory they have an operand in common, and
# multi-output fusion joins them and then takes the broadcast in.
SHARED_SCALAR = """HloModule shared_scalar
ENTRY e {
  a = f32[256,256]{1,0} parameter(0)
  b = f32[256,256]{1,0} parameter(1)
  c = f32[256,256]{1,0} parameter(2)
  two = f32[] constant(2)
  twos = f32[256,256]{1,0} broadcast(two), dimensions={}
  x0 = f32[256,256]{1,0} add(a, twos)
  x = f32[256,256]{1,0} negate(x0)
  y0 = f32[256,256]{1,0} multiply(b, twos)
  y = f32[256,256]{1,0} abs(y0)
  z0 = f32[256,256]{1,0} subtract(c, twos)
  z = f32[256,256]{1,0} sign(z0)
  ROOT r = (f32[256,256]{1,0}, f32[256,256]{1,0}, f32[256,256]{1,0}) tuple(x, y, z)
}
"""
CHAIN = """HloModule chain
ENTRY e {
  a = f32[256,256]{1,0} parameter(0)
  s = f32[256,256]{1,0} sine(a)
  n = f32[256,256]{1,0} negate(s)
  ROOT m = f32[256,256]{1,0} multiply(s, n)
}
"""
SIBLINGS = """HloModule siblings
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
largest { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT m = f32[] maximum(p, q) }
ENTRY e {
  a = f32[1024,1024]{1,0} parameter(0)
  zero = f32[] constant(0)
  n = f32[1024,1024]{1,0} negate(a)
  sum = f32[1024]{0} reduce(n, zero), dimensions={1}, to_apply=add
  top = f32[1024]{0} reduce(n, zero), dimensions={1}, to_apply=largest
  ROOT r = (f32[1024]{0}, f32[1024]{0}) tuple(sum, top)
}
"""
TWO_REDUCES = """HloModule two_reduces
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e {
  a = f32[256,256,256]{2,1,0} parameter(0)
  zero = f32[] constant(0)
  inner = f32[256,256]{1,0} reduce(a, zero), dimensions={2}, to_apply=add
  ROOT outer = f32[256]{0} reduce(inner, zero), dimensions={1}, to_apply=add
}
"""
CASES = {"shared scalar": SHARED_SCALAR, "chain": CHAIN, "siblings": SIBLINGS, "two reduces": TWO_REDUCES}


def planned(text: str, *plan: Intervention) -> Compilation:
    config = replace(GPU, settings=replace(GPU.settings, plan=plan))
    return compile(parse_module(text), config)


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_an_intervention_that_changes_nothing_leaves_the_replay_as_it_is(text: str) -> None:
    expected = compile(parse_module(text), GPU)
    actual = planned(text, Intervention("apart", "no such instruction"))
    assert print_module(actual.after) == print_module(expected.after)
    assert actual.events == expected.events


def fusions(done: Compilation) -> list[str | None]:
    """The producers that priority fusion fused, in its order."""
    events = (e for p in done.passes if p.name == "priority-fusion" for e in p.events)
    return [e.producer for e in events if e.event == "fuse"]


def test_a_producer_apart_is_fused_into_nothing() -> None:
    assert {"n", "s"} <= set(fusions(planned(CHAIN)))
    assert "n" not in fusions(planned(CHAIN, Intervention("apart", "n")))
    alone = planned(CHAIN, Intervention("apart", "n"), Intervention("apart", "s"))
    assert fusions(alone) == []
    assert {e.rule for e in alone.events if e.event == "ineligible" and e.producer in ("n", "s")} >= {"PLAN"}


def test_the_order_is_that_of_the_plan() -> None:
    s, n = Intervention("first", "s"), Intervention("first", "n")
    assert fusions(planned(CHAIN, n))[0] == "n"
    assert fusions(planned(CHAIN, Intervention("last", "n")))[0] == "s"
    assert fusions(planned(CHAIN, s, n))[0] == "s"
    assert fusions(planned(CHAIN, n, s))[0] == "n"


@pytest.mark.parametrize("kind", ["first", "last"])
def test_what_a_rule_refuses_no_plan_forces(kind: str) -> None:
    forced = planned(TWO_REDUCES, Intervention(kind, "inner"))
    assert print_module(forced.after) == print_module(planned(TWO_REDUCES).after)
    assert {e.rule for e in forced.events if e.producer == "inner"} >= {"PF008"}


def test_kernels_with_several_results_are_split() -> None:
    joined, split = planned(SIBLINGS), planned(SIBLINGS, Intervention("split", "top", "sum"))
    assert [i.opcode for i in joined.after.entry].count("fusion") == 1
    assert [i.opcode for i in split.after.entry].count("fusion") == 2


def exhaustive_plan(text: str) -> PlanResult:
    """The best plan of all orders of fusions that rules allow, whatever they cost.

    Bitcasts and multi-output fusion are XLA's. The time must not be over before.
    """

    def state(o: Outcome) -> object:
        fused = ((d.producer, *sorted(d.consumers)) for d in o.decisions.producers.values() if d.fused)
        return frozenset(fused), frozenset(o.times.items())

    run = _Plans(parse_module(text), GPU, "time", 60)
    producers = run.default.decisions.producers.values()
    apart = [Intervention("apart", d.producer) for d in producers if d.rule != BITCAST_FIRST.code]
    best = run.outcome(with_steps((), apart))
    left, states = [best], {state(best)}
    while left:
        outcome = left.pop()
        for d in outcome.decisions.producers.values():
            if d.rule == PLANNED.code:
                other = run.outcome(with_steps(outcome.plan, [Intervention("first", d.producer)]))
                if state(other) not in states:
                    states.add(state(other))
                    left.append(other)
                    best = min(best, other, key=lambda o: o.value)
    assert not run.over
    return run.result(best)


def test_the_search_finds_what_the_queue_misses() -> None:
    result = search_fusion_plan(parse_module(SHARED_SCALAR), GPU, seconds=5)
    best = exhaustive_plan(SHARED_SCALAR)
    assert result.best.value == best.best.value < result.default.value - 1.9  # two launches
    (change,) = result.changes
    assert str(change.intervention) == "twos is not fused"
    assert change.xla is not None
    assert (change.xla.rule, change.xla.fused) == ("PF040", True)
    assert change.gain == pytest.approx(result.default.value - result.best.value)
    assert result.default.account.totals.kernels == 3
    assert result.best.account.totals.kernels == 1


@pytest.mark.parametrize("text", [CHAIN, TWO_REDUCES, SIBLINGS], ids=["chain", "two reduces", "siblings"])
def test_the_queue_is_proven_best_where_every_order_was_tried(text: str) -> None:
    result = exhaustive_plan(text)
    assert result.best.value == result.default.value
    assert result.changes == ()


@pytest.mark.parametrize("objective", ["time", "kernels", "bytes"])
@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_a_plan_is_never_worse_and_comes_again_from_its_interventions(text: str, objective: str) -> None:
    result = search_fusion_plan(parse_module(text), GPU, objective=objective, seconds=0.5)
    assert result.best.value <= result.default.value
    again = planned(text, *result.best.plan)
    assert print_module(again.after) == print_module(result.best.replay.after)
    assert {c.intervention for c in result.changes} == set(result.best.plan)
    for change in result.changes:
        assert change.gain > 0


def test_a_target_without_costs_has_no_plans() -> None:
    with pytest.raises(HlofuseError, match="needs priority fusion"):
        search_fusion_plan(parse_module(CHAIN), replay_config("cpu"))
