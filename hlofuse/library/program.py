"""A module that was read, and its replay: the facts of a report, each worked out once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hlofuse.compilation import Compilation, Counted
from hlofuse.inputs.choose_target import NO_TARGET
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.dump_directory import corpus_file
from hlofuse.inputs.profile import slowest_module
from hlofuse.inputs.stage import StageError
from hlofuse.ir import HlofuseError, Module, Strings, replace
from hlofuse.pipelines import NEEDS_DEVICE
from hlofuse.pipelines.identity import Identity
from .loading import Loaded, at_fusion_input, is_before_optimizations, read
from .naming import unoptimized_of, with_events
from .options import ReplayOptions

if TYPE_CHECKING:
    from hlofuse.account import Account, Observed, Totals
    from hlofuse.format.terminal import Page
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.comparison.model import Comparison
    from hlofuse.reports.verdict.model import Verdict


class Program:
    """A module that was read, its replay, and what both come to."""

    draw_figures: Callable[[Page], None] | None = None  # Draws what is known while changes are tried

    def __init__(self, options: ReplayOptions, notes: Sequence[str] = ()) -> None:
        """`notes` are those that the listener collects."""
        if options.module is None and options.given is None:
            options = replace(options, module=slowest_module(options.input, options.profile))
        self.options = options
        self._listener = options.listener
        self._notes = notes

    @cached_property
    def loaded(self) -> Loaded:
        """The module as it was read, and the settings of its replay."""
        return read(self.options, any_stage=True)

    @property
    def module(self) -> Module:
        """The module as it was read, at whatever stage."""
        return self.loaded.module

    @property
    def identity(self) -> Identity:
        """Stage, backend, device, release and flags of the module, each with its evidence."""
        return self.loaded.identity

    @property
    def notes(self) -> Strings:
        """Notes on the figures: the source of the device, and approximations."""
        loaded = self.loaded if self.is_taken_as_it_is or self.loaded.config is None else self.at_fusion
        found = (loaded.device_note, *self._notes, *loaded.identity.notes, loaded.note)
        return tuple(dict.fromkeys(filter(None, found)))

    @cached_property
    def at_fusion(self) -> Loaded:
        """The module at the input of fusion, in the best order there is. StageError for a fused module."""
        return at_fusion_input(self.options, self.loaded)

    def before_optimizations(self, command: str) -> Loaded:
        """The module before optimizations, as a copy. HlofuseError without it: `command` needs it."""
        loaded = read(self.options, any_stage=True)  # a replay puts its own module in the order of creation
        if loaded.config is None:
            raise HlofuseError(f"target {loaded.target} {NEEDS_DEVICE}")
        try:
            if is_before_optimizations(loaded):
                return loaded
        except StageError:
            pass
        companions = companions_of(loaded.module)
        path = companions.before_optimizations or corpus_file(companions.folder, "before_optimizations")
        if path is None:
            raise HlofuseError(
                f"{command} needs the module before optimizations; give its dump or the whole dump directory"
            )
        found = read(replace(self.options, input=str(path), module=None, given=None), any_stage=True)
        return replace(found, profile=found.profile or loaded.profile)

    @cached_property
    def replayed(self) -> Observed:
        return self.at_fusion.observe()

    @cached_property
    def observed(self) -> Observed:
        """The replay with its costs, and XLA's own replay where the settings differ from XLA."""
        with_events(self.replayed.replay)
        return self.replayed

    @property
    def replay(self) -> Compilation:
        """The replay: `before`, `after`, `final`, and `events`, every decision in order."""
        return self.replayed.replay

    @cached_property
    def facts(self) -> Facts:
        """Facts about the replay for reports."""
        from hlofuse.reports.common.facts import Facts

        return Facts(self.observed.replay, self.observed.costs)

    def unoptimized(self) -> Module | None:
        return unoptimized_of(self.replayed.replay)

    @cached_property
    def is_taken_as_it_is(self) -> bool:
        """True for a fused module with all its kernels: of the target, or of a backend without one."""
        shown = self.identity.shown
        return self.is_fused and (not shown.foreign_to(self.loaded.target) or shown.backend in NO_TARGET)

    @property
    def is_fused(self) -> bool:
        """True for a module that is not replayed because the fusion passes of some backend were run."""
        return self.identity.shown.is_fused and not self.options.takes_any_stage

    @cached_property
    def account(self) -> Account:
        """The launches: of a fused module as it is, of another by its replay."""
        return self.account_as_it_is if self.is_fused else self.facts.account_after

    @cached_property
    def verdict(self) -> Verdict:
        """Launches, slowest kernels, remaining gain, and changes."""
        from hlofuse.reports.verdict.verdict import verdict

        if self.is_taken_as_it_is:
            return self.verdict_as_it_is
        with self._listener.activity("trying changes", self.draw_figures):
            found = verdict(self.observed, self.facts, unoptimized=self.unoptimized)
        return self.with_measured_changes(found)

    def with_measured_changes(self, found: Verdict) -> Verdict:
        """The verdict with measured gains of its changes, where the call asks for measurements."""
        if not self.options.measure or (module := self.unoptimized()) is None:
            return found
        from hlofuse.reports.verdict.measured import with_measured_changes

        with self._listener.activity("measuring changes"):
            return with_measured_changes(found, module, self.replay.config.build.flags, self.options.inputs)

    @cached_property
    def account_as_it_is(self) -> Account:
        return self.running[0]

    @cached_property
    def running(self) -> tuple[Account, Account]:
        """The accounts of the launched module, and of the module itself."""
        from hlofuse.account.replaying import running

        return running(self.module, self.identity, self.loaded.device)

    @property
    def counted(self) -> Counted:
        """Whose final module `account` and `totals` are of."""
        if self.is_fused:
            return "xla" if self.account_as_it_is.module is self.module else "replayed"
        return self.replay.counted

    @cached_property
    def verdict_as_it_is(self) -> Verdict:
        from hlofuse.reports.verdict.verdict import verdict_as_it_is

        return verdict_as_it_is(self.account_as_it_is, self.loaded.release, self.loaded.device)

    @property
    def totals(self) -> Totals:
        """Kernels, launches, bytes, FLOP, time in microseconds and copies of what is launched."""
        return self.verdict_as_it_is.totals if self.is_taken_as_it_is else self.facts.totals_after

    @cached_property
    def difference(self) -> Comparison | None:
        from hlofuse.reports.comparison.model import compare_with_xla

        return compare_with_xla(self.replayed)
