"""Every pass by XLA's name, and lists of passes as a user writes them: `fusion, fixpoint(cse, dce)`. XLA's
own lists (`hlofuse.pipelines`), `--passes` and the actions of a search take their passes from here. A pass's
file is imported only when the pass is created."""

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction
from hlofuse.ir.record import Record, replace
from hlofuse.releases import Release, Span
from hlofuse.rules.settings import AS_XLA, Settings
from .base import FixedPoint, Pass, Pipeline, UnimplementedPass

# By target and XLA's name: `module:class` below `hlofuse.passes`. Several targets have a pass of the same
# name; the empty target has those that all share.
_FUSION: dict[str, dict[str, str]] = {
    "": {
        "cse": "cse:HloCSE",
        "dce": "dce:HloDCE",
        "tuple-simplifier": "dce:TupleSimplifier",
    },
    "gpu": {
        "variadic-op-splitter": "fusion.before_fusion:VariadicOpSplitter",
        "sort-iota-fusion": "fusion.before_fusion:SortIotaFusion",
        "priority-fusion": "fusion.priority_fusion.priority_fusion:PriorityFusion",
        "multi_output_fusion": "fusion.gpu_multi_output_fusion:GpuMultiOutputFusion",
        "horizontal_loop_fusion": "fusion.horizontal_fusion:HorizontalLoopFusion",
        "horizontal_input_fusion": "fusion.horizontal_fusion:HorizontalInputFusion",
    },
    "gpu-legacy": {
        "variadic-op-splitter": "fusion.before_fusion:VariadicOpSplitter",
        "fusion": "fusion.gpu_legacy:GpuInstructionFusion",
        "fusion_merger": "fusion.gpu_legacy:FusionMerger",
        "multi_output_fusion": "fusion.gpu_multi_output_fusion:GpuMultiOutputFusion",
        "horizontal_loop_fusion": "fusion.horizontal_fusion:HorizontalLoopFusion",
        "horizontal_input_fusion": "fusion.horizontal_fusion:HorizontalInputFusion",
    },
    "cpu": {
        "fusion": "fusion.cpu_fusion:CpuInstructionFusion",
        "fusion-wrapper": "fusion.before_fusion:CpuFusionWrapper",
        "cpu_multi_output_fusion": "fusion.cpu_fusion:CpuMultiOutputFusion",
    },
}
"""The passes that a user may list (`--passes`)."""
_OTHERS: dict[str, dict[str, str]] = {
    "": {
        "constant_folding": "algebraic.constant_folding:HloConstantFolding",
        "degenerate-dimension-rewriter": "algebraic.reshape_mover:DegenerateDimensionRewriter",
        "reshape-mover": "algebraic.reshape_mover:ReshapeMover",
        "slice-sinker": "algebraic.reshape_mover:SliceSinker",
        "algsimp": "algebraic.simplifier:AlgebraicSimplifier",
        "all-reduce-promotion": "collectives:AllReducePromotion",
        "all-reduce-reassociate": "collectives:AllReduceReassociate",
        "all_to_all_decomposer": "collectives:AllToAllDecomposer",
        "all-reduce-simplifier": "control_flow.annotations:AllReduceSimplifier",
        "cse_barrier_expander": "control_flow.annotations:OptimizationBarrierExpander",
        "sharding-remover": "control_flow.annotations:ShardingRemover",
        "shardy-xla": "control_flow.annotations:ShardyXLA",
        "strip-memory-placement-annotations": "control_flow.annotations:StripMemoryPlacementAnnotations",
        "call-inliner": "control_flow.call_graph:CallInliner",
        "flatten-call-graph": "control_flow.call_graph:FlattenCallGraph",
        "computation-deduplicator": "control_flow.call_graph:HloComputationDeduplicator",
        "propagate-call-metadata": "control_flow.call_graph:PropagateCallMetadata",
        "conditional-canonicalizer": "control_flow.conditional_simplifier:ConditionalCanonicalizer",
        "simplify-conditional": "control_flow.conditional_simplifier:ConditionalSimplifier",
        "optimize_input_output_buffer_alias": "copy_insertion.buffer_alias:OptimizeInputOutputBufferAlias",
        "copy-insertion": "copy_insertion.copy_insertion:CopyInsertion",
        "dot_decomposer": "dot.dot_dimensions:DotDecomposer",
        "dot_dimension_merger": "dot.dot_dimensions:DotDimensionMerger",
        "dot_dimension_normalizer": "dot.dot_dimensions:DotDimensionNormalizer",
        "dot_dimension_sorter": "dot.dot_dimensions:DotDimensionSorter",
        "dot-merger": "dot.dot_merger:DotMerger",
        "batch-dot-simplification": "dot.dot_operands:BatchDotSimplifier",
        "operand_converter": "dot.dot_operands:DotOperandConverter",
        "gemv-rewriter": "dot.dot_operands:GemvRewriter",
        "operand_upcaster": "dot.dot_operands:OperandUpcaster",
        "result_caster": "dot.dot_operands:ResultCaster",
        "transpose-folding": "dot.dot_operands:TransposeFolding",
        "dynamic-dimension-simplifier": "dot.dot_dimensions:DynamicDimensionSimplifier",
        "ragged_dot_rewriter": "dot.dot_dimensions:RaggedDotRewriter",
        "bitcast_dtypes_expander": "float.conversions:BitcastDtypesExpander",
        "change-op-data-type": "float.conversions:ChangeOpDataType",
        "comparison-expander": "float.conversions:ComparisonExpander",
        "convert-mover": "float.conversions:ConvertMover",
        "logistic-expander": "float.conversions:LogisticExpander",
        "simplify-fp-conversions": "float.conversions:SimplifyFPConversions",
        "float-normalization-bf16": "float.float_normalization:FloatNormalization",
        "broadcast_canonicalizer": "layout.layout_normalization:BroadcastCanonicalizer",
        "layout_normalization": "layout.layout_normalization:LayoutNormalization",
        "reshape-decomposer": "layout.layout_normalization:ReshapeDecomposer",
        "while-loop-constant-sinking": "loop.code_motion:WhileLoopConstantSinking",
        "while-loop-invariant-code-motion": "loop.code_motion:WhileLoopInvariantCodeMotion",
        "simplify-while-loops": "loop.simplifier:WhileLoopSimplifier",
        "while-loop-trip-count-annotator": "loop.trip_count:WhileLoopTripCountAnnotator",
        "rng-bit-generator-expander": "random:RngBitGeneratorExpander",
        "batchnorm_expander": "rare:BatchNormExpander",
        "dynamic-index-splitter": "rare:DynamicIndexSplitter",
        "dynamic_padder": "rare:DynamicPadder",
        "map-inline": "rare:MapInliner",
        "zero_sized_hlo_elimination": "rare:ZeroSizedHloElimination",
        "associative-scan-rewriter": "reduction:AssociativeScanRewriter",
        "reduce-window-rewriter": "reduction:ReduceWindowRewriter",
        "tree_reduction_rewriter": "reduction:TreeReductionRewriter",
        "batched_gather_scatter_normalizer": (
            "scatter.batched_gather_scatter_normalizer:BatchedGatherScatterNormalizer"
        ),
        "select_and_scatter_expander": "scatter.batched_gather_scatter_normalizer:SelectAndScatterExpander",
        "gather_expander": "scatter.gather_scatter:GatherExpander",
        "gather_simplifier": "scatter.gather_scatter:GatherSimplifier",
        "scatter_expander": "scatter.gather_scatter:ScatterExpander",
        "scatter_simplifier": "scatter.gather_scatter:ScatterSimplifier",
        "simplify-sorts": "sort.sorts:SortSimplifier",
        "stable-sort-expander": "sort.sorts:StableSortExpander",
        "topk-decomposer": "sort.topk:TopkDecomposer",
        "topk-rewriter": "sort.topk:TopkRewriter",
    },
    "cpu": {
        "cpu-parallel-task-assigner": "cpu.calls:ParallelTaskAssigner",
        "small-while-loop-hoisting": "cpu.calls:SmallWhileLoopHoisting",
        "convolution-group-converter": "cpu.layouts:ConvolutionGroupConverter",
        "convolution-canonicalization": "cpu.layouts:ConvCanonicalization",
        "layout-assignment": "cpu.layouts:CpuLayoutAssignment",
        "dot-library-rewriter": "cpu.ynnpack:LibraryRewriter",
    },
    "gpu": {
        "all-reduce-contiguous": "collectives:AllReduceContiguous",
        "async-collective-creator": "collectives:AsyncCollectiveCreator",
        "gpu-convert-async-collectives-to-sync": "collectives:ConvertAsyncCollectivesToSync",
        "loop-schedule-linearizer": "copy_insertion.buffer_alias:LoopScheduleLinearizer",
        "post-scheduling-copy-insertion": "copy_insertion.copy_insertion:PostSchedulingCopyInsertion",
        "fusion-wrapper": "fusion.before_fusion:GpuFusionWrapper",
        "cudnn-fused-convolution-rewriter": "gpu.convolutions.epilogues:CudnnFusedConvRewriter",
        "conv-padding-legalization": "gpu.convolutions.padding:ConvPaddingLegalization",
        "conv-rewriter": "gpu.convolutions.rewriter:ConvRewriter",
        "copy_fusion": "gpu.copies:CopyFusion",
        "convert-memory-placement-to-internal-annotations": (
            "control_flow.annotations:ConvertMemoryPlacementToInternalAnnotations"
        ),
        "host-memory-transfer-asyncifier": "gpu.copies:HostMemoryTransferAsyncifier",
        "host-offloader": "gpu.copies:HostOffloader",
        "move_copy_to_users": "gpu.copies:MoveCopyToUsers",
        "cublas-gemm-rewriter": "gpu.cublas.rewriter:CublasGemmRewriter",
        "cublas-pad-for-gemms": "gpu.cublas.rewriter:CublasPadForGemms",
        "cublas-gemm-broadcast-folding-rewriter": "gpu.cublas.rewriter:GemmBroadcastFoldingRewriter",
        "topk-specializer": "gpu.custom_calls:TopkSpecializer",
        "triangular-solve-rewriter": "gpu.custom_calls:TriangularSolveRewriter",
        "dynamic-slice-annotator": "gpu.dynamic_slice_annotator:DynamicSliceAnnotator",
        "dynamic-slice-copy-fusion-async-wrapper": (
            "gpu.dynamic_slice_annotator:DynamicSliceCopyFusionAsyncWrapper"
        ),
        "dot-strength-reduction": "gpu.gemm.around_fusion:DotStrengthReduction",
        "gemm-fusion-swap-operands": "gpu.gemm.around_fusion:GemmFusionSwapOperands",
        "splitk-rewriter": "gpu.gemm.around_fusion:SplitkRewriter",
        "triton-gemm-rewriter": "gpu.gemm.gemm_fusion:GemmFusion",
        "hoist-fused-bitcasts": "gpu.gemm.hoist_bitcasts:HoistFusedBitcasts",
        "layout-assignment": "gpu.layout_assignment:GpuLayoutAssignment",
        "rename_fusions": "gpu.custom_calls:RenameFusions",
        "rename-instructions": "gpu.custom_calls:RenameInstructions",
        "sanitize-constant-names": "gpu.custom_calls:SanitizeConstantNames",
        "reduce-decomposer": "gpu.reductions:ReduceDecomposer",
        "reduction-degenerate-dim-remover": "gpu.reductions:ReductionDegenerateDimRemover",
        "reduction-dimension-grouper": "gpu.reductions:ReductionDimensionGrouper",
        "reduction-layout-normalizer": "gpu.reductions:ReductionLayoutNormalizer",
        "reduction-splitter": "gpu.reductions:ReductionSplitter",
        "tree-reduction-rewriter": "gpu.reductions:TreeReductionRewriter",
        "scatter-slice-simplifier": "scatter.batched_gather_scatter_normalizer:ScatterSliceSimplifier",
        "fusion-block-level-rewriter": "gpu.triton_fusions:FusionBlockLevelRewriter",
        "triton-softmax-rewriter": "gpu.triton_fusions:SoftmaxRewriterTriton",
        "deviceless-estimate-cub-sort-scratch-size": "sort.sort_rewriter:EstimateCubSortScratchSize",
        "sort-rewriter": "sort.sort_rewriter:SortRewriter",
    },
}
"""The passes that only XLA's own lists have, with options that depend on their place."""
_CALLED = {"qr_expander": ("Qr", "ProductOfElementaryHouseholderReflectors"), "eigh_expander": ("Eigh",)}
"""Passes of XLA's lists that are not implemented, with the targets of the custom calls that they expand."""
_RARE = {
    "cholesky_expander": ("cholesky",),
    "rng-expander": ("rng",),
    "triangular_solve_expander": ("triangular-solve",),
}
"""Passes of XLA's lists that are not implemented, with the opcodes that they expand; few modules hold any."""
_TEXT = re.compile(r"\s*([\w\-]+)\s*(?:\((.*)\))?\s*")
_FIXPOINT = re.compile(r"\s*fixpoint\s*\((.*)\)\s*", re.DOTALL)


def split_passes(text: str) -> tuple[str, ...]:
    """The passes of a list, in order; commas within parentheses belong to a pass's options. HlofuseError for
    unbalanced parentheses or an empty list."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise HlofuseError(f"--passes {text}: a parenthesis is missing")
    found = tuple(p.strip() for p in (*parts, text[start:]))
    if not all(found):
        raise HlofuseError(f"--passes {text}: expected pass names separated by commas")
    return found


def repeated(text: str) -> tuple[str, ...] | None:
    """The passes that `fixpoint(…)` repeats until nothing changes; None for a single pass."""
    m = _FIXPOINT.fullmatch(text)
    return split_passes(m[1]) if m else None


def single_passes(passes: tuple[str, ...]) -> tuple[str, ...]:
    """Every pass named, those of a fixpoint once."""
    found: list[str] = []
    for text in passes:
        inner = repeated(text)
        found += [text] if inner is None else single_passes(inner)
    return tuple(found)


def pass_names(target: str) -> frozenset[str]:
    """Every pass that a user may list for `target`."""
    return frozenset({**_FUSION[""], **_FUSION.get(target, {})})


def places_of(target: str) -> dict[str, str]:
    """The place of every pass that `target` has, those of all targets included."""
    tables = [table.get(of, {}) for of in ("", target) for table in (_OTHERS, _FUSION)]
    return {name: where for table in tables for name, where in table.items()}


def pass_class(name: str, target: str = "") -> type[Pass] | None:
    """The class of XLA's pass of this name as `target` has it, imported now; None if there is none. The empty
    target has the passes that depend on no backend."""
    where = places_of(target).get(name)
    if where is None:
        return None
    module, _, kind = where.partition(":")
    found: type[Pass] = getattr(importlib.import_module(f"hlofuse.passes.{module}"), kind)
    return found


def make_pass(text: str, target: str, release: Release, settings: Settings = AS_XLA, **context: Any) -> Pass:
    """The pass that a user listed, such as `fusion(may_duplicate=false)`, in XLA of that release. `context`
    is the input of a run in addition to its options (the device); a pass gets its own fields of it. Raises
    `HlofuseError` for an unknown pass or option."""
    if (inner := repeated(text)) is not None:
        steps = [make_pass(step, target, release, settings, **context) for step in inner]
        return FixedPoint(Pipeline(text, steps), must_end=True)
    name = text.partition("(")[0].strip()
    if not _TEXT.fullmatch(text) or name not in pass_names(target):
        names = ", ".join(sorted(pass_names(target)))
        raise HlofuseError(f"target {target} has no pass {text!r}; expected one of {names}")
    pass_class(name, target)  # the knobs of its rules are known once it is imported
    settings = settings.in_release(release)
    return _create(text, target, {**context, "release": release, "settings": settings})


class OfReleases(Record):
    """Passes of a list that only some releases run."""

    span: Span
    steps: tuple[str | Pass, ...]


def since(release: str, *steps: str | Pass) -> OfReleases:
    """The passes that this release and later ones run."""
    return OfReleases(Span(since=release), steps)


def until(release: str, *steps: str | Pass) -> OfReleases:
    """The passes that this release and earlier ones run."""
    return OfReleases(Span(until=release), steps)


class PassLists(Record):
    """Builds XLA's own lists of passes for a target; a text stands for the pass that it describes. A pass
    takes from `context` what it has a field for. ValueError for a text that describes no pass."""

    target: str
    context: Mapping[str, Any]

    def pipeline(self, name: str, *steps: str | Pass | OfReleases) -> Pipeline:
        """The passes that the release of `context` runs, in order."""
        return Pipeline(name, tuple(self._listed(steps)))

    def _listed(self, steps: Iterable[str | Pass | OfReleases]) -> Iterator[Pass]:
        for step in steps:
            if not isinstance(step, OfReleases):
                yield self.step(step)
            elif step.span.includes(self.context["release"].name):
                yield from self._listed(step.steps)

    def fixed_point(self, step: str | Pass) -> FixedPoint:
        """The pass, repeated until it changes nothing."""
        return FixedPoint(self.step(step))

    def step(self, step: str | Pass) -> Pass:
        """The pass, created if `step` is its text; with the release of `context` where it depends on one."""
        if isinstance(step, str) and step in _CALLED:
            return UnimplementedPass(step, ("custom-call",), partial(_calls, _CALLED[step]))
        if isinstance(step, str) and step in _RARE:
            return UnimplementedPass(step, _RARE[step])
        if isinstance(step, str):
            return _create(step, self.target, self.context)
        if isinstance(step, FixedPoint):
            return replace(step, of=self.step(step.of))
        if "release" in self.context and any(f.name == "release" for f in fields(step)):
            changes: dict[str, Any] = {"release": self.context["release"]}
            return replace(step, **changes)
        return step


def _calls(targets: tuple[str, ...], x: Instruction) -> bool:
    return custom_call_target(x) in targets


def _create(text: str, target: str, context: Mapping[str, Any]) -> Pass:
    m = _TEXT.fullmatch(text)
    kind = pass_class(m[1], target) if m else None
    if m is None or kind is None:
        raise ValueError(f"no pass {text!r} for target {target!r}")
    options_of_kind = {f.name: f.default for f in fields(kind) if f.compare}
    options: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in (m[2] or "").split(","))):
        key, _, value = part.partition("=")
        if key.strip() not in options_of_kind:
            raise HlofuseError(
                f"pass {m[1]} has no option {key.strip()!r}; expected one of"
                f" {', '.join(options_of_kind) or 'none'}"
            )
        default, value = options_of_kind[key.strip()], value.strip()
        convert: Any = type(default)
        options[key.strip()] = value == "true" if isinstance(default, bool) else convert(value)
    present = {f.name for f in fields(kind)}
    return kind(**{**options, **{key: value for key, value in context.items() if key in present}})
