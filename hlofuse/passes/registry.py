"""Every pass by XLA's name, and lists of passes as a user writes them: `fusion, fixpoint(cse, dce)`. XLA's
own lists (`hlofuse.pipelines`), `--passes` and searches take them from here."""

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache, partial
from typing import Any

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir import HlofuseError, Instruction, Record, Strings, replace
from hlofuse.releases import Release, Span
from hlofuse.rules.settings import AS_XLA, Settings
from .base import FixedPoint, Pass, Pipeline, UnimplementedPass

# By target and file below `hlofuse.passes`, the passes in it by XLA's name; the class that states this name
# is the pass, or the class that follows. Several targets have a pass of the same name. The empty target has
# those that all share.
_FUSION: dict[str, dict[str, str]] = {
    "": {
        "cse": "cse",
        "dce": "dce tuple-simplifier",
    },
    "gpu": {
        "fusion.before_fusion": "variadic-op-splitter sort-iota-fusion",
        "fusion.priority_fusion.priority_fusion": "priority-fusion",
        "fusion.gpu_multi_output_fusion": "multi_output_fusion",
        "fusion.horizontal_fusion": "horizontal_loop_fusion horizontal_input_fusion",
    },
    "gpu-legacy": {
        "fusion.before_fusion": "variadic-op-splitter",
        "fusion.gpu_legacy": "fusion fusion_merger",
        "fusion.gpu_multi_output_fusion": "multi_output_fusion",
        "fusion.horizontal_fusion": "horizontal_loop_fusion horizontal_input_fusion",
    },
    "cpu": {
        "fusion.cpu_fusion": "fusion cpu_multi_output_fusion",
        "fusion.before_fusion": "fusion-wrapper:CpuFusionWrapper",
    },
}
"""The passes that a user may list (`--passes`)."""
_OTHERS: dict[str, dict[str, str]] = {
    "": {
        "algebraic.constant_folding": "constant_folding",
        "algebraic.reshape_mover": "degenerate-dimension-rewriter reshape-mover slice-sinker",
        "algebraic.simplifier": "algsimp",
        "collectives": "all-reduce-promotion all-reduce-reassociate all_to_all_decomposer",
        "control_flow.annotations": (
            "all-reduce-simplifier cse_barrier_expander sharding-remover shardy-xla "
            "strip-memory-placement-annotations"
        ),
        "control_flow.call_graph": (
            "call-inliner flatten-call-graph computation-deduplicator propagate-call-metadata"
        ),
        "control_flow.conditional_simplifier": "conditional-canonicalizer simplify-conditional",
        "copy_insertion.buffer_alias": "optimize_input_output_buffer_alias",
        "copy_insertion.copy_insertion": "copy-insertion",
        "dot.dot_dimensions": (
            "dot_decomposer dot_dimension_merger dot_dimension_normalizer dot_dimension_sorter "
            "dynamic-dimension-simplifier ragged_dot_rewriter"
        ),
        "dot.dot_merger": "dot-merger",
        "dot.dot_operands": (
            "batch-dot-simplification operand_converter gemv-rewriter operand_upcaster result_caster "
            "transpose-folding"
        ),
        "float.conversions": (
            "bitcast_dtypes_expander change-op-data-type comparison-expander convert-mover "
            "float-normalization-bf16:FloatNormalization logistic-expander simplify-fp-conversions"
        ),
        "gpu.reductions": "reduce-decomposer",
        "layout.layout_normalization": "broadcast_canonicalizer layout_normalization reshape-decomposer",
        "loop.code_motion": "while-loop-constant-sinking while-loop-invariant-code-motion",
        "loop.simplifier": "simplify-while-loops",
        "loop.trip_count": "while-loop-trip-count-annotator",
        "random": "rng-bit-generator-expander",
        "rare": (
            "batchnorm_expander dynamic-index-splitter dynamic_padder map-inline zero_sized_hlo_elimination"
        ),
        "reduction": "associative-scan-rewriter reduce-window-rewriter scan_expander tree_reduction_rewriter",
        "scatter.batched_gather_scatter_normalizer": (
            "batched_gather_scatter_normalizer select_and_scatter_expander"
        ),
        "scatter.gather_scatter": "gather_expander gather_simplifier scatter_expander scatter_simplifier",
        "sort.sort_rewriter": "permutation_sort_simplifier simplify-sorts stable-sort-expander",
        "sort.topk": "topk-decomposer topk-rewriter",
    },
    "cpu": {
        "cpu.calls": "small-while-loop-hoisting",
        "cpu.layouts": "convolution-group-converter convolution-canonicalization layout-assignment",
        "cpu.ynnpack": "dot-library-rewriter",
    },
    "gpu": {
        "collectives": "all-reduce-contiguous async-collective-creator gpu-convert-async-collectives-to-sync",
        "copy_insertion.buffer_alias": "loop-schedule-linearizer",
        "copy_insertion.copy_insertion": "post-scheduling-copy-insertion",
        "fusion.before_fusion": "fusion-wrapper:GpuFusionWrapper",
        "gpu.convolutions.epilogues": "cudnn-fused-convolution-rewriter",
        "gpu.convolutions.padding": "conv-padding-legalization",
        "gpu.convolutions.rewriter": "conv-rewriter",
        "gpu.copies": (
            "constant-fill-copy-rewriter copy_fusion host-memory-transfer-asyncifier host-offloader "
            "move_copy_to_users"
        ),
        "control_flow.annotations": "convert-memory-placement-to-internal-annotations",
        "gpu.cublas.calls": (
            "cublas-gemm-rewriter:CublasGemmRewriter cublas-pad-for-gemms "
            "cublas-gemm-broadcast-folding-rewriter"
        ),
        "gpu.custom_calls": (
            "topk-specializer triangular-solve-rewriter rename_fusions rename-instructions "
            "sanitize-constant-names"
        ),
        "gpu.dynamic_slice_annotator": "dynamic-slice-annotator dynamic-slice-copy-fusion-async-wrapper",
        "gpu.gemm.around_fusion": "dot-strength-reduction gemm-fusion-swap-operands splitk-rewriter",
        "gpu.gemm.gemm_fusion": "triton-gemm-rewriter",
        "gpu.gemm.tileable": "hoist-fused-bitcasts",
        "gpu.layout_assignment": "layout-assignment",
        "gpu.reductions": (
            "reduction-degenerate-dim-remover reduction-dimension-grouper "
            "reduction-layout-normalizer reduction-splitter transpose-dimension-grouper "
            "tree-reduction-rewriter"
        ),
        "scatter.batched_gather_scatter_normalizer": "scatter-slice-simplifier",
        "gpu.triton_fusions": "fusion-block-level-rewriter triton-softmax-rewriter",
        "sort.sort_rewriter": "deviceless-estimate-cub-sort-scratch-size sort-rewriter",
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


def split_passes(text: str) -> Strings:
    """The passes of a list, options in parentheses. HlofuseError for unbalanced ones or an empty list."""
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


def repeated(text: str) -> Strings | None:
    """The passes that `fixpoint(…)` repeats until nothing changes; None for a single pass."""
    m = _FIXPOINT.fullmatch(text)
    return split_passes(m[1]) if m else None


def single_passes(passes: Strings) -> Strings:
    """Every pass named, those of a fixpoint once."""
    found = list[str]()
    for text in passes:
        inner = repeated(text)
        found += [text] if inner is None else single_passes(inner)
    return tuple(found)


def pass_names(target: str) -> frozenset[str]:
    """Every pass that a user may list for `target`."""
    return frozenset(_places(target, _FUSION))


def places_of(target: str) -> dict[str, tuple[str, str]]:
    """The file and class of every pass of `target`, common ones included; no class: of that name."""
    return _places(target, _OTHERS, _FUSION)


def _places(target: str, *tables: dict[str, dict[str, str]]) -> dict[str, tuple[str, str]]:
    files = [f for of in ("", target) for table in tables for f in table.get(of, {}).items()]
    passes = [(text.partition(":"), file) for file, names in files for text in names.split()]
    return {name: (file, kind) for (name, _, kind), file in passes}


@cache
def pass_class(name: str, target: str) -> type[Pass] | None:
    """The class of XLA's pass of this name of `target`, imported now, or None; "" is of no backend."""
    file, named = places_of(target).get(name, ("", ""))
    if not file:
        return None
    module = importlib.import_module(f"hlofuse.passes.{file}")
    own = [k for k in vars(module).values() if isinstance(k, type) and k.__module__ == module.__name__]
    return getattr(module, named) if named else next(k for k in own if getattr(k, "name", None) == name)


def make_pass(text: str, target: str, release: Release, settings: Settings = AS_XLA, **context: Any) -> Pass:
    """The pass that a user listed, such as `fusion(may_duplicate=false)`, in XLA of that release. A pass
    gets its own fields of `context` (the device). `HlofuseError` for an unknown pass or option."""
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
            changes = {"release": self.context["release"]}
            return replace(step, **changes)
        return step


def _calls(targets: Strings, x: Instruction) -> bool:
    return custom_call_target(x) in targets


def _create(text: str, target: str, context: Mapping[str, Any]) -> Pass:
    m = _TEXT.fullmatch(text)
    kind = pass_class(m[1], target) if m else None
    if m is None or kind is None:
        raise ValueError(f"no pass {text!r} for target {target!r}")
    options_of_kind = {f.name: f.default for f in fields(kind) if f.compare}
    options = {}
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
