"""The parts of a loop, and loops that carry other values."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import substituted

_COPIED_ATTRIBUTES = ("backend_config", "frontend_attributes", "metadata")


def body_of(loop: Instruction) -> Computation:
    return dict(loop.called)["body"]


def condition_of(loop: Instruction) -> Computation:
    return dict(loop.called)["condition"]


def loops_of(computations: Iterable[Computation]) -> list[Instruction]:
    return [i for c in computations for i in c if i.opcode == "while"]


def is_element(x: Instruction, source: Instruction, index: int) -> bool:
    return x.opcode == "get-tuple-element" and x.operands[0] is source and x.tuple_index == index


def carried_unchanged(body: Computation) -> list[Instruction]:
    """Elements that the body passes on as it got them (`GetInvariantGTEsForWhileBody`)."""
    parameter = body.parameters[0]
    return [o for k, o in enumerate(body.root.operands) if is_element(o, parameter, k)]


def only_elements_are_read(loop: Instruction) -> bool:
    """`AllWhileParamConsumersGte`."""
    parts = (body_of(loop), condition_of(loop))
    return all(u.opcode == "get-tuple-element" for c in parts for u in c.parameters[0].users)


def is_removable(x: Instruction) -> bool:
    return not x.control_predecessors and not x.control_successors


def new_loop(old: Instruction, init: Instruction, condition: Computation, body: Computation) -> Instruction:
    """A loop like `old` over other computations and another tuple."""
    called = [("body", body), ("condition", condition)]
    new = make.add(old, "while", init.shape, [init], called=called, condition="", body="")
    raw = {name: value for name in _COPIED_ATTRIBUTES if (value := old.attributes.raw(name)) is not None}
    new.attributes = new.attributes.without(*_COPIED_ATTRIBUTES).updated(**raw)
    return new


def replace_loop(old: Instruction, new: Instruction) -> None:
    substituted(old, new)


def drop_unused(computation: Computation) -> None:
    """Take out all that nothing reads and that does nothing else."""
    for i in reversed(computation.post_order()):
        if i.users or i.is_root or i.opcode == "parameter" or has_side_effect(i):
            continue
        if is_removable(i):
            computation.remove_instruction(i)


def all_loops(module: Module) -> list[Instruction]:
    return loops_of(module.computations)
