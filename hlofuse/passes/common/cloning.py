"""Copies of computations, and changing what an instruction calls or what a body is given."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.fusing import clone_of, module_of
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape


def clone_computation(original: Computation, suffix: str = "clone") -> Computation:
    """A copy in the same module that calls the same computations (`HloComputation::Clone`).

    Instructions are as old among themselves as those of the original, and users stand in the same order.
    """
    module = module_of(original)
    copy = Computation(f"{original.name}.{suffix}")
    twins: dict[Instruction, Instruction] = {}
    for i in original.post_order():
        twin = clone_of(i, [twins[o] for o in i.operands])
        twin.name = f"{i.name}.{suffix}"
        twins[i] = twin
        for predecessor in i.control_predecessors:
            twins[predecessor].add_control_dependency_to(twin)
    for i in original:
        copy.append_parsed(twins[i])
        twins[i].users[:] = [twins[user] for user in i.users]
    copy.root = twins[original.root]
    copy.attributes_text = original.attributes_text
    return module.add_computation(copy)


def set_called(caller: Instruction, called: Sequence[tuple[str, Computation]]) -> None:
    """`caller` calls these instead (`ReplaceCalledComputations`)."""
    for _, callee in caller.called:
        callee.callers.pop(caller, None)
    caller.called = list(called)
    for _, callee in called:
        callee.add_caller(caller)


def replace_parameter(computation: Computation, shape: Shape) -> tuple[Instruction, Instruction]:
    """The old parameter, still read by everything, and a new one of another shape.

    The caller gives the users something else to read and then calls `drop`.
    """
    old = computation.parameters[0]
    new = Instruction(old.name, shape, "parameter", attributes=old.attributes, payload="0")
    computation.parameters = []
    computation.add_instruction(new)
    return old, new


def drop(x: Instruction) -> None:
    """Take out what nobody reads any more, also a parameter that was replaced."""
    assert x.computation is not None
    x.computation.remove_instruction(x)
