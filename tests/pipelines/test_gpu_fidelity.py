"""Target `gpu` against XLA: kernels, priorities, refusals, every step but for ties."""

from __future__ import annotations

import pytest

from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from hlofuse.reports.verify.verify import verify_module
from hlofuse.trace.priority_record import FusionStep
from ..tools.module_checks import verify_module as graph_problems
from .gpu_cases import Case, cases

# Small programs, and those that look like parts of models.
USUAL = cases("gpu") | cases("gpu-models")
# What programs rarely hold: products in Triton fusions, collectives, dynamic shapes, narrow types, AMD.
RARE = cases("gpu-unusual")
EXTRA_OUTPUTS = cases("gpu-triton-multi-output")
NAMES = sorted(USUAL)
EXAMPLES = NAMES[::6]
# XLA does not always repeat these steps itself: equal pairs share a tiling, and threads race for the first.
LARGE = [n for n in NAMES if n.endswith("/gpt2_block_grad")]


def test_there_is_something_to_compare() -> None:
    assert len(NAMES) > 350
    assert len(RARE) > 350
    assert {c.device for c in USUAL.values()} == {"h100_sxm", "v100", "a100_sxm_40", "b200"}


@pytest.mark.parametrize("name", NAMES[::2])
def test_the_kernels_are_xlas_from_text_alone(name: str) -> None:
    case = USUAL[name]
    input = CompilationInput(parse_module(case.before))
    v = verify_module(input, parse_module(case.after), replay_config("gpu", case.device))
    assert v.partition, str(v.difference)


def follow(case: Case, option: str | None = None) -> None:
    recorded_order = case.replay(ids=True, follow=True, option=option).recorded_order
    assert recorded_order is not None
    recorded_order.finish()
    assert recorded_order.disagreements == []
    assert recorded_order.agreed == recorded_order.total


@pytest.mark.parametrize("name", sorted(USUAL | RARE))
def test_every_step_is_xlas_but_for_ties(name: str) -> None:
    follow((USUAL | RARE)[name])


@pytest.mark.parametrize("name", sorted(EXTRA_OUTPUTS))
def test_every_step_with_extra_outputs_of_triton_fusions(name: str) -> None:
    follow(EXTRA_OUTPUTS[name], "triton-multi-output")


def test_extra_outputs_are_made_and_only_with_the_option() -> None:
    created = {
        option: sum(
            e.kind == "multi-output" and e.pass_name == "priority-fusion"
            for case in EXTRA_OUTPUTS.values()
            for e in case.replay(ids=True, option=option).events
        )
        for option in (None, "triton-multi-output")
    }
    assert created[None] == 0
    assert created["triton-multi-output"] == 8


def test_with_ids_most_sequences_are_exact() -> None:
    exact = 0
    for name in EXAMPLES:
        case = USUAL[name]
        actual = [
            (e.producer, e.consumer)
            for e in case.replay(ids=True).events
            if e.event == "fuse" and e.pass_name == "priority-fusion"
        ]
        xla = [(s.producer, s.consumer) for s in case.record.steps if isinstance(s, FusionStep)]
        exact += actual == xla
    assert exact >= 0.8 * len(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES + LARGE)
def test_the_graph_stays_sound(name: str) -> None:
    assert graph_problems(USUAL[name].replay(ids=False).after) == []
