"""What the passes on reductions share: inputs, initial values, and making another reduction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.reductions import Reduction, faster_than_elemental, reduction_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.make import added, bitcast, numbers
from hlofuse.passes.common.rewriting import replaced


def inputs_of(reduce: Instruction) -> list[Instruction]:
    """`HloReduceInstruction::inputs`."""
    return reduce.operands[: len(reduce.operands) // 2]


def initial_values_of(reduce: Instruction) -> list[Instruction]:
    return reduce.operands[len(reduce.operands) // 2 :]


def results_of(reduce: Instruction) -> tuple[Shape, ...]:
    """The shape of each result."""
    return reduce.shape.tuple_shapes if reduce.shape.is_tuple else (reduce.shape,)


def kind_of(reduce: Instruction) -> Reduction:
    """`GetReductionKindAndContiguousComponents`."""
    return reduction_of(reduce.operands[0].shape, reduce.dimensions)[0]


def has_own_emitter(reduce: Instruction, device: DeviceDescription) -> bool:
    """`IsReductionFromOrToContiguousDimensions`."""
    kind, together = reduction_of(reduce.operands[0].shape, reduce.dimensions)
    return together and faster_than_elemental(device, kind)


def made_reduce(
    reduce: Instruction,
    shape: Shape,
    inputs: Sequence[Instruction],
    dimensions: Iterable[int],
) -> Instruction:
    """The same reduction of other inputs over other dimensions, added to its computation."""
    return added(
        reduce,
        "reduce",
        shape,
        [*inputs, *initial_values_of(reduce)],
        like=reduce,
        dimensions=numbers(dimensions),
        called=list(reduce.called),
    )


def replaced_through_bitcasts(reduce: Instruction, new: Instruction) -> bool:
    """`new` takes the place of `reduce`, each result made a bitcast to the old shape where shapes differ."""
    if new.shape.key == reduce.shape.key:
        return replaced(reduce, new)
    if not new.shape.is_tuple:
        return replaced(reduce, added(reduce, "bitcast", reduce.shape, [new], like=reduce))
    parts = []
    for k, (shape, was) in enumerate(zip(new.shape.tuple_shapes, reduce.shape.tuple_shapes, strict=True)):
        part = added(reduce, "get-tuple-element", shape, [new], index=str(k))
        parts.append(bitcast(part, was))
    return replaced(reduce, added(reduce, "tuple", reduce.shape, parts, like=reduce))
