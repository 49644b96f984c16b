"""Emitter kind and launch dimensions of a kernel that may consist of a producer and a consumer. Mirrors
`HloFusionAnalysis::Create` (`xla/service/gpu/hlo_fusion_analysis.cc`), the emitters' `launch_dimensions()`
(`xla/backends/gpu/codegen/emitters`) and `ComputeLoopFusionConfig` (`xla/service/gpu/gpu_fusible.cc`)."""

import math
from collections.abc import Sequence

from hlofuse.analysis.flops import first_leaf
from hlofuse.ir.graph import InstructionSequence
from hlofuse.ir.shape import BIT_WIDTH
from hlofuse.releases import Release
from .atoms import HAS_PAD, HAS_REDUCE, IS_STRIDED, KEEPS_ROLLED, Atom
from .device import DeviceDescription
from .estimate import Launch as Launch
from .heroes import is_real_reduction
from .kernel_graph import can_update_in_place, reduction_groups
from .reductions import Reduction, reduction_launch
from .shapes import NO_BITS, ShapeFacts, is_reshape_or_transpose_bitcast
from .summary import Summary, SummaryPair
from .transposes import TILE, TiledTranspose, transpose_launch

_DEFAULT_UNROLL = 4
_MAX_UNROLL = 32  # `xla_gpu_experimental_max_unroll_factor`
_WARP_SCHEDULERS = 4
_SCATTER_WARPS = 4
_VECTOR_BITS = 128


class FusionAnalysis:
    """Facts that decide the emitter of one launch; rarely needed ones are computed on demand."""

    __slots__ = ("_facts", "_parts", "device", "features", "heroes", "minor_of_transpose", "release", "roots")

    def __init__(
        self,
        device: DeviceDescription,
        release: Release,
        parts: InstructionSequence,
        facts: Summary | SummaryPair,
    ) -> None:
        """`parts` is an instruction, or a producer and its consumer, and `facts` their structure."""
        self.device = device
        self.release = release
        self._parts = parts
        self._facts = facts
        self.roots = facts.roots
        self.heroes = [root.hero for root in self.roots]
        self.features = facts.features  # Flags of all instructions, such as `KEEPS_ROLLED`
        self.minor_of_transpose = facts.minor_of_transpose

    @property
    def output_bits(self) -> int:
        return min([root.result.bits for root in self.roots])

    @property
    def input_bits(self) -> int:
        """Bits of the narrowest elements among the parameters."""
        return min([o.bits for o in self.operands()], default=NO_BITS)

    @property
    def storage_bits(self) -> int:
        """Bits of the widest stored element among the parameters."""
        return max([o.storage_bits for o in self.operands()], default=8)

    def operands(self) -> Sequence[ShapeFacts]:
        """The arrays read by the kernel."""
        return self._facts.operands

    @property
    def groups(self) -> int:
        """The number of groups of a reduction with several roots; else 1."""
        in_one_traversal = not self.release.mlir_emitters
        several = len(self.roots) > 1
        return reduction_groups(self._parts, self.roots, in_one_traversal=in_one_traversal) if several else 1

    @property
    def updates_in_place(self) -> bool:
        """True if every root writes its update into the array it updates."""
        if any(root.update is None for root in self.roots):
            return False
        return can_update_in_place(self._parts, 1 << 30 if self.release.mlir_emitters else 1)


def launch_of(kernel: FusionAnalysis) -> Launch:
    """Kind and launch, if no config names the emitter (`GetEmitterFusionKind`, `launch_dimensions`)."""
    release = kernel.release
    is_packed = release.packed_elements_in_loops and min(kernel.input_bits, kernel.output_bits) < 8
    if is_packed and release.mlir_emitters:
        return loop_launch(kernel)
    if not is_packed and (launch := _launch_by_hero(kernel)) is not None:
        return launch
    slices = slices_of_like(kernel) if release.kernels_of_slices else None
    return loop_launch(kernel) if slices is None else slices


def _launch_by_hero(kernel: FusionAnalysis) -> Launch | None:
    if (reduction := common_reduction(kernel)) is not None:
        return _reduction(kernel, reduction)
    if (transpose := common_transpose(kernel)) is not None:
        return _transpose(kernel, transpose)
    root, (hero, _) = kernel.roots[0], kernel.heroes[0]
    if len(kernel.roots) > 1 or root.atom is None or hero is None:
        return None
    if root.atom.opcode == "scatter":
        return _scatter(kernel, root.atom)
    if root.atom.opcode == "sort" and kernel.release.mlir_emitters:
        return elementwise_launch(root.result, "sort")
    if hero.opcode == "concatenate" and not root.result.is_tuple and len(hero.operands) <= 4:
        return _concatenate(kernel, hero)
    return None


def elementwise_launch(result: ShapeFacts, kind: str) -> Launch:
    """XLA's estimate for an instruction that is not a kernel: one thread for each element."""
    return Launch(kind, -(-result.elements // 128), 128)


def first_reduction(kernel: FusionAnalysis) -> Atom | None:
    return next((hero for hero, is_root in kernel.heroes if is_real_reduction(hero, is_root)), None)


def common_reduction(kernel: FusionAnalysis) -> Reduction | None:
    first = first_reduction(kernel)
    if first is None:
        return None
    for root, (hero, is_root) in zip(kernel.roots, kernel.heroes, strict=True):
        if is_real_reduction(hero, is_root):
            if hero is not None and hero.reduction != first.reduction:
                return None
        elif root.result.elements != first.operands[0].elements:
            return None
    return first.reduction


def common_transpose(kernel: FusionAnalysis) -> TiledTranspose | None:
    """`FindConsistentTransposeHero`."""
    found: Atom | None = None
    others = []
    for root, (hero, _) in zip(kernel.roots, kernel.heroes, strict=True):
        if hero is None or hero.transpose is None:
            others.append(root)
        elif found is None:
            found = hero
        elif found.transpose is None or not found.transpose.is_equivalent(hero.transpose):
            return None
    if found is None:
        return None
    source = found.operands[0].shape
    if all(is_reshape_or_transpose_bitcast(root.result.shape, source) for root in others):
        return found.transpose
    return None


def slices_of_like(kernel: FusionAnalysis) -> Launch | None:
    """The launch for outputs that are plain slices of one shape (`IsInputFusibleNonStridedSlices`)."""
    if len(kernel.roots) == 1:
        return None
    sources = []
    for root in kernel.roots:
        atom = root.atom
        if atom is None or atom.opcode != "slice" or atom.features & IS_STRIDED:
            return None
        sources.append(atom.operands[0])
    if len({source.shape.key_ignoring_element_type for source in sources}) > 1:
        return None
    return Launch("slices", *grid(kernel.device, sources[0].elements, -(-8 // kernel.output_bits)))


def _reduction(kernel: FusionAnalysis, reduction: Reduction) -> Launch:
    if kernel.release.mlir_emitters:
        has_complex = any(hero is not None and hero.reads_complex for hero, _ in kernel.heroes)
        bits = kernel.input_bits, kernel.output_bits
        blocks, threads = reduction_launch(kernel.device, reduction, *bits, has_complex)
    else:
        blocks, threads = _llvm_reduction_launch(kernel, reduction)
    return Launch("reduction", blocks * kernel.groups, threads)


def _transpose(kernel: FusionAnalysis, transpose: TiledTranspose) -> Launch:
    if not kernel.release.mlir_emitters:
        return Launch("transpose", _llvm_transpose_blocks(transpose), _THREADS_OF_LOOP)
    heroes = [hero for hero, _ in kernel.heroes if hero is not None and hero.transpose is not None]
    tiled = [hero.result.element_bytes for hero in heroes]
    return Launch("transpose", *transpose_launch(kernel.device, transpose, tiled))


def _concatenate(kernel: FusionAnalysis, hero: Atom) -> Launch:
    dimension = int((hero.attributes[0] or "{0}").strip("{}"))
    widest = max(hero.operands, key=lambda o: o.dimensions[dimension])
    unroll = _unroll(kernel, widest.elements, "concatenate") if kernel.release.mlir_emitters else 1
    for operand in hero.operands:
        unroll = math.gcd(unroll, operand.dimensions[dimension])
    return Launch("concatenate", *grid(kernel.device, widest.elements, unroll))


def _scatter(kernel: FusionAnalysis, scatter: Atom) -> Launch:
    device = kernel.device
    release = kernel.release
    if not release.scatters_in_vectors:
        return Launch("scatter", *grid(device, scatter.operands[-1].elements, 1))
    n = len(scatter.operands) // 2
    target, indices, update = scatter.operands[0], scatter.operands[n], scatter.operands[n + 1]
    window = update.dimensions[1:]
    slices = indices.dimensions[0] if indices.dimensions else 1
    indexed = indices.dimensions[1] if len(indices.dimensions) > 1 else 1
    warps = _SCATTER_WARPS * device.core_count
    is_sorted, unique = (flag == "true" for flag in scatter.attributes)
    by_slices = is_sorted and not unique
    if release.scatters_slices_by_warps:
        by_slices = _keeps_warp_busy(device, update, math.prod(window))
    if by_slices and slices > warps:
        places = math.prod(target.dimensions[k] - window[k] + 1 for k in range(indexed))
        each = -(-slices // max(warps, places)) if is_sorted else 1
        vector = _VECTOR_BITS // BIT_WIDTH[indices.shape.element_type]
        if indexed == 1 and each > vector:
            each = -(-each // vector) * vector
        threads = _SCATTER_WARPS * device.threads_per_warp
        return Launch("scatter", -(-slices // (each * _SCATTER_WARPS)), threads)
    unroll = math.gcd(math.prod(window), _unroll(kernel, update.elements, "scatter"))
    blocks, threads = grid(device, update.elements, unroll)
    warp = device.threads_per_warp
    return Launch("scatter", blocks, -(-threads // warp) * warp)


def _keeps_warp_busy(device: DeviceDescription, update: ShapeFacts, slice_elements: int) -> bool:
    """True if a slice of an update occupies more than half of a warp (`GetSingleSliceVectorSize`)."""
    warp = device.threads_per_warp
    vector = math.gcd(slice_elements, _VECTOR_BITS // BIT_WIDTH[update.shape.element_type])
    while vector > 1 and warp * vector > slice_elements:
        vector //= 2
    return slice_elements // vector > warp // 2


def loop_launch(kernel: FusionAnalysis) -> Launch:
    """One thread for each few elements of the result, or of the update in place."""
    update = kernel.roots[0].update
    if update is None or not kernel.updates_in_place:
        elements = first_leaf(kernel.roots[0].result.shape).element_count
    elif kernel.release.mlir_emitters:
        elements = update.elements
    else:
        return Launch("loop", *grid(kernel.device, update.elements, 1))
    return Launch("loop", *grid(kernel.device, elements, _unroll(kernel, elements, "loop")))


def grid(device: DeviceDescription, elements: int, unroll: int) -> tuple[int, int]:
    """`CalculateLaunchDimensions`."""
    if elements <= 1:
        return 1, 1
    elements = -(-elements // unroll)
    threads = min(device.threads_per_warp * _WARP_SCHEDULERS, elements)
    total = -(-elements // threads)
    rows = -(-total // device.block_dim_limit_x)
    return -(-total // rows) * rows, threads


def _unroll(kernel: FusionAnalysis, elements: int, kind: str) -> int:
    """Elements each thread computes (`ComputeLoopFusionConfig`)."""
    unroll = 1
    device = kernel.device
    enough = elements >= device.threads_per_core_limit * device.core_count
    if enough and not kernel.features & KEEPS_ROLLED:
        unroll = math.gcd(elements, _max_unroll(kernel, kind))
    return max(unroll, -(-8 // kernel.output_bits))


def _max_unroll(kernel: FusionAnalysis, kind: str) -> int:
    """`MaxUnrollFactor`; more than four on Blackwell only."""
    device = kernel.device
    release = kernel.release
    further = {
        "loop": release.unrolls_further_on_blackwell,
        "concatenate": release.unrolls_concatenates_on_blackwell,
    }
    if not device.is_blackwell or not further.get(kind):
        return _DEFAULT_UNROLL
    by_width = release.unrolls_by_width_on_blackwell
    vector = 256 if by_width and device.toolkit_version >= (12, 9, 0) else 128
    narrow = kernel.output_bits < vector // _DEFAULT_UNROLL
    if not narrow or len(kernel.roots) > 1 or kernel.features & HAS_REDUCE:
        return _DEFAULT_UNROLL
    if not by_width:
        return 8 if kernel.minor_of_transpose >= 8 else _DEFAULT_UNROLL
    widest = max([8, kernel.storage_bits, *(root.result.storage_bits for root in kernel.roots)])
    unroll = 1 << (min(_MAX_UNROLL, vector // widest).bit_length() - 1)
    if kernel.features & HAS_PAD:
        unroll = min(unroll, 8)
    while unroll > _DEFAULT_UNROLL and kernel.minor_of_transpose < unroll:
        unroll //= 2
    return max(unroll, 8)


# By the emitters that wrote LLVM IR: `xla/service/gpu/hlo_fusion_analysis.cc` and `fusions/legacy/*.cc` of
# jaxlib 0.4.35, as they are with `xla_gpu_mlir_emitter_level=0`.


_MAX_THREADS_OF_ROW = 1024
_THREADS_TARGET = 256
_ROW_TILE = (8, 1, 16)
_COLUMN_TILE = (1, 128, 1)
_THREADS_OF_LOOP = 128


def _llvm_transpose_blocks(transpose: TiledTranspose) -> int:
    moved = transpose.permutation[2]
    source = [transpose.dimensions[p] for p in transpose.permutation]
    return math.prod(-(-size // TILE) if k in (2, moved) else size for k, size in enumerate(source))


def _llvm_reduction_launch(kernel: FusionAnalysis, reduction: Reduction) -> tuple[int, int]:
    """Blocks for one group of outputs, and threads (`ReductionFusion::ComputeReductionCodegenInfo`)."""
    outer, middle, minor = reduction.sizes
    warp = kernel.device.threads_per_warp
    if not reduction.is_row:
        blocks = -(-outer // _COLUMN_TILE[0]) * -(-middle // (_COLUMN_TILE[1] * warp)) * -(-minor // warp)
        return blocks, warp * warp
    in_row, rows = minor, 1
    if minor >= warp:
        threads = -(-minor // _ROW_TILE[2])
        in_row = min(_MAX_THREADS_OF_ROW, -(-threads // warp) * warp)
    if in_row * 2 <= _THREADS_TARGET:
        rows = _THREADS_TARGET // in_row
        if middle * in_row <= _THREADS_TARGET:
            rows = middle
            while in_row * rows % warp:
                rows += 1
    vector = 2 if minor % 2 == 0 and in_row * 2 <= minor and not kernel.features & KEEPS_ROLLED else 1
    tile = 1 if minor < warp else _ROW_TILE[2] // vector
    across = -(-(minor // vector) // (tile * in_row))
    return -(-outer // min(outer, _ROW_TILE[0])) * -(-middle // rows) * across, in_row * rows
