"""Explanations: kernels and fusions that are alike stand together, with sums worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hlofuse.account import Account, KernelTime
from hlofuse.account.account import Launched
from hlofuse.ir import parse_module
from hlofuse.ir.record import replace
from hlofuse.reports.common.facts import FURTHER_RESULTS
from hlofuse.reports.common.model import FinalKernel, Place, Refusal, us_at_stake
from hlofuse.reports.explain.explain import blocking_rules, group_refusals, grouped_kernels, kernel_time_of
from hlofuse.reports.explain.model import FusedStep, SelectedKernel, Selection
from hlofuse.reports.explain.phrases import pass_summary, selected_kernel_lines
from hlofuse.rules.catalogue import Rule
from hlofuse.trace.recorder import Event

TEXT = """HloModule m
ENTRY e {
  p = f32[256]{0} parameter(0)
  a = f32[256]{0} negate(p)
  ROOT b = f32[256]{0} exponential(a)
}
"""
ROW = Account(parse_module(TEXT)).rows[0]


def launched(us: float, runs: int = 1, measured: float | None = None, **how: Any) -> Launched:
    return replace(ROW, us=us, runs=runs, measured_us=measured, **how)


def place(name: str, source: str = "a.py:1") -> Place:
    return Place(name, "fusion", "f32[256]{0}", source)


def test_kernels_of_one_line_stand_together_with_the_sum_of_their_times() -> None:
    rows = [
        (launched(3.0, 3), place("fusion.1")),
        (launched(3.0, 3), place("fusion.2")),
        (launched(3.5, 3), place("fusion.5")),
        (launched(5.0), place("fusion.3")),
        (launched(9.0, 3), place("fusion.4", source="b.py:1")),
        (launched(1.0, 3), place("other.4")),
    ]
    found = grouped_kernels(rows, None)
    assert [(k.place.name, k.count, k.us, k.iterations) for k in found] == [
        ("fusion.4", 1, 27.0, 3),
        ("fusion.1", 2, 18.0, 3),
        ("fusion.5", 1, 10.5, 3),
        ("fusion.3", 1, 5.0, 1),
        ("other.4", 1, 3.0, 3),
    ]
    assert [k.bytes_accessed for k in found] == [2048 * 3, 2 * 2048 * 3, 2048 * 3, 2048, 2048 * 3]


def test_measured_kernels_are_first_and_a_bound_of_one_is_a_bound_of_all() -> None:
    rows = [
        (launched(2.0), place("a.1")),
        (launched(9.0, is_floor=True), place("b.1")),
        (launched(9.0), place("b.2")),
        (launched(1.0, measured=0.5), place("c.1")),
        (launched(1.0, measured=0.45), place("c.2")),
        (launched(1.0, measured=0.1), place("c.3")),
    ]
    found = grouped_kernels(rows, None)
    assert [k.place.name for k in found] == ["c.1", "c.3", "b.1", "a.1"]
    assert [k.measured_us for k in found] == [0.95, 0.1, None, None]
    assert [k.is_floor for k in found] == [False, False, True, False]


def refusal(kernel: str, rule: str, us: float | None, moved: int, step: int = 1, **how: Any) -> Refusal:
    found = Refusal(place(kernel), "c", None, rule, None, {}, (step,), True, moved)
    return replace(found, kernel=kernel, us_at_stake=us, **how)


def rules_of(found: Any) -> list[tuple[str, list[str | None]]]:
    return [(b.rule.code, [r.kernel for r in b.refusals]) for b in found]


def text_of(code: str | None) -> Rule:
    return Rule(code or "", "", page={})


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        # Most time at stake, then most bytes, then most pairs.
        ([("p", [refusal("a", "R1", 1.0, 5), refusal("b", "R2", 2.0, 1)])], [("R2", ["b"]), ("R1", ["a"])]),
        ([("p", [refusal("a", "R1", None, 5), refusal("b", "R2", None, 9)])], [("R2", ["b"]), ("R1", ["a"])]),
        ([("p", [refusal("a", "R1", 1.0, 5, 1), refusal("b", "R1", 3.0, 5, 2)])], [("R1", ["b", "a"])]),
        # A pair that two passes refuse counts for the later one.
        ([("p", [refusal("a", "R1", 1.0, 5)]), ("q", [refusal("a", "R2", 1.0, 5)])], [("R2", ["a"])]),
    ],
)
def test_rules_stand_by_what_they_keep_apart(refused: Any, expected: Any) -> None:
    assert rules_of(blocking_rules(refused, text_of)) == expected


def test_like_refusals_stand_together_most_bytes_first() -> None:
    rows = [refusal("a", "R1", None, 5), refusal("b", "R2", None, 9), refusal("c", "R1", None, 7)]
    assert [[r.kernel for r in group] for group in group_refusals(rows)] == [["a", "c"], ["b"]]


def test_a_pass_that_only_adds_results_speaks_where_no_other_has() -> None:
    """XLA's multi-output fusion tries again what earlier passes have refused."""
    (further,) = sorted(FURTHER_RESULTS)[:1]
    first, again = refusal("a", "R1", 1.0, 5), refusal("a", "R2", 1.0, 5)
    alone = refusal("b", "R3", 0.5, 5)
    found = blocking_rules([("fusion", [first]), (further, [again, alone])], text_of)
    assert rules_of(found) == [("R1", ["a"]), ("R3", ["b"])]
    apart = replace(first, between_kernels=False)
    assert blocking_rules([("fusion", [apart])], text_of) == ()


@pytest.mark.parametrize(
    ("stakes", "expected"),
    [
        ([None, None], None),
        ([2.0, 3.0], 5.0),
        ([2.0, -3.0], 2.0),
        ([-2.0, -3.0], -5.0),
        ([0.0, -3.0], -3.0),
        ([None, 1.0], 1.0),
    ],
)
def test_at_stake_is_what_pays_or_what_all_would_cost(
    stakes: list[float | None], expected: float | None
) -> None:
    rows = [refusal(f"k{n}", "R", us, 1) for n, us in enumerate(stakes)]
    assert us_at_stake(rows) == expected
    # Each producer once: all its users are fused or none.
    assert us_at_stake([*rows, *rows]) == expected


KERNEL = FinalKernel(place("fusion.1"), "fusion.1", "kernel", 1, False, 2048, 3.0, False)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({}, "3.00 µs, 3%, 2.05 kB moved"),
        ({"runs": 10}, "3.00 µs × 10 = 30.00 µs, 30%, 2.05 kB moved per iteration"),
        ({"is_floor": True, "in_branch": True}, "≥ 3.00 µs, 3%, 2.05 kB moved, in one branch"),
        ({"us": None, "runs": 5}, "runs 5 times, 2.05 kB moved per iteration"),
        ({"us": None, "per_iteration": True}, "2.05 kB moved, counted for one iteration"),
        ({"runs": 0, "in_branch": True}, "3.00 µs, not counted (another branch costs more), 2.05 kB moved"),
        ({"runs": 0}, "3.00 µs, not counted (not evaluated), 2.05 kB moved"),
        ({"kind": "copy", "input_name": None}, "3.00 µs, 3%, 2.05 kB moved, copy, added after fusion"),
        ({"kind": "library"}, "3.00 µs, 3%, 2.05 kB moved, library"),
    ],
)
def test_a_selected_kernel_says_what_it_takes(how: dict[str, Any], line: str) -> None:
    e: Any = SimpleNamespace(after=SimpleNamespace(us=100.0), passes=())
    selected = SelectedKernel(replace(KERNEL, **how), None, (), ())
    assert selected_kernel_lines(selected, e, Selection("fusion.1", ())) == [f"{line}  a.py:1"]


def test_a_pass_counts_each_group_as_often_as_it_has_equals() -> None:
    groups = [
        SimpleNamespace(steps=(1, 2), equivalents=("a", "b")),
        SimpleNamespace(steps=(3,), equivalents=()),
    ]
    refused = [SimpleNamespace(between_kernels=n > 1) for n in range(4)]
    story: Any = SimpleNamespace(fused=groups, rewrites=(1, 2), refused=refused)
    assert pass_summary(story) == "7 fused into 4 kernels, 2 rewritten, 2 edges refused"
    for changed, text in ((True, "changed nothing itself"), (False, "changed nothing")):
        story = SimpleNamespace(fused=(), rewrites=(), refused=(), changed=changed)
        assert pass_summary(story) == text


def test_an_estimate_below_a_bound_has_the_bound_without_its_launch() -> None:
    time = KernelTime(2.0, 2.0, 1.0, 1024, 1024, 256, "loop", 2, 128, True)
    facts: Any = SimpleNamespace(after={}, costs=SimpleNamespace(kernel=lambda _: time))
    for row, floor in (
        (launched(9.0, is_floor=True, launch_us=1.0), 8.0),
        (launched(3.0, launch_us=1.0), 0.0),
    ):
        facts.launched_as = {"k": row}.get
        assert kernel_time_of("k", facts) == replace(time, us_floor=floor)
        assert kernel_time_of("other", facts) is None


@pytest.mark.parametrize(
    ("figures", "consumers", "saved"),
    [
        ({"us_fused": 3.0, "us_unfused": 9.0}, 1, 6.0),
        ({"us_fused": 3.0, "us_unfused": 9.0}, 3, 2.0),
        ({"us_fused": 3.0}, 1, None),
        ({"us_unfused": 9.0}, 1, None),
    ],
)
def test_the_times_of_a_decision_are_of_all_its_consumers(
    figures: dict[str, float], consumers: int, saved: float | None
) -> None:
    event = Event("fuse", "a-pass", "e", 1, figures=figures)
    assert FusedStep(event=event, producer=place("a"), consumers=consumers).us_saved == saved
