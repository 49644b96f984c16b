"""Estimates of the cost model for a module, and for a replay."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from math import inf

from msgspec import Struct, field

from hlofuse.analysis.kernels import inside
from hlofuse.analysis.launches import COMMANDS, CommandBuffers
from hlofuse.compilation import (
    Checkpoint,
    Compilation,
    CompilationInput,
    ReplayConfig,
    compile,
    replay_config,
)
from hlofuse.cost.combined import CombinedModel, model_of
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import Estimate, OperandRead
from hlofuse.cost.gpu.model import KernelModel, operand_reads, pair_operand_reads
from hlofuse.cost.gpu.op_costs import straddles_warps
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.cost.tiling.constraints import Tiling
from hlofuse.ir import Instruction, InstructionSequence, Module, Strings
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.flags import SMALLEST_COMMAND_BUFFER, command_types, value_of
from hlofuse.pipelines.identity import Identity
from hlofuse.pipelines.targets import Stage, target_by_flags
from hlofuse.releases import Release, Span, release_of
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused
from hlofuse.trace import Event
from .account import Account
from .cpu import CpuTimes
from .figures import KernelTime, PairDetail, ReadTerm, StepCost, kernel_time, us
from .flips import flips, pair_estimate, sums
from .measured import attach, measured_of
from .observer import CostObserver, Enough, Look, Moment, MomentObserver
from .tpu import TpuAccount


class KernelTimes:
    """Estimates of kernels on one device."""

    def __init__(
        self,
        device: DeviceDescription,
        release: Release,
        model: KernelModel | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """By the model of a release, unless `model` is at hand; `flags` are those of XLA."""
        self.device = device
        self.model = model or model_of(device, release)
        self._buffers = _command_buffers(release, flags)

    def kernel(self, instruction: Instruction) -> KernelTime | None:
        """None without an estimate, as for library calls."""
        if not may_be_fused(instruction, self.model.release):
            return None
        estimate = self.model.run_time(instruction)
        return kernel_time(estimate, tiling_of(self.model, estimate, instruction))

    def modelled_us(self, instruction: Instruction) -> float | None:
        """Microseconds, the launch not included; None as `kernel`."""
        estimate = self.kernel(instruction)
        return None if estimate is None else estimate.us

    def account(
        self,
        module: Module,
        *,
        is_final: bool = False,
    ) -> Account:
        """Launches of a module, with times on the device."""
        return Account(module, self.device, self.modelled_us, "gpu", is_final=is_final, buffers=self._buffers)


_HAS_CONDITIONALS = Span("0.10.2")  # command buffers hold conditionals by default


def _command_buffers(release: Release, flags: Sequence[str]) -> CommandBuffers | None:
    """The command buffers that XLA makes; None where the least size of one is no number."""
    smallest = value_of(flags, SMALLEST_COMMAND_BUFFER) or "5"
    default = COMMANDS if _HAS_CONDITIONALS.includes(release.name) else COMMANDS - {"CONDITIONAL"}
    commands = command_types(flags, default)
    return CommandBuffers(commands, int(smallest)) if smallest.isdecimal() else None


# What the tiled model says of a kernel that Triton emits.
def tiling_of(model: KernelModel, estimate: Estimate, *parts: Instruction) -> Tiling | None:
    if estimate.launch.kind != "triton" or not isinstance(model, CombinedModel):
        return None
    if len(parts) > 1:
        found = model.tiling.best_tiling(*parts)
    elif is_generic_triton_fusion(parts[0]):
        found = model.tiling.run_time(parts[0])
    else:
        return None
    # A pair may have the time of another that XLA takes for the same.
    return found if isinstance(found, Tiling) and found.estimate.ticks == estimate.ticks else None


def reads_of(
    model: KernelModel, estimate: Estimate, tiling: Tiling | None, *parts: Instruction
) -> Sequence[OperandRead]:
    if tiling is not None and isinstance(model, CombinedModel):
        return model.tiling.reads(tiling, *parts)
    if estimate.launch.kind == "triton" and (len(parts) == 1 or any(map(is_generic_triton_fusion, parts))):
        return ()
    return operand_reads(model, *parts) if len(parts) == 1 else pair_operand_reads(model, *parts)


PRIORITY_FUSION = "priority-fusion"


class Costs(KernelTimes):
    """Times of a replay's kernels and fusions, computed on demand."""

    def __init__(
        self,
        model: KernelModel,
        observer: CostObserver,
        replay: Compilation,
        repeat: Callable[[MomentObserver], None],
    ) -> None:
        # The pass's own model knows fusions that later passes have changed, so this is another one.
        super().__init__(model.device, replay.config.release, model, replay.config.build.flags)
        self.observer = observer
        self.replay = replay
        self._repeat = repeat
        self.sums = cache(self._sums)
        self.at_stake = cache(self._at_stake)
        decisions = [e for e in replay.events if e.pass_name == PRIORITY_FUSION]
        # Steps restart where the pass runs again.
        self._number = {id(e): k for k, e in enumerate(e for e in decisions if e.event == "fuse")}
        self._priorities = {id(e): k for k, e in enumerate(e for e in decisions if e.event == "priority")}

    def _sums(self, producer: Instruction) -> tuple[float, float] | None:
        """The two sums XLA compares for a producer, in microseconds over all its users: unfused and fused."""
        release = self.model.release
        if not may_be_fused(producer, release) or not all(may_be_fused(u, release) for u in producer.users):
            return None
        unfused, fused = sums(self.model, producer)
        return None if max(unfused, fused) >= INFINITE else (us(unfused), us(fused))

    def _at_stake(self, producer: Instruction) -> float | None:
        """Microseconds saved by fusing a kernel into its users if no rule forbade it; None if unknown."""
        release = self.model.release
        if not may_be_fused(producer, release):
            return None
        users = [u for u in producer.users if u.opcode not in ("tuple", "get-tuple-element")]
        into = [u for u in users if may_be_fused(u, release) and not is_fusible_bitcast(u, release)]
        if not into:
            return None
        saved = 0
        if len(into) == producer.user_count:  # no other user
            saved = self.device.launch_ticks + self.model.run_time(producer).ticks
        for user in into:
            fused = pair_estimate(self.model, producer, user).ticks
            if fused >= INFINITE:
                return None
            saved += self.model.run_time(user).ticks - fused
        return us(saved) if abs(saved) < INFINITE else None

    def fusion(self, event: Event) -> StepCost | None:
        """The figures of a fuse event; None for bitcasts and for other passes."""
        return self.observer.cost(self._number.get(id(event), -1))

    def tied_with(self, event: Event) -> Strings:
        """Producers of equal priority that XLA may have taken first."""
        return self.observer.ties.get(self._number.get(id(event), -1), ())

    def look_at(self, requests: Iterable[tuple[Event, Look]]) -> None:
        """Call each look with the graph at its event; repeats the replay once for all."""
        looks = dict[Moment, list[Look]]()
        for event, look in requests:
            number = self._number.get(id(event), self._priorities.get(id(event)))
            if number is not None:
                looks.setdefault((event.event, number), []).append(look)
        if looks:
            self._repeat(MomentObserver(looks))

    def details(self, requests: Sequence[tuple[Event, str | None]]) -> list[PairDetail | None]:
        """Fuse events in full, or a priority's data on one consumer, by its name then."""
        found = dict[int, PairDetail | None]()

        def look(
            k: int,
            model: KernelModel,
            producer: Instruction,
            consumers: InstructionSequence,
        ) -> None:
            chosen = next((c for c in consumers if requests[k][1] in (None, c.name)), None)
            if chosen is not None:
                found[k] = pair_detail(model, producer, chosen)

        self.look_at((event, partial(look, k)) for k, (event, _) in enumerate(requests))
        return [found.get(k) for k in range(len(requests))]

    def pair(
        self,
        producer: Instruction,
        consumer: Instruction,
    ) -> PairDetail | None:
        """A pair of the final module in full."""
        both = all(may_be_fused(x, self.model.release) for x in (producer, consumer))
        if not both or producer not in consumer.operands:
            return None
        return pair_detail(self.model, producer, consumer)


class Observed(Struct):
    replay: Compilation
    costs: Costs | None  # None for targets without a cost model
    xla: "Observed | None" = None  # XLA's own replay, where this one differs from XLA
    cache: SharedTables = field(default_factory=SharedTables)
    """Results by structure, for further replays of the module."""

    @property
    def changes(self) -> Strings:
        """The changes to XLA, in words; empty for XLA itself."""
        return self.replay.config.changes

    @property
    def note(self) -> str:
        """The origin of the module, first in a report; empty where XLA wrote it."""
        return self.replay.input.note


_MOST_DECISIONS = 200_000
"""Decisions of a pass in a replay that only tries a change: more take over five seconds. XLA:CPU
computes what an unrolled loop shifts once for each path to it."""


class SharedStart(Struct):
    """The common part of observed replays of a module, up to a pass after priority fusion."""

    checkpoint: Checkpoint
    observer: CostObserver | None = None  # The observer of the first of them


def observed_replay(
    input: CompilationInput | Module,
    config: ReplayConfig,
    *,
    cache: SharedTables | None = None,
    start: SharedStart | None = None,
    begun: Checkpoint | None = None,
    totals_only: bool = False,
) -> Observed:
    """A replay with its costs, and with XLA's own replay where the configuration differs from XLA. `cache`
    holds costs that earlier replays of the module computed. `start` says up to which pass this replay is the
    same as earlier ones; without it, it starts at `begun`, before the first pass. With `totals_only` the
    costs of single fusions are not noted, and one of too many decisions ends with HlofuseError."""
    if isinstance(input, Module):
        input = CompilationInput(input)
    cache = cache or SharedTables()
    xla = observed_replay(input, config.xla, cache=cache) if config.xla is not None else None
    most = _MOST_DECISIONS if totals_only else inf
    if config.device is None:
        return Observed(compile(input, config, most=most), None, xla)
    beginning = begun
    if beginning is None and config.passes:
        beginning = Checkpoint(config.passes[0])  # what comes before it takes longest
    observer = CostObserver(with_ties=input.has_open_ties(config.target))
    checkpoint = start.checkpoint if start is not None else begun
    watching = () if totals_only else (observer,)
    done = compile(input, config, watching, cache=cache, checkpoint=checkpoint, most=most)
    if start is not None and not totals_only:
        observer = start.observer = start.observer or observer
    return Observed(done, costs_of(observer, done, cache, beginning), xla, cache)


def costs_of(
    observer: CostObserver,
    replay: Compilation,
    cache: SharedTables | None = None,
    begun: Checkpoint | None = None,
) -> Costs:
    """The costs of a replay for a device; a repetition of it goes on from `begun`."""
    input, config, cache = replay.input, replay.config, cache or SharedTables()
    assert config.device is not None

    def repeat(moments: MomentObserver) -> None:
        with suppress(Enough):
            compile(input, config, [moments], cache=cache, checkpoint=begun)

    model = model_of(config.device, config.release, cache)
    if observer.model is None and isinstance(model, CombinedModel):
        observer.model = model
    return Costs(model, observer, replay, repeat)


# One pair in full.
def pair_detail(model: KernelModel, producer: Instruction, consumer: Instruction) -> PairDetail | None:
    """The costs of a pair in the current graph; None without estimates."""
    first, second = model.run_time(producer), model.run_time(consumer)
    fused = pair_estimate(model, producer, consumer)
    tiling = tiling_of(model, second, consumer)
    fused_tiling = tiling_of(model, fused, producer, consumer)
    times = (
        kernel_time(first, tiling_of(model, first, producer)),
        kernel_time(second, tiling),
        kernel_time(fused, fused_tiling),
    )
    if times[0] is None or times[1] is None or times[2] is None:
        return None
    kernels = [u for u in producer.users if not is_fusible_bitcast(u, model.release)]
    leaves = len(kernels) == producer.user_count
    unfused_sum, fused_sum = sums(model, producer)
    return PairDetail(
        StepCost(*times, len(kernels), leaves, model.device.launch_overhead_us),  # type: ignore[arg-type]  # told apart above
        us(unfused_sum),
        us(fused_sum),
        producer.user_count,
        _terms(reads_of(model, second, tiling, consumer)),
        _terms(reads_of(model, fused, fused_tiling, producer, consumer)),
        flips(model, producer),
        notes(producer, consumer),
    )


def _terms(reads: Sequence[OperandRead]) -> tuple[ReadTerm, ...]:
    found = [
        ReadTerm(r.operand.name, str(r.operand.shape), r.size, r.read, us(r.ticks), r.share) for r in reads
    ]
    found.sort(key=lambda t: -t.us)
    return tuple(found)


# Peculiarities of XLA's model that a pair's figures rest on.

_ALIGNED, _UNALIGNED = 6, 400  # operations for each element, see cost/gpu/op_costs.py


def notes(producer: Instruction, consumer: Instruction) -> Strings:
    """Notes on costs that shapes do not show; names are those inside the two."""
    found = []
    for instruction in (*inside(producer), *inside(consumer)):
        if instruction.is_concatenate and straddles_warps(instruction):
            dimension = instruction.dimension
            found.append(
                f"{instruction.name} counts {_UNALIGNED} operations per element, not {_ALIGNED}: it"
                f" concatenates along dimension {dimension}, and the"
                f" {instruction.operand.sizes[dimension]} of its first operand is not a"
                " multiple of 32. Pad the parts to one, or concatenate along dimension 0."
            )
    return tuple(dict.fromkeys(found))


def compiled(
    module: Module,
    config: ReplayConfig,
    flags: Strings,
    cache: SharedTables | None = None,
    earlier: Compilation | None = None,
) -> Observed:
    """A module before optimizations, lowered and replayed with these XLA flags in place of the config's own.
    It has the passes before fusion of `earlier` where they do the same. HlofuseError where that fails."""
    changed = replay_config(config.target, config.device, xla=config.release.name, xla_flags=flags)
    lowered = Compilation.of(module, Stage.BEFORE, changed, earlier).fusion_input
    return observed_replay(lowered, changed, cache=cache, totals_only=True)


def account_of(replay: Compilation, costs: Costs | None, module: Module, *, is_final: bool) -> Account:
    if costs is not None:
        return costs.account(module, is_final=is_final)
    config = replay.config
    return account_on(module, None, config.build.backend, config.release, is_final=is_final)


def final_account(observed: Observed, *, with_peak: bool = True) -> Account:
    """Launches of a replay's own final module, with peak memory only on request."""
    return account_of(observed.replay, observed.costs, observed.replay.replayed_final, is_final=with_peak)


def running(module: Module, identity: Identity, device: DeviceDescription | None) -> tuple[Account, Account]:
    """The accounts of the module that is launched, and of `module` itself; with times on a GPU. A module
    without replayed passes (another backend, or a GPU without a device) counts as it is."""
    target = identity.backend.value
    if target in TARGETS:
        target = target_by_flags(target, identity.replayed, identity.flags)
    release = release_of(identity.replayed)
    if target not in TARGETS or not TARGETS[target].needs_device:
        device = None
    if target == "tpu":
        name = identity.device.value if identity.device is not None else None
        found = TpuAccount(module, name, is_final=identity.shown.name is Stage.SCHEDULED)
        return found, found
    flags = identity.flags
    as_it_is, measured = account_on(module, device, target, release, flags), measured_of(module)
    if not identity.is_replayed or target not in TARGETS:
        return as_it_is, as_it_is
    stage = identity.shown.name
    if stage is Stage.SCHEDULED:
        final = account_on(module, device, target, release, flags, is_final=True)
        return final, final
    if device is None and TARGETS[target].needs_device:
        return as_it_is, as_it_is
    config = replay_config(target, device, xla=identity.replayed, xla_flags=flags)
    module = Compilation.of(module, stage, config).final
    if measured is not None:
        attach(module, measured.profile)
    return account_on(module, device, target, release, flags, is_final=True), as_it_is


def account_on(
    module: Module,
    device: DeviceDescription | None,
    backend: str,
    release: Release,
    flags: Sequence[str] = (),
    is_final: bool = False,
) -> Account:
    """Launches of a module: with times on a GPU, without one on a CPU, and without them elsewhere."""
    if device is not None:
        return KernelTimes(device, release, flags=flags).account(module, is_final=is_final)
    times = CpuTimes(release) if backend == "cpu" else None
    return Account(module, backend=backend, is_final=is_final, times=times)
