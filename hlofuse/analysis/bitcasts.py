"""Which operations move no data because the layout already says it."""

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.releases import Release


def transpose_is_bitcast(instruction: Instruction) -> bool:
    """A transpose whose result lies in memory as its operand does (`ShapeUtil::TransposeIsBitcast`)."""
    source, result = instruction.operands[0].shape, instruction.shape
    mapping = instruction.dimensions
    if source.element_type != result.element_type or not source.rank == result.rank == len(mapping):
        return False
    try:
        return all(a == mapping[b] for a, b in zip(source.minor_to_major, result.minor_to_major, strict=True))
    except (IndexError, ValueError):
        return False  # a layout that does not fit its shape


def is_effective_bitcast(instruction: Instruction) -> bool:
    """A bitcast, or a transpose that is one (`HloInstruction::IsEffectiveBitcast`)."""
    opcode = instruction.opcode
    return opcode == "bitcast" or (opcode == "transpose" and transpose_is_bitcast(instruction))


def without_bitcasts(x: Instruction) -> Instruction:
    """What `x` is, or what it is a bitcast of."""
    while x.opcode == "bitcast":
        x = x.operands[0]
    return x


def without_views(x: Instruction) -> Instruction:
    """What `x` is, or what it is a bitcast or a reshape of."""
    while x.opcode in ("bitcast", "reshape"):
        x = x.operands[0]
    return x


def moves_no_data(instruction: Instruction) -> bool:
    """As `is_effective_bitcast`, and reshapes between row-major arrays too."""
    if instruction.opcode == "reshape":
        source, result = instruction.operands[0].shape, instruction.shape
        row_major = all(s.layout is None or s.layout.is_default for s in (source, result))
        return row_major and source.element_type == result.element_type
    return is_effective_bitcast(instruction)


def shape_size(shape: Shape) -> int:
    """Bytes a shape takes in memory, as cost analysis counts them."""
    return shape.buffer_size


def leaves_size(shape: Shape) -> int:
    """Bytes of all buffers inside a shape, tables of pointers left out."""
    return shape.leaves_size


def is_fusion_body(computation: Computation, release: Release) -> bool:
    """A fusion has it, or once had it and nobody has it now (`HloComputation::IsFusionComputation`)."""
    if computation.fusion is not None:
        return True
    return release.merged_bodies_stay and not computation.callers and not computation.is_entry
