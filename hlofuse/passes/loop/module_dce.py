"""Removes elements of tuples that loops carry for nothing (`xla/service/hlo_module_dce.cc`)."""

from collections import deque

from hlofuse.analysis.custom_calls import has_own_side_effect, retains_elements
from hlofuse.analysis.shape_tree import Index, shape_tree
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.dce import HloDCE, TupleSimplifier, remove_dead_instructions
from hlofuse.passes.loop.parts import all_loops, body_of, condition_of
from hlofuse.passes.loop.simplifier import WhileLoopSimplifier
from hlofuse.trace import Recorder


class HloModuleDCE(Pass):
    """No pipeline of XLA:CPU or XLA:GPU has it."""

    name = "hlo-module-dce"

    def run(self, module: Module, recorder: Recorder) -> bool:
        live = _Liveness(module).live
        bodies = []
        for loop in all_loops(module):
            body = body_of(loop)
            if not loop.shape.is_tuple or body.root.opcode != "tuple":
                continue
            dead = [k for k in range(len(loop.shape.tuple_shapes)) if (k,) not in live.get(loop, ())]
            for k in dead:
                parameter = body.parameters[0]
                body.root.replace_operand(k, make.get_tuple_element(parameter, parameter, k))
            if dead:
                bodies.append(body)
        for body in bodies:
            remove_dead_instructions(body, recorder)
        changed = [p.run(module, recorder) for p in (WhileLoopSimplifier(), TupleSimplifier(), HloDCE())]
        return bool(bodies) or any(changed)


class _Liveness:
    """Which results anything depends on (`xla/hlo/analysis/hlo_liveness_analysis.cc`)."""

    def __init__(self, module: Module) -> None:
        self.live: dict[Instruction, set[Index]] = {}
        self._pending: deque[Instruction] = deque()
        self._mark_all(module.entry.root)
        for i in module.instructions():
            if has_own_side_effect(i) or retains_elements(i):
                self._mark_all(i)
        while self._pending:
            self._visit(self._pending.popleft())

    def _mark(self, x: Instruction, index: Index = ()) -> None:
        indices = self.live.setdefault(x, set())
        if not indices.issuperset(((), index)):
            indices.update(((), index))
            self._pending.append(x)

    def _mark_all(self, x: Instruction) -> None:
        for index in shape_tree(x.shape).indices:
            self._mark(x, index)

    def _mark_loop(self, loop: Instruction, index: Index) -> None:
        self._mark(condition_of(loop).root)
        for y in (loop, body_of(loop).root, loop.operands[0]):
            self._mark(y, index)

    def _visit(self, x: Instruction) -> None:
        for index in list(self.live[x]):
            if x.opcode == "tuple" and index:
                self._mark(x.operands[index[0]], index[1:])
            elif x.opcode == "get-tuple-element":
                self._mark(x.operands[0], (x.tuple_index, *index))
            elif x.opcode == "while":
                self._mark_loop(x, index)
            elif x.opcode == "call":
                self._mark(x.called_computations[0].root, index)
            self._mark_in_callers(x, index)
        if x.opcode not in ("tuple", "get-tuple-element", "while", "call", "parameter"):
            for y in (*(c.root for c in x.called_computations), *x.operands):
                self._mark_all(y)

    def _mark_in_callers(self, x: Instruction, index: Index) -> None:
        assert x.computation is not None
        is_parameter = x.opcode == "parameter"
        for caller in list(x.computation.callers):
            if caller.opcode == "while":
                self._mark(condition_of(caller).root)
                if is_parameter:
                    self._mark_loop(caller, index)
            elif caller.opcode == "call" and is_parameter:
                self._mark(caller.operands[x.parameter_number], index)
            elif caller.opcode == "conditional":
                self._mark(caller.operands[0])
                self._mark(caller)
                given = caller.operands[1 + caller.called_computations.index(x.computation)]
                self._mark(given, index if is_parameter else ())
