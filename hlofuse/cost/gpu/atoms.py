"""Facts about a single instruction, shared by equal instructions. An `Atom` depends on opcode, shapes and the
few attributes a model reads, never on names or neighbours, so that layers of a network share them."""

from collections.abc import Hashable
from dataclasses import dataclass

from hlofuse.analysis.convolution import window_size
from hlofuse.analysis.elementwise import is_effective_bitcast, is_elementwise
from hlofuse.analysis.indexing_evaluation import INVALIDATES_CACHE
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import Shape
from hlofuse.releases import Release
from .device import DeviceDescription
from .op_costs import op_cost, op_profile
from .reductions import (
    Reduction,
    faster_than_elemental,
    is_race_free,
    reduction_of,
    shared_memory_of_reduction,
)
from .shapes import ShapeFacts, ShapeTable, inverse, normalized_transpose, reshape_is_bitcast
from .ticks import fp32
from .transposes import TiledTranspose, bytewise_transpose, llvm_transpose, tiled_transpose

# The attributes that costs, heroes or launches depend on.
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "transpose": ("dimensions",),
    "concatenate": ("dimensions",),
    "reduce": ("dimensions",),
    "map": ("dimensions",),
    "reduce-window": ("window",),
    "select-and-scatter": ("window",),
    "scatter": ("indices_are_sorted", "unique_indices"),
    "dot": ("lhs_contracting_dims",),
    "scaled-dot": ("lhs_contracting_dims",),
    "ragged-dot": ("lhs_contracting_dims", "rhs_group_dims"),
    "convolution": ("window", "dim_labels", "feature_group_count", "batch_group_count"),
    "fft": ("fft_length",),
    "custom-call": ("custom_call_target",),
}
_LLVM_KEEPS_ROLLED = values("sine cosine tan power atan2")
"""Further operations that the emitters of LLVM IR do not unroll, since they are not vectorised."""
_TRANSPARENT = values("parameter tuple get-tuple-element")
UNBOUNDED_ELEMENTS = 1 << 62

# Properties of any of a kernel's instructions, as bits.
KEEPS_ROLLED = 1  # Unrolling may cost performance (`MayCausePerformanceDropIfUnrolled`)
HAS_REDUCE = 2
HAS_PAD = 4
IS_STRIDED = 8  # A slice that skips elements
SCATTERS = 16


@dataclass(slots=True, init=False, eq=False)
class Atom:
    """Facts about one kind of instruction that is not a fusion."""

    opcode: str
    shape: Shape
    result: ShapeFacts
    operands: list[ShapeFacts]
    flops: float
    out_bytes: float
    operand_bytes: list[float]
    operand_utilization: list[float]
    elementwise: bool
    passes_use: bool
    """True if operands are used as the result is: element-wise, a bitcast of equal shape, tuples."""
    intermediate: bool  # True if a hero may lie beyond it (`IsIntermediate` with up to three operands)
    intermediate_chain: bool  # `intermediate` with one operand
    transpose: TiledTranspose | None
    reduction: Reduction | None  # Set for a reduce that the reduction emitter takes
    race_free: bool
    reads_complex: bool
    features: int
    key: int  # A unique number, for keys
    minor_of_transpose: int  # The size a transpose moves as one block; huge for other operations
    transposes_minor: bool
    shared_memory: int
    unnested_reductions: int
    significant_reduce: bool
    splits_block: bool  # True if values are not reused across it (`OpInvalidatesCache`)
    attributes: tuple[str | None, ...]

    @property
    def is_transparent(self) -> bool:
        """True if traversals of a fusion skip it."""
        return self.opcode in _TRANSPARENT


class AtomTable:
    def __init__(
        self,
        device: DeviceDescription,
        shapes: ShapeTable,
        release: Release,
    ) -> None:
        self._device = device
        self._release = release
        self._profile = op_profile(device, release)
        self._shapes = shapes
        self._atoms = dict[Hashable, Atom]()
        self._regions = dict[Computation, float]()

    def atom(self, instruction: Instruction) -> Atom:
        facts = self._shapes.facts
        result = facts(instruction.shape)
        opcode = instruction.opcode
        operands = [facts(o.shape) for o in instruction.operands]
        key: tuple[Hashable, ...] = (opcode, result, *operands)
        if (names := _ATTRIBUTES.get(opcode)) is not None:
            raw = instruction.attributes.raw
            key += tuple([raw(name) for name in names])
        if opcode == "slice":
            key += (is_strided(instruction),)
        if instruction.called:
            key += tuple([self.region_flops(c) for _, c in instruction.called])
        atom = self._atoms.get(key)
        if atom is None:
            atom = self._atoms[key] = self._make(instruction, result, operands)
            atom.key = len(self._atoms)
        return atom

    def region_flops(self, computation: Computation) -> float:
        """Flops of one evaluation of a called computation, summed in its order."""
        cached = self._regions.get(computation)
        if cached is None:
            cached = 0.0
            for inner in computation.post_order():
                if not inner.is_fusion:
                    cached = fp32(cached + self.atom(inner).flops)
            self._regions[computation] = cached
        return cached

    def forget_regions(self) -> None:
        """Drop the cached figures of called computations."""
        self._regions.clear()

    def _make(
        self,
        instruction: Instruction,
        result: ShapeFacts,
        operands: list[ShapeFacts],
    ) -> Atom:
        atom = Atom()
        opcode = atom.opcode = instruction.opcode
        atom.shape, atom.result, atom.operands = instruction.shape, result, operands
        cost = op_cost(
            instruction, result, operands, self._profile, self.region_flops, self._device, self._release
        )
        atom.flops, atom.out_bytes = cost.flops, cost.out_bytes
        atom.operand_bytes, atom.operand_utilization = cost.operand_bytes, cost.utilization
        atom.elementwise = is_elementwise(instruction)
        names = _ATTRIBUTES.get(opcode, ())
        atom.attributes = tuple(instruction.raw(name) for name in names)
        same_place = (
            opcode == "bitcast"
            and operands[0].shape.key_ignoring_element_type == result.shape.key_ignoring_element_type
        )
        same_place = same_place and self._release.bitcasts_pass_use
        atom.passes_use = atom.elementwise or same_place or opcode in ("tuple", "get-tuple-element")
        like_bitcast = is_intermediate(instruction, atom.elementwise)
        atom.intermediate = like_bitcast and 1 <= len(operands) <= 3
        atom.intermediate_chain = like_bitcast and len(operands) == 1
        atom.reads_complex = any(o.is_complex for o in operands)
        mlir = self._release.mlir_emitters
        atom.features = _features(instruction, self._release)
        atom.transpose = None
        atom.minor_of_transpose = UNBOUNDED_ELEMENTS
        if opcode == "transpose":
            source = instruction.operand.shape
            permutation = instruction.dimensions
            describe = tiled_transpose if self._release.packed_transposes else bytewise_transpose
            describe = describe if mlir else llvm_transpose
            atom.transpose = describe(source, instruction.shape, permutation)
            normalized = normalized_transpose(source, instruction.shape, permutation)
            moved = normalized[0] if normalized else instruction.sizes
            atom.minor_of_transpose = moved[-1] if moved else 1
        atom.transposes_minor = _transposes_minor(instruction, result, operands)
        atom.reduction, atom.race_free = None, False
        atom.unnested_reductions = atom.shared_memory = 0
        if opcode == "reduce":
            reduction, together = reduction_of(instruction.operand.shape, instruction.dimensions)
            if together and faster_than_elemental(self._device, reduction):
                atom.reduction = reduction
                atom.race_free = is_race_free(self._device, reduction)
                atom.unnested_reductions = 1
                width = sum(o.element_bytes for o in operands[: len(operands) // 2])
                vectors = self._release.reductions_exchange_vectors
                if not vectors:  # as if all inputs were like the first
                    width = operands[0].element_bytes * (len(operands) // 2)
                atom.shared_memory = shared_memory_of_reduction(reduction, width, vectors)
        elif atom.transpose is not None:
            atom.shared_memory = atom.transpose.shared_memory
        atom.splits_block = not mlir and opcode in INVALIDATES_CACHE
        atom.significant_reduce = (
            opcode == "reduce"
            and not instruction.is_tuple
            and result.elements > 0
            and operands[0].elements // result.elements >= 16
        )
        return atom


def is_intermediate(instruction: Instruction, elementwise: bool) -> bool:
    """True if a hero may lie beyond it, operands aside (`IsIntermediate`, `ir_emission_utils.cc`)."""
    opcode = instruction.opcode
    if not instruction.operands:
        return False
    if elementwise:
        return opcode != "copy" or instruction.shape.key == instruction.operand.shape.key
    if opcode == "reshape":
        return reshape_is_bitcast(instruction.operand.shape, instruction.shape)
    return is_effective_bitcast(instruction)


def is_strided(instruction: Instruction) -> bool:
    return any(r.stride != 1 for r in instruction.attributes["slice"])


def _features(instruction: Instruction, release: Release) -> int:
    opcode = instruction.opcode
    shape = instruction.shape
    if opcode == "slice":
        return IS_STRIDED if is_strided(instruction) else 0
    if not release.mlir_emitters and opcode in _LLVM_KEEPS_ROLLED:
        return KEEPS_ROLLED
    if opcode in ("sort", "dot"):
        return KEEPS_ROLLED
    if opcode == "concatenate":
        return KEEPS_ROLLED if instruction.operand_count > 10 else 0
    if opcode == "reduce":
        return HAS_REDUCE | (KEEPS_ROLLED if shape.is_tuple and len(shape.tuple_shapes) > 1 else 0)
    if opcode == "pad":
        return HAS_PAD
    if opcode == "scatter":
        return SCATTERS
    if opcode == "reduce-window":
        most = 8 if release.unrolls_small_windows else 0
        return KEEPS_ROLLED if window_size(instruction) > most else 0
    return 0


def _minor_dimension(facts: ShapeFacts) -> tuple[int, int]:
    for place, dimension in enumerate(facts.minor_to_major):
        if facts.dimensions[dimension] > 1:
            return dimension, place
    return -1, len(facts.minor_to_major)


def _transposes_minor(instruction: Instruction, result: ShapeFacts, operands: list[ShapeFacts]) -> bool:
    """True if it reads its operand across the minor dimension (`TransposesMinorDimension`)."""
    if instruction.opcode == "copy" and instruction.is_array:
        return _minor_dimension(operands[0])[0] != _minor_dimension(result)[0]
    if instruction.is_transpose:
        place = inverse(operands[0].minor_to_major)
        first = _minor_dimension(operands[0])[1]
        for dimension in result.minor_to_major:
            if result.dimensions[dimension] != 1:
                return place[instruction.dimensions[dimension]] > first
    return False
