"""The order of computations behind the simplification pipeline, told by what was cloned how often."""

from __future__ import annotations

import re

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.processing_order import likely_processing_order


def _condition(name: str) -> str:
    head = f"%{name} (p: f32[8]) -> pred[] {{\n  %c = f32[8]{{0}} parameter(0)\n"
    return f"{head}  ROOT %true.{name} = pred[] constant(true)\n}}\n"


def _function(name: str, *calls: str) -> str:
    lines, value = [], "b"
    for k, call in enumerate(calls):
        lines.append(f"  %call.{name}.{k} = f32[8]{{0}} {call.replace('VALUE', f'%{value}')}")
        value = f"call.{name}.{k}"
    called = "\n".join(lines)
    return f"""%{name} (p: f32[8]) -> f32[8] {{
  %b = f32[8]{{0}} parameter(0)
{called}
  ROOT %next.{name} = f32[8]{{0}} negate(%{value})
}}
"""


def _loop(body: str, condition: str) -> str:
    return f"while(VALUE), condition=%{condition}, body=%{body}"


def _order(*computations: str) -> list[str]:
    """The last is the entry; without bodies and branches that call nothing."""
    text = "HloModule m\n\n" + "".join(computations[:-1]) + "ENTRY " + computations[-1]
    found = [c.name for c in likely_processing_order(parse_module(text))]
    return [re.sub(r"\.(clone|sunk)", lambda m: m[1][0], x) for x in found]


def _two_loops(inner: str, outer: str, other: str) -> list[str]:
    """One in another and a third one behind them, with what was cloned of each of them."""
    names = (
        f"inner.1{inner}",
        f"is.2{inner}",
        f"outer.3{outer}",
        f"is.4{outer}",
        f"other.5{other}",
        f"is.6{other}",
    )
    order = _order(
        _function(names[0]),
        *(_condition(name) for name in names[1::2]),
        _function(names[2], _loop(*names[:2])),
        _function(names[4]),
        _function("main.9", _loop(*names[2:4]), _loop(*names[4:])),
    )
    return [x for x in order if x.startswith("is")]


def test_what_is_in_an_older_computation_is_cloned_first() -> None:
    assert _two_loops(".clone", ".clone", ".clone") == ["is.2c", "is.4c", "is.6c"]


def test_a_loop_waits_while_what_it_is_in_is_cloned() -> None:
    """The clone of the outer body is the youngest computation, and the first round left it behind."""
    assert _two_loops(".clone.clone", ".clone.clone", ".clone.clone") == ["is.4cc", "is.6cc", "is.2cc"]


def test_each_round_clones_a_loop_once() -> None:
    assert _two_loops(".clone", ".clone.clone.clone", ".clone.clone") == ["is.2c", "is.6cc", "is.4ccc"]


def test_a_constant_that_was_sunk_makes_a_body_young() -> None:
    """Of one round, but the outer body was added behind the entry by then."""
    assert _two_loops(".clone", ".sunk.clone", ".clone") == ["is.4sc", "is.6c", "is.2c"]


def test_one_condition_that_stands_for_two_equal_ones_was_cloned_for_the_first() -> None:
    order = _order(
        _condition("is.2.clone"),
        _condition("is.2.clone.clone"),
        _condition("is.4.clone"),
        _function("first.1.clone"),
        _function("second.3.clone"),
        _function("third.5.clone"),
        _function(
            "main.9",
            _loop("first.1.clone", "is.2.clone"),
            _loop("second.3.clone", "is.4.clone"),
            _loop("third.5.clone", "is.2.clone.clone"),
        ),
    )
    assert [x for x in order if x.startswith("is")] == ["is.2c", "is.4c", "is.2cc"]


def test_branches_are_cloned_behind_loops_results_first() -> None:
    """Those of which results went unread in one go, then those of which operands did."""
    branches = "conditional(%which, VALUE, VALUE), true_computation=%yes.1{}, false_computation=%no.2{}"
    entry = _function(
        "main.9", branches.format(".clone.clone", ".clone"), _loop("body.3.clone", "is.4.clone")
    ).replace("parameter(0)\n", "parameter(0)\n  %which = pred[] constant(true)\n")
    order = _order(
        _function("yes.1.clone.clone"),
        _function("no.2.clone"),
        _function("body.3.clone"),
        _condition("is.4.clone"),
        entry,
    )
    assert order == ["is.4c", "body.3c", "no.2c", "yes.1cc", "main.9"]
