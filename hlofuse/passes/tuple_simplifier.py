"""Removes tuples that are only taken apart again (`xla/hlo/transforms/simplifiers/tuple_simplifier.cc`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.clean_up import ELEMENT_OF_TUPLE, WHOLE_TUPLE
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class TupleSimplifier(Pass):
    """`tuple-simplifier`, over every computation."""

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
                    source, rule = _whole_tuple(instruction), WHOLE_TUPLE
                else:
                    source, rule = _element(instruction), ELEMENT_OF_TUPLE
                if source is None or rule.code in self.settings.disabled:
                    continue
                name = instruction.name
                if replace_instruction(
                    instruction,
                    source,
                    has_side_effect,
                    preserve_sharding=True,
                    relay_control_dependencies=rule is ELEMENT_OF_TUPLE,
                ):
                    recorder.rewrite(
                        computation.name, [name], [source.name], rule=rule.code, reason=rule.title
                    )
                    changed = True
        return changed


def _whole_tuple(instruction: Instruction) -> Instruction | None:
    """The tuple this one is put together from, element by element."""
    source: Instruction | None = None
    for number, element in enumerate(instruction.operands):
        if element.opcode != "get-tuple-element" or element.tuple_index != number:
            return None
        if source is None:
            source = element.operands[0]
            if source.shape.key_ignoring_layout != instruction.shape.key_ignoring_layout:
                return None
        elif source is not element.operands[0]:
            return None
    return source


def _element(instruction: Instruction) -> Instruction | None:
    """What a chain of get-tuple-elements reads, if it is known."""
    path: list[int] = []
    source = instruction
    while source.opcode == "get-tuple-element":
        path.append(source.tuple_index)
        source = source.operands[0]
    if not path:
        return None
    for index in reversed(path):
        if source.opcode != "tuple":
            return None
        source = source.operands[index]
    return source
