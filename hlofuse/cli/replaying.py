"""From command line options to a replay: what explain and why have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hlofuse.cli.options import module_option, target_options

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.explainer.costs import Observed
    from hlofuse.ir.module import Module
    from hlofuse.passes.priority_fusion.guide import Guide
    from hlofuse.rules.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a request found before anything is replayed."""

    module: Module
    device: DeviceDescription | None
    settings: Settings


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Which module to replay, and how."""

    input: str
    module: str | None
    target: str
    device: str | None
    option: str | None
    ids: str | None
    xla_trace: str | None
    overrides: tuple[str, ...]
    disable: tuple[str, ...]
    assume_input: bool

    @property
    def input_words(self) -> tuple[str, ...]:
        """The words that name the same input and settings in another command."""
        words = [self.input]
        if self.module is not None:
            words += ["--module", self.module]
        if self.target != "cpu":
            words += ["--target", self.target]
        if self.device is not None:
            words += ["--device", self.device]
        if self.option is not None:
            words += ["--option", self.option]
        if self.ids is not None:
            words += ["--ids", self.ids]
        if self.xla_trace is not None:
            words += ["--xla-trace", self.xla_trace]
        for override in self.overrides:
            words += ["--set", override]
        for code in self.disable:
            words += ["--disable", code]
        return (*words, "--assume-input") if self.assume_input else tuple(words)

    @property
    def what_if(self) -> tuple[str, ...]:
        """The overrides in words; empty when XLA itself is repeated."""
        return (*self.overrides, *(f"without {code}" for code in self.disable))

    def load(self) -> Loaded:
        """Read the module and find the device; HlofuseError for wrong input. The stage is not looked at."""
        from hlofuse.cli.progress import spinner
        from hlofuse.inputs import load
        from hlofuse.inputs.beside import device_in_dump, target_config_beside
        from hlofuse.pipelines import TARGETS, device_of, passes_of
        from hlofuse.rules.parse_settings import parse_settings

        # What is wrong with the call is said before anything is read.
        passes_of(self.target, self.option)
        guess = self.device is None and TARGETS[self.target].needs_device
        device, overrides = (None, ()) if guess else device_of(self.target, self.device, self.overrides)
        settings = parse_settings(overrides, self.disable)
        with spinner("reading"):
            module = load(self.input, self.module, target=self.target)
        if guess:  # XLA dumps the device's numbers beside the module
            config = target_config_beside(module.filename)
            dumped = device_in_dump(config) if config is not None else None
            device, overrides = device_of(self.target, dumped, self.overrides)
            settings = parse_settings(overrides, self.disable)
        return Loaded(module, device, settings)

    def run(self, loaded: Loaded | None = None) -> Observed:
        """Load, unless that is done, and replay; StageError for a dump of another stage."""
        from hlofuse.cli.progress import spinner
        from hlofuse.explainer.costs import observed_replay
        from hlofuse.inputs import require_input_stage
        from hlofuse.inputs.unique_ids import unique_ids_for

        if loaded is None:
            loaded = self.load()
        module = loaded.module
        if not self.assume_input:
            require_input_stage(module, self.target)
        make_guide, record = self._record(module)
        with spinner("replaying"):
            observed = observed_replay(
                module,
                self.target,
                device=loaded.device,
                option=self.option,
                settings=loaded.settings,
                ids=unique_ids_for(module, self.ids),
                make_guide=make_guide,
            )
        observed.record = record
        return observed

    def _record(self, module: Module) -> tuple[Callable[[], Guide] | None, str | None]:
        """What follows XLA's own record of the pass, and where that is; None without one."""
        from hlofuse.inputs import read_text
        from hlofuse.inputs.beside import priority_record_beside
        from hlofuse.ir.errors import HlofuseError
        from hlofuse.passes.priority_fusion.following import Follower
        from hlofuse.pipelines import TARGETS
        from hlofuse.present.escape import printable
        from hlofuse.trace.priority_record import read_priority_record

        if self.xla_trace == "none" or not TARGETS[self.target].has_history:
            return None, None
        path = Path(self.xla_trace) if self.xla_trace is not None else priority_record_beside(module.filename)
        if path is None or (self.xla_trace is None and (self.overrides or self.disable)):
            return None, None  # a what-if run goes its own way
        record = read_priority_record(read_text(path, as_module=False))
        if not record.steps:
            raise HlofuseError(
                f"{printable(str(path))} is no record of PriorityFusion: it holds no fusion steps"
            )
        return lambda: Follower(record), str(path)


def replay_options(command: F) -> F:
    """The options that make a ReplayRequest, the INPUT argument not among them."""
    command = click.option(
        "--disable", multiple=True, metavar="CODE", help="What if this rule did not exist?"
    )(command)
    command = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="NAME=VALUE",
        help="What if this knob, or number of the device, had another value?",
    )(command)
    command = click.option(
        "--ids",
        metavar="FILE|none",
        help="Unique ids of the instructions (.hlo.pb); taken from beside the input unless said.",
    )(command)
    command = click.option(
        "--xla-trace",
        metavar="FILE|none",
        help="XLA's own record of PriorityFusion (…priority_fusion_dump.txt), to be followed where priorities"
        " are equal; taken from beside the input unless said.",
    )(command)
    command = click.option(
        "--option", metavar="NAME", help="A variant of the target's passes (hlofuse targets)."
    )(command)
    return module_option(target_options(command))
