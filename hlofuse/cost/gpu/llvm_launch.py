"""Emitter kind and launch dimensions of kernels by the emitters that wrote LLVM IR.

Mirrors `xla/service/gpu/hlo_fusion_analysis.cc` and `fusions/legacy/*.cc` of jaxlib 0.4.35, as they
are with `xla_gpu_mlir_emitter_level=0`.
"""

import math

from hlofuse.cost.gpu.atoms import KEEPS_ROLLED
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.launch import (
    FusionAnalysis,
    Launch,
    common_transpose,
    first_reduction,
    grid,
    loop_launch,
    reductions_agree,
    slices_of_like,
    widest_operand,
)
from hlofuse.cost.gpu.reductions import Reduction
from hlofuse.cost.gpu.transposes import TILE, TiledTranspose
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
    vector = 2 if minor % 2 == 0 and in_row * 2 <= minor and not kernel.features & KEEPS_ROLLED else 1
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
                return Launch("scatter", *grid(device, root.operands[-1].elements, 1))
            is_array = not root.shape.is_tuple
            if hero.opcode == "concatenate" and is_array and len(hero.operands) <= 4:
                return Launch("concatenate", *grid(device, widest_operand(hero)[1].elements, 1))
    if (slices := slices_of_like(device, kernel)) is not None:
        return slices
    return _loop(device, release, kernel)


def _loop(device: DeviceDescription, release: Release, kernel: FusionAnalysis) -> Launch:
    update = kernel.roots[0].update
    if update is not None and kernel.updates_in_place:
        return Launch("loop", *grid(device, update.elements, 1))
    return loop_launch(device, release, kernel)
