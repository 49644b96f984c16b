"""What a replay starts from, its result, and a replay as it stands before one of its passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module, OrderSource
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.order import is_open, source_of
from hlofuse.passes.fusion.priority_fusion.observers import Observer
from hlofuse.pipelines.manager import FinalModule, finish
from hlofuse.pipelines.targets import TARGETS
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Event

if TYPE_CHECKING:
    from hlofuse.passes.fusion.priority_fusion.recorded_order import RecordedOrder
    from hlofuse.pipelines.identity import Identity
    from hlofuse.replay.config import ReplayConfig
    from hlofuse.trace import Event
    from hlofuse.trace.priority_record import PriorityRecord


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """A module at the input of fusion, and what is known of the order in which XLA has it in memory."""

    module: Module
    ids: UniqueIds | None = field(default=None, repr=False)
    """XLA's unique ids, from an HLO proto; without them the module's own `order_source` stands."""
    record: PriorityRecord | None = field(default=None, repr=False)
    """XLA's fusion log, followed where priorities are equal."""
    record_file: str = ""
    """Where the log was read from; empty without one."""
    note: str = ""
    """What a report has to say first: how the module came here; empty where XLA wrote it."""
    identity: Identity | None = None
    """What the module was taken for; None for one that a library call gave."""
    unoptimized: Module | None = None
    """The module before optimizations that the passes before fusion were repeated on."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    """What the passes before fusion tell of their rewrites, under the names of `module`."""

    def order_source(self, target: str) -> OrderSource:
        """Where a replay on the target takes ids and use-lists from."""
        return source_of(self.module, TARGETS[target], self.ids)

    def has_open_ties(self, target: str) -> bool:
        """True if XLA may have broken ties between equal priorities in another way than the replay does."""
        return self.record is None and is_open(self.order_source(target))


@dataclass(slots=True)
class PassResult:
    """What one pass did."""

    name: str
    """XLA's name, as in its dump files."""
    changed: bool
    events: list[Event] = field(repr=False)
    module_text: str | None = field(default=None, repr=False)
    """The module after the pass, printed; only where `ModuleTexts` observes the replay."""


@dataclass(slots=True)
class Replay:
    """The result of a replay. `before` is the module as given, untouched; `after` is a changed copy."""

    input: ReplayInput = field(repr=False)
    config: ReplayConfig
    after: Module
    passes: list[PassResult] = field(default_factory=list, repr=False)
    plugin_rules: Mapping[str, Rule] = field(default_factory=dict, repr=False)
    """Rules of plugins that took part, by code."""
    recorded_order: RecordedOrder | None = field(default=None, repr=False)
    """XLA's fusion log after it was followed; None where there was none."""
    _final: FinalModule | None = field(default=None, repr=False)

    @property
    def before(self) -> Module:
        """The module as given."""
        return self.input.module

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
        """Where ids and use-lists came from."""
        return self.after.order_source or "text"

    @property
    def follows_log(self) -> bool:
        """True if ties were broken as in XLA's fusion log."""
        return self.recorded_order is not None

    @property
    def final(self) -> FinalModule:
        """What is launched: `after` as the passes behind fusion leave it. Worked out when first used."""
        if self._final is None:
            build = self.config.build
            self._final = finish(self.after, self.target, build.device, flags=build.flags)
        return self._final

    @property
    def events(self) -> list[Event]:
        """Every event of every pass, in order."""
        return [e for p in self.passes for e in p.events]


@dataclass(slots=True)
class Checkpoint:
    """A replay as it stands before one of its passes.

    The first replay that is given it stores itself here. Later replays of the same module go on from here;
    that is right only if the passes before would do the same again.
    """

    before_pass: str
    """A pass as the list of passes has it."""
    earlier: Checkpoint | None = None
    """Where to go on from until a replay has been stored here; filled as well."""
    _replay: Replay | None = None

    def latest(self) -> Checkpoint | None:
        """This one, else an earlier one, that holds a replay; None where none does."""
        if self._replay is not None:
            return self
        return self.earlier.latest() if self.earlier is not None else None

    def resume(self) -> Replay:
        """A copy of the stored replay to go on with."""
        assert self._replay is not None
        return _copied(self._replay)

    def note(self, replay: Replay, before_pass: str) -> None:
        """Store the replay if this is the first time that one comes to this pass."""
        if self._replay is None and before_pass == self.before_pass:
            self._replay = _copied(replay)
        if self.earlier is not None:
            self.earlier.note(replay, before_pass)


def _copied(replay: Replay) -> Replay:
    # The decisions so far are the same objects: costs find them by identity.
    return replace(
        replay,
        after=copy_module(replay.after),
        passes=list(replay.passes),
        _final=None,
    )


# What may watch a replay.


class ReplayObserver(Observer):
    """Sees every decision of priority fusion, and the module after each pass."""

    def after_pass(self, done: PassResult, module: Module) -> None:
        """A pass has run; `module` is what it left, to be read only."""


class ModuleTexts(ReplayObserver):
    """Keeps the text of the module after each pass (`PassResult.module_text`)."""

    def after_pass(self, done: PassResult, module: Module) -> None:
        done.module_text = print_module(module)
