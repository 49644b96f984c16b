"""Run a target's passes over a copy of a module and keep every decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlofuse.ir.collector import no_collection
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.order import restore
from hlofuse.passes import make_pass
from hlofuse.passes.base import Pass
from hlofuse.pipelines.targets import TARGETS
from hlofuse.replay.config import ReplayConfig, replay_config
from hlofuse.replay.result import Checkpoint, PassResult, Replay, ReplayInput, ReplayObserver
from hlofuse.rules.settings import PLANNED, PlanInForce
from hlofuse.trace import Recorder

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.cost.gpu.shared_tables import SharedTables
    from hlofuse.rules.settings import Settings


@no_collection()
def replay(
    input: Module | ReplayInput,
    config: str | ReplayConfig = "cpu",
    observers: Sequence[ReplayObserver] = (),
    *,
    device: str | DeviceDescription | None = None,
    xla: str | None = None,
    option: str | None = None,
    passes: Sequence[str] | None = None,
    settings: Settings | None = None,
    cache: SharedTables | None = None,
    checkpoint: Checkpoint | None = None,
) -> Replay:
    """The result of XLA's fusion passes on a copy of a module, with every decision.

    `config` is a `ReplayConfig` or the name of a target. With a name, `device` is a device's name, file or
    description, `xla` a release of jaxlib (the reference release unless given), `option` names a variant of
    the target's passes (`Target.options`), `passes` are others (`fixpoint(a, b)` repeats some until nothing
    changes), and `settings` change knobs and rules. `observers` see every decision while it is made. `cache`
    spares several replays of one module the work of computing the same costs, and `checkpoint` the passes
    that they have in common. HlofuseError for unknown names.
    """
    if isinstance(input, Module):
        input = ReplayInput(input)
    if isinstance(config, str):
        listed = ", ".join(passes) if passes is not None else None
        config = replay_config(config, device, xla=xla, option=option, passes=listed)
        config = config if settings is None else replace(config, settings=settings)
    return _Run(input, config, observers, cache, checkpoint).all_passes()


class _Run:
    """One replay under way."""

    def __init__(
        self,
        input: ReplayInput,
        config: ReplayConfig,
        observers: Sequence[ReplayObserver],
        cache: SharedTables | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.config = config
        self.observers = observers
        self.checkpoint = checkpoint
        self.passes = config.passes
        latest = checkpoint.latest() if checkpoint is not None else None
        if latest is not None:
            self.passes = self.passes[self.passes.index(latest.before_pass) :]
            self.result = latest.resume()
            self.result.config = config
        else:
            self.result = _begin(input, config)
        if input.record is not None:
            from hlofuse.passes.fusion.priority_fusion.recorded_order import RecordedOrder

            self.result.recorded_order = RecordedOrder(input.record)
        self.context: dict[str, Any] = {
            "device": config.device,
            "tie_breaker": self.result.recorded_order,
            "observers": observers,
            "tables": cache,
            "plan": PlanInForce(config.settings.plan) if config.settings.plan else None,
        }

    def all_passes(self) -> Replay:
        for text in self.passes:
            if self.checkpoint is not None:
                self.checkpoint.note(self.result, text)
            created = make_pass(
                text, self.config.target, self.config.release, self.config.settings, **self.context
            )
            created.run_with(self._run)
        return self.result

    def _run(self, created: Pass) -> bool:
        """Run a single pass and keep what it decided; True if it changed the module."""
        result, recorder = self.result, Recorder()
        recorder.begin_pass(created.name)
        changed = created.run(result.after, recorder)
        done = PassResult(created.name, changed, recorder.events)
        for observer in self.observers:
            observer.after_pass(done, result.after)
        result.passes.append(done)
        return changed


def _begin(input: ReplayInput, config: ReplayConfig) -> Replay:
    """A replay before its first pass, its module in the order in which XLA has it in memory."""
    after = copy_module(input.module)
    after.begin_run()
    result = Replay(input, config, after)
    if config.settings.plugins is not None:
        result.plugin_rules = config.settings.plugins.rules
    if config.settings.plan:
        result.plugin_rules = {**result.plugin_rules, PLANNED.code: PLANNED}
    restore(after, TARGETS[config.target], config.release, input.ids)
    return result
