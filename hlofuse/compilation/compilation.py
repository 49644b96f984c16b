"""A compilation: XLA's passes from the stage of a module to any later one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from hlofuse.analysis.kernels import is_kernel
from hlofuse.ir import Module, OrderSource, Record, copy_module, replace
from hlofuse.ir.native import no_collection
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.matching.pairs import match
from hlofuse.order import is_open, restore, source_of
from hlofuse.passes import make_pass
from hlofuse.passes.fusion.priority_fusion.observers import RecordedOrder
from hlofuse.pipelines.flags import DISABLED, TRITON_MULTI_OUTPUT, disabled_passes
from hlofuse.pipelines.identity import Identity
from hlofuse.pipelines.targets import TARGETS, Stage
from hlofuse.trace import Event, Recorder
from hlofuse.trace.priority_record import PriorityRecord
from hlofuse.trace.provenance import final_instructions
from .config import ReplayConfig, replay_config
from .spans import PassObserver, PassResult, Span, finish, lower, run_passes

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.cost.gpu.summary_table import SharedTables

Counted: TypeAlias = Literal["xla", "replayed"]
"""Whose final module figures are of: XLA's own, or that of a replay."""
_OF_LATER_PASSES = (f"--{DISABLED}=", f"--{TRITON_MULTI_OUTPUT}=")
"""Flags that change no pass before fusion, except those that they disable."""


def compile(
    input: Module | CompilationInput,
    config: str | ReplayConfig = "cpu",
    observers: Sequence[PassObserver] = (),
    *,
    until: Stage = Stage.FUSED,
    device: str | DeviceDescription | None = None,
    cache: SharedTables | None = None,
    checkpoint: Checkpoint | None = None,
    most: float = inf,
) -> Compilation:
    """XLA's passes on copies of a module, from its stage to `until`, with every decision.

    A bare module is at the fusion input. `config` is a `ReplayConfig` or the name of a target. With a name,
    `device` is a device's name, file or description. `observers` see every decision when it is made. `cache`
    holds costs that compilations of one module share, and `checkpoint` the fusion passes that they have in
    common.

    HlofuseError for unknown names, where calls would multiply beyond reason, for more than `most` decisions
    in a fusion pass, and for a program partitioned by hand that the partitioner has not seen."""
    if isinstance(input, Module):
        input = CompilationInput(input)
    if isinstance(config, str):
        config = replay_config(config, device)
    begun = checkpoint.latest() if checkpoint is not None else None
    done = Compilation(input, config) if begun is None else begun.resume()
    done.config = config
    done.advance(until, observers, cache, checkpoint, most)
    return done


class CompilationInput(Record):
    """A module at some stage, and what is known of the order in which XLA has it in memory."""

    module: Module
    ids: UniqueIds | None = None
    """XLA's unique ids, from an HLO proto; without them the module's own `order_source` stands."""
    record: PriorityRecord | None = None
    """XLA's fusion log, followed where priorities are equal."""
    note: str = ""
    """The first sentence of a report, about repeated passes before this stage; empty without them."""
    identity: Identity | None = None
    """The facts about the module; None for one that a library call gave."""
    unoptimized: Module | None = None
    """The module before optimizations that the passes before fusion were repeated on."""
    events: tuple[Event, ...] = ()
    """The rewrites of the passes before fusion, under the names of `module`."""
    stage: Stage = Stage.INPUT
    lowering: Compilation | None = None
    """The passes before fusion, repeated on the module before optimizations; None where they were not."""

    def order_source(self, target: str) -> OrderSource:
        """The source of ids and use-lists for a replay on the target."""
        return source_of(self.module, TARGETS[target], self.ids)

    def has_open_ties(self, target: str) -> bool:
        """True if XLA may have broken ties between equal priorities in another way than the replay does."""
        return self.record is None and is_open(self.order_source(target))


class Compilation(Struct):
    """A compilation of `input`; stages run when they are first read and leave earlier modules alone."""

    input: CompilationInput
    config: ReplayConfig
    spans: dict[Stage, Span] = field(default_factory=dict)
    """By the stage that they lead to."""
    recorded_order: RecordedOrder | None = None
    """XLA's fusion log after it was followed; None where there was none."""
    find_final: Callable[[], Module | None] | None = None
    """Reads XLA's own final module, which then is the last stage; None where XLA ran otherwise."""
    _final: Module | None = None
    _names_at_fusion: Mapping[str, str] | None = None

    __repr__ = Record.__repr__

    @classmethod
    def of(
        cls, module: Module, stage: Stage, config: ReplayConfig, earlier: Compilation | None = None
    ) -> Compilation:
        """The compilation of a module at a stage; nothing runs yet. It has the passes before fusion of
        `earlier`, if that is of the same module and they do the same for both configurations."""
        found = cls(CompilationInput(module, stage=stage), config)
        if earlier is not None and earlier.input.module is module:
            span = earlier.span(Stage.INPUT)
            ran = {p.name for p in span.passes}
            if _of_lowering(config, ran) == _of_lowering(earlier.config, ran):
                found.spans[Stage.INPUT] = span
        return found

    def span(self, stage: Stage) -> Span:
        """The passes that lead to a stage; they run now if they have not yet."""
        if stage not in self.spans:
            self.advance(stage)
        return self.spans[stage]

    @no_collection()
    def advance(
        self,
        until: Stage,
        observers: Sequence[PassObserver] = (),
        cache: SharedTables | None = None,
        checkpoint: Checkpoint | None = None,
        most: float = inf,
    ) -> None:
        """Run the passes up to `until` that have not run yet, see `compile`."""
        stages = list(Stage)
        for stage in stages[stages.index(self.input.stage) + 1 : stages.index(until) + 1]:
            begun = checkpoint.latest() if checkpoint is not None and stage is Stage.FUSED else None
            if stage in self.spans and begun is None:
                continue
            if stage is Stage.FUSED:
                self._fuse(observers, cache, checkpoint, begun, most)
            else:
                run = lower if stage is Stage.INPUT else finish
                before = stages[stages.index(stage) - 1]
                self.spans[stage] = run(self.at(before), self.config, observers)

    def _fuse(
        self,
        observers: Sequence[PassObserver],
        cache: SharedTables | None,
        checkpoint: Checkpoint | None,
        begun: Checkpoint | None,
        most: float,
    ) -> None:
        config, listed, input = self.config, self.config.passes, self.input
        if begun is not None:
            listed = listed[listed.index(begun.before_pass) :]
        else:
            out = copy_module(self.at(Stage.INPUT))
            out.begin_run()
            restore(out, TARGETS[config.target], config.release, input.ids)
            self.spans[Stage.FUSED] = Span(out)
        if input.record is not None:
            self.recorded_order = RecordedOrder(input.record)
        context = {
            "device": config.device,
            "tie_breaker": self.recorded_order,
            "observers": observers,
            "tables": cache,
        }
        fused = self.spans[Stage.FUSED]
        for text in listed:
            if checkpoint is not None:
                checkpoint.note(self, text)
            created = make_pass(text, config.target, config.release, config.settings, **context)
            fused.passes += run_passes([created], fused.module, Recorder(most), observers)

    def at(self, stage: Stage) -> Module:
        """The module at a stage from the input's on."""
        return self.input.module if stage is self.input.stage else self.span(stage).module

    @property
    def before(self) -> Module:
        """The module at the fusion input."""
        return self.at(Stage.INPUT)

    @property
    def after(self) -> Module:
        """The module after the fusion passes."""
        return self.at(Stage.FUSED)

    @property
    def final(self) -> Module:
        """The module that is launched: XLA's own, where it is at hand, else that of the replay."""
        if self._final is None:
            found = self.find_final() if self.find_final is not None else None
            self._final = found or self.replayed_final
        return self._final

    @property
    def replayed_final(self) -> Module:
        """The module after all passes of the replay."""
        return self.at(Stage.SCHEDULED)

    @property
    def has_xla_final(self) -> bool:
        """True if `final` is XLA's own module."""
        if self.find_final is None:
            return False
        final, last = self.final, self.spans.get(Stage.SCHEDULED)
        return last is None or final is not last.module

    @property
    def target(self) -> str:
        """The name of the target, such as `gpu`."""
        return self.config.target

    @property
    def device(self) -> str | None:
        """The name of the device; None where the target depends on none."""
        device = self.config.device
        return device.name if device is not None else None

    @property
    def order_source(self) -> OrderSource:
        """The source of ids and use-lists."""
        return self.after.order_source or "text"

    @property
    def passes(self) -> list[PassResult]:
        """The fusion passes, in order."""
        return self.span(Stage.FUSED).passes

    @property
    def events(self) -> list[Event]:
        """Every decision of the fusion passes, in order."""
        return [e for p in self.passes for e in p.events]

    @property
    def events_after_fusion(self) -> Sequence[Event]:
        return self.span(Stage.SCHEDULED).events

    @property
    def counted(self) -> Counted:
        """Whose module `final` is."""
        return "xla" if self.has_xla_final else "replayed"

    @property
    def names_at_fusion(self) -> Mapping[str, str]:
        """Final names to names at the end of fusion, without instructions that were created since."""
        if self._names_at_fusion is None:
            final = self.final
            is_own = self.has_xla_final
            names = match(self.after, final).names if is_own else _names_at_fusion(self.after, final)
            self._names_at_fusion = names
        return self._names_at_fusion

    @property
    def final_names(self) -> Mapping[str, str]:
        """Names at the end of fusion to final names; of several the same name, else the first."""
        found = {}
        for final, name in self.names_at_fusion.items():
            if final == name or name not in found:
                found[name] = final
        return found

    @property
    def fusion_input(self) -> CompilationInput:
        """The module at the fusion input as the input of further compilations."""
        if self.input.stage is Stage.INPUT:
            return self.input
        span = self.span(Stage.INPUT)
        return replace(
            self.input,
            module=span.module,
            ids=None,
            unoptimized=self.input.module,
            events=tuple(span.events),
            stage=Stage.INPUT,
            lowering=self,
        )


def _of_lowering(config: ReplayConfig, ran: set[str]) -> tuple[object, ...]:
    """The parts of a configuration that a lowering depends on in which these passes `ran`."""
    config = config.xla or config
    flags = config.build.flags
    early = {f for f in flags if not f.startswith(_OF_LATER_PASSES)}
    return config.target, config.device, config.release, early, ran & disabled_passes(flags)


def _names_at_fusion(after: Module, final: Module) -> dict[str, str]:
    """The name in `after`, the fused module, of each instruction of `final` that was there."""
    successors = final_instructions(final.instructions())
    names = {}
    for instruction in after.instructions():
        last = successors.get(instruction.name)
        if last is None:
            continue
        # A copy in place of a tuple's element was not there, nor one of what costs nothing.
        # An element that a kernel yields is not the kernel.
        if last.opcode == "copy" and instruction.opcode != "copy":
            continue
        if is_kernel(last) and not is_kernel(instruction):
            continue
        if last.name not in names or last.name == instruction.name:
            names[last.name] = instruction.name
    return names


class Checkpoint(Struct):
    """A compilation in its state before one of the fusion passes. The first run that is given it stores
    itself here. Later runs of the module go on from here; the passes before must be the same."""

    before_pass: str  # A pass as the list of passes has it
    earlier: Checkpoint | None = None
    """The checkpoint to go on from until a run has been stored here; filled as well."""
    _stored: Compilation | None = None

    def latest(self) -> Checkpoint | None:
        """This one, else an earlier one, that holds a run; None where none does."""
        if self._stored is not None:
            return self
        return self.earlier.latest() if self.earlier is not None else None

    def resume(self) -> Compilation:
        """A copy of the stored run to go on with."""
        assert self._stored is not None
        return _copied(self._stored)

    def note(self, run: Compilation, before_pass: str) -> None:
        """Store the run if this is the first time that one comes to this pass."""
        if self._stored is None and before_pass == self.before_pass:
            self._stored = _copied(run)
        if self.earlier is not None:
            self.earlier.note(run, before_pass)


def _copied(run: Compilation) -> Compilation:
    # The decisions so far are the same objects: costs find them by identity.
    fused = run.spans[Stage.FUSED]
    spans = {
        **run.spans,
        Stage.FUSED: replace(fused, module=copy_module(fused.module), passes=[*fused.passes]),
    }
    return replace(run, spans=spans, find_final=None, _final=None, _names_at_fusion=None)
