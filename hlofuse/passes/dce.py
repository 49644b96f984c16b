"""Removes dead instructions (`xla/hlo/transforms/simplifiers/hlo_dce.cc`)."""

from hlofuse.analysis.custom_calls import custom_call_target, retains_elements
from hlofuse.ir import Computation, Instruction, Module, Shape, callees, reach
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.removing import (
    has_side_effect,
    is_dead,
    is_safely_removable,
    remove_with_unused_operands,
    replace_instruction,
)
from hlofuse.rules import rewrites as rules
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Recorder
from .base import Pass, substituted


class HloDCE(Pass):
    """`dce`: callers before callees, so that unused results of a fusion go before its body is looked at."""

    name = "dce"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        unreached = dict.fromkeys(module.computations)
        for computation in reach([module.entry], callees):
            del unreached[computation]
            changed |= remove_dead_instructions(computation, recorder)
        for computation in unreached:
            recorder.apply(rules.DEAD_COMPUTATION, computation.name, [computation.name], [])
        module.remove_computation(*unreached)
        return changed or bool(unreached)


def remove_dead_instructions(computation: Computation, recorder: Recorder) -> bool:
    """`HloDCE::RunOnComputation`"""
    changed = _remove_unused_outputs(computation, recorder)
    dead = [x for x in computation if not x.users and _can_remove(x)]
    for instruction in dead:
        removed = remove_with_unused_operands(instruction)
        recorder.apply(rules.DEAD_INSTRUCTION, computation.name, removed, [])
    changed |= bool(dead)
    for parameter in reversed(computation.parameters):
        if is_dead(parameter) and is_safely_removable(parameter):
            removed = remove_with_unused_operands(parameter)
            recorder.apply(rules.DEAD_PARAMETER, computation.name, removed, [])
            changed = True
    return changed


def _can_remove(instruction: Instruction) -> bool:
    if instruction.is_parameter or not is_dead(instruction) or not is_safely_removable(instruction):
        return False
    if custom_call_target(instruction) == "Sharding":
        operand = instruction.operand
        if operand.is_root or operand.is_parameter or operand.user_count != 1:
            return False
    return not has_side_effect(instruction) and not retains_elements(instruction)


def _remove_unused_outputs(body: Computation, recorder: Recorder) -> bool:
    """Narrow a multi-output fusion to what is read (`RemoveMultiOutputFusionsUnusedOutputs`)."""
    fusion, root = body.fusion, body.root
    if fusion is None or root.opcode != "tuple" or root.raw("sharding") is not None:
        return False
    if fusion.raw("output_to_operand_aliasing") or fusion.fusion_kind == "kCustom" or fusion.is_root:
        return False
    if fusion.has_control_dependencies or not fusion.users:
        return False
    if any(not u.is_get_tuple_element for u in fusion.users):
        return False
    used = {u.tuple_index for u in fusion.users}
    used |= {k for k, o in enumerate(root.operands) if has_side_effect(o)}
    used_indices = sorted(used)
    if len(used_indices) == root.operand_count:
        return False
    removed = [o.name for k, o in enumerate(root.operands) if k not in used]
    shapes = [fusion.shape.tuple_shapes[k] for k in used_indices]
    if len(used_indices) > 1:
        fusion.shape = Shape.tuple_of(shapes)
        for element in fusion.users:
            set_tuple_index(element, used_indices.index(element.tuple_index))
        new = Instruction("tuple", fusion.shape, "tuple", [root.operands[k] for k in used_indices])
        body.add_instruction(new)
        replace_instruction(root, new)
    else:
        fusion.shape = shapes[0]
        for element in list(fusion.users):
            substituted(element, fusion, preserve_sharding=True)
        root.replace_all_uses_with(root.operands[used_indices[0]])
    recorder.apply(rules.UNUSED_OUTPUT, body.name, removed, [fusion])
    return True


class TupleSimplifier(Pass):
    """Removes tuples only taken apart again (`xla/hlo/transforms/simplifiers/tuple_simplifier.cc`)."""

    name = "tuple-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computations:
            if not any(i.opcode in ("tuple", "get-tuple-element") for i in computation):
                continue
            for instruction in computation.post_order():
                if instruction.computation is None:
                    continue
                rule: Rule | None
                if instruction.opcode == "tuple":
                    source, rule = _whole_tuple(instruction), rules.WHOLE_TUPLE
                else:
                    source, rule = _element(instruction), rules.ELEMENT_OF_TUPLE
                if source is None or rule.code in self.settings.disabled:
                    continue
                name = instruction.name
                if replace_instruction(
                    instruction,
                    source,
                    preserve_sharding=True,
                    relay_control_dependencies=rule is rules.ELEMENT_OF_TUPLE,
                ):
                    recorder.apply(rule, computation.name, [name], [source])
                    changed = True
        return changed


def _whole_tuple(instruction: Instruction) -> Instruction | None:
    elements = instruction.operands
    if any(not e.is_get_tuple_element or e.tuple_index != k for k, e in enumerate(elements)):
        return None
    sources = {e.operand for e in elements}
    source = sources.pop() if len(sources) == 1 else None
    same = source and source.shape.key_ignoring_layout == instruction.shape.key_ignoring_layout
    return source if same else None


def _element(instruction: Instruction) -> Instruction | None:
    """The source of a chain of get-tuple-elements, if known."""
    path = []
    source = instruction
    while source.is_get_tuple_element:
        path.append(source.tuple_index)
        source = source.operand
    if not path:
        return None
    for index in reversed(path):
        if source.opcode != "tuple":
            return None
        source = source.operands[index]
    return source
