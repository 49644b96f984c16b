"""The passes that XLA:GPU runs before fusion, in order (`xla/service/gpu/gpu_compiler.cc`).

`RunPreSPMDPartitionerPasses` to `OptimizeHloPostLayoutAssignment`, and what `nvptx_compiler.cc` puts before,
between and after them, with the options that are on by default and compiled ahead of time. Left out are
passes for types smaller than a byte, which change nothing here, and rare ones for several partitions."""

from typing import Any

from hlofuse.analysis.elementwise import without_views
from hlofuse.analysis.slice_copies import has_constant_offset, is_contiguous_slice
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Instruction, Strings, replace
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.collectives import AllReducePromotion
from hlofuse.passes.control_flow.annotations import ShardyXLA
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.dot.dot_operands import OperandUpcaster, ResultCaster, TransposeFolding
from hlofuse.passes.float.conversions import (
    ComparisonExpander,
    FloatNormalization,
    computes_bf16,
    library_takes_bf16,
)
from hlofuse.passes.gpu.convolutions.padding import is_padded_for_tensor_cores
from hlofuse.passes.gpu.convolutions.rewriter import is_lowerable, normalized_call
from hlofuse.passes.gpu.cublas.calls import CublasGemmRewriterF8, is_call, paddings
from hlofuse.passes.gpu.layout_assignment import can_fold_transpose, is_for_cublas
from hlofuse.passes.layout.layout_normalization import LayoutNormalization
from hlofuse.passes.registry import OfReleases, PassLists, since, until
from hlofuse.passes.sort.topk import TopkRewriter
from hlofuse.releases import AROUND_FUSION, Release, Span

_COMMON = Options(
    dot_strength_reduction=False,
    supports_non_canonical_dots=False,
    unconditional_reduce_of_concatenate=False,
    conditional_simplification=True,
    bitcast_convert_as_bitcast=True,
    fold_transpose_into_scatter=True,
    to_fixed_point=False,
)
# `GetAlgebraicSimplifierOptions`, by mode.
_LAYOUT_INSENSITIVE = replace(
    _COMMON,
    unconditional_reduce_of_transpose=True,
    hoist_transpose_of_reshape=True,
    conv_is_lowerable=is_lowerable,
)
ALGSIMP = AlgebraicSimplifier(_LAYOUT_INSENSITIVE)
ALGSIMP_AFTER_FUSION = AlgebraicSimplifier(replace(_LAYOUT_INSENSITIVE, layout_sensitive=True))
ALGSIMP_CONVOLUTIONS = AlgebraicSimplifier(replace(_COMMON, conv_operand_swap=False))
_LAYOUT_SENSITIVE = replace(_COMMON, conv_operand_swap=False, layout_sensitive=True)
ALGSIMP_LAYOUTS = FixedPoint(AlgebraicSimplifier(_LAYOUT_SENSITIVE))
ALGSIMP_LAST = FixedPoint(AlgebraicSimplifier(replace(_LAYOUT_SENSITIVE, remove_no_op_reduce_precision=True)))
NORMALIZATION = LayoutNormalization(normalized_call)
FOLDING = TransposeFolding(can_fold_transpose)
FOLDING_ALL = TransposeFolding(can_fold_transpose, into_convolutions=True)
FOLDING_CONVOLUTIONS = TransposeFolding(lambda dot, side: False, into_convolutions=True)


def pass_lists(device: DeviceDescription, release: Release = AROUND_FUSION, **context: Any) -> PassLists:
    return PassLists("gpu", {"device": device, "release": release, **context})


def _normalization(lists: PassLists, device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its first pipeline."""
    triton = has_triton(device)
    steps: list[Pass | str | OfReleases] = [
        ALGSIMP_LAYOUTS,
        since("0.8", "bitcast_dtypes_expander"),
        FOLDING,
        "reshape-decomposer",
        "reduce-decomposer",
        UnimplementedPass("dot_normalizer"),
    ]
    if triton:
        steps += [
            UnimplementedPass("dot_dimension_normalizer"),
            "gemv-rewriter",
            since("0.10", "splitk-rewriter"),
            OfReleases(Span("0.6.1", "0.8"), ("transpose-dimension-grouper",)),
            "triton-gemm-rewriter",
            OfReleases(Span("0.10", "0.11"), ("hoist-fused-bitcasts",)),
            "gemm-fusion-swap-operands",
            OfReleases(Span("0.9.2", "0.9"), ("hoist-fused-bitcasts",)),
        ]
    steps += [
        since("0.10", *paddings(device), "constant_folding"),
        UnimplementedPass("dot-algorithm-rewriter"),
        CublasGemmRewriterF8(),
        "cublas-gemm-rewriter",
        "cublas-gemm-broadcast-folding-rewriter",
        "reshape-decomposer",
        NORMALIZATION,
        ALGSIMP_LAYOUTS,
        "scatter_simplifier",
        "broadcast_canonicalizer",
        until("0.8", "transpose-dimension-grouper"),
        "reduction-degenerate-dim-remover",
        "reduction-layout-normalizer",
    ]
    if triton:
        softmax = (
            ALGSIMP_LAYOUTS,
            "cse(only_fusion_computations=false)",
            "constant_folding",
            "dce",
            "triton-softmax-rewriter",
        )
        steps.append(since("0.4.38", *softmax))
    steps += [
        "reduction-dimension-grouper",
        lists.fixed_point("reduction-splitter"),
        lists.fixed_point("tree-reduction-rewriter"),
        "deviceless-estimate-cub-sort-scratch-size",
    ]
    return lists.pipeline("hlo_normalization", *steps)


def has_triton(device: DeviceDescription) -> bool:
    """`IsTritonEnabled`: not before Ampere."""
    return device.compute_capability[0] >= 8


def _post_layout_assignment(lists: PassLists, device: DeviceDescription) -> Pipeline:
    """`OptimizeHloPostLayoutAssignment`, its second pipeline."""
    release = lists.context["release"]
    wide = FloatNormalization("bf16", "f32", computes_bf16(device, release), enters_custom_fusions=True)
    floats = lists.pipeline("float_normalization", wide, "simplify-fp-conversions")
    return lists.pipeline(
        "post-layout_assignment",
        floats,
        "cublas-gemm-broadcast-folding-rewriter",
        "reshape-decomposer",
        NORMALIZATION,
        "scatter_simplifier",
        "host-offloader",
        floats,
        OfReleases(Span("0.7", "0.8.1"), ("hoist-fused-bitcasts(whole=true)",)),
        OfReleases(Span("0.8.2", "0.9.1"), ("hoist-fused-bitcasts",)),
        "tuple-simplifier",
        ALGSIMP_LAYOUTS,
        "simplify-fp-conversions",
        lists.pipeline("remove-no-op-reduce-precision-algebraic-simplifier", ALGSIMP_LAST),
        "cse(only_fusion_computations=false)",
        "host-memory-transfer-asyncifier",
    )


# `xla_gpu_dot_merger_threshold_mb`
_MERGER, _MERGER_AT_FIRST = DotMerger(64 << 20), DotMerger(32 << 20)
_MOVER = "reshape-mover(reshape_of_1d_broadcast_is_cheap=true)"


def _in_0_7(*steps: str | Pass) -> OfReleases:
    """The passes of 0.7 alone, which moves no reshapes and runs `convert-mover` with the others."""
    return OfReleases(Span("0.7", "0.7"), steps)


def _but_in_0_7(*steps: str | Pass) -> tuple[OfReleases, OfReleases]:
    return until("0.6", *steps), since("0.8", *steps)


def _is_for_cublas(x: Instruction) -> bool:
    return x.is_dot and is_for_cublas(x, of_vectors=False)


def _simplification(lists: PassLists) -> FixedPoint:
    return FixedPoint(
        lists.pipeline(
            "simplification",
            "zero_sized_hlo_elimination",
            "gather_simplifier",
            "gather_expander",
            "scatter_simplifier",
            "scatter_expander",
            "scatter-slice-simplifier",
            "dot-strength-reduction",
            since("0.12", "degenerate-dimension-rewriter"),
            ALGSIMP,
            until("0.7", "bitcast_dtypes_expander", _MERGER_AT_FIRST),
            "simplify-sorts",
            "tuple-simplifier",
            "while-loop-constant-sinking",
            "simplify-while-loops",
            "slice-sinker",
            *_but_in_0_7(_MOVER),
            "constant_folding",
            "simplify-conditional",
            until("0.7", FOLDING_ALL),
            since("0.8", FOLDING_CONVOLUTIONS),
            "cse(layout_sensitive=false, only_fusion_computations=false)",
            "dce",
            _in_0_7("convert-mover", ALGSIMP),
        )
    )


def _before_partitioner(lists: PassLists) -> FixedPoint:
    """The first pipeline of `AddSPMDPasses` (`xla/service/gpu/gpu_spmd_pipeline.cc`)."""
    return FixedPoint(
        lists.pipeline(
            "spmd-simplify",
            ALGSIMP,
            "simplify-sorts",
            "tuple-simplifier",
            "scatter_expander",
            "gather_expander",
            "while-loop-constant-sinking",
            "simplify-while-loops",
            _MOVER,
            FixedPoint(ALGSIMP),
            "constant_folding",
            "simplify-conditional",
        )
    )


def _optimization(lists: PassLists, device: DeviceDescription) -> Pipeline:
    """`RunOptimizationPasses`."""
    skipped = (_is_for_cublas,) if device.compute_capability[0] >= 7 else ()
    return lists.pipeline(
        "optimization",
        "ragged_dot_rewriter",
        "batched_gather_scatter_normalizer",
        UnimplementedPass("topk-splitter"),
        "topk-specializer",
        "topk-decomposer",
        "dot_dimension_sorter",
        "dot_decomposer",
        ResultCaster(*skipped),
        OperandUpcaster(*skipped),
        "operand_converter",
        "rng-expander",
        "rng-bit-generator-expander",
        since("0.8.2", "permutation_sort_simplifier"),
        "sort-rewriter",
        ComparisonExpander({"bf16": "f32"}),
        until("0.11", "zero_sized_hlo_elimination"),
        "select_and_scatter_expander",
        "cholesky_expander",
        "scatter_expander(least_bits=65)",
        "qr_expander",
        "eigh_expander",
        "dynamic-index-splitter",
        "call-inliner",
        "batchnorm_expander",
        "logistic-expander",
        "conditional-canonicalizer",
        "dynamic-dimension-simplifier",
        until("0.11", UnimplementedPass("scan-rewriter", ("scan",))),
        "associative-scan-rewriter",
        lists.fixed_point("reduce-window-rewriter"),
        UnimplementedPass("reduce-window-resizer"),
        until("0.11", UnimplementedPass("scan_expander", ("scan",))),  # of those that CUB does not take
        since("0.12", "scan_expander"),
        since("0.12", "call-inliner"),
        "dynamic_padder",
        "stable-sort-expander",
        _simplification(lists),
        OfReleases(Span("0.8", "0.8"), (_MERGER_AT_FIRST,)),
        since("0.9", _MERGER),
        since("0.11", "dot_dimension_normalizer"),
        since("0.8", FOLDING_ALL),
        *_but_in_0_7(FixedPoint(lists.pipeline("simplification-2", "convert-mover", ALGSIMP))),
        "computation-deduplicator",
    )


def _convolutions(lists: PassLists, device: DeviceDescription) -> Pipeline:
    """`OptimizeHloConvolutionCanonicalization`."""
    return lists.pipeline(
        "conv_canonicalization",
        FloatNormalization(
            "bf16", "f32", library_takes_bf16(device, "convolution"), enters_custom_fusions=True
        ),
        FloatNormalization("bf16", "f32", library_takes_bf16(device, "dot"), enters_custom_fusions=True),
        "conv-rewriter",
        "cudnn-fused-convolution-rewriter",
        "conv-padding-legalization",
        UnimplementedPass("cudnn_pad_for_convolutions", ("custom-call",), is_padded_for_tensor_cores),
        "call-inliner",
        "tuple-simplifier",
        FixedPoint(ALGSIMP_CONVOLUTIONS),
        *_but_in_0_7(
            FixedPoint(
                lists.pipeline(
                    "reshape_mover_after_conv_canonicalization",
                    _MOVER,
                    ALGSIMP_CONVOLUTIONS,
                )
            ),
            FixedPoint(
                lists.pipeline(
                    "simplify_after_conv_canonicalization",
                    "convert-mover",
                    ALGSIMP_CONVOLUTIONS,
                )
            ),
        ),
        _in_0_7("convert-mover", ALGSIMP_CONVOLUTIONS),
        "constant_folding",
    )


def _is_added_up_in_loop(x: Instruction) -> bool:
    callers = x.computation.callers if x.computation is not None else ()
    readers = {*x.users, *(v for u in x.users if u.is_reshape for v in u.users)}
    collected = any(r.opcode in ("add", "dynamic-update-slice") for r in readers)
    return collected and any(c.is_while for c in callers)


def _reads_slice(call: Instruction) -> bool:
    """True for a product of cuBLAS or an FFI call that may read or write a slice in place."""
    if not is_call(call) and call.raw("api_version") != "API_VERSION_TYPED_FFI":
        return False
    near = (*map(without_views, call.operands), *call.users)
    return any(is_contiguous_slice(x) for x in near if x.is_slice or has_constant_offset(x))


def before_fusion(
    device: DeviceDescription | None, flags: Strings = (), release: Release = AROUND_FUSION
) -> tuple[Pipeline, ...]:
    """The pipelines for one device; none unless it is NVIDIA's. No flag changes the list."""
    if device is None or device.platform != "CUDA":
        return ()
    lists = pass_lists(device, release)
    return (
        lists.pipeline(
            "pre-spmd-partitioner",
            "convert-memory-placement-to-internal-annotations",
            "flatten-call-graph",
            "call-inliner",
            "zero_sized_hlo_elimination",
            since("0.12", ALGSIMP),
            "conditional-canonicalizer",
            "topk-decomposer(of_calls=false)",
            TopkRewriter(lambda sort: True),
        ),
        lists.pipeline("spmd-partitioner", ShardyXLA(first=_before_partitioner(lists), folds_sums=True)),
        lists.pipeline("sharding-removal", "sharding-remover", "dce"),
        _optimization(lists, device),
        lists.pipeline(
            "collective-optimizations",
            "all-reduce-simplifier",
            "all-reduce-reassociate",
            UnimplementedPass("while-loop-all-reduce-code-motion", ("all-reduce",), _is_added_up_in_loop),
            "dce",
            UnimplementedPass(
                "reduce-scatter-creator",
                ("all-reduce",),
                lambda x: any(u.opcode == "dynamic-slice" for u in x.users),
            ),
            AllReducePromotion(widened={"u16": "u32", "s16": "s32"}),
            "dce",
            "while-loop-trip-count-annotator",
        ),
        _convolutions(lists, device),
        lists.pipeline(
            "layout_assignment",
            "flatten-call-graph",
            "layout-assignment",
            "optimize_input_output_buffer_alias",
        ),
        lists.pipeline(
            "layout_normalization",
            "reshape-decomposer",
            lists.fixed_point("move_copy_to_users"),
            NORMALIZATION,
            ALGSIMP_LAYOUTS,
            "broadcast_canonicalizer",
            "scatter_simplifier",
        ),
        lists.pipeline(
            "nvptx_post-layout_assignment_part_1",
            "dot_dimension_merger",
            until("0.9", *paddings(device, with_triton=has_triton(device)), "constant_folding"),
        ),
        _normalization(lists, device),
        _post_layout_assignment(lists, device),
        lists.pipeline("nvptx_post-layout_assignment_part_2", "triangular-solve-rewriter"),
        lists.pipeline(
            "dynamic-slice",
            "dynamic-slice-annotator",
            UnimplementedPass("dynamic-slice-fusion-rewriter-v2", ("custom-call",), _reads_slice),
        ),
        lists.pipeline("pre-fusion", "rename-instructions"),
    )
