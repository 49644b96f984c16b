"""What XLA:GPU runs between layout assignment and fusion (`xla/service/gpu/gpu_compiler.cc`)."""

from __future__ import annotations

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.simplifications.base import FixedPoint, NotRepeated, Pipeline, Simplification
from hlofuse.simplifications.constant_folding import HloConstantFolding
from hlofuse.simplifications.data_movement.broadcast_canonicalizer import BroadcastCanonicalizer
from hlofuse.simplifications.data_movement.reshape_decomposer import ReshapeDecomposer
from hlofuse.simplifications.dots.gemv_rewriter import GemvRewriter
from hlofuse.simplifications.floats.bitcast_dtypes_expander import BitcastDtypesExpander
from hlofuse.simplifications.floats.float_normalization import FloatNormalization
from hlofuse.simplifications.floats.simplify_fp_conversions import SimplifyFPConversions
from hlofuse.simplifications.gpu.cublas.broadcast_folding import GemmBroadcastFoldingRewriter
from hlofuse.simplifications.gpu.cublas.padding import paddings
from hlofuse.simplifications.gpu.cublas.rewriter import CublasGemmRewriter, CublasGemmRewriterF8
from hlofuse.simplifications.gpu.float_support import computes_bf16
from hlofuse.simplifications.gpu.gemm.gemm_fusion import GemmFusion
from hlofuse.simplifications.gpu.gemm.hoist_bitcasts import HoistFusedBitcasts
from hlofuse.simplifications.gpu.gemm.splitk import SplitkRewriter
from hlofuse.simplifications.gpu.gemm.swap_operands import GemmFusionSwapOperands
from hlofuse.simplifications.gpu.host_offloader import HostOffloader
from hlofuse.simplifications.gpu.move_copy_to_users import MoveCopyToUsers
from hlofuse.simplifications.gpu.reductions.reduce_decomposer import ReduceDecomposer
from hlofuse.simplifications.gpu.reductions.reduction_degenerate_dim_remover import (
    ReductionDegenerateDimRemover,
)
from hlofuse.simplifications.gpu.reductions.reduction_dimension_grouper import ReductionDimensionGrouper
from hlofuse.simplifications.gpu.reductions.reduction_layout_normalizer import ReductionLayoutNormalizer
from hlofuse.simplifications.gpu.reductions.reduction_splitter import ReductionSplitter
from hlofuse.simplifications.gpu.reductions.tree_reduction_rewriter import TreeReductionRewriter
from hlofuse.simplifications.gpu.softmax_rewriter_triton import SoftmaxRewriterTriton
from hlofuse.simplifications.gpu.steps import (
    ALGSIMP_LAST,
    ALGSIMP_LAYOUTS,
    CSE,
    DCE,
    FOLDING,
    NORMALIZATION,
    TUPLES,
)
from hlofuse.simplifications.scatters.scatter_simplifier import ScatterSimplifier
from hlofuse.simplifications.sorting.scratch_size import EstimateCubSortScratchSize

LAYOUT_NORMALIZATION = Pipeline(
    "layout_normalization",
    (
        ReshapeDecomposer(),
        FixedPoint(MoveCopyToUsers()),
        NORMALIZATION,
        ALGSIMP_LAYOUTS,
        BroadcastCanonicalizer(),
        ScatterSimplifier(),
    ),
)


def normalization(device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its first pipeline."""
    triton = _has_triton(device)
    steps: list[Simplification] = [
        ALGSIMP_LAYOUTS,
        BitcastDtypesExpander(),
        FOLDING,
        ReshapeDecomposer(),
        ReduceDecomposer(device),
        NotRepeated("dot_normalizer"),
    ]
    if triton:
        steps += [
            NotRepeated("dot_dimension_normalizer"),
            GemvRewriter(),
            SplitkRewriter(device),
            GemmFusion(device),
            HoistFusedBitcasts(),
            GemmFusionSwapOperands(),
        ]
    steps += [
        *paddings(device),
        HloConstantFolding(),
        NotRepeated("dot-algorithm-rewriter"),
        CublasGemmRewriterF8(),
        CublasGemmRewriter(device),
        GemmBroadcastFoldingRewriter(),
        ReshapeDecomposer(),
        NORMALIZATION,
        ALGSIMP_LAYOUTS,
        ScatterSimplifier(),
        BroadcastCanonicalizer(),
        ReductionDegenerateDimRemover(),
        ReductionLayoutNormalizer(),
    ]
    if triton:
        steps += [
            ALGSIMP_LAYOUTS,
            CSE,
            HloConstantFolding(),
            DCE,
            SoftmaxRewriterTriton(device),
        ]
    steps += [
        ReductionDimensionGrouper(),
        FixedPoint(ReductionSplitter(device)),
        FixedPoint(TreeReductionRewriter(device)),
        EstimateCubSortScratchSize(),
    ]
    return Pipeline("hlo_normalization", tuple(steps))


def _has_triton(device: DeviceDescription) -> bool:
    """`IsTritonEnabled`: not before Ampere."""
    return device.compute_capability[0] >= 8


def post_layout_assignment(device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its second pipeline."""
    wide = FloatNormalization("bf16", "f32", computes_bf16(device), enters_custom_fusions=True)
    floats = Pipeline("float_normalization", (wide, SimplifyFPConversions()))
    steps: tuple[Simplification, ...] = (
        floats,
        GemmBroadcastFoldingRewriter(),
        ReshapeDecomposer(),
        NORMALIZATION,
        ScatterSimplifier(),
        HostOffloader(),
        floats,
        TUPLES,
        ALGSIMP_LAYOUTS,
        SimplifyFPConversions(),
        Pipeline("remove-no-op-reduce-precision-algebraic-simplifier", (ALGSIMP_LAST,)),
        CSE,
    )
    return Pipeline("post-layout_assignment", steps)
