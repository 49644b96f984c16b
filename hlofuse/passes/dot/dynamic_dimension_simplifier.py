"""Takes out what canonicalizing dots leaves
(`xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.cc`)."""

from collections.abc import Callable

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass, any_change, replaced
from hlofuse.passes.common.make import added
from hlofuse.trace import Recorder


class DynamicDimensionSimplifier(Pass):
    """`dynamic-dimension-simplifier`: six clean-ups, each over the whole module; what they leave stays."""

    name = "dynamic-dimension-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(
            instruction.computation is not None and clean_up(instruction)
            for clean_up in _CLEAN_UPS
            for computation in module.non_fusion_computations()
            for instruction in computation.post_order()
        )


def _concatenate_of_concatenates(concatenate: Instruction) -> bool:
    if concatenate.opcode != "concatenate":
        return False
    parts: list[Instruction] = []
    for operand in concatenate.operands:
        nested = operand.opcode == "concatenate" and operand.dimensions == concatenate.dimensions
        parts += operand.operands if nested else [operand]
    if len(parts) == len(concatenate.operands) and parts == concatenate.operands:
        return False
    dimensions = concatenate.attributes.raw("dimensions") or "{0}"
    return replaced(
        concatenate, added(concatenate, "concatenate", concatenate.shape, parts, dimensions=dimensions)
    )


def _slice_of_concatenate(instruction: Instruction) -> bool:
    if instruction.opcode != "slice" or instruction.shape.rank != 1:
        return False
    concatenate = instruction.operands[0]
    if concatenate.opcode != "concatenate":
        return False
    window = instruction.attributes["slice"][0]
    start, limit, stride = window.start, window.limit, window.stride
    if stride != 1 or limit - start != instruction.shape.dimensions[0]:
        return False
    at = 0
    for operand in concatenate.operands:
        size = operand.shape.dimensions[0]
        if at == start and size == limit - start:
            return _forward(instruction, operand)
        at += size
    return False


def _reshape_of_broadcast(reshape: Instruction) -> bool:
    if reshape.opcode != "reshape" or reshape.shape.rank != 0:
        return False
    broadcast = reshape.operands[0]
    if broadcast.opcode != "broadcast" or broadcast.shape.rank != 1 or broadcast.operands[0].shape.rank:
        return False
    return _forward(reshape, broadcast.operands[0])


def _reshape_of_reshape(reshape: Instruction) -> bool:
    if reshape.opcode != "reshape" or reshape.operands[0].opcode != "reshape":
        return False
    source = reshape.operands[0].operands[0]
    return source.shape.key == reshape.shape.key and _forward(reshape, source)


def _identity(opcode: str) -> Callable[[Instruction], bool]:
    def forward(instruction: Instruction) -> bool:
        if instruction.opcode != opcode:
            return False
        source = instruction.operands[0]
        return source.shape.key == instruction.shape.key and _forward(instruction, source)

    return forward


def _forward(instruction: Instruction, source: Instruction) -> bool:
    instruction.replace_all_uses_with(source)
    return True


_CLEAN_UPS = (
    _concatenate_of_concatenates,
    _slice_of_concatenate,
    _reshape_of_broadcast,
    _reshape_of_reshape,
    _identity("convert"),
    _identity("reshape"),
)
