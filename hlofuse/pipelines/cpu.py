"""What XLA:CPU runs ahead of its fusion passes, in order (`xla/service/cpu/cpu_compiler.cc`).

`RunHloPassesThroughLayoutAssn`, `CreateSimplificationPipeline` and the beginning of
`RunHloPassesAfterLayoutAssn`, with the options that are on by default. Passes that concern several
partitions, oneDNN or element types smaller than a byte are left out: by default they change nothing.
"""

from dataclasses import replace
from typing import TypeVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.reshape_mover import ReshapeMover
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.control_flow.annotations import (
    OptimizationBarrierExpander,
    ShardingRemover,
    ShardyXLA,
    StripMemoryPlacementAnnotations,
)
from hlofuse.passes.control_flow.call_graph import CallInliner, FlattenCallGraph, PropagateCallMetadata
from hlofuse.passes.control_flow.conditional_simplifier import ConditionalCanonicalizer, ConditionalSimplifier
from hlofuse.passes.copy_insertion.buffer_alias import OptimizeInputOutputBufferAlias
from hlofuse.passes.copy_insertion.copy_insertion import CopyInsertion
from hlofuse.passes.cpu.calls import ParallelTaskAssigner, SmallWhileLoopHoisting
from hlofuse.passes.cpu.layouts import ConvCanonicalization, CpuLayoutAssignment
from hlofuse.passes.cpu.ynnpack import STARTS, LibraryRewriter
from hlofuse.passes.cpu.ynnpack import is_computed_by_ynn as _is_of_library
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.passes.dot.dot_dimensions import DotDecomposer
from hlofuse.passes.dot.dot_operands import (
    BatchDotSimplifier,
    GemvRewriter,
    OperandUpcaster,
    ResultCaster,
    TransposeFolding,
)
from hlofuse.passes.dot.dynamic_dimension_simplifier import DynamicDimensionSimplifier
from hlofuse.passes.float.conversions import (
    BitcastDtypesExpander,
    ChangeOpDataType,
    ComparisonExpander,
    LogisticExpander,
)
from hlofuse.passes.float.float_normalization import FloatNormalization
from hlofuse.passes.layout.layout_normalization import BroadcastCanonicalizer, ReshapeDecomposer
from hlofuse.passes.linear_algebra.decompositions import EighExpander, QrExpander
from hlofuse.passes.linear_algebra.triangular import CholeskyExpander, TriangularSolveExpander
from hlofuse.passes.loop.code_motion import WhileLoopConstantSinking, WhileLoopInvariantCodeMotion
from hlofuse.passes.loop.simplifier import WhileLoopSimplifier
from hlofuse.passes.loop.trip_count import WhileLoopTripCountAnnotator
from hlofuse.passes.random import RngBitGeneratorExpander, RngExpander
from hlofuse.passes.rare import (
    BatchNormExpander,
    DynamicIndexSplitter,
    DynamicPadder,
    MapInliner,
    ZeroSizedHloElimination,
)
from hlofuse.passes.reduction import ReduceWindowRewriter, TreeReductionRewriter
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
from hlofuse.passes.sort.sorts import SortSimplifier
from hlofuse.passes.sort.topk import TopkDecomposer, TopkRewriter
from hlofuse.pipelines.flags import ynn_kinds
from hlofuse.releases import AROUND_FUSION

_ALGEBRAIC = Options(supports_non_canonical_dots=False, executing_on_cpu=True)


def _is_of_f32(sort: Instruction) -> bool:
    return sort.operands[0].shape.element_type == "f32"


def _has_groups(x: Instruction) -> bool:
    """True for a convolution of groups that XLA:CPU takes apart."""
    if x.attributes.raw("batch_group_count") not in (None, "1"):
        return True
    is_native = x.shape.element_type in ("f16", "f32")
    return x.attributes.raw("feature_group_count") not in (None, "1") and not is_native


def _simplification(name: str) -> FixedPoint:
    """`CreateSimplificationPipeline`."""
    steps: tuple[Pass, ...] = (
        AlgebraicSimplifier(_ALGEBRAIC),
        SortSimplifier(),
        HloDCE(),
        GatherExpander(),
        GatherSimplifier(),
        TreeReductionRewriter(_is_of_library),
        ZeroSizedHloElimination(),
        WhileLoopInvariantCodeMotion(),
        TupleSimplifier(),
        WhileLoopConstantSinking(),
        WhileLoopSimplifier(),
        HloDCE(),
        ReshapeMover(),
        HloConstantFolding(),
        ConditionalSimplifier(),
    )
    return FixedPoint(Pipeline(name, steps))


_PIPELINES: tuple[Pipeline, ...] = (
    Pipeline("pre-spmd-partitioner", (StripMemoryPlacementAnnotations(),)),
    Pipeline("spmd-partitioner", (ShardyXLA(),)),
    Pipeline(
        "sharding-removal",
        (
            FlattenCallGraph(),
            ShardingRemover(),
            UnimplementedPass("control-dep-rewriter"),
            HloDCE(),
        ),
    ),
    Pipeline(
        "HLO_passes_through_layout_assignment",
        (
            BatchedGatherScatterNormalizer(),
            ResultCaster(),
            DotDecomposer(),
            OperandUpcaster(_is_of_library),
            RngExpander(),
            RngBitGeneratorExpander(),
            ZeroSizedHloElimination(),
            DynamicIndexSplitter(),
            UnimplementedPass("conditional-to-select"),
            MapInliner(),
            TopkDecomposer(),
            UnimplementedPass("permutation_sort_expander"),
            ComparisonExpander(),
            CholeskyExpander(),
            QrExpander(),
            EighExpander(),
            TriangularSolveExpander(),
            UnimplementedPass("all_to_all_decomposer", ("all-to-all",), lambda x: x.shape.is_array),
            UnimplementedPass("stochastic_convert_decomposer", ("stochastic-convert",)),
            CallInliner(single_call_site=True),
            BatchDotSimplifier(),
            DotDecomposer(),
            FloatNormalization("bf16", "f32", _is_of_library),
            BatchDotSimplifier(),
            UnimplementedPass("convolution-group-converter", ("convolution",), _has_groups),
            BatchNormExpander(),
            LogisticExpander(),
            ConditionalCanonicalizer(),
            DynamicDimensionSimplifier(),
            UnimplementedPass("associative-scan-rewriter"),
            FixedPoint(ReduceWindowRewriter()),
            UnimplementedPass("reduce-window-resizer"),
            UnimplementedPass("scan_expander", ("scan",)),
            DynamicPadder(),
            ConvCanonicalization(),
            ChangeOpDataType(_is_of_library),
            _simplification("simplification"),
            SelectAndScatterExpander(),
            ScatterExpander(),
            ScatterSimplifier(),
            _simplification("post_scatter_expansion_simplification"),
            GemvRewriter(layout_sensitive=False),
            BitcastDtypesExpander(),
            TopkRewriter(_is_of_f32),
            TransposeFolding(),
            HloCSE(release=AROUND_FUSION, layout_sensitive=False, only_fusion_computations=False),
            WhileLoopTripCountAnnotator(),
            FlattenCallGraph(),
            CpuLayoutAssignment(),
        ),
    ),
    Pipeline(
        "hlo_normalization",
        (
            ReshapeDecomposer(),
            UnimplementedPass("reduce-decomposer"),
            BroadcastCanonicalizer(),
        ),
    ),
    Pipeline(
        "dot-library-passes",
        (
            DotDecomposer(),
            LibraryRewriter(),
        ),
    ),
)


def before_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """The same for every device. A flag chooses the operations that YNNPACK computes."""
    starts = frozenset(opcode for kind in ynn_kinds(flags) for opcode in _YNN_OPCODES.get(kind, ()))
    if starts == STARTS:
        return _PIPELINES
    return tuple(_with_library(p, starts) for p in _PIPELINES)


def after_fusion(device: DeviceDescription | None, flags: tuple[str, ...] = ()) -> tuple[Pipeline, ...]:
    """What follows the fusion passes in `RunHloPassesAfterLayoutAssn`; no flag changes it."""
    return _AFTER_FUSION


_AFTER_FUSION = (
    Pipeline(
        "HLO_passes_after_layout_assignment",
        (
            UnimplementedPass("cpu-all-reduce-combiner", ("all-reduce",)),
            TupleSimplifier(),
            FixedPoint(
                Pipeline(
                    "simplification_after_layout_assignment",
                    (
                        AlgebraicSimplifier(
                            replace(_ALGEBRAIC, layout_sensitive=True, bitcast_convert_as_bitcast=True)
                        ),
                        HloDCE(),
                        HloCSE(release=AROUND_FUSION, only_fusion_computations=False),
                    ),
                )
            ),
            ParallelTaskAssigner(),
            HloDCE(),
            OptimizeInputOutputBufferAlias(),
            CopyInsertion(),
            SmallWhileLoopHoisting(),
            PropagateCallMetadata(),
            HloDCE(),
        ),
    ),
    Pipeline("HLO_passes_after_scheduling", (OptimizationBarrierExpander(), TupleSimplifier())),
)

_YNN_OPCODES = {
    "individual_dot": ("dot",),
    "individual_convolution": ("convolution",),
    "reduce": ("reduce", "reduce-window"),
}
_AnyPass = TypeVar("_AnyPass", bound=Pass)


def _with_library(step: _AnyPass, starts: frozenset[str]) -> _AnyPass:
    """The pass, or all passes in it, with a library that computes only operations of these opcodes."""

    def is_of_library(x: Instruction) -> bool:
        return x.opcode in starts and _is_of_library(x)

    match step:
        case Pipeline():
            return replace(step, steps=[_with_library(s, starts) for s in step.steps])
        case FixedPoint():
            return replace(step, of=_with_library(step.of, starts))
        case LibraryRewriter():
            return replace(step, starts=starts)
        case TreeReductionRewriter() | FloatNormalization() | ChangeOpDataType() | OperandUpcaster():
            return replace(step, is_skipped=is_of_library)
    return step
