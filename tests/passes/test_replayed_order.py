"""The order of users and of ages that repeating XLA's passes leaves, against XLA's ids and its record.

The record lists the consumers of each producer in the order of XLA's users.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.compilation import CompilationInput, compile, replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.ordered import lowering_to
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.order.restore import with_replayed_order
from hlofuse.passes.common.calls import clone_computation
from hlofuse.trace.priority_record import FusionStep, PriorityRecord, PriorityStep
from ..fixtures import companion_texts, find_case
from ..pipelines.gpu_cases import cases
from ..running import lowered
from .packed import archive

TEXTS = companion_texts(__file__)

CASES = Path(__file__).parent / "cases"
CHANGED_DECISIONS = find_case(CASES / "broadcasts.hlo", "broadcast_turned")
H100 = load_device("h100_sxm")
CONFIG = replay_config("gpu", H100)
PROGRAMS = ("gpt2_train_step", "cartpole_unrolled_10", "attention_grad", "mlp_grad_bf16", "lstm_scan")
"""Of the first two the text ahead of fusion does not tell the order: merged duplicates left no trace."""


def users_in_record(record: PriorityRecord) -> dict[str, list[str]]:
    """The consumers of each producer the first time, as long as none of them has been fused."""
    found: dict[str, list[str]] = {}
    touched: set[str] = set()
    for step in record.steps:
        if isinstance(step, FusionStep):
            touched |= {step.fusion, step.producer, step.consumer}
        elif isinstance(step, PriorityStep) and not touched & {step.producer, *step.consumers}:
            found.setdefault(step.producer, list(step.consumers))
    return {producer: consumers for producer, consumers in found.items() if len(set(consumers)) > 1}


def replayed_order(module: Module, unoptimized: Module) -> Module | None:
    return with_replayed_order(module, lowering_to(module, unoptimized, CONFIG).before)


def users_in(module: Module, wanted: dict[str, list[str]]) -> dict[str, list[str]]:
    """The same producers, and of their users those that the record knows."""
    users = {i.name: [u.name for u in i.users] for c in module.non_fusion_computations() for i in c}
    return {name: [u for u in users[name] if u in consumers] for name, consumers in wanted.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_fused_in_xlas_order(name: str) -> None:
    case = cases("gpu")[f"h100_sxm/{name}"]
    unoptimized = parse_module(archive("gpu-h100_sxm")[f"programs/{name}"]["before"])
    replayed = replayed_order(parse_module(case.before), unoptimized)
    assert replayed is not None
    wanted = users_in_record(case.record)
    assert len(wanted) > 1
    assert users_in(replayed, wanted) == wanted
    # Ids that XLA wrote down go before those of the played module.
    events = compile(CompilationInput(replayed, case.ids), "gpu", device=H100).passes[2].events
    fused = [(e.producer, e.consumer) for e in events if e.event == "fuse"]
    assert fused == [(s.producer, s.consumer) for s in case.record.fusions()]


def test_users_of_a_broadcast_that_a_bitcast_turns() -> None:
    """XLA leaves the bitcast of a broadcast alone where the dimensions would change places; its record has
    the second product in front.
    """
    wanted = {
        "broadcast.1.0": ["multiply.3.0", "multiply.1.0"],
        "broadcast.2": ["multiply.2.0", "multiply.4"],
        "slice.1.0": ["multiply.2.0", "multiply.1.0"],
        "slice.2": ["multiply.3.0", "multiply.4"],
    }
    replayed = replayed_order(CHANGED_DECISIONS.expected("h100_sxm"), CHANGED_DECISIONS.module())
    assert replayed is not None
    assert users_in(replayed, wanted) == wanted


def test_no_order_is_taken_from_another_program() -> None:
    sunk = find_case(CASES / "slices_and_pads.hlo", "slices_sunk")
    module, other = sunk.expected("h100_sxm"), parse_module(sunk.text.replace("power", "subtract"))
    assert replayed_order(module, other) is None


@pytest.mark.parametrize("with_gpu", [True, False])
def test_sorts_are_cubs_or_xlas_as_in_the_module_given(with_gpu: bool) -> None:
    """Compiled without a GPU, XLA leaves the sorts that it has no table of; the size of scratch is any."""
    unoptimized = TEXTS["sorts_cubs_xlas"]
    module = TEXTS["sorts_cubs_xlas_2"]
    if not with_gpu:
        module = unoptimized
    assert replayed_order(parse_module(module), parse_module(unoptimized)) is not None


def test_a_replay_of_what_was_played_keeps_its_order() -> None:
    replayed = lowered(CHANGED_DECISIONS.module(), "gpu", H100).module
    assert replayed.order_source == "replayed"
    # Nothing the replay does by itself comes between: with another order the first fusions are others.
    before = {i.name: [u.name for u in i.users] for i in replayed.entry}
    compile(CompilationInput(replayed, record=PriorityRecord()), "gpu", device=H100)
    assert {i.name: [u.name for u in i.users] for i in replayed.entry} == before
    requested = [e.consumers for e in compile(replayed, "gpu", device=H100).events if e.event == "priority"]
    assert ["multiply.3.0", "multiply.1.0"] in [list(consumers or ()) for consumers in requested]


def test_a_copied_computation_is_in_the_order_of_the_original() -> None:
    """`HloComputation::Clone` sorts instructions and users as they stand in the original."""
    module = parse_module(TEXTS["copied_computation_order"])
    p, a, b, c = module.entry
    p.users[:] = [b, a]
    module.entry.reorder([p, b, a, c])
    copy = clone_computation(module.entry)
    assert [i.opcode for i in copy] == ["parameter", "cosine", "sine", "add"]
    assert [u.opcode for u in copy.parameters[0].users] == ["cosine", "sine"]


def test_a_copy_has_fused_computations_of_its_own() -> None:
    """Else what one fusion takes in is lost for the other, as in an unrolled loop around a loop."""
    text = TEXTS["copy_fused_computations"]
    module = parse_module(text)
    copy = clone_computation(module.entry)
    assert copy.root.fused_computation is not module.entry.root.fused_computation
    assert [c.fusion for c in module.computations if c.fusion is not None] == [module.entry.root, copy.root]
