"""Emitter kind and launch dimensions of kernels by the emitters that wrote LLVM IR (`llvm_emitters`).

Mirrors `xla/service/gpu/hlo_fusion_analysis.cc` and `fusions/legacy/*.cc` of jaxlib 0.4.35.
"""

import math

from hlofuse.cost.gpu.atoms import KEEPS_ROLLED, Atom
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.launch import (
    FusionAnalysis,
    Launch,
    common_transpose,
    first_reduction,
    reductions_agree,
    slices_of_like,
)
from hlofuse.cost.gpu.llvm_emitters import TILE
from hlofuse.cost.gpu.reductions import Reduction
from hlofuse.cost.gpu.shapes import first_leaf
from hlofuse.cost.gpu.transposes import TiledTranspose
from hlofuse.releases import Release

_MAX_THREADS_OF_ROW = 1024
_THREADS_TARGET = 256
_ROW_TILE = (8, 1, 16)
_COLUMN_TILE = (1, 128, 1)
_THREADS_OF_LOOP = 128


def _transpose_blocks(transpose: TiledTranspose) -> int:
    moved = transpose.permutation[2]
    source = [transpose.dimensions[p] for p in transpose.permutation]
    return math.prod(-(-size // TILE) if k in (2, moved) else size for k, size in enumerate(source))


def _reduction_launch(
    device: DeviceDescription, kernel: FusionAnalysis, reduction: Reduction
) -> tuple[int, int]:
    """Blocks for one group of outputs, and threads (`ReductionFusion::ComputeReductionCodegenInfo`)."""
    outer, middle, minor = reduction.sizes
    warp = device.threads_per_warp
    if not reduction.is_row:
        blocks = -(-outer // _COLUMN_TILE[0]) * -(-middle // (_COLUMN_TILE[1] * warp)) * -(-minor // warp)
        return blocks, warp * warp
    several_rows = minor < warp and warp % minor == 0
    in_row, rows = minor, 1
    if not several_rows:
        threads = -(-minor // _ROW_TILE[2])
        in_row = min(_MAX_THREADS_OF_ROW, -(-threads // warp) * warp)
    if in_row * 2 <= _THREADS_TARGET:
        rows = _THREADS_TARGET // in_row
        if middle * in_row <= _THREADS_TARGET:
            rows = middle
            while in_row * rows % warp:
                rows += 1
    vector = 2 if minor % 2 == 0 and in_row * 2 <= minor and not _keeps_rolled(kernel) else 1
    tile = 1 if several_rows else _ROW_TILE[2] // vector
    across = -(-(minor // vector) // (tile * in_row))
    return -(-outer // min(outer, _ROW_TILE[0])) * -(-middle // rows) * across, in_row * rows


def launch_of(device: DeviceDescription, release: Release, kernel: FusionAnalysis) -> Launch:
    """Kind and launch dimensions (`HloFusionAnalysis::GetEmitterFusionKind`, `launch_dimensions`)."""
    roots, heroes = kernel.roots, kernel.heroes
    if min(kernel.input_bits, kernel.output_bits) >= 8:
        first = first_reduction(kernel)
        if first is not None and first.reduction is not None and reductions_agree(kernel, first):
            blocks, threads = _reduction_launch(device, kernel, first.reduction)
            groups = kernel.groups() if len(roots) > 1 else 1
            return Launch("reduction", blocks * groups, threads)
        if (transpose := common_transpose(kernel)) is not None:
            return Launch("transpose", _transpose_blocks(transpose), _THREADS_OF_LOOP)
        root, (hero, _) = roots[0].atom, heroes[0]
        if len(roots) == 1 and root is not None and hero is not None:
            if root.opcode == "scatter":
                return Launch("scatter", *_grid(root.operands[-1].elements))
            is_array = not root.shape.is_tuple
            if hero.opcode == "concatenate" and is_array and len(hero.operands) <= 4:
                return Launch("concatenate", *_grid(_widest_operand(hero)))
    if (slices := slices_of_like(device, kernel)) is not None:
        return slices
    return _loop(device, kernel)


def _loop(device: DeviceDescription, kernel: FusionAnalysis) -> Launch:
    update = kernel.roots[0].update
    if update is not None and kernel.updates_in_place:
        return Launch("loop", *_grid(update.elements))
    elements = first_leaf(kernel.roots[0].result.shape).element_count
    unroll = 1
    if elements >= device.threads_per_core_limit * device.core_count and not _keeps_rolled(kernel):
        unroll = math.gcd(elements, 4)
    return Launch("loop", *_grid(elements, max(unroll, -(-8 // kernel.output_bits))))


def _keeps_rolled(kernel: FusionAnalysis) -> bool:
    return bool(kernel.features & KEEPS_ROLLED)


def _widest_operand(concatenate: Atom) -> int:
    dimension = int((concatenate.attributes[0] or "{0}").strip("{}"))
    return max(concatenate.operands, key=lambda o: o.dimensions[dimension]).elements


def _grid(elements: int, unroll: int = 1) -> tuple[int, int]:
    """`CalculateLaunchDimensions`."""
    if elements <= 1:
        return 1, 1
    elements = -(-elements // unroll)
    threads = min(_THREADS_OF_LOOP, elements)
    return -(-elements // threads), threads
