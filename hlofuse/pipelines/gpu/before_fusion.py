"""What XLA:GPU runs ahead of its fusion passes, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPreSPMDPartitionerPasses` to `OptimizeHloPostLayoutAssignment`, and what `nvptx_compiler.cc` puts before,
between and behind, with the options that are on by default, for one partition and compiled ahead of time.
Passes that concern several partitions, host memory or element types smaller than a byte are left out: here
they change nothing.
"""

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.algebraic.reshape_mover import SliceSinker
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.control_flow.annotations import AllReduceSimplifier, ShardingRemover, ShardyXLA
from hlofuse.passes.control_flow.call_graph import CallInliner, FlattenCallGraph, HloComputationDeduplicator
from hlofuse.passes.control_flow.conditional_simplifier import ConditionalCanonicalizer, ConditionalSimplifier
from hlofuse.passes.copy_insertion.buffer_alias import OptimizeInputOutputBufferAlias
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dot.dot_dimensions import (
    DotDecomposer,
    DotDimensionMerger,
    DotDimensionNormalizer,
    DotDimensionSorter,
)
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.dot.dot_operands import DotOperandConverter, GemvRewriter, OperandUpcaster, ResultCaster
from hlofuse.passes.dot.dynamic_dimension_simplifier import DynamicDimensionSimplifier
from hlofuse.passes.dot.ragged_dot_rewriter import RaggedDotRewriter
from hlofuse.passes.float.conversions import (
    BitcastDtypesExpander,
    ComparisonExpander,
    ConvertMover,
    LogisticExpander,
    SimplifyFPConversions,
)
from hlofuse.passes.float.float_normalization import FloatNormalization, computes_bf16, library_takes_bf16
from hlofuse.passes.gpu.convolutions.epilogues import CudnnFusedConvRewriter
from hlofuse.passes.gpu.convolutions.padding import ConvPaddingLegalization, CudnnPadForConvolutions
from hlofuse.passes.gpu.convolutions.rewriter import ConvRewriter
from hlofuse.passes.gpu.copies import HostOffloader, MoveCopyToUsers
from hlofuse.passes.gpu.cublas.rewriter import (
    CublasGemmRewriter,
    CublasGemmRewriterF8,
    GemmBroadcastFoldingRewriter,
    paddings,
)
from hlofuse.passes.gpu.custom_calls import TopkSpecializer, TriangularSolveRewriter
from hlofuse.passes.gpu.dynamic_slice_annotator import DynamicSliceAnnotator
from hlofuse.passes.gpu.dynamic_slice_fusion_rewriter import DynamicSliceFusionRewriter
from hlofuse.passes.gpu.gemm.around_fusion import DotStrengthReduction, GemmFusionSwapOperands, SplitkRewriter
from hlofuse.passes.gpu.gemm.gemm_fusion import GemmFusion
from hlofuse.passes.gpu.gemm.hoist_bitcasts import HoistFusedBitcasts
from hlofuse.passes.gpu.layout_assignment import GpuLayoutAssignment, is_for_cublas
from hlofuse.passes.gpu.names import RenameInstructions
from hlofuse.passes.gpu.reductions import (
    ReduceDecomposer,
    ReductionDegenerateDimRemover,
    ReductionDimensionGrouper,
    ReductionLayoutNormalizer,
    ReductionSplitter,
    TreeReductionRewriter,
)
from hlofuse.passes.gpu.scatter_slice_simplifier import ScatterSliceSimplifier
from hlofuse.passes.gpu.triton_fusions import SoftmaxRewriterTriton
from hlofuse.passes.layout.layout_normalization import BroadcastCanonicalizer, ReshapeDecomposer
from hlofuse.passes.linear_algebra.decompositions import EighExpander, QrExpander
from hlofuse.passes.linear_algebra.triangular import CholeskyExpander
from hlofuse.passes.loop.code_motion import WhileLoopConstantSinking
from hlofuse.passes.loop.simplifier import WhileLoopSimplifier
from hlofuse.passes.loop.trip_count import WhileLoopTripCountAnnotator
from hlofuse.passes.random import RngBitGeneratorExpander, RngExpander
from hlofuse.passes.rare import (
    BatchNormExpander,
    DynamicIndexSplitter,
    DynamicPadder,
    ZeroSizedHloElimination,
)
from hlofuse.passes.reduction import ReduceWindowRewriter
from hlofuse.passes.scatter.batched_gather_scatter_normalizer import (
    BatchedGatherScatterNormalizer,
    SelectAndScatterExpander,
)
from hlofuse.passes.scatter.gather_scatter import (
    GatherExpander,
    GatherSimplifier,
    ScatterExpander,
    ScatterSimplifier,
)
from hlofuse.passes.sort.sort_rewriter import EstimateCubSortScratchSize, SortRewriter
from hlofuse.passes.sort.sorts import SortSimplifier, StableSortExpander
from hlofuse.passes.sort.topk import TopkDecomposer, TopkRewriter
from hlofuse.pipelines.gpu.steps import (
    ALGSIMP,
    ALGSIMP_CONVOLUTIONS,
    ALGSIMP_LAST,
    ALGSIMP_LAYOUTS,
    CSE,
    DCE,
    FOLDING,
    FOLDING_ALL,
    FOLDING_CONVOLUTIONS,
    NORMALIZATION,
    RESHAPES,
    TUPLES,
)
from hlofuse.releases import AROUND_FUSION

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


# Between layout assignment and fusion.


_DOT_MERGER_THRESHOLD = 64 << 20
"""`xla_gpu_dot_merger_threshold_mb`."""


def _is_for_cublas(x: Instruction) -> bool:
    """True for a product that cuBLAS computes."""
    return x.opcode == "dot" and is_for_cublas(x, of_vectors=False)


PRE_SPMD = Pipeline(
    "pre-spmd-partitioner",
    (
        FlattenCallGraph(),
        CallInliner(),
        ZeroSizedHloElimination(),
        ConditionalCanonicalizer(),
        TopkDecomposer(of_calls=False),
        TopkRewriter(lambda sort: True),
    ),
)


def _simplification(device: DeviceDescription) -> FixedPoint:
    """The passes that run until nothing changes."""
    return FixedPoint(
        Pipeline(
            "simplification",
            (
                ZeroSizedHloElimination(),
                GatherSimplifier(),
                GatherExpander(),
                ScatterSimplifier(),
                ScatterExpander(),
                ScatterSliceSimplifier(),
                DotStrengthReduction(device),
                ALGSIMP,
                SortSimplifier(),
                TUPLES,
                WhileLoopConstantSinking(),
                WhileLoopSimplifier(),
                SliceSinker(),
                RESHAPES,
                HloConstantFolding(),
                ConditionalSimplifier(),
                FOLDING_CONVOLUTIONS,
                HloCSE(release=AROUND_FUSION, layout_sensitive=False, only_fusion_computations=False),
                DCE,
            ),
        )
    )


def optimization(device: DeviceDescription) -> Pipeline:
    """`RunOptimizationPasses`."""
    skipped = (_is_for_cublas,) if device.compute_capability[0] >= 7 else ()
    return Pipeline(
        "optimization",
        (
            RaggedDotRewriter(),
            BatchedGatherScatterNormalizer(),
            UnimplementedPass("topk-splitter"),
            TopkSpecializer(),
            TopkDecomposer(),
            DotDimensionSorter(),
            DotDecomposer(),
            ResultCaster(*skipped),
            OperandUpcaster(*skipped),
            DotOperandConverter(),
            RngExpander(),
            RngBitGeneratorExpander(),
            UnimplementedPass("permutation_sort_expander"),
            SortRewriter(device),
            ComparisonExpander({"bf16": "f32"}),
            ZeroSizedHloElimination(),
            SelectAndScatterExpander(),
            CholeskyExpander(),
            UnimplementedPass("scatter_expander"),
            QrExpander(),
            EighExpander(),
            DynamicIndexSplitter(),
            CallInliner(),
            BatchNormExpander(),
            LogisticExpander(),
            ConditionalCanonicalizer(),
            DynamicDimensionSimplifier(),
            FixedPoint(ReduceWindowRewriter()),
            UnimplementedPass("reduce-window-resizer"),
            UnimplementedPass("scan_expander", ("scan",)),
            DynamicPadder(),
            StableSortExpander(),
            _simplification(device),
            DotMerger(_DOT_MERGER_THRESHOLD),
            DotDimensionNormalizer(),
            FOLDING_ALL,
            FixedPoint(Pipeline("simplification-2", (ConvertMover(), ALGSIMP))),
            HloComputationDeduplicator(),
        ),
    )


def convolutions(device: DeviceDescription) -> Pipeline:
    """`OptimizeHloConvolutionCanonicalization`."""
    return Pipeline(
        "conv_canonicalization",
        (
            FloatNormalization(
                "bf16", "f32", library_takes_bf16(device, "convolution"), enters_custom_fusions=True
            ),
            FloatNormalization("bf16", "f32", library_takes_bf16(device, "dot"), enters_custom_fusions=True),
            ConvRewriter(),
            CudnnFusedConvRewriter(),
            ConvPaddingLegalization(),
            CudnnPadForConvolutions(),
            CallInliner(),
            TUPLES,
            FixedPoint(ALGSIMP_CONVOLUTIONS),
            FixedPoint(
                Pipeline(
                    "reshape_mover_after_conv_canonicalization",
                    (RESHAPES, ALGSIMP_CONVOLUTIONS),
                )
            ),
            FixedPoint(
                Pipeline(
                    "simplify_after_conv_canonicalization",
                    (ConvertMover(), ALGSIMP_CONVOLUTIONS),
                )
            ),
            HloConstantFolding(),
        ),
    )


# Ahead of layout assignment.


def before_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
    return (
        PRE_SPMD,
        Pipeline("spmd-partitioner", (ShardyXLA(),)),
        Pipeline("sharding-removal", (ShardingRemover(), DCE)),
        optimization(device),
        Pipeline(
            "collective-optimizations", (AllReduceSimplifier(), DCE, DCE, WhileLoopTripCountAnnotator())
        ),
        convolutions(device),
        Pipeline(
            "layout_assignment",
            (FlattenCallGraph(), GpuLayoutAssignment(device), OptimizeInputOutputBufferAlias()),
        ),
        LAYOUT_NORMALIZATION,
        Pipeline("nvptx_post-layout_assignment_part_1", (DotDimensionMerger(),)),
        normalization(device),
        post_layout_assignment(device),
        Pipeline("nvptx_post-layout_assignment_part_2", (TriangularSolveRewriter(),)),
        Pipeline("dynamic-slice", (DynamicSliceAnnotator(), DynamicSliceFusionRewriter())),
        Pipeline("pre-fusion", (RenameInstructions(),)),
    )
