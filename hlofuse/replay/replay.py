"""Run a target's passes over a copy of a module and keep every decision."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hlofuse.analysis.release import RELEASES
from hlofuse.ir.copy import copy_module
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.passes import Pass, make_pass
from hlofuse.pipelines.device import device_of
from hlofuse.pipelines.targets import TARGETS, passes_of
from hlofuse.replay.plugins import custom_kernels, with_outside
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.settings import AS_XLA, Settings
from hlofuse.trace import Event, Recorder

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.cost.gpu.known import KnownStructures
    from hlofuse.passes.fusion.priority_fusion.guide import Guide
    from hlofuse.plugins.entries import CustomFusion, Kernel


@dataclass(slots=True)
class PassResult:
    """What one pass did."""

    name: str
    """XLA's name, as in its dump files."""
    changed: bool
    events: list[Event]
    module_text: str | None = None
    """The module after the pass, printed; only when asked for (`keep_modules`)."""


@dataclass(slots=True)
class Replay:
    """The outcome of a replay. `before` is the module as given, untouched; `after` is a changed copy."""

    target: str
    device: str | None
    before: Module
    after: Module
    passes: list[PassResult] = field(default_factory=list)
    outside_rules: Mapping[str, Rule] = field(default_factory=dict)
    """Rules that took part and are not XLA's, by code."""
    custom_kernels: dict[str, tuple[CustomFusion, Kernel]] = field(default_factory=dict)
    """Fusions that patterns from outside made, by name."""

    def is_custom_kernel(self, instruction: Instruction) -> bool:
        """It is a fusion of `after` that a pattern from outside made."""
        return instruction.fusion_kind == "kCustom" and instruction.name in self.custom_kernels

    @property
    def events(self) -> list[Event]:
        """Every event of every pass, in order."""
        return [e for p in self.passes for e in p.events]


@dataclass(slots=True)
class Checkpoint:
    """A replay as it stands ahead of one of its passes: the first replay given it leaves that here, later
    ones of the same module go on from there, for who knows that passes before it would do the same again."""

    ahead_of: str
    """A pass as the list of passes has it."""
    earlier: Checkpoint | None = None
    """Where to go on from until a replay has come by here; filled on the way as well."""
    _replay: Replay | None = None

    def latest(self) -> Checkpoint | None:
        """This one or an earlier one that a replay has come by; None where none has yet."""
        if self._replay is not None:
            return self
        return self.earlier.latest() if self.earlier is not None else None

    def resume(self) -> Replay:
        """The replay up to here, which has to have been noted."""
        assert self._replay is not None
        return _copied(self._replay)

    def note(self, replay: Replay, ahead_of: str) -> None:
        """Keep the replay if this is where it is wanted for the first time."""
        if self._replay is None and ahead_of == self.ahead_of:
            self._replay = _copied(replay)
        if self.earlier is not None:
            self.earlier.note(replay, ahead_of)


def _copied(replay: Replay) -> Replay:
    """Another one to go on with; what has been decided is the same objects."""
    return replace(
        replay,
        after=copy_module(replay.after),
        passes=list(replay.passes),
        custom_kernels=dict(replay.custom_kernels),
    )


def replay(
    module: Module,
    target: str = "cpu",
    *,
    device: str | DeviceDescription | None = None,
    option: str | None = None,
    passes: Sequence[str] | None = None,
    keep_modules: bool = False,
    settings: Settings = AS_XLA,
    ids: UniqueIds | None = None,
    guide: Guide | None = None,
    known: KnownStructures | None = None,
    checkpoint: Checkpoint | None = None,
) -> Replay:
    """Repeat what XLA's fusion passes do to `module` on `target`.

    `option` names a variant of the target's pipeline (`Target.options`); other `passes` (`fixpoint(a, b)`
    repeats some until nothing changes) or `settings` make it a what-if run.
    `ids` are XLA's unique ids, where known; targets that break no ties by them do without. `guide` settles
    what priority fusion leaves open (`priority_fusion.following`). `known` spares several
    replays of a module working out the same costs, `checkpoint` repeating what they have in common.
    """
    collecting = gc.isenabled()
    chosen = passes_of(target, option) if passes is None else tuple(passes)
    gc.disable()  # next to nothing made here is garbage, and looking for it takes up to a third of the time
    try:
        return _replay(module, target, device, chosen, keep_modules, settings, ids, guide, known, checkpoint)
    finally:
        if collecting:
            gc.enable()


def _replay(
    module: Module,
    target: str,
    device: str | DeviceDescription | None,
    passes: tuple[str, ...],
    keep_modules: bool,
    settings: Settings,
    ids: UniqueIds | None,
    guide: Guide | None,
    known: KnownStructures | None,
    checkpoint: Checkpoint | None,
) -> Replay:
    passes = with_outside(passes, target, settings)
    description, _ = device_of(target, device)
    release = RELEASES[TARGETS[target].release]
    latest = checkpoint.latest() if checkpoint is not None else None
    if latest is not None:
        passes = passes[passes.index(latest.ahead_of) :]
        result = latest.resume()
    else:
        result = _begun(module, target, description, settings, ids)

    context = {"device": description, "guide": guide, "known": known, "release": release}

    def run(made: Pass) -> bool:
        recorder = Recorder()
        recorder.begin_pass(made.name)
        changed = made.run(result.after, recorder)
        result.custom_kernels |= custom_kernels(made)
        kept = print_module(result.after) if keep_modules else None
        result.passes.append(PassResult(made.name, changed, recorder.events, kept))
        return changed

    for text in passes:
        if checkpoint is not None:
            checkpoint.note(result, text)
        make_pass(text, target, settings, **context).run_with(run)
    return result


def _begun(
    module: Module,
    target: str,
    description: DeviceDescription | None,
    settings: Settings,
    ids: UniqueIds | None,
) -> Replay:
    """A replay ahead of its first pass, the copy as XLA has the module in memory."""
    after = copy_module(module)
    result = Replay(target, description.name if description is not None else None, module, after)
    if settings.outside is not None:
        result.outside_rules = settings.outside.rules
    if TARGETS[target].has_history:
        from hlofuse.pipelines.history import restore_history

        restore_history(after, ids)
    if TARGETS[target].restores_users:
        from hlofuse.pipelines.history import reserve_spent_names
        from hlofuse.pipelines.legacy_users.restore import restore_users_order

        restore_users_order(after)
        reserve_spent_names(after)
    return result
