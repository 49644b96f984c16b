"""The passes from one stage to the next, and the one loop that runs passes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from hlofuse.analysis.custom_calls import is_divided, is_inlined, partitions_of
from hlofuse.analysis.elementwise import moves_no_data
from hlofuse.ir import HlofuseError, Module, Strings, copy_module, print_module
from hlofuse.ir.computation_order import order_of_front_end
from hlofuse.ir.fusing import inline_calls
from hlofuse.passes.base import Pass, Pipeline
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.passes.fusion.priority_fusion.observers import Observer
from hlofuse.pipelines.flags import disabled_passes
from hlofuse.pipelines.targets import after_fusion, before_fusion
from hlofuse.trace import Event, Recorder, Skipped
from hlofuse.trace.provenance import BeforeFusion, Provenance
from .config import ReplayConfig


class PassResult(Struct):
    name: str  # XLA's name, as in its dump files
    changed: bool
    events: list[Event]
    module_text: str | None = None
    """The module after the pass, printed; only where `ModuleTexts` observes the run."""


class Span(Struct):
    """The passes from one stage to the next, and the module that they leave."""

    module: Module
    passes: list[PassResult] = []
    events: Sequence[Event] = ()  # Decisions; those before fusion are under the names of `module`
    left_alone: Sequence[Skipped] = ()  # Instructions that XLA rewrites and the passes could not
    not_repeated: Mapping[str, Counter[str]] = {}
    """Passes that are not implemented and had something to work on: the number of each opcode."""
    provenance: Provenance | None = None

    @property
    def changing_passes(self) -> list[str]:
        """The passes that changed the module, in the order in which they first did."""
        return list(dict.fromkeys(p.name for p in self.passes if p.changed))


class PassObserver(Observer):
    """Sees every decision of priority fusion, and the module after each pass."""

    def after_pass(self, done: PassResult, module: Module) -> None:
        """A pass has run; `module` is its result, to be read only."""


@dataclass
class ModuleTexts(PassObserver):
    """Keeps the text of the module after each pass, or each that changed it (`PassResult.module_text`)."""

    only_changed: bool = False

    def after_pass(self, done: PassResult, module: Module) -> None:
        if done.changed or not self.only_changed:
            done.module_text = print_module(module)


def lower(module: Module, config: ReplayConfig, observers: Sequence[PassObserver]) -> Span:
    """The passes before fusion on a copy of the module, as XLA runs them on its own device. HlofuseError
    where calls would multiply beyond reason, and for one partitioned by hand before the partitioner."""
    config = config.xla or config
    build = config.build
    _refuse_manual_partitioning(module)
    out, recorder = copy_module(module), BeforeFusion()
    provenance = Provenance(out)
    if is_divided(out):
        out.devices = partitions_of(out)
    out.listeners.append(recorder)
    pipelines = before_fusion(config.target, build.device, build.flags, config.release)
    if pipelines:
        out.computation_order = order_of_front_end(out)
    passes = run_passes(pipelines or (_BASIC,), out, recorder, observers, build.flags, provenance)
    provenance.end()
    out.listeners.remove(recorder)
    if pipelines:
        out.order_source = "replayed"
    return Span(
        out,
        passes,
        recorder.following_names(out),
        tuple(recorder.left_alone),
        recorder.not_repeated,
        provenance,
    )


def finish(module: Module, config: ReplayConfig, observers: Sequence[PassObserver]) -> Span:
    """The passes after fusion on a copy of the module, up to what is launched."""
    build = config.build
    out, recorder = copy_module(module), Recorder()
    out.begin_run()
    pipelines = after_fusion(config.target, build.device, build.flags, config.release)
    passes = run_passes(pipelines, out, recorder, observers, build.flags)
    return Span(out, passes, recorder.events, tuple(recorder.left_alone), recorder.not_repeated)


def run_passes(
    pipelines: Iterable[Pass],
    module: Module,
    recorder: Recorder,
    observers: Sequence[PassObserver],
    flags: Strings = (),
    provenance: Provenance | None = None,
) -> list[PassResult]:
    """Run passes in order, but for those that `flags` disable."""
    disabled, passes = disabled_passes(flags), list[PassResult]()

    def run(step: Pass) -> bool:
        recorder.begin_pass(step.name)
        if provenance is not None:
            provenance.begin_pass(step.name)
        first = len(recorder.events)
        changed = step.name not in disabled and step.run(module, recorder)
        done = PassResult(step.name, changed, recorder.events[first:])
        for observer in observers:
            observer.after_pass(done, module)
        passes.append(done)
        return changed

    for pipeline in pipelines:
        pipeline.run_with(run)
    return passes


class _Basic(Pass, kw_only=True):
    """A simplification for targets whose passes before fusion are not listed."""

    name: str
    apply: Callable[[Module], object]

    def run(self, module: Module, recorder: Recorder) -> bool:
        self.apply(module)
        return True


def _remove_annotations(module: Module) -> None:
    from hlofuse.passes.control_flow.annotations import remove_annotations

    remove_annotations(module)


def _replace_free_reshapes(module: Module) -> None:
    for i in module.instructions():
        if i.is_reshape and moves_no_data(i):
            i.opcode = "bitcast"


_BASIC = Pipeline(
    "basic",
    [
        _Basic(name="call-inliner", apply=lambda module: inline_calls(module, is_inlined)),
        _Basic(name="sharding-remover", apply=_remove_annotations),
        TupleSimplifier(),
        HloDCE(),
        HloCSE(only_fusion_computations=False),
        HloDCE(),
        _Basic(name="reshape-bitcast", apply=_replace_free_reshapes),
    ],
)
"""Inlines calls, simplifies tuples, duplicates and unused operations, and makes free reshapes bitcasts."""


def _refuse_manual_partitioning(module: Module) -> None:
    from hlofuse.passes.control_flow.annotations import changes_shape  # slow to import, seldom needed

    if any(changes_shape(i) for i in module.instructions()):
        number = module.attributes.raw("num_partitions")
        devices = f"{number} devices" if number else "several devices"
        raise HlofuseError(
            f"{module.name} is partitioned manually over {devices} (SPMDFullToShardShape) and was dumped"
            " before the partitioner; give the dump after spmd-partitioning, or at the fusion input"
        )
