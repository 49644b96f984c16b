"""From options to a replay: the one way in which the library and all commands say what to replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.listener import SILENT, Listener
from hlofuse.library.option import flag
from hlofuse.library.option import option as _option
from hlofuse.pipelines import NEEDS_DEVICE, TARGETS, passes_of
from hlofuse.pipelines.device import device_of
from hlofuse.pipelines.identity import Fact, Given
from hlofuse.pipelines.stage import Stage
from hlofuse.pipelines.targets import after_fusion
from hlofuse.releases import AROUND_FUSION, release_of

if TYPE_CHECKING:
    from hlofuse.account import Observed
    from hlofuse.account.measured import Measured
    from hlofuse.compilation import Compilation, CompilationInput, PassObserver, ReplayConfig
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.inputs.choose_target import ChosenTarget
    from hlofuse.inputs.profile import Profile
    from hlofuse.ir.graph import Module, OrderSource
    from hlofuse.pipelines.identity import Identity
    from hlofuse.releases import Release
    from hlofuse.trace.priority_record import PriorityRecord


def require_end(target: str, device: DeviceDescription | None) -> None:
    """HlofuseError where the passes after fusion are not known; with no device the target decides."""
    needs_device = TARGETS[target].needs_device
    if TARGETS[target].back is None or (
        (device is not None or not needs_device) and not after_fusion(target, device)
    ):
        on = f" on {device.name}" if device is not None else ""
        raise HlofuseError(
            f"the passes after fusion are not implemented for target {target}{on}; give --until fusion"
        )


def is_before_optimizations(loaded: Loaded) -> bool:
    """True for a module that has to be lowered to the input of fusion; False where it is there.

    StageError for other stages and backends.
    """
    from hlofuse.inputs.stage import BEFORE, StageError, require_input_stage

    try:
        require_input_stage(loaded.module, loaded.target, loaded.identity.shown)
    except StageError as error:
        stage = error.stage
        if stage.name != BEFORE or stage.foreign_to(loaded.target):
            raise
        return True
    return False


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The module to replay and the options of the call."""

    input: str
    module: str | None = _option(
        "--module", "NAME", "Module to read from a dump directory or file.", complete="modules"
    )
    target: str | None = _option(
        "--target",
        "T",
        (
            "Backend to replay (hlofuse targets).  [default: gpu with --device, else read from the dump, else"
            " cpu]"
        ),
        complete="targets",
    )
    device: str | None = _option(
        "--device",
        "D",
        "Device name or file (hlofuse devices).  [default: read from the dump]",
        complete="devices",
    )
    xla: str | None = _option(
        "--xla",
        "V|auto",
        "XLA to replay, as a jaxlib release.  [default: auto, read from the dump]",
        complete="releases",
    )
    option: str | None = _option(
        "--option", "NAME", "A variant of the target's passes (hlofuse targets).", complete="option_names"
    )
    order: OrderSource | None = _option(
        "--order",
        ("xla", "replayed", "estimated", "text"),
        (
            "Source of instruction order: XLA's ids, its earlier passes replayed, an estimate, or the text."
            "  [default: the best available]"
        ),
    )
    ids: str | None = _option(
        "--ids",
        "FILE",
        "File with XLA's unique instruction ids (.hlo.pb).  [default: the file next to INPUT]",
    )
    xla_trace: str | None = _option(
        "--xla-trace",
        "FILE|none",
        (
            "XLA's PriorityFusion log (…priority_fusion_dump.txt), used to break ties.  [default: the file"
            " next to INPUT]"
        ),
    )
    passes: str | None = _option(
        "--passes",
        "LIST",
        "Replay these passes instead, separated by commas; fixpoint(A, B) repeats until nothing changes.",
        complete="passes",
    )
    xla_flags: str | None = _option(
        "--xla-flags", "FLAGS", "XLA_FLAGS of the compilation.  [default: read from the dump]"
    )
    stage: str | None = _option(
        "--stage",
        ("before-optimizations", "fusion-input", "after-fusion", "scheduled"),
        "Stage of the compilation that the module comes from.  [default: read from the module]",
    )
    overrides: tuple[str, ...] = _option(
        "--set",
        "NAME=VALUE",
        "Replay with another value of a knob or device number (hlofuse what-if --knobs).",
        complete="knobs",
        multiple=True,
    )
    disable: tuple[str, ...] = _option(
        "--disable", "CODE", "Replay without this rule.", complete="rules", multiple=True
    )
    enable: tuple[str, ...] = _option(
        "--enable",
        "NAME",
        "Replay with an optional pass or rule that XLA leaves out (hlofuse targets).",
        complete="optional_passes",
        multiple=True,
    )
    rules: tuple[str, ...] = _option(
        "--rules",
        "NAME|all",
        "Replay with the rules of an installed package (hlofuse rule lists them).",
        multiple=True,
    )
    assume_input: bool = flag(
        "--assume-input", "Same as --stage fusion-input: replay the fusion passes on any module."
    )
    profile: str | None = _option(
        "--profile",
        "PATH",
        "Measured time from a profile: *.xplane.pb or its folder, *.trace.json.gz, an export of nsys.",
        kind="path",
    )
    given: Module | str | None = field(default=None, repr=False)
    """The module, or its text, in place of a file; `input` is then where it was read from, or `-`."""
    listener: Listener = field(default=SILENT, compare=False, repr=False)

    @property
    def input_arguments(self) -> tuple[str, ...]:
        """The words that name the same input and settings in another command."""
        arguments = [self.input]
        for declared in fields(self):
            given, spec = getattr(self, declared.name), declared.metadata.get("option")
            if spec is None or given in (None, False):
                continue
            if given is True:
                arguments.append(spec.flags)
            for value in given if isinstance(given, tuple) else (given,) if given is not True else ():
                arguments += [spec.flags, value]
        return tuple(arguments)

    @property
    def requested_stage(self) -> Stage | None:
        """The stage that the module is to be taken for; None where it is found out."""
        if self.assume_input:
            return Stage.INPUT
        return Stage(self.stage) if self.stage is not None else None

    @property
    def takes_any_stage(self) -> bool:
        """The fusion passes are to be replayed whatever stage the module shows."""
        return self.requested_stage is Stage.INPUT or self.changes_xla

    @property
    def changes_xla(self) -> bool:
        """Something is asked for that XLA does not do."""
        return bool(self.overrides or self.disable or self.enable or self.rules or self.passes is not None)

    def read(
        self, *, any_stage: bool = False, otherwise: Callable[[Module], Defaults | None] | None = None
    ) -> Loaded:
        """Load the module and settle what is replayed how; one before optimizations is brought to fusion.

        HlofuseError for wrong input, its subclass StageError for a dump of another stage. With `any_stage`
        the module stays as it is, whatever it is. `otherwise` knows target and device where neither the call
        nor the dump says them.
        """
        from hlofuse.account.measured import attach
        from hlofuse.compilation import CompilationInput
        from hlofuse.inputs import choose_target
        from hlofuse.inputs.choose_target import ChosenTarget, requested_target
        from hlofuse.inputs.companions import compiled_with
        from hlofuse.inputs.identity import settled
        from hlofuse.pipelines.flags import parse_flags

        if self.target is not None:  # what is wrong with the call is reported before anything is read
            passes_of(self.target, AROUND_FUSION, self.option)
            if self.device is not None or not TARGETS[self.target].needs_device:
                self.config(self.target, self.device, self.xla)
        with self.listener.activity("reading"):
            module = self._module()
        flags = parse_flags(self.xla_flags) if self.xla_flags is not None else ()
        chosen = choose_target(self.input, self.module, device=self.device is not None, read=module)
        defaults = otherwise(module) if otherwise is not None else None
        if defaults is not None and self.device is None and not chosen.evidence:
            chosen = ChosenTarget(defaults.target, defaults.evidence)
        if self.target is not None:
            chosen = requested_target(self.target)
        profile = self._profile(module)
        problem, device, evidence, note = "", None, None, ""
        try:
            device, evidence, note = self._device(module, chosen, defaults, profile)
        except HlofuseError as error:
            problem = str(error)
        on = device_of(chosen.name, device)[0] if device is not None else None
        given = Given(self.target, self.requested_stage, flags, self.xla, on)
        chosen, identity = settled(module, chosen, evidence, given)
        if span_note := identity.span_note:
            identity = replace(identity, notes=(*identity.notes, span_note))
        release = identity.replayed
        target = chosen.name
        if profile is not None and identity.shown.is_fused:
            attach(module, profile)
        if device is None and TARGETS[target].needs_device:
            input = CompilationInput(module, identity=identity)
            loaded = Loaded(input, target, problem=problem, listener=self.listener, profile=profile)
            return loaded if any_stage else self.at_fusion_input(loaded)
        if self.device is not None:
            # A mistyped device is reported before what it would not go with.
            self.config(target, device, release)
        config = self.config(target, device, release, flags=compiled_with(module, flags))
        log_file, log = self._fusion_log(module, target)
        input = CompilationInput(
            module, record=log, record_file=str(log_file) if log is not None else "", identity=identity
        )
        log_file = log_file if log is None else None
        loaded = Loaded(
            input, target, config, log_file, device_note=note, listener=self.listener, profile=profile
        )
        return loaded if any_stage else self.at_fusion_input(loaded)

    def _profile(self, module: Module) -> Profile | None:
        """The given profile, or the one next to the module with a run of it."""
        from hlofuse.inputs.profile import companion_profile, read_profile

        with self.listener.activity("reading the profile"):
            if self.profile is not None:
                return read_profile(self.profile)
            alone = self.given is None and self.input != "-" and "profile" not in module.findings
            found = companion_profile(self.input) if alone else None
        return found if found is not None and any(m.name == module.name for m in found.modules) else None

    def measured(self, read: Callable[[], Module]) -> Measured | None:
        """Measured times of the final module that `read` yields; None without a profile of it."""
        from hlofuse.account.measured import attach, measured_of
        from hlofuse.inputs.profile import companion_profile

        if self.profile is None and companion_profile(self.input) is None:
            return None  # most dumps have none, and reading one takes long
        final = read()
        if (profile := self._profile(final)) is not None:
            attach(final, profile)
        return measured_of(final)

    def _module(self) -> Module:
        from hlofuse.inputs import load
        from hlofuse.inputs.many import load_text
        from hlofuse.ir.copy import copy_module

        if isinstance(self.given, str):
            return load_text(self.given, self.module)
        if self.given is not None:
            return copy_module(self.given)
        return load(self.input, self.module, target=self.target)

    def _device(
        self, module: Module, chosen: ChosenTarget, defaults: Defaults | None, profile: Profile | None
    ) -> tuple[str | DeviceDescription | None, Fact | None, str]:
        """The device, what shows it, and a note where a file tells it that is there for another purpose.

        HlofuseError where the target needs one and none is known.
        """
        from hlofuse.inputs.choose_target import sibling_names
        from hlofuse.inputs.companions import device_of_names, recorded_device
        from hlofuse.inputs.profile import device_of

        if self.device is not None:
            return self.device, Fact(Path(self.device).stem, "asked", "given by --device"), ""
        if not TARGETS[chosen.name].needs_device:
            return None, None, ""
        recorded = recorded_device(module.filename)
        if recorded is not None:
            fact = Fact(
                recorded.device.name,
                "directory",
                recorded.note or ("target configuration in the dump directory"),
            )
            return recorded.device, fact, recorded.note
        if defaults is not None and defaults.device is not None and defaults.target == chosen.name:
            fact = Fact(defaults.device, "directory", defaults.evidence)
            return defaults.device, fact, f"device {defaults.device}: {defaults.evidence}"
        if (origin := module.findings.get("profile")) is not None:  # the module was read from it
            profile = origin[0]
        by_profile = device_of(profile) if profile is not None else ""
        if by_profile:
            return by_profile, Fact(by_profile, "directory", "the profile's device"), ""
        if self.input != "-":
            path = Path(self.input)
            named = device_of_names([path.name, *(sibling_names(path, self.module))])
            if named is not None:
                return named.device, Fact(named.device.name, "text", named.note), named.note
        why = f" ({printable(chosen.evidence)})" if chosen.source != "asked" else ""
        end = "; or give another --target" if self.target is None else ""
        raise HlofuseError(f"target {chosen.name}{why} {NEEDS_DEVICE}{end}")

    def at_fusion_input(self, loaded: Loaded) -> Loaded:
        """The loaded module at the input of fusion: as it is, or lowered, with a note.

        Raises `StageError` where that is impossible, `HlofuseError` where the target needs a device.
        """
        if loaded.config is None:
            if "profile" in loaded.module.findings:  # reported as it is, without times of XLA's model
                is_before_optimizations(loaded)
            raise HlofuseError(loaded.problem)
        with self.listener.activity("determining the stage"):
            exact = self.requested_stage is Stage.INPUT or not is_before_optimizations(loaded)
        self.listener.note(loaded.device_note)
        return self._ordered(loaded) if exact else self._lowered(loaded)

    def _ordered(self, loaded: Loaded) -> Loaded:
        """The module in the order that `--order` asks for, or the best there is."""
        from hlofuse.inputs.ordered import replay_input

        assert loaded.config is not None
        if self.ids == "none":
            raise HlofuseError("--ids none was replaced by --order estimated")
        with self.listener.activity("replaying the passes before fusion"):
            found = replay_input(loaded.module, loaded.config, order=self.order, ids_file=self.ids)
        input = replace(loaded.input, module=found.module, ids=found.ids, lowering=found.lowering)
        return replace(loaded, input=input)

    def _lowered(self, loaded: Loaded) -> Loaded:
        """A module before optimizations at the input of fusion, with a note.

        HlofuseError for files about the input of fusion: they know other names and ids.
        """
        from hlofuse.inputs.stage import lowering_of
        from hlofuse.reports.common.unoptimized import lowering_note

        order = self.order if self.order != "replayed" else None
        trace = self.xla_trace if self.xla_trace != "none" else None
        for flags, value in (("--order", order), ("--ids", self.ids), ("--xla-trace", trace)):
            if value is not None:
                raise HlofuseError(
                    f"{flags} needs a module at the fusion input; this one is before optimizations"
                )
        config = loaded.config
        assert config is not None
        with self.listener.activity("replaying the passes before fusion"):
            lowering = lowering_of(loaded.module, config)
            lowering.span(Stage.INPUT)
        right = loaded.identity.shown.right_file
        better = f"\nXLA's own dump at the fusion input: {printable(str(right))}" if right else ""
        input = replace(
            lowering.fusion_input, note=lowering_note(lowering) + better, identity=loaded.identity
        )
        return replace(loaded, input=input, log_file=None)

    def with_change(self, first: Observed, change: str) -> Observed:
        """The module of a replay once more, with a knob or a number of the device changed: `NAME=VALUE`."""
        from hlofuse.account import observed_replay

        config = first.replay.config
        own = (config.xla or config).device
        changed = self.config(config.target, own, config.release.name, [change], flags=config.build.flags)
        return observed_replay(first.replay.input, replace(changed, xla=None), totals_only=True)

    def on_device(self, first: Observed, other: str | None, release: str | None = None) -> Observed:
        """The program of a replay on another device, from before optimizations where that is at hand.

        XLA's record is about the first device, and so is a module that enters fusion. `release` is XLA's,
        where it is another; without another device the module is the same.
        """
        from hlofuse.compilation import CompilationInput
        from hlofuse.inputs import load
        from hlofuse.inputs.companions import before_optimizations_of

        target = first.replay.target
        if first.costs is None and other is not None:
            raise HlofuseError(
                f"--compare-device has no effect: target {target} fuses the same on every device"
            )
        own, input = first.replay.config, first.replay.input
        release = release or own.release.name
        config = replace(self.config(target, other or own.device, release, flags=own.build.flags), xla=None)
        if input.identity is not None:
            device = Fact(other, "asked", "--compare-device says so") if other else input.identity.device
            identity = replace(input.identity, device=device, replayed=config.release.name)
            input = replace(input, identity=identity)
        if other is None:
            return Loaded(replace(input, record=None, record_file=""), target, config).observe()
        unoptimized = input.unoptimized
        if unoptimized is None and (path := before_optimizations_of(input.module.filename)) is not None:
            unoptimized = load(str(path))
        if unoptimized is None:
            return Loaded(
                replace(input, record=None, record_file=""), target, config, listener=self.listener
            ).observe()
        program = Loaded(
            CompilationInput(unoptimized, identity=input.identity), target, config, listener=self.listener
        )
        return replace(self, order=None, ids=None, xla_trace=None)._lowered(program).observe()

    def config(
        self,
        target: str,
        device: str | DeviceDescription | None,
        release: str | None,
        more: Sequence[str] = (),
        flags: tuple[str, ...] = (),
        mixed: Release | None = None,
    ) -> ReplayConfig:
        """The configuration for a device and a release, with `more` overrides and XLA flags."""
        from hlofuse.compilation import replay_config

        return replay_config(
            target,
            device,
            xla=release,
            mixed=mixed,
            option=self.option,
            overrides=(*self.overrides, *more),
            disable=self.disable,
            enable=self.enable,
            rules=self.rules,
            passes=self.passes,
            xla_flags=flags,
        )

    def _fusion_log(self, module: Module, target: str) -> tuple[Path | None, PriorityRecord | None]:
        """The path of XLA's fusion log, if it matters, and its content if requested."""
        from hlofuse.inputs.companions import priority_record_of

        if self.xla_trace == "none" or (self.xla_trace is None and not TARGETS[target].has_history):
            return None, None
        if not TARGETS[target].has_history:
            raise HlofuseError(f"--xla-trace needs target gpu; target {target} has no PriorityFusion")
        if self.xla_trace is None:  # a what-if run goes its own way
            return None if self.changes_xla else priority_record_of(module.filename), None
        path = Path(self.xla_trace)
        record = _read_record(path)
        if not record.steps:
            raise HlofuseError(
                f"{printable(str(path))}: expected XLA's PriorityFusion log; found no fusion steps"
            )
        return path, record


def _read_record(path: Path) -> PriorityRecord:
    from hlofuse.inputs import read_text
    from hlofuse.trace.priority_record import read_priority_record

    return read_priority_record(read_text(path, as_module=False))


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults where neither the call nor the dump decides."""

    target: str
    device: str | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that has been read, and how it is replayed."""

    input: CompilationInput
    target: str
    config: ReplayConfig | None = field(default=None, repr=False)
    log_file: Path | None = None
    """XLA's fusion log next to the module; only `observe` follows it."""
    problem: str = ""
    """Why there is no `config`: which device is to be replayed is not known."""
    device_note: str = ""
    """The device and its source; empty where the call or XLA's target configuration names it."""
    listener: Listener = field(default=SILENT, compare=False, repr=False)
    profile: Profile | None = field(default=None, repr=False)

    @property
    def module(self) -> Module:
        """The module, at whatever stage it was asked for."""
        return self.input.module

    @property
    def identity(self) -> Identity:
        assert self.input.identity is not None
        return self.input.identity

    @property
    def device(self) -> DeviceDescription | None:
        """The GPU that is replayed; None where there is none, or none is known."""
        return self.config.device if self.config is not None else None

    @property
    def release(self) -> Release:
        """The release whose passes are repeated."""
        return release_of(self.identity.replayed)

    @property
    def order_source(self) -> OrderSource:
        """The source of a replay's ids and use-lists."""
        return self.input.order_source(self.target)

    @property
    def follows_log(self) -> bool:
        """True if a replay breaks ties as in XLA's fusion log."""
        return self.input.record is not None

    @property
    def note(self) -> str:
        """The first note of a report; empty where XLA wrote the module."""
        return self.input.note

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes to XLA, in words; empty for XLA itself."""
        return self.config.changes if self.config is not None else ()

    def observe(self, *, one_of_many: bool = False) -> Observed:
        """The replay with its costs, and XLA's own replay where the options differ from XLA.

        `one_of_many` keeps quiet about a log that is not followed.
        """
        from hlofuse.account import observed_replay

        assert self.config is not None
        with self.listener.activity("replaying"):
            observed = observed_replay(self._with_log(one_of_many), self.config)
        self.attach((observed.xla or observed).replay)  # what was measured is XLA's own
        return observed

    def attach(self, replay: Compilation) -> None:
        """Join what the replay launches with the profile, where there is one."""
        from hlofuse.library.naming import attach_profile

        if self.profile is not None:
            attach_profile(replay, self.profile)

    def replay(self, observers: Sequence[PassObserver] = ()) -> Compilation:
        """The replay alone; XLA's log is followed only where it was asked for."""
        from hlofuse.compilation import compile

        assert self.config is not None
        with self.listener.activity("replaying"):
            return compile(self.input, self.config, observers)

    def _with_log(self, one_of_many: bool) -> CompilationInput:
        if self.log_file is None or self.config is None:
            return self.input
        log = _read_record(self.log_file)
        if not log.is_of(self.config.device):
            if not one_of_many:
                name = printable(self.log_file.name)
                self.listener.note(f"XLA's fusion log {name} is for another device; ignored")
            return self.input
        # Where XLA had nothing to fuse the log is empty.
        return replace(self.input, record=log, record_file=str(self.log_file)) if log.steps else self.input
