"""What a module launches, how often, and what that costs: the one place where kernels are added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from hlofuse.account.measured import measured_of
from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import shape_size
from hlofuse.analysis.hlo_alias import HloAlias, HloBuffer
from hlofuse.analysis.hlo_value import Readers, subshape_at
from hlofuse.analysis.kernels import count_runs, is_small_call, launched_computations
from hlofuse.analysis.launches import LaunchKind, launch_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.releases import AROUND_FUSION

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.inputs.profile import MeasuredTime


Estimate = Callable[[Instruction], float | None]
"""Microseconds of a kernel by XLA's model, its launch not included; None where the model has no figure."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel, a copy or a library call that a module launches."""

    instruction: Instruction
    kind: LaunchKind
    runs: int
    """Launches in one run of the program; 0 in the branch of a conditional that costs less than another."""
    per_iteration: bool
    """It is in a loop whose number of iterations the module does not tell: `runs` counts one iteration."""
    cost: Cost
    """Of one run: XLA's count, with the bytes that have to move (`account/traffic.py`)."""
    us: float | None
    """Of one run, its launch included; None without a device."""
    is_floor: bool
    """`us` is what it takes at least: XLA has no estimate, or one that no machine can reach."""
    measured: MeasuredTime | None = None
    """What a profile has of it; None without one, and for what did not run."""
    measured_us: float | None = None
    """Measured time of all its launches in one run of the program."""

    @property
    def total_us(self) -> float | None:
        """Of all runs."""
        return None if self.us is None else self.us * self.runs


@dataclass(frozen=True, slots=True)
class Totals:
    """A module as a whole."""

    kernels: int
    """Instructions that are launched."""
    cost: Cost
    """Of all launches."""
    launches: int = 0
    """Iterations of loops counted."""
    per_iteration: int = 0
    """Kernels that are counted for one iteration, since the module does not tell how many there are."""
    modelled_us: float | None = None
    """By XLA's model, launches included; None without a device."""
    floor_us: float | None = None
    """Of those for which there is only a lower bound; None without a device."""
    floors: int = 0
    """Kernels in `floor_us`."""
    copies: int = 0
    copy_bytes: int = 0
    """Bytes read and written by copies, all launches."""
    measured_us: float | None = None
    """Of one run, from a profile; None without one."""
    scaled_saving_us: float | None = None
    """Of a changed module: `scaled_saving` against the one that was measured."""
    peak_temporary_bytes: int | None = None
    """What is live at once at most, arguments, results and constants left out; None for a module that is not
    the final one. XLA may need less: it schedules for memory, and puts temporaries where results will be."""

    @property
    def us(self) -> float | None:
        """Time of all launches in microseconds; a lower bound where `floors` is not 0."""
        if self.modelled_us is None or self.floor_us is None:
            return None
        return self.modelled_us + self.floor_us


class Account:
    """What one module launches."""

    def __init__(
        self,
        module: Module,
        device: DeviceDescription | None = None,
        estimate: Estimate | None = None,
        backend: str = "",
        *,
        is_final: bool = False,
    ) -> None:
        """`device` and `estimate` together give times; without them there are none.

        `backend` is `cpu` or `gpu`, and settles what is launched and as what; empty if it is not known.
        Of a final module the totals have the peak of temporary memory.
        """
        self.module = module
        self._device = device
        self._estimate = estimate if device is not None else None
        self.costs = KernelCosts()
        self.backend = backend
        self._is_final = is_final
        self.measured = measured_of(module)
        """What a profile has of the module; None without one."""

    @cached_property
    def _by_computation(self) -> dict[Computation, list[Launched]]:
        """What each computation launches in one run of its own."""
        computations = launched_computations(self.module)
        return {c: [row for i in c if (row := self._row(i)) is not None] for c in computations}

    @cached_property
    def _often(self) -> tuple[dict[Computation, int], set[Computation]]:
        rows = self._by_computation
        order = [c for c in self.module.computation_post_order() if c in rows]
        time = {c: sum(r.us or 0.0 for r in rows[c]) for c in order}
        return count_runs({c: (time[c], sum(r.cost.bytes_accessed for r in rows[c])) for c in order})

    def runs(self, computation: Computation) -> int:
        """How often a computation runs in one run of the program."""
        return self._often[0].get(computation, 0)

    @cached_property
    def rows(self) -> tuple[Launched, ...]:
        """Everything that is launched, the entry's first."""
        found: list[Launched] = []
        for c, own in self._by_computation.items():
            runs, open_ended = self.runs(c), c in self._often[1]
            if runs != 1 or open_ended:
                own = [replace(r, runs=runs, per_iteration=open_ended or r.per_iteration) for r in own]
            found += own
        return tuple(found)

    @cached_property
    def by_name(self) -> dict[str, Launched]:
        """Each by the name of its instruction."""
        return {r.instruction.name: r for r in self.rows}

    @cached_property
    def bounded_work(self) -> Counter[tuple[str, ...]]:
        """What computes matrix products, or has no time by XLA's model: who runs it, with which shapes.

        Where it differs, times of two modules cannot be compared: its times are too rough for that.
        """
        from hlofuse.account.floor import products  # brings devices, which nobody else here needs

        rows = (r.instruction for r in self.rows if r.is_floor or products(r.instruction))
        shapes = ((x, [str(v.shape) for v in (x, *x.operands)]) for x in rows)
        return Counter((x.fusion_kind or x.opcode, custom_call_target(x) or "", *own) for x, own in shapes)

    @cached_property
    def totals(self) -> Totals:
        """The sums over all launches."""
        totals = totals_of(self.rows, timed=self._estimate is not None)
        if self.measured is not None:
            totals = replace(totals, measured_us=sum(r.measured_us or 0.0 for r in self.rows))
        if not self._is_final:
            return totals

        info = alias_info_of(self._device if self.backend == "gpu" else None)
        return replace(totals, peak_temporary_bytes=peak_temporary_bytes(self.module, info))

    @property
    def launch_overhead_us(self) -> float | None:
        """What each launch adds to the time of a kernel; None without times."""
        return self._device.launch_overhead_us if self._device is not None and self._estimate else None

    def cost(self, instruction: Instruction) -> Cost:
        """Of one run of an instruction of the module, whether it is launched or not."""
        return self.costs.instruction(instruction)

    def _row(self, instruction: Instruction) -> Launched | None:
        launch = launch_of(instruction, self.backend)
        if launch is None:
            return None
        cost = self.cost(instruction)
        us, is_floor = None, False
        open_ended = is_small_call(instruction) and bool(self.costs.inside(instruction)[1])
        if self._device is not None and self._estimate is not None:
            from hlofuse.account.floor import floor_us, modelled_product_us  # slow to import

            modelled, floor = self._estimate(instruction), floor_us(instruction, cost, self._device)
            if modelled is None:
                modelled = modelled_product_us(instruction, self._device)
            # A rounding of the model is no blind spot of it.
            is_floor = modelled is None or modelled < floor * 0.98
            us = (floor if is_floor or modelled is None else modelled) + self._device.launch_overhead_us
        if self.measured is None:
            return Launched(instruction, launch.kind, 1, open_ended, cost, us, is_floor)
        name = instruction.name
        time, per_run = self.measured.times.get(name), self.measured.us_per_run(name)
        return Launched(instruction, launch.kind, 1, open_ended, cost, us, is_floor, time, per_run)


def totals_of(rows: Iterable[Launched], *, timed: bool) -> Totals:
    """The sums over some of what a module launches."""
    kernels = launches = floors = copies = copy_bytes = per_iteration = 0
    flops = transcendentals = read = written = unknown = 0
    modelled = floor = 0.0
    for row in rows:
        kernels += 1
        launches += row.runs
        per_iteration += row.per_iteration
        cost, runs = row.cost, row.runs
        flops += cost.flops * runs
        transcendentals += cost.transcendentals * runs
        read += cost.bytes_read * runs
        written += cost.bytes_written * runs
        unknown += cost.unknown
        if row.kind == "copy":
            copies += runs
            copy_bytes += cost.bytes_accessed * runs
        if row.us is not None and row.is_floor:
            floors += 1
            floor += row.us * runs
        elif row.us is not None:
            modelled += row.us * runs
    total = Cost(flops, transcendentals, read, written, unknown)
    if not timed:
        return Totals(kernels, total, launches, per_iteration, copies=copies, copy_bytes=copy_bytes)
    return Totals(kernels, total, launches, per_iteration, modelled, floor, floors, copies, copy_bytes)


def scaled_saving(base: Account, changed: Account) -> float | None:
    """Measured microseconds that a changed module saves in one run, by what XLA's model says of its kernels.

    Kernels of both modules keep their time; the time of the others changes as their estimates do, launch
    overhead included, which is most of the time of a small kernel. None without measured times, and where a
    kernel that changes has no estimate or no measured time.
    """
    if not base.totals.measured_us or base.launch_overhead_us is None:
        return None
    removed, added = _without(base.rows, changed.rows), _without(changed.rows, base.rows)
    for row in (*removed, *added):
        if row.us is None or (row.is_floor and row.kind != "copy"):
            return None
    if any(row.measured_us is None for row in removed):
        return None
    old, new = (sum(r.total_us or 0.0 for r in side) for side in (removed, added))
    return sum(r.measured_us or 0.0 for r in removed) * (1 - new / old) if old else -new


def scaled_time(base: Account, changed: Account) -> float | None:
    """Microseconds of a changed module: what was measured of `base`, less `scaled_saving`; None as there."""
    saved = scaled_saving(base, changed)
    return None if saved is None else (base.totals.measured_us or 0.0) - saved


def _without(rows: Iterable[Launched], others: Iterable[Launched]) -> list[Launched]:
    """The rows that have no equal among the others, each of which stands for one."""

    def key(row: Launched) -> object:
        x = row.instruction
        return x.opcode, x.fusion_kind, str(x.shape), *(str(o.shape) for o in x.operands), row.runs, row.us

    left, found = Counter(map(key, others)), []
    for row in rows:
        if left[key(row)]:
            left[key(row)] -= 1
        else:
            found.append(row)
    return found


# The temporary memory that a module needs at most, from the live ranges of its buffers.


def peak_temporary_bytes(module: Module, alias_info: AliasInfo) -> int:
    """Bytes live at once at most, without arguments, results and constants."""
    alias, readers = HloAlias(module, alias_info), Readers()
    times = _times(module)
    entry = module.entry
    changes = [0] * (len(times) + 2)
    buffers = dict.fromkeys(map(alias.buffer_of, alias.dataflow.values))
    for buffer in buffers:
        found = _live_range(buffer, times, readers, entry)
        if found is not None:
            first, last, size = found
            changes[first] += size
            changes[last + 1] -= size
    return max(accumulate(changes))


def alias_info_of(device: DeviceDescription | None) -> AliasInfo:
    """What may share memory on a GPU, or, without one, on other backends."""
    if device is None:
        return AliasInfo(AROUND_FUSION)
    from hlofuse.passes.copy_insertion.buffer_alias import GpuAliasInfo  # with passes, and slow to import

    return GpuAliasInfo(device, AROUND_FUSION)


def _live_range(
    buffer: HloBuffer, times: dict[Instruction, int], readers: Readers, entry: Computation
) -> tuple[int, int, int] | None:
    """First and last moment, and bytes; None for what is no temporary."""
    moments: list[int] = []
    size = 0
    for value in buffer.values:
        source, index = value.instruction, value.index
        if source.opcode == "constant" or (source.opcode == "parameter" and source.computation is entry):
            return None
        if any(p.instruction is entry.root for p in value.positions):
            return None
        if source in times:
            shape = subshape_at(source.shape, index)
            size = max(size, shape_size(shape) if shape.is_array else 0)
        moments += [times[p.instruction] for p in value.positions if p.instruction in times]
        moments += [times[u.instruction] for u in readers.uses_of(value) if u.instruction in times]
    return (min(moments), max(moments), size) if moments and size else None


def _times(module: Module) -> dict[Instruction, int]:
    """When each instruction runs: what it calls first, each computation once."""
    within = set(launched_computations(module))
    scheduled = module.attributes.raw("is_scheduled") == "true"

    def order(computation: Computation) -> list[Instruction]:
        return list(computation) if scheduled else list(computation.post_order())

    times: dict[Instruction, int] = {}
    seen: set[Computation] = {module.entry}
    stack = [iter(order(module.entry))]
    waiting: list[Instruction] = []
    while stack:
        instruction = next(stack[-1], None)
        if instruction is None:
            stack.pop()
            if waiting:
                times[waiting.pop()] = len(times)
            continue
        called = [c for _, c in instruction.called if c in within and c not in seen]
        if not called:
            times[instruction] = len(times)
            continue
        seen.update(called)
        waiting.append(instruction)
        stack.append(iter([i for c in called for i in order(c)]))
    return times
