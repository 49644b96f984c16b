"""From command line options to a replay: what explain and why have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hlofuse.cli.options import module_option, target_options

if TYPE_CHECKING:
    from hlofuse.explainer.costs import Observed

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Which module to replay, and how."""

    input: str
    module: str | None
    target: str
    device: str | None
    option: str | None
    ids: str | None
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
        for override in self.overrides:
            words += ["--set", override]
        for code in self.disable:
            words += ["--disable", code]
        return (*words, "--assume-input") if self.assume_input else tuple(words)

    @property
    def what_if(self) -> tuple[str, ...]:
        """The overrides in words; empty when XLA itself is repeated."""
        return (*self.overrides, *(f"without {code}" for code in self.disable))

    def run(self) -> Observed:
        """Load and replay; HlofuseError for wrong input, StageError for a dump of another stage."""
        from hlofuse.cli.progress import spinner
        from hlofuse.explainer.costs import observed_replay
        from hlofuse.inputs import load, require_input_stage
        from hlofuse.inputs.unique_ids import unique_ids_for
        from hlofuse.pipelines import device_of, passes_of
        from hlofuse.rules.parse_settings import parse_settings

        # What is wrong with the call is said before anything is read.
        passes_of(self.target, self.option)
        device, overrides = device_of(self.target, self.device, self.overrides)
        settings = parse_settings(overrides, self.disable)
        with spinner("reading"):
            module = load(self.input, self.module, target=self.target)
            if not self.assume_input:
                require_input_stage(module, self.target)
        with spinner("replaying"):
            return observed_replay(
                module,
                self.target,
                device=device,
                option=self.option,
                settings=settings,
                ids=unique_ids_for(module, self.ids),
            )


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
        "--option", metavar="NAME", help="A variant of the target's passes (hlofuse targets)."
    )(command)
    return module_option(target_options(command))
