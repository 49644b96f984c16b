"""A capture folder from the program to the kernels: it holds the dumps around fusion only."""

from dataclasses import replace
from pathlib import Path

from hlofuse.compilation import CompilationInput, ModuleTexts, ReplayConfig, compile
from hlofuse.inputs import load
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.ordered import in_creation_order, restore_literals
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.errors import HlofuseError
from hlofuse.pipelines.stage import Stage
from hlofuse.reports.timeline.model import DumpSequence, PassDump


def with_replayed_passes(sequence: DumpSequence, config: ReplayConfig) -> DumpSequence:
    """The sequence with the module before optimizations and XLA's final one, if they lie in its folder.

    XLA's passes before fusion are repeated on the former; those after fusion where the latter is missing.
    """
    dumps = sequence.dumps
    first = Companions(dumps[0].path).before_optimizations
    if first is not None and first not in {d.path for d in dumps}:
        dumps = (*_before(first, config), *dumps)
    last = dumps[0].path.with_name("after_optimizations.hlo")
    if last.is_file():
        return replace(sequence, dumps=(*dumps, PassDump(last, after="after_optimizations")))
    return replace(sequence, dumps=(*dumps, *_after(dumps[-1], config)))


def _before(path: Path, config: ReplayConfig) -> list[PassDump]:
    dumps = [PassDump(path, after="before_optimizations")]
    try:
        module = load(path)
        restore_literals(module)
        in_creation_order(module, unique_ids_for(module))
        dumps += _changes(CompilationInput(module, stage=Stage.BEFORE), Stage.INPUT, config, path)
    except HlofuseError:  # partitioned by hand, for one
        pass
    return dumps


def _after(last: PassDump, config: ReplayConfig) -> list[PassDump]:
    try:
        input = CompilationInput(load(last.path), stage=Stage.FUSED)
        return _changes(input, Stage.SCHEDULED, config, last.path)
    except HlofuseError:
        return []


def _changes(input: CompilationInput, until: Stage, config: ReplayConfig, path: Path) -> list[PassDump]:
    """The module after each pass that changed it."""
    passes = compile(input, config, [ModuleTexts(only_changed=True)], until=until).span(until).passes
    return [PassDump(path, after=p.name, text=p.module_text) for p in passes if p.module_text is not None]
