"""What the tiled model has to know of one operation, shared by all operations alike."""

from hlofuse.analysis.bitcasts import leaves_size
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.op_costs import DEFAULT_FLOPS, op_profile
from hlofuse.cost.tiling.dot_support import dot_dimensions
from hlofuse.cost.tiling.indexing_map import IndexingMap
from hlofuse.cost.tiling.op_indexing import indexing_key, operand_maps
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.ir.text.text import values
from hlofuse.releases import Release

_FREE = values(
    """
    bitcast broadcast constant dynamic-slice dynamic-update-slice gather iota pad parameter slice transpose
    tuple
    """
)
"""Operations that only move an index (`FlopsPerElement`)."""


class OpKind:
    """One operation up to names and values, or an array read from memory."""

    def __init__(self, number: int, opcode: str, shape: Shape) -> None:
        self.number = number
        """Tells kinds apart in keys of structures."""
        self.opcode = opcode
        self.shape = shape
        self.dims = shape.dimensions
        self.minor_to_major = shape.minor_to_major
        self.element_bytes = (shape.bit_width + 7) // 8
        self.byte_size = leaves_size(shape)
        """Bytes of the array."""
        self.maps: tuple[IndexingMap | None, ...] = ()
        """For each operand, from an index of the result to one of the operand."""
        self.operand_dims: tuple[tuple[int, ...], ...] = ()
        self.instruction_key: tuple[object, ...] = ()
        self.flops = 0
        """Per element of a tile."""


class OpKinds:
    """All kinds met so far, by instruction."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._profile = op_profile(device, release)
        self._pads_reductions = release.reductions_padded_to_power_of_two
        self._inside: dict[Instruction, OpKind] = {}
        self._of_operand: dict[tuple[Shape, str], OpKind] = {}
        self._by_content: dict[object, OpKind] = {}
        self._count = 0

    def forget(self) -> None:
        """Let go of instructions (of a module that is done with); kinds stay."""
        self._inside.clear()

    def of_operand(self, instruction: Instruction) -> OpKind:
        """The kind of an array that a fusion reads."""
        # The analysis meets a dot earlier than other operands.
        opcode = "dot" if instruction.opcode in ("dot", "scaled-dot") else ""
        key = (instruction.shape, opcode)
        kind = self._of_operand.get(key)
        if kind is None:
            kind = self._of_operand[key] = self._new(opcode, instruction.shape)
        return kind

    def inside(self, instruction: Instruction) -> OpKind:
        """The kind of an operation of a fusion."""
        kind = self._inside.get(instruction)
        if kind is not None:
            return kind
        flops = self._flops(instruction)
        key = (
            instruction.opcode,
            instruction.shape,
            tuple(o.shape for o in instruction.operands),
            indexing_key(instruction),
            flops,
        )
        kind = self._by_content.get(key)
        if kind is None:
            kind = self._by_content[key] = self._new(instruction.opcode, instruction.shape)
            if instruction.opcode != "fusion":
                kind.maps = operand_maps(instruction)
            kind.operand_dims = tuple(o.shape.dimensions for o in instruction.operands)
            kind.instruction_key = key[3]
            kind.flops = flops
        if instruction.opcode != "parameter":  # which may yet become something else
            self._inside[instruction] = kind
        return kind

    def _new(self, opcode: str, shape: Shape) -> OpKind:
        self._count += 1
        return OpKind(self._count, opcode, shape)

    def _flops(self, instruction: Instruction) -> int:
        """`GpuPerformanceModelWithIndexingAnalysis::FlopsPerElement`."""
        opcode = instruction.opcode
        if opcode in _FREE:
            return 0
        if opcode == "concatenate":
            along = instruction.dimensions[0]
            return 400 if along > 0 and instruction.operands[0].shape.dimensions[along] & 31 else 6
        if opcode != "fusion" and is_elementwise(instruction):
            return self._profile.get(opcode, {}).get(instruction.shape.element_type, DEFAULT_FLOPS)
        if opcode == "reduce":
            region = sum(self._flops(i) for i in instruction.called[0][1])
            factor = 1
            for d in instruction.dimensions:
                extent = instruction.operands[0].shape.dimensions[d]
                factor *= power_of_two_ceil(extent) if self._pads_reductions else extent
            return (factor - 1) * region
        if opcode == "dot":
            lhs = instruction.operands[0].shape.dimensions
            contracted = 1
            for d in dot_dimensions(instruction)[2]:
                contracted *= lhs[d]
            return 2 * contracted
        return 0


def power_of_two_ceil(value: int) -> int:
    """`llvm::PowerOf2Ceil`."""
    return 1 << (value - 1).bit_length() if value > 0 else 0
