"""Target-independent passes as actions: a search runs them in any order on a module before optimizations.

The default orders to compare with are those of XLA's backends, reduced to these passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hlofuse.ir.graph import Module
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.reshape_mover import ReshapeMover, SliceSinker
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.control_flow.call_graph import CallInliner, FlattenCallGraph, HloComputationDeduplicator
from hlofuse.passes.control_flow.conditional_simplifier import ConditionalCanonicalizer, ConditionalSimplifier
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.passes.dot.dot_dimensions import DotDecomposer, DotDimensionMerger, DotDimensionSorter
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.dot.dot_operands import (
    BatchDotSimplifier,
    OperandUpcaster,
    ResultCaster,
    TransposeFolding,
)
from hlofuse.passes.dot.dynamic_dimension_simplifier import DynamicDimensionSimplifier
from hlofuse.passes.float.conversions import (
    BitcastDtypesExpander,
    ComparisonExpander,
    ConvertMover,
    LogisticExpander,
    SimplifyFPConversions,
)
from hlofuse.passes.layout.layout_normalization import BroadcastCanonicalizer
from hlofuse.passes.linear_algebra.decompositions import EighExpander, QrExpander
from hlofuse.passes.linear_algebra.triangular import CholeskyExpander, TriangularSolveExpander
from hlofuse.passes.loop.code_motion import (
    WhileLoopConstantSinking,
    WhileLoopExpensiveInvariantCodeMotion,
    WhileLoopInvariantCodeMotion,
)
from hlofuse.passes.loop.simplifier import HloModuleDCE, WhileLoopSimplifier
from hlofuse.passes.random import RngBitGeneratorExpander, RngExpander
from hlofuse.passes.rare import BatchNormExpander, DynamicIndexSplitter, MapInliner, ZeroSizedHloElimination
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
from hlofuse.passes.sort.sorts import SortSimplifier, StableSortExpander
from hlofuse.passes.sort.topk import TopkDecomposer
from hlofuse.pipelines.targets import before_fusion
from hlofuse.releases import AROUND_FUSION
from hlofuse.trace import Recorder

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

Kind = Literal["simplify", "expand", "merge"]
_PAIRS, _CASES = "XLA's dumps", "small cases"
_CPU = Options(supports_non_canonical_dots=False, executing_on_cpu=True)


@dataclass(frozen=True, slots=True)
class Action:
    """A pass with its options."""

    kind: Kind
    """What it does most: fewer or cheaper instructions, several for one, one for several."""
    step: Pass
    opcodes: tuple[str, ...] = ()
    """The precondition: without one of these in the module, nothing changes. Empty for none."""
    name: str = ""
    """XLA's name with the options that differ from the pass's own."""
    evidence: str = _PAIRS
    """What it was compared with: XLA's modules around the pass, or small cases with XLA's answer."""

    def applies(self, opcodes: Iterable[str]) -> bool:
        """False where a module of these opcodes stays as it is for sure."""
        return not self.opcodes or not set(self.opcodes).isdisjoint(opcodes)

    def run(self, module: Module) -> bool:
        """Run it on the module in place; True if that changed anything."""
        return self.step.run(module, Recorder())


def _action(kind: Kind, step: Pass, *opcodes: str, name: str = "", evidence: str = _PAIRS) -> Action:
    return Action(kind, step, opcodes, name or str(step), evidence)


_GATHERS, _LOOPS, _DOTS = ("gather",), ("while",), ("dot",)
ACTIONS: dict[str, Action] = {
    a.name: a
    for a in (
        _action("simplify", AlgebraicSimplifier(_CPU), name="algsimp"),
        _action("simplify", AlgebraicSimplifier(Options()), name="algsimp(supports_non_canonical_dots=true)"),
        _action(
            "simplify",
            AlgebraicSimplifier(replace(_CPU, dot_strength_reduction=False, dot_to_multiply=False)),
            name="algsimp(dot_strength_reduction=false)",
        ),
        _action(
            "merge",
            HloCSE(release=AROUND_FUSION, layout_sensitive=False, only_fusion_computations=False),
            name="cse",
        ),
        _action("simplify", HloDCE()),
        _action("simplify", HloConstantFolding()),
        _action("simplify", TupleSimplifier(), "tuple", "get-tuple-element"),
        _action("simplify", ReshapeMover(), "reshape", "transpose"),
        _action("simplify", ReshapeMover(reshape_of_1d_broadcast_is_cheap=True), "reshape", "transpose"),
        _action("simplify", SliceSinker(), "slice", evidence=_CASES),
        _action("simplify", ConvertMover(), "convert", evidence=_CASES),
        _action("simplify", SimplifyFPConversions(), "convert"),
        _action("simplify", BroadcastCanonicalizer(), "broadcast", evidence=_CASES),
        _action("simplify", ZeroSizedHloElimination(), evidence=_CASES),
        _action("simplify", SortSimplifier(), "sort", evidence=_CASES),
        _action("simplify", DynamicDimensionSimplifier()),
        _action("simplify", WhileLoopSimplifier(), *_LOOPS),
        _action("simplify", WhileLoopInvariantCodeMotion(), *_LOOPS),
        _action("simplify", WhileLoopConstantSinking(), *_LOOPS),
        _action("simplify", WhileLoopExpensiveInvariantCodeMotion(), *_LOOPS, evidence=_CASES),
        _action("simplify", HloModuleDCE(), evidence=_CASES),
        _action("simplify", ConditionalSimplifier(), "conditional"),
        _action("expand", ConditionalCanonicalizer(), "conditional"),
        _action("expand", GatherSimplifier(), *_GATHERS),
        _action("expand", ScatterSimplifier(), "scatter"),
        _action("expand", BatchedGatherScatterNormalizer(), "gather", "scatter"),
        _action("simplify", TransposeFolding(), *_DOTS),
        _action("simplify", BatchDotSimplifier(), *_DOTS, evidence=_CASES),
        _action("simplify", DotDimensionSorter(), *_DOTS, evidence=_CASES),
        _action("simplify", DotDimensionMerger(), *_DOTS),
        _action("expand", DotDecomposer(), *_DOTS),
        _action("merge", DotMerger(64 << 20), *_DOTS, name="dot-merger", evidence=_CASES),
        _action("merge", HloComputationDeduplicator()),
        _action("expand", CallInliner(), "call"),
        _action("expand", CallInliner(single_call_site=True), "call"),
        _action("expand", FlattenCallGraph()),
        _action("expand", MapInliner(), "map", evidence=_CASES),
        _action(
            "expand",
            BatchNormExpander(),
            "batch-norm-training",
            "batch-norm-inference",
            "batch-norm-grad",
            evidence=_CASES,
        ),
        _action("expand", LogisticExpander(), "logistic", evidence=_CASES),
        _action("expand", ComparisonExpander(), "compare", name="comparison-expander"),
        _action("expand", BitcastDtypesExpander(), "bitcast-convert"),
        _action("expand", GatherExpander(), *_GATHERS, evidence=_CASES),
        _action("expand", ScatterExpander(), "scatter"),
        _action("expand", SelectAndScatterExpander(), "select-and-scatter"),
        _action("expand", TopkDecomposer(), "topk", "custom-call"),
        _action("expand", StableSortExpander(), "sort"),
        _action("expand", ReduceWindowRewriter(), "reduce-window"),
        _action("expand", TreeReductionRewriter(lambda x: False), "reduce", name="tree_reduction_rewriter"),
        _action("expand", OperandUpcaster(), "dot", "convolution", evidence=_CASES),
        _action("expand", ResultCaster(), "dot", "convolution", evidence=_CASES),
        _action("expand", DynamicIndexSplitter(), "dynamic-slice", "dynamic-update-slice", evidence=_CASES),
        _action("expand", CholeskyExpander(), "cholesky", evidence=_CASES),
        _action("expand", TriangularSolveExpander(), "triangular-solve", evidence=_CASES),
        _action("expand", QrExpander(), "custom-call", evidence=_CASES),
        _action("expand", EighExpander(), "custom-call", evidence=_CASES),
        _action("expand", RngExpander(), "rng", evidence=_CASES),
        _action("expand", RngBitGeneratorExpander(), "rng-bit-generator", evidence=_CASES),
    )
}
_NAMES = {a.step.name for a in ACTIONS.values()}


def default_order(target: str, device: DeviceDescription | None = None) -> Pass:
    """XLA's order of these passes before fusion, fixed points included."""
    return Pipeline(target, [s for p in before_fusion(target, device) for s in _reduced(p)])


def _reduced(step: Pass) -> list[Pass]:
    """The pass without what is no action."""
    if isinstance(step, Pipeline):
        inner = [s for x in step.steps for s in _reduced(x)]
        return [replace(step, steps=inner)] if inner else []
    if isinstance(step, FixedPoint):
        return [replace(step, of=s) for s in _reduced(step.of)]
    return [step] if step.name in _NAMES and not isinstance(step, UnimplementedPass) else []
