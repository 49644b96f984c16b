"""From command line options to a replay: the one way in which all commands say what to replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hlofuse.cli.common.at_fusion import say
from hlofuse.cli.common.options import assume_input_option, module_option, target_options, what_if_options

if TYPE_CHECKING:
    from hlofuse.account import Observed
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.ir.module import Module
    from hlofuse.ir.unique_ids import UniqueIds
    from hlofuse.passes.fusion.priority_fusion.guide import Guide
    from hlofuse.replay import Replay, Variant
    from hlofuse.trace.priority_record import PriorityRecord

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Which module to replay, and how: the options as they were given."""

    input: str
    module: str | None = None
    target: str | None = None
    device: str | None = None
    option: str | None = None
    ids: str | None = None
    xla_trace: str | None = None
    overrides: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    passes: str | None = None
    assume_input: bool = False

    @property
    def input_words(self) -> tuple[str, ...]:
        """The words that name the same input and settings in another command."""
        words = [self.input]
        for flag, value in (
            ("--module", self.module),
            ("--target", self.target),
            ("--device", self.device),
            ("--option", self.option),
            ("--ids", self.ids),
            ("--xla-trace", self.xla_trace),
            ("--passes", self.passes),
        ):
            if value is not None:
                words += [flag, value]
        for flag, values in (
            ("--set", self.overrides),
            ("--disable", self.disable),
            ("--enable", self.enable),
            ("--rules", self.rules),
        ):
            for value in values:
                words += [flag, value]
        return (*words, "--assume-input") if self.assume_input else tuple(words)

    @property
    def changes_xla(self) -> bool:
        """Something is asked for that XLA does not do."""
        return bool(self.overrides or self.disable or self.enable or self.rules or self.passes is not None)

    def read(
        self,
        *,
        any_stage: bool = False,
        otherwise: Callable[[Module], Supposed | None] | None = None,
        told: Callable[[str], None] = say,
    ) -> Subject:
        """Load the module and settle what is replayed how; one before optimizations is brought to fusion.

        HlofuseError for wrong input, its subclass StageError for a dump of another stage. With `any_stage`
        the module stays as it is, whatever it is. `otherwise` knows target and device where neither the call
        nor the dump says them; `told` is given the device that was chosen so, and why.
        """
        from hlofuse.cli.common.at_fusion import brought_to_fusion, in_its_order, is_before_optimizations
        from hlofuse.cli.common.progress import spinner
        from hlofuse.format.escape import printable
        from hlofuse.inputs import choose_target, load
        from hlofuse.inputs.beside import device_beside
        from hlofuse.inputs.choose_target import ChosenTarget, release_doubt
        from hlofuse.inputs.unique_ids import unique_ids_for
        from hlofuse.ir.errors import HlofuseError
        from hlofuse.pipelines import ASKS_FOR_DEVICE, TARGETS, passes_of

        if self.target is not None:  # what is wrong with the call is said before anything is read
            passes_of(self.target, self.option)
            if self.device is not None or not TARGETS[self.target].needs_device:
                self.variant(self.target, self.device)
        with spinner("reading"):
            module = load(self.input, self.module, target=self.target)
        chosen = choose_target(self.input, self.module, device=self.device is not None, read=module)
        supposed = otherwise(module) if otherwise is not None else None
        if supposed is not None and self.device is None and not chosen.evidence:
            chosen = ChosenTarget(supposed.target, supposed.evidence)
        target = self.target or chosen.name
        doubt = release_doubt(chosen, module) if self.target is None else ""
        device: str | DeviceDescription | None = self.device
        remark = ""
        if device is None and TARGETS[target].needs_device:
            beside = device_beside(module.filename)
            if beside is not None:
                device, remark = beside.device, beside.remark
            elif supposed is not None and supposed.device is not None and supposed.target == target:
                device, remark = supposed.device, f"for {supposed.device}, as {supposed.evidence}"
            if device is None and any_stage:
                return Subject(module, target)
            if device is None and self.target is None:
                raise HlofuseError(
                    f"this is for target {target} ({printable(chosen.evidence)}), which {ASKS_FOR_DEVICE};"
                    " --target says otherwise" + (f"\n{doubt}" if doubt else "")
                )
        if self.device is not None:
            self.variant(target, device)  # a mistyped device is told before what it would not go with
        exact = any_stage or self.assume_input or not is_before_optimizations(module, target)
        say(doubt)
        told(remark)
        variant = self.variant(target, device)
        path, record = self._record(module, target)
        ids = unique_ids_for(module, self.ids)
        subject = Subject(module, target, variant, ids, path, record)
        if not exact:
            return brought_to_fusion(self, subject)
        return subject if any_stage else in_its_order(self, subject)

    def run(self) -> Observed:
        """Load and replay, with an eye on the costs."""
        return self.read().observe()

    def on_device(self, first: Observed, other: str) -> Observed:
        """The module of a replay on another device; XLA's record is about the first one's."""
        from dataclasses import replace

        from hlofuse.inputs.unique_ids import unique_ids_for
        from hlofuse.ir.errors import HlofuseError

        module, target = first.replay.before, first.replay.target
        if first.costs is None:
            raise HlofuseError(f"target {target} fuses alike on every device: --compare-device says nothing")
        variant = replace(self.variant(target, other), xla=None)
        ids = None if first.remark else unique_ids_for(module, self.ids)
        return Subject(module, target, variant, ids, remark=first.remark).observe()

    def variant(
        self, target: str, device: str | DeviceDescription | None, more: Sequence[str] = ()
    ) -> Variant:
        """What is asked for on a device, with `more` overrides (`NAME=VALUE`)."""
        from hlofuse.replay import variant_of

        return variant_of(
            target,
            device,
            option=self.option,
            overrides=(*self.overrides, *more),
            disable=self.disable,
            enable=self.enable,
            rules=self.rules,
            passes=self.passes,
        )

    def _record(self, module: Module, target: str) -> tuple[Path | None, PriorityRecord | None]:
        """Where XLA's own record of the pass is, if it plays a part, and the record if it was asked for."""
        from hlofuse.format.escape import printable
        from hlofuse.inputs.beside import priority_record_beside
        from hlofuse.ir.errors import HlofuseError
        from hlofuse.pipelines import TARGETS

        if self.xla_trace == "none" or (self.xla_trace is None and not TARGETS[target].has_history):
            return None, None
        if not TARGETS[target].has_history:
            raise HlofuseError(f"--xla-trace is about target gpu; target {target} has no PriorityFusion")
        if self.xla_trace is None:  # a what-if run goes its own way
            return None if self.changes_xla else priority_record_beside(module.filename), None
        path = Path(self.xla_trace)
        record = _read_record(path)
        if not record.steps:
            raise HlofuseError(
                f"{printable(str(path))} is no record of PriorityFusion: it holds no fusion steps"
            )
        return path, record


def _read_record(path: Path) -> PriorityRecord:
    from hlofuse.inputs import read_text
    from hlofuse.trace.priority_record import read_priority_record

    return read_priority_record(read_text(path, as_module=False))


@dataclass(frozen=True, slots=True)
class Supposed:
    """What a replay is for where neither the call nor the dump says."""

    target: str
    device: str | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A module that has been read, and how it is replayed."""

    module: Module
    target: str
    variant: Variant | None = None
    ids: UniqueIds | None = None
    record_path: Path | None = None
    """XLA's own record of the pass: asked for, or lying beside the module (only `observe` looks at that)."""
    record: PriorityRecord | None = None
    """What is in it, where it was asked for."""
    remark: str = ""
    """What a module is worth that was before optimizations; empty where it is as XLA has it."""

    @property
    def changes(self) -> tuple[str, ...]:
        """What differs from XLA, in words; empty when XLA itself is repeated."""
        return self.variant.changes if self.variant is not None else ()

    def observe(self, *, one_of_many: bool = False) -> Observed:
        """Replay it, with an eye on the costs; with XLA's own replay beside it where that is another.

        `one_of_many` keeps quiet about a record that is not followed.
        """
        from hlofuse.account import observed_replay
        from hlofuse.cli.common.progress import spinner
        from hlofuse.format.escape import printable

        assert self.variant is not None
        record = self.record
        if record is None and self.record_path is not None:
            record = _read_record(self.record_path)
            if not record.is_of(self.variant.device):
                record = None
                if not one_of_many:
                    name = printable(self.record_path.name)
                    note = f"note: XLA's own record beside it ({name}) is of another device, and not followed"
                    click.echo(note, err=True)
        # Where XLA had nothing to fuse the record is empty.
        follow = _follow(record) if record is not None and record.steps else None
        with spinner("replaying"):
            observed = observed_replay(self.module, self.variant, ids=self.ids, make_guide=follow)
        observed.record = str(self.record_path) if follow is not None else None
        observed.remark = self.remark
        if observed.xla is not None:
            observed.xla.remark = self.remark
        return observed

    def replay(self, *, keep_modules: bool = False) -> Replay:
        """Replay it from the module alone; XLA's record is followed only where it was asked for."""
        from hlofuse.cli.common.progress import spinner

        assert self.variant is not None
        with spinner("replaying"):
            guide = _follow(self.record)() if self.record is not None else None
            return self.variant.replay(self.module, ids=self.ids, guide=guide, keep_modules=keep_modules)


def _follow(record: PriorityRecord) -> Callable[[], Guide]:
    from hlofuse.passes.fusion.priority_fusion.following import Follower

    return lambda: Follower(record)


def replay_options(command: F) -> F:
    """The options that make a ReplayRequest, the INPUT argument not among them."""
    command = click.option(
        "--xla-trace",
        metavar="FILE|none",
        help="XLA's own record of PriorityFusion (…priority_fusion_dump.txt), to be followed where priorities"
        " are equal; taken from beside the input unless said.",
    )(command)
    return module_option(target_options(what_if_options(assume_input_option(command))))
