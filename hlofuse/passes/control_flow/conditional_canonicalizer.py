"""Conditionals take and give tuples (`xla/hlo/transforms/simplifiers/conditional_canonicalizer.cc`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, drop, replace_parameter, set_called
from hlofuse.passes.common.rewriting import rewrite_each
from hlofuse.trace import Recorder


class ConditionalCanonicalizer(Pass):
    name = "conditional-canonicalizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["conditional"], _canonicalize, recorder)


def _canonicalize(x: Instruction) -> bool:
    called = []
    changed = False
    for name, branch in x.called:
        if not _has_tuples(branch) and any(c.opcode != "conditional" for c in branch.callers):
            branch = clone_computation(branch)
        changed |= _give_tuples(branch)
        called.append((name, branch))
    set_called(x, called)
    for number, operand in enumerate(x.operands):
        if number and not operand.shape.is_tuple:
            x.replace_operand(number, make.tuple_of(x, [operand]))
            changed = True
    if not x.shape.is_tuple:
        assert x.computation is not None
        new = x.computation.add_instruction(x.clone(shape=Shape.tuple_of([x.shape])))
        replace_instruction(x, make.get_tuple_element(x, new, 0), has_side_effect)
        changed = True
    return changed


def _has_tuples(branch: Computation) -> bool:
    return branch.parameters[0].shape.is_tuple and branch.root.shape.is_tuple


def _give_tuples(branch: Computation) -> bool:
    changed = False
    if not branch.parameters[0].shape.is_tuple:
        old, new = replace_parameter(branch, Shape.tuple_of([branch.parameters[0].shape]))
        old.replace_all_uses_with(make.get_tuple_element(new, new, 0))
        drop(old)
        changed = True
    if not branch.root.shape.is_tuple:
        branch.root = make.tuple_of(branch.root, [branch.root])
        changed = True
    return changed
