"""Conditionals whose branch is known or not worth a choice (`xla/service/conditional_simplifier.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect, is_inlined
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.chosen_branch import chosen_branch
from hlofuse.passes.common.inlining import inline
from hlofuse.passes.control_flow.conditional_elements import (
    empty_unread,
    merge_duplicates,
    remove_unused_operands,
    remove_unused_results,
)
from hlofuse.trace import Recorder

_CHEAP = frozenset(
    "broadcast concatenate dynamic-slice get-tuple-element reduce reshape pad parameter slice tuple".split()
)
_FORWARDING = frozenset({"tuple", "get-tuple-element", "parameter"})


@dataclass(frozen=True)
class ConditionalSimplifier(Pass):
    """`simplify-conditional`."""

    name: ClassVar[str] = "simplify-conditional"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        every = [x for c in module.computations for x in c.post_order() if x.opcode == "conditional"]
        found = [x for x in every if x.attributes.raw("sharding") is None]
        for x in found:
            if x.computation is not None:
                changed |= merge_duplicates(x)
                changed |= remove_unused_results(x)
                changed |= empty_unread(x)
                changed |= _remove(x)
        choosing: dict[Computation, dict[Instruction, None]] = {}
        for x in found:
            if x.computation is not None:
                for branch in x.called_computations:
                    choosing.setdefault(branch, {})[x] = None
        for branch, conditionals in choosing.items():
            changed |= remove_unused_operands(branch, list(conditionals))
        return changed


def _remove(x: Instruction) -> bool:
    """`TryRemoveConditional`"""
    if x.control_predecessors or x.control_successors or has_side_effect(x):
        return False
    count = len(x.called_computations)
    if count == 1:
        return _replace(x, _call(x, 0))
    if x.operands[0].opcode == "constant":
        branch = chosen_branch(x)
        return branch is not None and _replace(x, _call(x, branch))
    if count != 2 or x.operands[0].shape.element_type != "pred":
        return False
    if any(_is_expensive(i) for branch in x.called_computations for i in branch):
        return False
    if any(_is_empty(branch) for branch in x.called_computations):
        return False
    calls = [_call(x, 0), _call(x, 1)]
    return _replace(x, _chosen(x, *calls), *reversed(calls))


def _call(x: Instruction, branch: int) -> Instruction:
    said = x.attributes.raw("frontend_attributes")
    called = [("to_apply", x.called_computations[branch])]
    kept = {"frontend_attributes": said} if said is not None else {}
    return make.add(x, "call", x.shape, [x.operands[1 + branch]], called=called, kept=kept)


def _replace(x: Instruction, new: Instruction, *calls: Instruction) -> bool:
    changed = replace_instruction(x, new, has_side_effect)
    for call in calls or (new,):
        if is_inlined(call):
            inline(call)
    return changed


def _is_expensive(i: Instruction) -> bool:
    return i.opcode not in _CHEAP and not is_elementwise(i) and i.opcode != "constant"


def _is_empty(branch: Computation) -> bool:
    """Does it only hand arrays on? (`ComputationIsEmptyWithArrayRoot`)"""
    if any(i.opcode not in _FORWARDING for i in branch.post_order()):
        return False
    return any(s.is_array for s in branch.root.shape.subshapes())


def _chosen(x: Instruction, yes: Instruction, no: Instruction) -> Instruction:
    shape: Shape = no.shape
    if shape.is_array:
        predicate = x.operands[0]
        if shape.dimensions:
            predicate = make.broadcast(x, shape.with_element_type("pred"), predicate, ())
        return make.select(x, predicate, yes, no)
    if not shape.is_tuple:
        return make.add(x, "after-all", shape, [yes, no])
    pairs = [
        [make.get_tuple_element(x, side, k) for side in (yes, no)] for k in range(len(shape.tuple_shapes))
    ]
    return make.tuple_of(x, [_chosen(x, a, b) for a, b in pairs])
