"""Constants that a loop carries are made in the loop (`xla/service/while_loop_constant_sinking.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.cloning import clone_computation, set_called
from hlofuse.passes.loop.parts import body_of, carried_unchanged, condition_of
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class WhileLoopConstantSinking(Pass):
    """`while-loop-constant-sinking`."""

    name: ClassVar[str] = "while-loop-constant-sinking"
    sink_broadcasts: bool = False
    only_scalars: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        pending: list[Computation] = [module.entry]
        visited: set[Computation] = set()
        while pending:
            computation = pending.pop()
            if computation in visited:
                continue
            visited.add(computation)
            for i in list(computation):
                if i.opcode == "while":
                    changed |= self._sink(i)
                pending += i.called_computations
        if changed:
            _remove_unused_computations(module)
        return changed

    def _sinks(self, value: Instruction) -> bool:
        if self.only_scalars and value.shape.dimensions:
            return False
        if value.opcode == "broadcast" and self.sink_broadcasts:
            return value.operands[0].opcode == "constant"
        return value.opcode == "constant"

    def _sink(self, loop: Instruction) -> bool:
        init = loop.operands[0]
        body, condition = body_of(loop), condition_of(loop)
        if init.opcode != "tuple" or body.root.opcode != "tuple":
            return False
        wanted = [g.tuple_index for g in carried_unchanged(body) if self._sinks(init.operands[g.tuple_index])]
        into_body = [k for k in wanted if len(body.root.operands[k].users) > 1]
        readers = [u for u in condition.parameters[0].users if u.opcode == "get-tuple-element" and u.users]
        into_condition = [k for k in wanted if any(r.tuple_index == k for r in readers)]
        if into_body:
            body = clone_computation(body, "sunk")
        if into_condition:
            condition = clone_computation(condition, "sunk")
        if not into_body and not into_condition:
            return False
        set_called(loop, [("body", body), ("condition", condition)])
        for k in into_body:
            element = body.root.operands[k]
            constant = _copied(init.operands[k], element)
            for user in list(element.users):
                for number, operand in enumerate(user.operands):
                    if operand is element and not (user is body.root and number == k):
                        user.replace_operand(number, constant)
        for k in into_condition:
            for element in list(condition.parameters[0].users):
                if element.opcode == "get-tuple-element" and element.tuple_index == k and element.users:
                    element.replace_all_uses_with(_copied(init.operands[k], element))
                    condition.remove_instruction(element)
        return True


def _remove_unused_computations(module: Module) -> None:
    """`HloModule::RemoveUnusedComputations`: what nobody reads in the others stays."""
    reached: set[Computation] = set()
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation not in reached:
            reached.add(computation)
            pending += [callee for i in computation for callee in i.called_computations]
    for computation in list(module.computations):
        if computation not in reached:
            module.remove_computation(computation)


def _copied(value: Instruction, at: Instruction) -> Instruction:
    if value.opcode == "broadcast":
        return make.broadcast(at, value.shape, _copied(value.operands[0], at), value.dimensions)
    return make.add(at, "constant", value.shape, payload=value.payload)
