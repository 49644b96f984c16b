"""Loops over little data become calls, each one kernel
(`xla/service/cpu/small_while_loop_hoisting_pass.cc`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import SMALL_CALL
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.rules.rewrites.entries import SMALL_LOOP
from hlofuse.trace import Recorder

_UNAVAILABLE = frozenset(
    """
    custom-call fft infeed outfeed partition-id replica-id scatter sort
    all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start all-to-all
    collective-broadcast collective-permute collective-permute-done collective-permute-start
    ragged-all-to-all reduce-scatter
    """.split()
)


@dataclass(frozen=True)
class SmallWhileLoopHoisting(Pass):
    """`small-while-loop-hoisting`, callees first, so that a loop inside a small loop is a call in a call."""

    name = "small-while-loop-hoisting"
    byte_threshold: int = 1024
    """An iteration that accesses fewer bytes is small (`xla_cpu_small_while_loop_byte_threshold`)."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        loops = [x for c in module.computation_post_order() for x in c if x.opcode == "while"]
        if not loops:
            return False
        compiled_whole = _compiled_whole(module)
        # Every loop comes after the loops in it, so no cost is asked for that a rewrite changes later.
        costs = CostAnalysis()
        changed = False
        for loop in loops:
            if not all(c in compiled_whole for c in loop.called_computations):
                continue
            accessed = costs.instruction(loop).bytes_accessed
            if accessed < self.byte_threshold:
                name, call = loop.name, _outline(loop, module)
                reason = f"an iteration of {name} accesses {int(accessed):,} bytes"
                recorder.created_instructions(name, [call], rule=SMALL_LOOP.code, reason=reason)
                changed = True
        return changed


def _compiled_whole(module: Module) -> set[Computation]:
    """The computations that one kernel can hold: no library calls, collectives or channels."""
    found: set[Computation] = set()
    for computation in module.computation_post_order():
        if all(_is_available(x) and found.issuperset(x.called_computations) for x in computation):
            found.add(computation)
    return found


def _is_available(x: Instruction) -> bool:
    return x.opcode not in _UNAVAILABLE and x.fusion_kind != "kCustom"


def _outline(loop: Instruction, module: Module) -> Instruction:
    """A call of a new computation that holds a copy of the loop takes its place."""
    operand, computation = loop.operands[0], loop.computation
    assert computation is not None
    parameter = Instruction(operand.name, operand.shape, "parameter", payload="0")
    copy = loop.clone([parameter])
    body = Computation(f"{loop.name}_computation")
    body.append_parsed(parameter)
    body.append_parsed(copy)
    body.root = copy
    module.add_computation(body)
    given = (loop.attributes.raw("frontend_attributes") or "").removeprefix("{").removesuffix("}")
    attributes = ",".join(filter(None, (given, f'{SMALL_CALL}="true"')))
    call = make.added(
        loop,
        "call",
        loop.shape,
        [operand],
        called=[("to_apply", body)],
        raw_attributes={"to_apply": f"%{body.name}", "frontend_attributes": f"{{{attributes}}}"},
        like=loop,
    )
    loop.replace_all_uses_with(call)
    for predecessor in loop.control_predecessors:
        for successor in loop.control_successors:
            predecessor.add_control_dependency_to(successor)
    loop.drop_all_control_dependencies()
    computation.remove_instruction(loop)
    return call
