"""Simpler loops, and fewer values for them to carry (`xla/service/while_loop_simplifier.cc`)."""

from hlofuse.analysis.custom_calls import retains_elements
from hlofuse.ir import Instruction, Module, has_side_effect, values
from hlofuse.passes.algebraic.context import scalar_constant
from hlofuse.passes.base import Pass, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import copied, inline
from hlofuse.passes.dce import HloDCE
from hlofuse.rules.rewrites import SINGLE_ITERATION
from hlofuse.trace import Recorder
from .parts import (
    body_of,
    carried_unchanged,
    condition_of,
    elements_read,
    loops_of,
    remove_dead,
    remove_duplicates,
)
from .trip_count import merge_induction_variables, trip_count

_MESSAGES = values("send send-done recv recv-done")
_WITHOUT_WORK = values("constant get-tuple-element tuple")
_COUNTED = tuple("s8 u8 s32 u32 s64 u64".split())


class WhileLoopSimplifier(Pass):
    """`simplify-while-loops`; nested tuples stay as they are."""

    name = "simplify-while-loops"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for loop in loops_of(module.computations):
            single = len(body_of(loop).callers) <= 1 and len(condition_of(loop).callers) <= 1
            if single and not retains_elements(loop):
                changed |= _simplify(loop, recorder)
        if changed:
            HloDCE().run(module, recorder)
        return changed


def _simplify(loop: Instruction, recorder: Recorder) -> bool:
    if remove_duplicates(loop) or remove_dead(loop):
        return True
    opcodes = {i.opcode for part in (body_of(loop), condition_of(loop)) for i in part}
    if opcodes & _MESSAGES:
        return False
    changed = _propagate_constants(loop)
    if _remove_loop(loop, recorder):
        return True
    if "domain" in opcodes:
        return changed
    for element_type in _COUNTED:
        if (new := merge_induction_variables(loop, element_type)) is not None:
            loop, changed = new, True
    return changed


def _propagate_constants(loop: Instruction) -> bool:
    """`TryPropagateConstant`: scalars that never change."""
    init, body = loop.operand, body_of(loop)
    if init.opcode != "tuple" or body.root.opcode != "tuple":
        return False
    unchanged = [x.tuple_index for x in carried_unchanged(body)]
    constants = {k: init.operands[k] for k in unchanged if scalar_constant(init.operands[k])}
    changed = False
    for part in (condition_of(loop), body):
        for reader in elements_read(part.parameter):
            if reader.tuple_index in constants:
                reader.replace_all_uses_with(copied(constants[reader.tuple_index], reader))
                changed = True
    return changed


def _remove_loop(loop: Instruction, recorder: Recorder) -> bool:
    """`TryRemoveWhileLoop`: no iteration, or one."""
    if loop.has_control_dependencies or any(has_side_effect(i) for i in condition_of(loop)):
        return False
    trips = trip_count(loop)
    if trips == 0:
        substituted(loop, loop.operand)
        return True
    attributes = loop.frontend_attributes
    if trips != 1 or attributes.get("inlineable") in ("false", "xla_late"):
        return False
    if attributes.get("skip-simplify-while-loops_trip-count-one") == "true":
        return False
    if any(has_side_effect(i) for i in body_of(loop)):
        return False
    computation, name = loop.parent, loop.name
    call = make.add(loop, "call", loop.shape, loop.operands, called=body_of(loop))
    first = computation.next_id
    substituted(loop, call)
    inline(call)
    body = [i for i in computation.added_since(first) if i.opcode not in _WITHOUT_WORK]
    recorder.created_instructions(name, body, SINGLE_ITERATION, f"{name} runs once")
    return True
