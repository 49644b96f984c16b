"""Passes by name, and lists of passes as a user writes them: `fusion, fixpoint(fusion_merger, cse, dce)`.

A pass's file is imported only when the pass is made. Passes before fusion are made by the lists of their
backend (`hlofuse.pipelines`), because XLA runs most of them there with options of their own.
"""

import importlib
import re
from dataclasses import fields
from typing import Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.passes.base import FixedPoint, Pass, Pipeline
from hlofuse.releases import Release
from hlofuse.rules.settings import AS_XLA, Settings

# Several targets have a pass of the same name; the empty target holds those all share.
_PASSES: dict[str, dict[str, str]] = {
    "": {
        "cse": "hlofuse.passes.cse:HloCSE",
        "dce": "hlofuse.passes.dce:HloDCE",
        "hlo-module-dce": "hlofuse.passes.loop.simplifier:HloModuleDCE",
        "tuple-simplifier": "hlofuse.passes.dce:TupleSimplifier",
        "while-loop-expensive-invariant-code-motion": (
            "hlofuse.passes.loop.code_motion:WhileLoopExpensiveInvariantCodeMotion"
        ),
    },
    "gpu": {
        "variadic-op-splitter": "hlofuse.passes.fusion.before_fusion:VariadicOpSplitter",
        "sort-iota-fusion": "hlofuse.passes.fusion.before_fusion:SortIotaFusion",
        "priority-fusion": "hlofuse.passes.fusion.priority_fusion.priority_fusion:PriorityFusion",
        "multi_output_fusion": "hlofuse.passes.fusion.gpu_multi_output_fusion:GpuMultiOutputFusion",
        "horizontal_loop_fusion": "hlofuse.passes.fusion.horizontal_fusion:HorizontalLoopFusion",
        "horizontal_input_fusion": "hlofuse.passes.fusion.horizontal_fusion:HorizontalInputFusion",
    },
    "gpu-legacy": {
        "variadic-op-splitter": "hlofuse.passes.fusion.before_fusion:VariadicOpSplitter",
        "fusion": "hlofuse.passes.fusion.gpu_legacy:GpuInstructionFusion",
        "fusion_merger": "hlofuse.passes.fusion.gpu_legacy:FusionMerger",
        "multi_output_fusion": "hlofuse.passes.fusion.gpu_multi_output_fusion:GpuMultiOutputFusion",
        "horizontal_loop_fusion": "hlofuse.passes.fusion.horizontal_fusion:HorizontalLoopFusion",
        "horizontal_input_fusion": "hlofuse.passes.fusion.horizontal_fusion:HorizontalInputFusion",
    },
    "cpu": {
        "fusion": "hlofuse.passes.fusion.cpu_fusion:CpuInstructionFusion",
        "fusion-wrapper": "hlofuse.passes.fusion.fusion_wrapper:CpuFusionWrapper",
        "cpu_multi_output_fusion": "hlofuse.passes.fusion.cpu_fusion:CpuMultiOutputFusion",
    },
}
_TEXT = re.compile(r"\s*([\w\-]+)\s*(?:\((.*)\))?\s*")
_FIXPOINT = re.compile(r"\s*fixpoint\s*\((.*)\)\s*", re.DOTALL)


def split_passes(text: str) -> tuple[str, ...]:
    """The passes of a list, in order; commas within parentheses belong to a pass's options.

    HlofuseError for unbalanced parentheses or an empty list.
    """
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
    """What `fixpoint(…)` repeats until nothing changes; None for a single pass."""
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
    """Every pass that `target` can run."""
    return frozenset({**_PASSES[""], **_PASSES.get(target, {})})


def make_pass(text: str, target: str, release: Release, settings: Settings = AS_XLA, **context: Any) -> Pass:
    """The pass described by `text`, such as `fusion(may_duplicate=false)`, as XLA of that release runs it.

    `context` is what a run is about besides its options (the device); a pass gets what it has a field for.
    """
    if (inner := repeated(text)) is not None:
        steps = [make_pass(step, target, release, settings, **context) for step in inner]
        return FixedPoint(Pipeline(text, steps), must_end=True)
    m = _TEXT.fullmatch(text)
    where = m and (_PASSES.get(target, {}).get(m[1]) or _PASSES[""].get(m[1]))
    if not m or not where:
        names = ", ".join(sorted({*_PASSES[""], *_PASSES.get(target, {})}))
        raise HlofuseError(f"target {target} has no pass {text!r}; expected one of {names}")
    module, _, name = where.partition(":")
    kind: Any = getattr(importlib.import_module(module), name)
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
    context = {**context, "release": release}
    options |= {key: value for key, value in context.items() if key in present}
    created = kind(settings=settings.in_release(release).in_pass(m[1], target), **options)
    assert isinstance(created, Pass)
    return created
