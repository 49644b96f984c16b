"""From options to a module and the settings of its replay; the modules of a directory or a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.account.measured import Measured, attach, measured_of
from hlofuse.compilation import (
    Compilation,
    CompilationInput,
    PassObserver,
    ReplayConfig,
    compile,
    replay_config,
)
from hlofuse.cost.tpu import tpu_devices, tpu_of
from hlofuse.format import listing, printable
from hlofuse.inputs import DumpedModule, choose_target, load, read_text
from hlofuse.inputs.backend import backend_of, platform_of
from hlofuse.inputs.choose_target import ChosenTarget, requested_target
from hlofuse.inputs.companions import Companions, companions_of, compiled_with, device_of_names
from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, is_corpus_case
from hlofuse.inputs.identity import settled
from hlofuse.inputs.many import load_text
from hlofuse.inputs.ordered import replay_input
from hlofuse.inputs.profile import Profile, companion_profile, is_profile, read_profile
from hlofuse.inputs.profile import device_of as device_of_profile
from hlofuse.inputs.stage import StageError, lowering_of, require_input_stage, stage_of
from hlofuse.ir import HlofuseError, Module, OrderSource, Record, Strings, copy_module, replace
from hlofuse.judge.measure import measured_profile
from hlofuse.pipelines import NEEDS_AMD_DEVICE, NEEDS_DEVICE, TARGETS, device_of, passes_of
from hlofuse.pipelines.flags import BEFORE_FUSION, disabled_passes, parse_flags, split_flags
from hlofuse.pipelines.identity import Fact, Given, Identity
from hlofuse.pipelines.targets import Stage, after_fusion, before_fusion
from hlofuse.releases import AROUND_FUSION, Release, release_of
from hlofuse.reports.common.head import lowering_note, with_xla_final
from hlofuse.trace.priority_record import PriorityRecord, read_priority_record
from .options import SILENT, Listener, ReplayOptions

if TYPE_CHECKING:
    from hlofuse.account import Observed
    from hlofuse.cost.gpu.device import DeviceDescription


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
    """True if the module has to be lowered to the input of fusion. StageError for other stages."""
    try:
        require_input_stage(loaded.module, loaded.target, loaded.identity.shown)
    except StageError as error:
        stage = error.stage
        if stage.name is not Stage.BEFORE or stage.foreign_to(loaded.target):
            raise
        return True
    return False


def read(
    options: ReplayOptions,
    *,
    any_stage: bool = False,
    otherwise: Callable[[Module], Defaults | None] | None = None,
) -> Loaded:
    """Load the module and settle what is replayed how; one before optimizations is brought to fusion.

    HlofuseError for wrong input, its subclass StageError for a dump of another stage. With `any_stage`
    the module stays as it is, whatever it is. `otherwise` knows a target and device that nothing says."""
    if options.target is not None:  # what is wrong with the call is reported before anything is read
        passes_of(options.target, AROUND_FUSION, options.option)
        if options.device is not None or not TARGETS[options.target].needs_device:
            config_of(options, options.target, options.device, options.xla)
    with options.listener.activity("reading"):
        module = _module(options)
    flags = split_flags(options.xla_flags or "")
    tpu = options.device if options.device in tpu_devices() else None
    options = replace(options, device=None) if tpu is not None else options
    chosen = choose_target(companions_of(module), device=options.device is not None, read=module)
    defaults = otherwise(module) if otherwise is not None else None
    if defaults is not None and options.device is None and not chosen.evidence:
        chosen = ChosenTarget(defaults.target, defaults.evidence)
    if options.target is not None:
        chosen = requested_target(options.target)
    if options.inputs is not None and not options.measure:
        raise HlofuseError("--inputs is for the runs of --measure, which is missing")
    if options.measure and TARGETS[chosen.name].needs_device:
        raise HlofuseError(f"--measure runs on this CPU, and the module is for {chosen.name} (--target cpu)")
    profile = _profile(options, module)
    of_device = module.findings.get("profile", (profile,))[0]  # the one that the module was read from
    problem, device, evidence, note = "", None, None, ""
    try:
        device, evidence, note = _device(options, module, chosen, defaults, of_device)
    except HlofuseError as error:
        problem = str(error)
    evidence = _tpu(module, of_device, tpu) or evidence
    on = device_of(chosen.name, device)[0] if device is not None else None
    given = Given(options.target, options.requested_stage, flags, options.xla, on)
    with options.listener.activity("determining the stage"):
        chosen, identity = settled(module, chosen, evidence, given)
    if notes := tuple(filter(None, (identity.span_note, _late_flags(module, given, chosen.name, identity)))):
        identity = replace(identity, notes=(*identity.notes, *notes))
    release = identity.replayed
    target = chosen.name
    if profile is not None and identity.shown.is_fused:
        attach(module, profile)
    if device is None and TARGETS[target].needs_device:
        input = CompilationInput(module, identity=identity)
        loaded = Loaded(input, target, problem=problem, listener=options.listener, profile=profile)
        return loaded if any_stage else at_fusion_input(options, loaded)
    if options.device is not None:
        # A mistyped device is reported before what it would not go with.
        config_of(options, target, device, release)
    config = config_of(options, target, device, release, flags=compiled_with(module, flags))
    log_file, log = _fusion_log(options, module, target)
    input = CompilationInput(module, record=log, identity=identity)
    log_file = log_file if log is None else None
    loaded = Loaded(
        input,
        target,
        config,
        log_file,
        device_note=note,
        listener=options.listener,
        profile=profile,
        is_xla_run=not flags and companions_of(module).is_written_by(release if options.xla else None),
    )
    return loaded if any_stage else at_fusion_input(options, loaded)


def _late_flags(module: Module, given: Given, target: str, identity: Identity) -> str:
    """The note on flags of the call whose passes XLA ran before the module's stage; empty without any."""
    there = companions_of(module)
    stated = [f for f in given.flags if f not in (there.all_flags or ())]
    if identity.shown.name is Stage.BEFORE or not stated:
        return ""
    early = {p.name for top in before_fusion(target, given.device) for p in top.flattened()}
    late = [f for f in stated if f[2:].startswith(BEFORE_FUSION) or early & disabled_passes([f])]
    file = printable(str(there.before_optimizations or "the module before optimizations"))
    shown = listing([*map(printable, late)], 2)
    return f"Not applied (for passes before fusion): {shown}; give {file}" if late else ""


def _tpu(module: Module, profile: Profile | None, named: str | None) -> Fact | None:
    """The TPU that a module of XLA:TPU is for; None where it is not known, and for other modules. Raises
    `HlofuseError` where the call names one and the module is another's."""
    backend = backend_of(module)
    if backend is None or backend.value != "tpu":
        if named is None:
            return None
        raise HlofuseError(
            f"--device {named} is a TPU, and the module is not XLA:TPU's, whose passes are not public:"
            f" compile the program with hlofuse capture --device {named}, which needs libtpu but no TPU"
        )
    if named is not None:
        return Fact(named, "asked", "given by --device")
    profiled = tpu_of(profile.tpu_kind) if profile is not None else ""
    if profiled:
        return Fact(profiled, "directory", "the profile's device")
    name, file = companions_of(module).tpu
    return Fact(name, "directory", f"from {file}") if name else None


def _profile(options: ReplayOptions, module: Module) -> Profile | None:
    """The given profile, or the one next to the module with a run of it."""
    if options.measure:
        return _measured_here(options, module)
    with options.listener.activity("reading the profile"):
        if options.profile is not None:
            return read_profile(options.profile)
        alone = options.given is None and options.input != "-" and "profile" not in module.findings
        found = companion_profile(options.input) if alone else None
    return found if found is not None and any(m.name == module.name for m in found.modules) else None


def _measured_here(options: ReplayOptions, module: Module) -> Profile:
    """Times of a run on this machine, from the module before optimizations."""
    is_before = stage_of(module).name is Stage.BEFORE
    source = None if is_before else companions_of(module).before_optimizations
    if source is None and not is_before:
        raise HlofuseError("--measure needs the module before optimizations, or the dump directory with it")
    flags = parse_flags(options.xla_flags) if options.xla_flags is not None else ()
    with options.listener.activity("measuring"):
        return measured_profile(load(str(source)) if source is not None else module, flags, options.inputs)


def measured(options: ReplayOptions, read: Callable[[], Module]) -> Measured | None:
    """Measured times of the final module that `read` yields; None without a profile of it."""
    if not options.measure and options.profile is None and companion_profile(options.input) is None:
        return None  # most dumps have none, and reading one takes long
    final = read()
    if (profile := _profile(options, final)) is not None:
        attach(final, profile)
    return measured_of(final)


def _module(options: ReplayOptions) -> Module:
    if isinstance(options.given, str):
        return load_text(options.given, options.module, strict=options.strict)
    if options.given is not None:
        return copy_module(options.given)
    return load(options.input, options.module, target=options.target, strict=options.strict)


def _device(
    options: ReplayOptions,
    module: Module,
    chosen: ChosenTarget,
    defaults: Defaults | None,
    profile: Profile | None,
) -> tuple[str | DeviceDescription | None, Fact | None, str]:
    """The device, what shows it, and a note if that is a file for other purposes; HlofuseError if lacking."""
    if options.device is not None:
        return options.device, Fact(Path(options.device).stem, "asked", "given by --device"), ""
    if not TARGETS[chosen.name].needs_device:
        return None, None, ""
    recorded = companions_of(module).recorded_device
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
    by_profile = device_of_profile(profile) if profile is not None else ""
    if by_profile:
        return by_profile, Fact(by_profile, "directory", "the profile's device"), ""
    companions = companions_of(module)
    if companions.given is not None:
        named = device_of_names([companions.given.name, *companions.names])
        if named is not None:
            return named.device, Fact(named.device.name, "text", named.note), named.note
    why = f" ({printable(chosen.evidence)})" if chosen.source != "asked" else ""
    end = "; or give another --target" if options.target is None else ""
    platform = platform_of(module)
    needs = NEEDS_AMD_DEVICE if platform is not None and platform.value == "ROCM" else NEEDS_DEVICE
    raise HlofuseError(f"target {chosen.name}{why} {needs}{end}")


def at_fusion_input(options: ReplayOptions, loaded: Loaded) -> Loaded:
    """The loaded module at the input of fusion: as it is, or lowered, with a note. Raises `StageError` where
    that is impossible, `HlofuseError` where the target needs a device."""
    if loaded.config is None:
        if "profile" in loaded.module.findings:  # reported as it is, without times of XLA's model
            is_before_optimizations(loaded)
        raise HlofuseError(loaded.problem)
    exact = options.requested_stage is Stage.INPUT or not is_before_optimizations(loaded)
    loaded.note_device()
    return _ordered(options, loaded) if exact else _lowered(options, loaded)


def _ordered(options: ReplayOptions, loaded: Loaded) -> Loaded:
    assert loaded.config is not None
    if options.ids == "none":
        raise HlofuseError("--ids none was replaced by --order estimated")
    with options.listener.activity("replaying the passes before fusion"):
        found = replay_input(loaded.module, loaded.config, order=options.order, ids_file=options.ids)
    input = replace(loaded.input, module=found.module, ids=found.ids, lowering=found.lowering)
    return replace(loaded, input=input)


def _lowered(options: ReplayOptions, loaded: Loaded) -> Loaded:
    """A module before optimizations at the input of fusion, with a note; HlofuseError for files of that."""
    order = options.order if options.order != "replayed" else None
    trace = options.xla_trace if options.xla_trace != "none" else None
    for flags, value in (("--order", order), ("--ids", options.ids), ("--xla-trace", trace)):
        if value is not None:
            raise HlofuseError(
                f"{flags} needs a module at the fusion input; this one is before optimizations"
            )
    config = loaded.config
    assert config is not None
    with options.listener.activity("replaying the passes before fusion"):
        lowering = lowering_of(loaded.module, config)
        lowering.span(Stage.INPUT)
    right = loaded.identity.shown.right_file
    better = f"\nXLA's own dump at the fusion input: {printable(str(right))}" if right else ""
    input = replace(lowering.fusion_input, note=lowering_note(lowering) + better, identity=loaded.identity)
    return replace(loaded, input=input, log_file=None)


def with_change(options: ReplayOptions, first: Observed, change: str) -> Observed:
    """The module of a replay once more, with a knob or a number of the device changed: `NAME=VALUE`."""

    from hlofuse.account import observed_replay  # loads the cost model

    config = first.replay.config
    own = (config.xla or config).device
    changed = config_of(options, config.target, own, config.release.name, [change], flags=config.build.flags)
    return observed_replay(first.replay.input, replace(changed, xla=None), totals_only=True)


def on_device(
    options: ReplayOptions, first: Observed, other: str | None, release: str | None = None
) -> Observed:
    """The program of a replay on another device, from before optimizations where that is at hand: XLA's
    record and a module that enters fusion are about the first. `release` is XLA's, where it is another."""
    target = first.replay.target
    if first.costs is None and other is not None:
        raise HlofuseError(f"--compare-device has no effect: target {target} fuses the same on every device")
    own, input = first.replay.config, first.replay.input
    release = release or own.release.name
    config = replace(
        config_of(options, target, other or own.device, release, flags=own.build.flags), xla=None
    )
    if input.identity is not None:
        device = Fact(other, "asked", "--compare-device says so") if other else input.identity.device
        identity = replace(input.identity, device=device, replayed=config.release.name)
        input = replace(input, identity=identity)
    program = Loaded(replace(input, record=None), target, config, listener=options.listener)
    if other is None:
        return program.observe()
    unoptimized = input.unoptimized
    if unoptimized is None and (path := companions_of(input.module).before_optimizations) is not None:
        unoptimized = load(str(path))
    if unoptimized is None:
        return program.observe()
    program = replace(program, input=CompilationInput(unoptimized, identity=input.identity))
    return _lowered(replace(options, order=None, ids=None, xla_trace=None), program).observe()


def config_of(
    options: ReplayOptions,
    target: str,
    device: str | DeviceDescription | None,
    release: str | None,
    more: Sequence[str] = (),
    flags: Strings = (),
    mixed: Release | None = None,
) -> ReplayConfig:
    """The configuration for a device and a release, with `more` overrides and XLA flags."""
    return replay_config(
        target,
        device,
        xla=release,
        mixed=mixed,
        option=options.option,
        overrides=(*options.overrides, *more),
        disable=options.disable,
        enable=options.enable,
        passes=options.passes,
        xla_flags=flags,
    )


def _fusion_log(
    options: ReplayOptions, module: Module, target: str
) -> tuple[Path | None, PriorityRecord | None]:
    """The path of XLA's fusion log, if it matters, and its content if requested."""
    if options.xla_trace == "none" or (options.xla_trace is None and not TARGETS[target].has_history):
        return None, None
    if not TARGETS[target].has_history:
        raise HlofuseError(f"--xla-trace needs target gpu; target {target} has no PriorityFusion")
    if options.xla_trace is None:  # a what-if run goes its own way
        return None if options.changes_xla else companions_of(module).record, None
    path = Path(options.xla_trace)
    record = read_priority_record(read_text(path, as_module=False), str(path))
    if not record.steps:
        raise HlofuseError(
            f"{printable(str(path))}: expected XLA's PriorityFusion log; found no fusion steps"
        )
    return path, record


class Defaults(Record):
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
    log_file: Path | None = None  # XLA's fusion log next to the module; only `observe` follows it
    problem: str = ""  # Why there is no `config`: which device is to be replayed is not known
    device_note: str = ""  # The device and its source; empty where the call or XLA's configuration names it
    listener: Listener = field(default=SILENT, compare=False, repr=False)
    profile: Profile | None = field(default=None, repr=False)
    is_xla_run: bool = False  # XLA's results next to the module are of this release and these flags

    @property
    def module(self) -> Module:
        """The module, at whatever stage it was asked for."""
        return self.input.module

    def note_device(self) -> None:
        """Tell the listener what the device is known from."""
        self.listener.note(self.device_note)

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
    def note(self) -> str:
        """The first note of a report; empty where XLA wrote the module."""
        return self.input.note

    @property
    def changes(self) -> Strings:
        """The changes to XLA, in words; empty for XLA itself."""
        return self.config.changes if self.config is not None else ()

    def observe(self, *, one_of_many: bool = False) -> Observed:
        """The replay with its costs; `one_of_many` keeps quiet about a log that is not followed."""

        from hlofuse.account import observed_replay  # loads the cost model

        assert self.config is not None
        with self.listener.activity("replaying"):
            observed = observed_replay(self._with_log(one_of_many), self.config)
        self.attach((observed.xla or observed).replay)  # what was measured is XLA's own
        return observed

    def attach(self, replay: Compilation) -> None:
        """Join the replay with XLA's own final module and the profile, where they are at hand."""
        from .naming import attach_profile, is_own_result, xla_final

        if self.is_xla_run and is_own_result(replay):
            replay.find_final = partial(xla_final, replay)
            if companions_of(self.module).final_module(self.target) is not None:
                replay.input = replace(replay.input, note=with_xla_final(replay.input.note))
        if self.profile is not None:
            attach_profile(replay, self.profile)

    def replay(self, observers: Sequence[PassObserver] = ()) -> Compilation:
        """The replay alone; XLA's log is followed only where it was asked for."""
        assert self.config is not None
        with self.listener.activity("replaying"):
            done = compile(self.input, self.config, observers)
        if not self.changes:
            self.attach(done)
        return done

    def _with_log(self, one_of_many: bool) -> CompilationInput:
        if self.log_file is None or self.config is None:
            return self.input
        log = read_priority_record(read_text(self.log_file, as_module=False), str(self.log_file))
        if not log.is_of(self.config.device):
            if not one_of_many:
                name = printable(self.log_file.name)
                self.listener.note(f"XLA's fusion log {name} is for another device; ignored")
            return self.input
        # Where XLA had nothing to fuse the log is empty.
        return replace(self.input, record=log) if log.steps else self.input


def has_several(path: str) -> bool:
    """A dump directory, a corpus or a profile, whose modules are all meant."""
    folder = Path(path)
    return is_profile(path) or (path != "-" and folder.is_dir() and not is_corpus_case(folder))


def each_module(
    request: ReplayOptions, *, finished: bool = True
) -> Iterator[tuple[ReplayOptions, str | None]]:
    """A request for each module of one input, with the name that it is paired by; None for its own.
    `finished` takes the module after all passes of a dump without the input of fusion, else the program."""
    folder = Path(request.input)
    if is_profile(request.input) and request.module is None:
        modules = sorted(read_profile(request.input).modules, key=lambda m: (m.name, m.program or 0))
        with_hlo = [m for m in modules if m.proto is not None] or modules
        yield from ((replace(request, module=m.label), m.name) for m in with_hlo)
    elif request.input == "-" or not folder.is_dir():
        yield request, None
    elif is_corpus_case(folder):
        yield request, folder.name
    elif corpus_cases(folder):
        for case in corpus_cases(folder):
            if request.module in (None, case.name):
                yield replace(request, input=str(case), module=None), case.name
        if request.module is not None and request.module not in {c.name for c in corpus_cases(folder)}:
            read(request)  # says which there are
    elif request.module is not None:
        yield request, None
    else:
        for module in DumpDirectory(folder).modules:
            file = _file_of(module, request) if finished else None
            if file is not None:
                yield replace(request, input=str(file)), module.name
            else:
                yield replace(request, module=module.label), module.name


def _file_of(module: DumpedModule, request: ReplayOptions) -> Path | None:
    """The finished module, of a dump without the stages that a replay takes; None where those are there."""
    folder = Path(request.input)
    target = (
        request.target
        or choose_target(Companions(folder, module.label), device=request.device is not None).name
    )
    try:
        module.pass_input(target)
        return None
    except HlofuseError:
        return module.finished if not request.changes_xla else None
