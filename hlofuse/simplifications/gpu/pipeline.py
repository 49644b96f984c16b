"""What XLA:GPU runs ahead of its fusion passes, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPreSPMDPartitionerPasses` to `OptimizeHloPostLayoutAssignment`, and what `nvptx_compiler.cc` puts before,
between and behind, with the options that are on by default, for one partition and compiled ahead of time.
Passes that concern several partitions, host memory or element types smaller than a byte are left out: here
they change nothing.
"""

from __future__ import annotations

from dataclasses import replace

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.tuple_simplifier import TupleSimplifier
from hlofuse.simplifications.algebraic import AlgebraicSimplifier
from hlofuse.simplifications.algebraic.options import Options
from hlofuse.simplifications.base import FixedPoint, NotRepeated, Pipeline, Simplification, Unrecorded
from hlofuse.simplifications.batched_gather_scatter_normalizer import BatchedGatherScatterNormalizer
from hlofuse.simplifications.bitcast_dtypes_expander import BitcastDtypesExpander
from hlofuse.simplifications.broadcast_canonicalizer import BroadcastCanonicalizer
from hlofuse.simplifications.call_inliner import CallInliner
from hlofuse.simplifications.common.matrix_layout import can_fold_transpose
from hlofuse.simplifications.comparison_expander import ComparisonExpander
from hlofuse.simplifications.computation_deduplicator import HloComputationDeduplicator
from hlofuse.simplifications.conditional_canonicalizer import ConditionalCanonicalizer
from hlofuse.simplifications.conditional_simplifier import ConditionalSimplifier
from hlofuse.simplifications.constant_folding import HloConstantFolding
from hlofuse.simplifications.convert_mover import ConvertMover
from hlofuse.simplifications.dot_decomposer import DotDecomposer
from hlofuse.simplifications.dot_dimension_merger import DotDimensionMerger
from hlofuse.simplifications.dot_dimension_normalizer import DotDimensionNormalizer
from hlofuse.simplifications.dot_merger import DotMerger
from hlofuse.simplifications.dynamic_dimension_simplifier import DynamicDimensionSimplifier
from hlofuse.simplifications.flatten_call_graph import FlattenCallGraph
from hlofuse.simplifications.float_normalization import FloatNormalization
from hlofuse.simplifications.gather_expander import GatherExpander
from hlofuse.simplifications.gather_simplifier import GatherSimplifier
from hlofuse.simplifications.gemv_rewriter import GemvRewriter
from hlofuse.simplifications.gpu.convolutions.epilogues import CudnnFusedConvRewriter
from hlofuse.simplifications.gpu.convolutions.normalization import normalized_call
from hlofuse.simplifications.gpu.convolutions.padding_legalization import ConvPaddingLegalization
from hlofuse.simplifications.gpu.convolutions.rewriter import ConvRewriter, is_lowerable
from hlofuse.simplifications.gpu.dynamic_slice_annotator import DynamicSliceAnnotator
from hlofuse.simplifications.gpu.float_support import computes_bf16, library_takes_bf16
from hlofuse.simplifications.gpu.gemm.broadcast_folding import GemmBroadcastFoldingRewriter
from hlofuse.simplifications.gpu.gemm.cublas_rewriter import CublasGemmRewriter
from hlofuse.simplifications.gpu.gemm.dot_dimension_sorter import DotDimensionSorter
from hlofuse.simplifications.gpu.gemm.dot_strength_reduction import DotStrengthReduction
from hlofuse.simplifications.gpu.gemm.gemm_fusion import GemmFusion
from hlofuse.simplifications.gpu.gemm.hoist_bitcasts import HoistFusedBitcasts
from hlofuse.simplifications.gpu.gemm.splitk import SplitkRewriter
from hlofuse.simplifications.gpu.gemm.swap_operands import GemmFusionSwapOperands
from hlofuse.simplifications.gpu.move_copy_to_users import MoveCopyToUsers
from hlofuse.simplifications.gpu.reduce_decomposer import ReduceDecomposer
from hlofuse.simplifications.gpu.reduction_degenerate_dim_remover import ReductionDegenerateDimRemover
from hlofuse.simplifications.gpu.reduction_dimension_grouper import ReductionDimensionGrouper
from hlofuse.simplifications.gpu.reduction_layout_normalizer import ReductionLayoutNormalizer
from hlofuse.simplifications.gpu.reduction_splitter import ReductionSplitter
from hlofuse.simplifications.gpu.scatter_slice_simplifier import ScatterSliceSimplifier
from hlofuse.simplifications.gpu.softmax_rewriter_triton import SoftmaxRewriterTriton
from hlofuse.simplifications.gpu.topk_specializer import TopkSpecializer
from hlofuse.simplifications.gpu.tree_reduction_rewriter import TreeReductionRewriter
from hlofuse.simplifications.gpu.triangular_solve_rewriter import TriangularSolveRewriter
from hlofuse.simplifications.layout_normalization import LayoutNormalization
from hlofuse.simplifications.layouts.gpu import GpuLayoutAssignment
from hlofuse.simplifications.loops.annotator import WhileLoopTripCountAnnotator
from hlofuse.simplifications.loops.constant_sinking import WhileLoopConstantSinking
from hlofuse.simplifications.loops.simplifier import WhileLoopSimplifier
from hlofuse.simplifications.reduce_window_rewriter import ReduceWindowRewriter
from hlofuse.simplifications.reshape_decomposer import ReshapeDecomposer
from hlofuse.simplifications.reshape_mover import ReshapeMover
from hlofuse.simplifications.scatter_expander import ScatterExpander
from hlofuse.simplifications.scatter_simplifier import ScatterSimplifier
from hlofuse.simplifications.select_and_scatter_expander import SelectAndScatterExpander
from hlofuse.simplifications.sharding_remover import ShardingRemover
from hlofuse.simplifications.simplify_fp_conversions import SimplifyFPConversions
from hlofuse.simplifications.slice_sinker import SliceSinker
from hlofuse.simplifications.stable_sort_expander import StableSortExpander
from hlofuse.simplifications.topk import TopkDecomposer, TopkRewriter
from hlofuse.simplifications.transpose_folding import TransposeFolding

_COMMON = Options(
    dot_strength_reduction=False,
    supports_non_canonical_dots=False,
    unconditional_reduce_of_concatenate=False,
    conditional_simplification=True,
    fold_transpose_into_scatter=True,
    bitcast_convert_as_bitcast=True,
    to_fixed_point=False,
)
# `GetAlgebraicSimplifierOptions`, by mode.
_ALGSIMP = AlgebraicSimplifier(
    replace(
        _COMMON,
        unconditional_reduce_of_transpose=True,
        reshape_transpose_as_slice_concatenate=False,
        hoist_transpose_of_reshape=True,
        conv_is_lowerable=is_lowerable,
    )
)
_ALGSIMP_CONVOLUTIONS = AlgebraicSimplifier(
    replace(_COMMON, conv_operand_swap=False, minmax_propagate_nan=True)
)
_LAYOUT_SENSITIVE = replace(_COMMON, conv_operand_swap=False, layout_sensitive=True)
_ALGSIMP_LAYOUTS = FixedPoint(AlgebraicSimplifier(_LAYOUT_SENSITIVE))
_ALGSIMP_LAST = FixedPoint(
    AlgebraicSimplifier(replace(_LAYOUT_SENSITIVE, remove_no_op_reduce_precision=True))
)
_FOLDING = TransposeFolding(can_fold_transpose)
_RESHAPES = ReshapeMover(reshape_of_1d_broadcast_is_cheap=True)
_DOT_MERGER_THRESHOLD = 64 << 20
"""`xla_gpu_dot_merger_threshold_mb`."""
_DCE = Unrecorded(HloDCE())
_TUPLES = Unrecorded(TupleSimplifier())
_NORMALIZATION = LayoutNormalization(normalized_call)
_CSE = Unrecorded(HloCSE(only_fusion_computations=False))


def gpu_pipelines(device: DeviceDescription) -> tuple[Pipeline, ...]:
    """The pipelines for one device."""
    return (
        _PRE_SPMD,
        Pipeline("sharding-removal", (ShardingRemover(), _DCE)),
        _optimization(device),
        Pipeline("collective-optimizations", (WhileLoopTripCountAnnotator(),)),
        _convolutions(device),
        Pipeline("layout_assignment", (FlattenCallGraph(), GpuLayoutAssignment(device))),
        _LAYOUT_NORMALIZATION,
        Pipeline("nvptx_post-layout_assignment_part_1", (DotDimensionMerger(),)),
        _normalization(device),
        _post_layout_assignment(device),
        Pipeline("nvptx_post-layout_assignment_part_2", (TriangularSolveRewriter(),)),
        Pipeline("dynamic-slice", (DynamicSliceAnnotator(),)),
    )


_PRE_SPMD = Pipeline(
    "pre-spmd-partitioner",
    (
        FlattenCallGraph(),
        CallInliner(),
        NotRepeated("zero_sized_hlo_elimination"),
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
                NotRepeated("zero_sized_hlo_elimination"),
                GatherSimplifier(),
                GatherExpander(),
                ScatterSimplifier(),
                ScatterExpander(),
                ScatterSliceSimplifier(),
                DotStrengthReduction(device),
                _ALGSIMP,
                NotRepeated("simplify-sorts"),
                _TUPLES,
                WhileLoopConstantSinking(),
                WhileLoopSimplifier(),
                SliceSinker(),
                _RESHAPES,
                HloConstantFolding(),
                ConditionalSimplifier(),
                NotRepeated("transpose-folding"),
                Unrecorded(HloCSE(layout_sensitive=False, only_fusion_computations=False)),
                _DCE,
            ),
        )
    )


def _optimization(device: DeviceDescription) -> Pipeline:
    """`RunOptimizationPasses`."""
    return Pipeline(
        "optimization",
        (
            NotRepeated("ragged_dot_rewriter"),
            BatchedGatherScatterNormalizer(),
            NotRepeated("topk-splitter"),
            TopkSpecializer(),
            TopkDecomposer(),
            DotDimensionSorter(),
            DotDecomposer(),
            NotRepeated("result_caster"),
            NotRepeated("operand_upcaster"),
            NotRepeated("rng-expander"),
            NotRepeated("rng-bit-generator-expander"),
            NotRepeated("permutation_sort_expander"),
            NotRepeated("sort-rewriter"),
            ComparisonExpander(),
            NotRepeated("zero_sized_hlo_elimination"),
            SelectAndScatterExpander(),
            NotRepeated("cholesky_expander"),
            NotRepeated("scatter_expander"),
            NotRepeated("qr_expander"),
            NotRepeated("eigh_expander"),
            NotRepeated("dynamic-index-splitter"),
            CallInliner(),
            NotRepeated("batchnorm_expander"),
            NotRepeated("logistic-expander"),
            ConditionalCanonicalizer(),
            DynamicDimensionSimplifier(),
            FixedPoint(ReduceWindowRewriter()),
            NotRepeated("reduce-window-resizer"),
            NotRepeated("scan_expander"),
            NotRepeated("dynamic_padder"),
            StableSortExpander(),
            _simplification(device),
            DotMerger(_DOT_MERGER_THRESHOLD),
            DotDimensionNormalizer(),
            _FOLDING,
            FixedPoint(Pipeline("simplification-2", (ConvertMover(), _ALGSIMP))),
            HloComputationDeduplicator(),
        ),
    )


def _convolutions(device: DeviceDescription) -> Pipeline:
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
            NotRepeated("cudnn_pad_for_convolutions"),
            CallInliner(),
            _TUPLES,
            FixedPoint(_ALGSIMP_CONVOLUTIONS),
            FixedPoint(
                Pipeline(
                    "reshape_mover_after_conv_canonicalization",
                    (_RESHAPES, _ALGSIMP_CONVOLUTIONS),
                )
            ),
            FixedPoint(
                Pipeline(
                    "simplify_after_conv_canonicalization",
                    (ConvertMover(), _ALGSIMP_CONVOLUTIONS),
                )
            ),
            HloConstantFolding(),
        ),
    )


_LAYOUT_NORMALIZATION = Pipeline(
    "layout_normalization",
    (
        ReshapeDecomposer(),
        FixedPoint(MoveCopyToUsers()),
        _NORMALIZATION,
        _ALGSIMP_LAYOUTS,
        BroadcastCanonicalizer(),
        ScatterSimplifier(),
    ),
)


def _normalization(device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its first pipeline."""
    triton = _has_triton(device)
    steps: list[Simplification] = [
        _ALGSIMP_LAYOUTS,
        BitcastDtypesExpander(),
        _FOLDING,
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
        NotRepeated("cublas-pad-for-gemms"),
        HloConstantFolding(),
        NotRepeated("dot-algorithm-rewriter"),
        CublasGemmRewriter(device),
        GemmBroadcastFoldingRewriter(),
        ReshapeDecomposer(),
        _NORMALIZATION,
        _ALGSIMP_LAYOUTS,
        ScatterSimplifier(),
        BroadcastCanonicalizer(),
        ReductionDegenerateDimRemover(),
        ReductionLayoutNormalizer(),
    ]
    if triton:
        steps += [
            _ALGSIMP_LAYOUTS,
            _CSE,
            HloConstantFolding(),
            _DCE,
            SoftmaxRewriterTriton(device),
        ]
    steps += [
        ReductionDimensionGrouper(),
        FixedPoint(ReductionSplitter(device)),
        FixedPoint(TreeReductionRewriter(device)),
        NotRepeated("deviceless-estimate-cub-sort-scratch-size"),
    ]
    return Pipeline("hlo_normalization", tuple(steps))


def _has_triton(device: DeviceDescription) -> bool:
    """`IsTritonEnabled`: not before Ampere."""
    return device.compute_capability[0] >= 8


def _post_layout_assignment(device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its second pipeline."""
    wide = FloatNormalization("bf16", "f32", computes_bf16(device), enters_custom_fusions=True)
    floats = Pipeline("float_normalization", (wide, SimplifyFPConversions()))
    steps: tuple[Simplification, ...] = (
        floats,
        GemmBroadcastFoldingRewriter(),
        ReshapeDecomposer(),
        _NORMALIZATION,
        ScatterSimplifier(),
        NotRepeated("host-offloader"),
        floats,
        _TUPLES,
        _ALGSIMP_LAYOUTS,
        SimplifyFPConversions(),
        Pipeline("remove-no-op-reduce-precision-algebraic-simplifier", (_ALGSIMP_LAST,)),
        _CSE,
    )
    return Pipeline("post-layout_assignment", steps)
