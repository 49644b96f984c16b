"""What XLA:GPU runs between layout assignment and fusion (`xla/service/gpu/gpu_compiler.cc`)."""

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.dot.dot_operands import GemvRewriter
from hlofuse.passes.float.conversions import BitcastDtypesExpander, SimplifyFPConversions
from hlofuse.passes.float.float_normalization import FloatNormalization, computes_bf16
from hlofuse.passes.gpu.copies import HostOffloader, MoveCopyToUsers
from hlofuse.passes.gpu.cublas.rewriter import (
    CublasGemmRewriter,
    CublasGemmRewriterF8,
    GemmBroadcastFoldingRewriter,
    paddings,
)
from hlofuse.passes.gpu.gemm.gemm_fusion import GemmFusion
from hlofuse.passes.gpu.gemm.hoist_bitcasts import HoistFusedBitcasts
from hlofuse.passes.gpu.gemm.operands import GemmFusionSwapOperands
from hlofuse.passes.gpu.gemm.splitk import SplitkRewriter
from hlofuse.passes.gpu.reduction_dimensions import (
    ReductionDegenerateDimRemover,
    ReductionDimensionGrouper,
    ReductionLayoutNormalizer,
)
from hlofuse.passes.gpu.reduction_splitting import ReduceDecomposer, ReductionSplitter, TreeReductionRewriter
from hlofuse.passes.gpu.softmax_rewriter_triton import SoftmaxRewriterTriton
from hlofuse.passes.layout.canonicalizers import BroadcastCanonicalizer, ReshapeDecomposer
from hlofuse.passes.scatter.scatter import ScatterSimplifier
from hlofuse.passes.sort.sort_rewriter import EstimateCubSortScratchSize
from hlofuse.pipelines.gpu.steps import (
    ALGSIMP_LAST,
    ALGSIMP_LAYOUTS,
    CSE,
    DCE,
    FOLDING,
    NORMALIZATION,
    TUPLES,
)

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
    triton = has_triton(device)
    steps: list[Pass] = [
        ALGSIMP_LAYOUTS,
        BitcastDtypesExpander(),
        FOLDING,
        ReshapeDecomposer(),
        ReduceDecomposer(device),
        UnimplementedPass("dot_normalizer"),
    ]
    if triton:
        steps += [
            UnimplementedPass("dot_dimension_normalizer"),
            GemvRewriter(),
            SplitkRewriter(device),
            GemmFusion(device),
            HoistFusedBitcasts(),
            GemmFusionSwapOperands(),
        ]
    steps += [
        *paddings(device),
        HloConstantFolding(),
        UnimplementedPass("dot-algorithm-rewriter"),
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


def has_triton(device: DeviceDescription) -> bool:
    """`IsTritonEnabled`: not before Ampere."""
    return device.compute_capability[0] >= 8


def post_layout_assignment(device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its second pipeline."""
    wide = FloatNormalization("bf16", "f32", computes_bf16(device), enters_custom_fusions=True)
    floats = Pipeline("float_normalization", (wide, SimplifyFPConversions()))
    steps: tuple[Pass, ...] = (
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
