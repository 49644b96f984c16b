"""The operands that an instruction overwrites (`AliasInfo::GetInPlaceInputOutputPairs`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.operand_use import Index, follow_tuples, follow_tuples_and_bitcasts
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release

_NEVER = ELEMENTWISE_OPCODES | {"broadcast", "concatenate", "constant", "reduce", "slice", "transpose"}
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}")


@dataclass(frozen=True, slots=True)
class InPlacePair:
    """An operand (or an element of it) and the output that shares its buffer."""

    operand_number: int
    operand_index: Index
    output_index: Index


def in_place_pairs(instruction: Instruction, release: Release) -> list[InPlacePair]:
    """The pairs of an instruction, in XLA's order."""
    opcode = instruction.opcode
    if opcode in _NEVER:
        return []
    if opcode == "fusion":
        return _fusion_pairs(instruction, release) + _declared(instruction)
    if opcode in ("dynamic-update-slice", "set-dimension-size"):
        return [InPlacePair(0, (), ())]
    if opcode in ("scatter", "all-reduce-start"):
        count = (len(instruction.operands) - 1) // 2 if opcode == "scatter" else len(instruction.operands)
        if count == 1:
            return [InPlacePair(0, (), ())]
        return [InPlacePair(k, (), (k,)) for k in range(count)]
    if opcode == "custom-call":
        return _declared(instruction)
    if opcode == "ragged-all-to-all":
        return [InPlacePair(1, (), ())]
    if opcode in ("collective-permute", "collective-permute-start") and len(instruction.operands) == 4:
        output: Index = (1,) if opcode.endswith("start") else ()
        elements = range(len(instruction.operands[1].shape.tuple_shapes))
        return [InPlacePair(1, (), output), *(InPlacePair(1, (k,), (*output, k)) for k in elements)]
    return []


def never_in_place(instruction: Instruction) -> bool:
    """It has no such pairs, nor will it whatever is fused into it: what it ends in overwrites nothing."""
    fusion = instruction.opcode == "fusion"
    last = instruction.fused_root if fusion else instruction
    return (
        last.opcode in _NEVER
        and instruction.shape.is_array
        and not (fusion and instruction.attributes.raw("output_to_operand_aliasing"))
    )


def _declared(instruction: Instruction) -> list[InPlacePair]:
    """What the attribute `output_to_operand_aliasing` says."""
    text = instruction.attributes.raw("output_to_operand_aliasing")
    if not text:
        return []
    return [
        InPlacePair(int(n), _index(operand), _index(output)) for output, n, operand in _ALIAS.findall(text)
    ]


def _index(text: str) -> Index:
    return tuple(int(x) for x in re.findall(r"\d+", text))


def _fusion_pairs(fusion: Instruction, release: Release) -> list[InPlacePair]:
    """Pairs found inside: an output whose source works in place on a parameter."""
    if fusion.fused_root.opcode in _NEVER and fusion.shape.is_array:
        return []
    follow = follow_tuples_and_bitcasts if release.in_place_through_bitcasts else follow_tuples
    pairs = []
    for output_index, _ in fusion.shape.leaves():
        source, source_index = follow(fusion.fused_root, output_index)
        # Declared pairs of a nested fusion do not count as the source's own.
        own = _fusion_pairs(source, release) if source.opcode == "fusion" else in_place_pairs(source, release)
        found: tuple[Instruction, Index] | None = None
        for pair in own:
            if pair.output_index != source_index:
                continue
            found = follow(source.operands[pair.operand_number], pair.operand_index)
            if found[0].opcode == "fusion":
                for nested in in_place_pairs(found[0], release):
                    if nested.output_index == found[1]:
                        found = follow(found[0].operands[nested.operand_number], nested.operand_index)
                        break
        if found is not None and not release.in_place_through_bitcasts and found[0].opcode == "bitcast":
            found = (found[0].operands[0], found[1])
        if found is not None and found[0].opcode == "parameter":
            pairs.append(InPlacePair(found[0].parameter_number, found[1], output_index))
    return pairs
