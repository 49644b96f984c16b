"""XLA:TPU, whose fusion passes are closed: what they did is read off the dumps before and after.

Why they did it is not known. To compare, the passes of CPU and GPU are replayed on the same module, and asked
about the same pairs of operations; that says how TPU differs, not what its rules are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hlofuse.analysis.elementwise import leaves_size
from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import compile
from hlofuse.diff import FusionChange, ModuleDiff, diff
from hlofuse.inputs.dump_directory import (
    DumpDirectory,
    DumpedModule,
    corpus_cases,
    corpus_file,
    is_corpus_case,
)
from hlofuse.inputs.dump_names import TPU_PIPELINES, read_name
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.reports.common.facts import Facts, kernels_of
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.model import RuleText
from hlofuse.reports.common.refusals import refusals_between_kernels

DEVICE = "h100_sxm"
"""The GPU that is asked where none is named."""


@dataclass(frozen=True, slots=True)
class TpuEdge:
    """Two operations, the second of which uses the first, and whether one kernel holds both."""

    producer: str
    consumer: str
    bytes_between: int
    on_tpu: bool
    elsewhere: dict[str, bool]
    rules: dict[str, str | None]
    """By target that keeps them apart: the rule; None where it settled nothing about the two."""


@dataclass(frozen=True, slots=True)
class TpuPair:
    """The effect of XLA:TPU's fusion passes on a module."""

    module: str
    before: str
    after: str
    kernels_before: int
    kernels_after: int
    kernels_elsewhere: dict[str, int]
    """The number of kernels that the passes of other targets would leave of the same module."""
    device: str
    changes: tuple[FusionChange, ...]
    edges: tuple[TpuEdge, ...]
    changed: int
    """Edges excluded: other passes changed one of the two."""
    rules: dict[str, RuleText]
    modules: tuple[Module, Module] = field(repr=False)
    """Before and after XLA:TPU's fusion passes."""


def tpu_files(path: Path, module: str | None = None) -> tuple[Path, Path] | None:
    """The dumps before and after XLA:TPU's fusion passes, in a directory or around a file; None without."""
    if path.is_dir() and is_corpus_case(path):
        return _of_corpus(path)
    if path.is_dir() and (cases := corpus_cases(path)):  # a capture
        chosen = [c for c in cases if module in (None, c.name, f"jit_{c.name}")]
        return _of_corpus(chosen[0]) if len(chosen) == 1 else None
    if path.is_dir():
        try:
            return _of_dumps(DumpDirectory(path).pick(module))
        except HlofuseError:
            return None
    if path.name.startswith(("before.hlo", "after.hlo")):
        return _of_corpus(path.parent)
    named = read_name(path)
    if named is None:
        return None
    for dumped in DumpDirectory(path.parent).modules:
        if (dumped.prefix, dumped.module_id, dumped.name) == (named.prefix, named.module_id, named.module):
            return _of_dumps(dumped)
    return None


def _of_corpus(folder: Path) -> tuple[Path, Path] | None:
    before, after = corpus_file(folder, "before"), corpus_file(folder, "after")
    return (before, after) if before is not None and after is not None else None


def _of_dumps(module: DumpedModule) -> tuple[Path, Path] | None:
    tpu_dumps = [f.path for f in module.between if f.pipeline in TPU_PIPELINES]
    return (tpu_dumps[0], tpu_dumps[-1]) if len(tpu_dumps) > 1 else None


def compare_tpu(before: Module, after: Module, device: str = DEVICE) -> TpuPair:
    """The fusions on TPU, compared with those of the CPU's and a GPU's passes for the same module."""
    found = diff(before, after)
    others = {}
    for target, on in (("cpu", None), ("gpu", device)):
        replayed = compile(before, target, device=on)
        facts = Facts(replayed)
        others[target] = facts, kernels_of(facts), refusals_between_kernels(replayed, facts)
    edges, changed, rules = [], 0, {}
    for producer, consumer, size in _pairs(before):
        on_tpu = _together(found, producer, consumer)
        if on_tpu is None:
            changed += 1
            continue
        fused, codes = {}, {}
        for target, (facts, where, refusals_) in others.items():
            producer_kernels, consumer_kernels = (
                where.get(producer.name, set()),
                where.get(consumer.name, set()),
            )
            fused[target] = bool(producer_kernels & consumer_kernels)
            if not fused[target]:
                refusal = next(
                    (r for a in producer_kernels for b in consumer_kernels if (r := refusals_.get((a, b)))),
                    None,
                )
                codes[target] = refusal.rule if refusal is not None else None
                if refusal is not None and refusal.rule is not None:
                    rules[refusal.rule] = facts.rule(refusal.rule)
        edges.append(TpuEdge(producer.name, consumer.name, size, on_tpu, fused, codes))
    return TpuPair(
        before.name,
        before.filename or "",
        after.filename or "",
        len(kernels(before)),
        len(kernels(after)),
        {target: len(facts.launched_after) for target, (facts, _, _) in others.items()},
        device,
        found.fusions,
        tuple(edges),
        changed,
        rules,
        (before, after),
    )


def _pairs(module: Module) -> Iterator[tuple[Instruction, Instruction, int]]:
    """Kernels of the input, the second of which reads the first."""
    launched = set(kernels(module))
    for consumer in kernels(module):
        for producer in dict.fromkeys(through_views(o) for o in consumer.operands):
            if producer in launched:
                yield producer, consumer, leaves_size(producer.shape)


def _together(found: ModuleDiff, producer: Instruction, consumer: Instruction) -> bool | None:
    """One fusion holds both; None where one of the two is no longer there."""
    producer_kernels, consumer_kernels = found.pairs.after_of(producer), found.pairs.after_of(consumer)
    if not producer_kernels or not consumer_kernels:
        return None
    return bool(
        {p.fusion for p in producer_kernels if p.fusion} & {p.fusion for p in consumer_kernels if p.fusion}
    )
