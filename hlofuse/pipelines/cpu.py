"""The passes that XLA:CPU runs before and after fusion, in order (`xla/service/cpu/cpu_compiler.cc`).
`RunHloPassesThroughLayoutAssn`, `CreateSimplificationPipeline` and `RunHloPassesAfterLayoutAssn`, with the
options that are on by default. Those for oneDNN and types smaller than a byte change nothing by default."""

from functools import cache

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Instruction, Predicate, Strings, replace
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint, Pipeline, UnimplementedPass
from hlofuse.passes.collectives import (
    AllReducePromotion,
    CollectiveCombiner,
    ConvertAsyncCollectivesToSync,
)
from hlofuse.passes.cpu.ynnpack import LibraryRewriter, is_computed_by_ynn
from hlofuse.passes.dot.dot_operands import OperandUpcaster
from hlofuse.passes.float.conversions import CPU_KEEPS_BF16, ChangeOpDataType, FloatNormalization
from hlofuse.passes.reduction import TreeReductionRewriter
from hlofuse.passes.registry import OfReleases, PassLists, since, until
from hlofuse.passes.sort.topk import TopkRewriter
from hlofuse.releases import AROUND_FUSION, Release, Span
from .flags import ynn_kinds

_ALGEBRAIC = Options(supports_non_canonical_dots=False, executing_on_cpu=True)


def _has_groups(x: Instruction) -> bool:
    """True for a convolution of groups that XLA:CPU takes apart."""
    if x.raw("batch_group_count") not in (None, "1"):
        return True
    is_native = x.element_type in ("f16", "f32")
    return x.raw("feature_group_count") not in (None, "1") and not is_native


def _simplification(lists: PassLists, name: str, is_of_library: Predicate) -> FixedPoint:
    """`CreateSimplificationPipeline`."""
    return FixedPoint(
        lists.pipeline(
            name,
            AlgebraicSimplifier(_ALGEBRAIC),
            "simplify-sorts",
            "dce",
            "gather_expander",
            since("0.5", "gather_simplifier"),
            OfReleases(Span("0.9", "0.9"), (TreeReductionRewriter(lambda x: not is_of_library(x), 1024),)),
            TreeReductionRewriter(is_of_library),
            "zero_sized_hlo_elimination",
            "while-loop-invariant-code-motion",
            "tuple-simplifier",
            "while-loop-constant-sinking",
            "simplify-while-loops",
            "dce",
            "reshape-mover",
            "constant_folding",
            "simplify-conditional",
        )
    )


_REPLACER = ConvertAsyncCollectivesToSync(name="async-collective-replacer", joins_all=True)
_WIDER = dict.fromkeys("f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e3m4".split(), "f16")
_WIDER |= {"s4": "s8", "u4": "u8", "f4e2m1fn": "f16", "f8e8m0fnu": "f32"}
"""Types that a CPU computes in a wider one (`cpu_compiler.cc`), in the order of the passes."""


@cache
def _before_fusion(release: Release, starts: frozenset[str]) -> tuple[Pipeline, ...]:
    """The pipelines of a release where YNNPACK computes operations of these opcodes."""
    lists = PassLists("cpu", {"release": release})

    def is_of_library(x: Instruction) -> bool:
        return x.opcode in starts and is_computed_by_ynn(x, release)

    def is_narrow(x: Instruction) -> bool:
        return is_of_library(x) or (release.cpu_keeps_bf16 and x.opcode in CPU_KEEPS_BF16)

    return (
        lists.pipeline("async-collective", since("0.10", _REPLACER)),
        lists.pipeline("pre-spmd-partitioner", since("0.10", "strip-memory-placement-annotations")),
        lists.pipeline("spmd-partitioner", since("0.7", "shardy-xla")),
        lists.pipeline(
            "sharding-removal",
            since("0.6", "flatten-call-graph"),
            "sharding-remover",
            UnimplementedPass("control-dep-rewriter"),
            "dce",
        ),
        lists.pipeline(
            "HLO_passes_through_layout_assignment",
            "batched_gather_scatter_normalizer",
            "result_caster",
            since("0.7", "dot_decomposer"),
            OperandUpcaster(is_of_library),
            "rng-expander",
            "rng-bit-generator-expander",
            "zero_sized_hlo_elimination",
            "dynamic-index-splitter",
            UnimplementedPass("conditional-to-select"),
            "map-inline",
            "topk-decomposer",
            since("0.11.1", "permutation_sort_simplifier"),
            "comparison-expander",
            "cholesky_expander",
            "qr_expander",
            "eigh_expander",
            "triangular_solve_expander",
            "all_to_all_decomposer",
            UnimplementedPass("stochastic_convert_decomposer", ("stochastic-convert",)),
            "call-inliner(single_call_site=true)",
            "batch-dot-simplification",
            "dot_decomposer",
            AllReducePromotion(widened={"bf16": "f32"}),
            FloatNormalization("bf16", "f32", is_narrow),
            *(FloatNormalization(low, high, lambda _: False) for low, high in _WIDER.items()),
            "batch-dot-simplification",
            "convolution-group-converter",
            UnimplementedPass("convolution-group-converter", ("convolution",), _has_groups),
            "batchnorm_expander",
            "logistic-expander",
            "conditional-canonicalizer",
            "dynamic-dimension-simplifier",
            "associative-scan-rewriter",
            lists.fixed_point("reduce-window-rewriter"),
            UnimplementedPass("reduce-window-resizer"),
            "scan_expander",
            "dynamic_padder",
            until("0.4", "select_and_scatter_expander", "scatter_expander(least_bits=1)"),
            "convolution-canonicalization",
            ChangeOpDataType(is_of_library),
            _simplification(lists, "simplification", is_of_library),
            since("0.5", "select_and_scatter_expander", "scatter_expander"),
            OfReleases(Span("0.5", "0.11"), ("scatter_simplifier",)),
            since("0.12", "scatter_simplifier(into_any_dimension=true)"),
            OfReleases(Span("0.5", "0.5"), ("scatter_expander(least_bits=1)",)),
            since("0.5", _simplification(lists, "post_scatter_expansion_simplification", is_of_library)),
            since("0.10", "gemv-rewriter(layout_sensitive=false)"),
            "bitcast_dtypes_expander",
            TopkRewriter(lambda sort: sort.operand.element_type == "f32"),
            "transpose-folding",
            "cse(layout_sensitive=false, only_fusion_computations=false)",
            until("0.10", "cse_barrier_expander", "tuple-simplifier"),
            "while-loop-trip-count-annotator",
            "flatten-call-graph",
            "layout-assignment",
        ),
        lists.pipeline(
            "hlo_normalization",
            "reshape-decomposer",
            "reduce-decomposer",
            "broadcast_canonicalizer",
        ),
        lists.pipeline(
            "dot-library-passes",
            since("0.7", "dot_decomposer", LibraryRewriter(starts)),
        ),
    )


def before_fusion(
    device: DeviceDescription | None, flags: Strings = (), release: Release = AROUND_FUSION
) -> tuple[Pipeline, ...]:
    """The pipelines of a release before fusion, for every device. A flag chooses what YNNPACK computes."""
    kinds = ynn_kinds(flags) if _YNN_SINCE.includes(release.name) else ()
    return _before_fusion(release, frozenset(o for kind in kinds for o in _YNN_OPCODES.get(kind, ())))


def after_fusion(
    device: DeviceDescription | None, flags: Strings = (), release: Release = AROUND_FUSION
) -> tuple[Pipeline, ...]:
    """The pipelines after fusion in `RunHloPassesAfterLayoutAssn`; no device and no flag changes them."""
    lists = PassLists("cpu", {"release": release})
    layout_sensitive = replace(_ALGEBRAIC, layout_sensitive=True, bitcast_convert_as_bitcast=True)
    simplify = lists.pipeline(
        "simplification_after_layout_assignment",
        AlgebraicSimplifier(layout_sensitive),
        "dce",
        "cse(only_fusion_computations=false)",
    )
    return (
        lists.pipeline(
            "HLO_passes_after_layout_assignment",
            since(
                "0.7",
                CollectiveCombiner(
                    name="cpu-all-reduce-combiner", opcode="all-reduce", max_bytes=None, max_count=256
                ),
                "tuple-simplifier",
            ),
            FixedPoint(simplify),
            since("0.11.2", "fusion-wrapper"),
            # It divides kernels among the threads of the compiling machine, which no dump has.
            UnimplementedPass("cpu-parallel-task-assigner"),
            "dce",
            "optimize_input_output_buffer_alias",
            "copy-insertion",
            OfReleases(Span("0.5", "0.11"), ("small-while-loop-hoisting",)),
            since("0.12", "small-while-loop-hoisting(byte_threshold=1000000000)"),
            "propagate-call-metadata",
            "dce",
        ),
        lists.pipeline(
            "HLO_passes_after_scheduling",
            since("0.11", "cse_barrier_expander(is_scheduled=true)", "tuple-simplifier"),
        ),
    )


_YNN_SINCE = Span("0.9")  # the releases whose jaxlib for a CPU calls YNNPACK (asked)
_YNN_OPCODES = {
    "individual_dot": ("dot",),
    "individual_convolution": ("convolution",),
    "reduce": ("reduce", "reduce-window"),
}
