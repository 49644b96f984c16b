"""What XLA:GPU runs ahead of layout assignment (`xla/service/gpu/gpu_compiler.cc`)."""

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.algebraic.reshape_mover import SliceSinker
from hlofuse.passes.base import FixedPoint, Pipeline, UnimplementedPass
from hlofuse.passes.control_flow.call_graph import CallInliner, FlattenCallGraph, HloComputationDeduplicator
from hlofuse.passes.control_flow.conditional_simplifier import ConditionalCanonicalizer, ConditionalSimplifier
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dot.dot_dimensions import DotDecomposer, DotDimensionNormalizer, DotDimensionSorter
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.dot.dot_operands import DotOperandConverter, OperandUpcaster, ResultCaster
from hlofuse.passes.dot.dynamic_dimension_simplifier import DynamicDimensionSimplifier
from hlofuse.passes.dot.ragged_dot_rewriter import RaggedDotRewriter
from hlofuse.passes.float.conversions import ComparisonExpander, ConvertMover, LogisticExpander
from hlofuse.passes.float.float_normalization import FloatNormalization, library_takes_bf16
from hlofuse.passes.gpu.convolutions.epilogues import CudnnFusedConvRewriter
from hlofuse.passes.gpu.convolutions.padding import ConvPaddingLegalization, CudnnPadForConvolutions
from hlofuse.passes.gpu.convolutions.rewriter import ConvRewriter
from hlofuse.passes.gpu.custom_calls import TopkSpecializer
from hlofuse.passes.gpu.gemm.operands import DotStrengthReduction
from hlofuse.passes.gpu.layout_assignment import is_for_cublas
from hlofuse.passes.gpu.scatter_slice_simplifier import ScatterSliceSimplifier
from hlofuse.passes.linear_algebra.eigh import EighExpander
from hlofuse.passes.linear_algebra.qr import QrExpander
from hlofuse.passes.linear_algebra.triangular import CholeskyExpander
from hlofuse.passes.loop.code_motion import WhileLoopConstantSinking
from hlofuse.passes.loop.simplifier import WhileLoopSimplifier
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
from hlofuse.passes.scatter.gather import GatherExpander, GatherSimplifier
from hlofuse.passes.scatter.scatter import ScatterExpander, ScatterSimplifier
from hlofuse.passes.sort.sort_rewriter import SortRewriter
from hlofuse.passes.sort.sorts import SortSimplifier, StableSortExpander
from hlofuse.passes.sort.topk import TopkDecomposer, TopkRewriter
from hlofuse.pipelines.gpu.steps import (
    ALGSIMP,
    ALGSIMP_CONVOLUTIONS,
    DCE,
    FOLDING_ALL,
    FOLDING_CONVOLUTIONS,
    RESHAPES,
    TUPLES,
)
from hlofuse.releases import AROUND_FUSION

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
