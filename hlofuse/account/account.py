"""Launches of a module, their numbers and costs: the one place where kernels are summed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from itertools import filterfalse
from typing import TYPE_CHECKING, TypeAlias

from hlofuse.analysis.cost import Cost
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.kernels import (
    Loop,
    count_runs,
    counted_trips,
    is_small_call,
    launched_computations,
    outermost_loops,
    trip_count_of,
)
from hlofuse.analysis.launches import CommandBuffers, LaunchKind, is_asynchronous, launch_of
from hlofuse.cost.tpu import TpuDevice
from hlofuse.format.units import bytes_text
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir import Computation, Instruction, Module, Record, Strings, replace, unmatched
from .collectives import Collective, Exchange, Overlap, collectives_of, exchange_of, exposed_us, overlaps
from .measured import measured_of
from .traffic import KernelCosts

if TYPE_CHECKING:
    from hlofuse.cost.cpu.work import Work
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.memory import Assignment
    from .cpu import CpuTimes
    from .figures import KernelTime

Estimate = Callable[[Instruction], float | None]
"""Microseconds of a kernel by XLA's model, without its launch; None without an estimate."""


class Launched(Record):
    """A kernel, a copy or a library call that a module launches."""

    instruction: Instruction
    kind: LaunchKind
    runs: int  # Launches in one run of the program; 0 in all but a conditional's most expensive branch
    per_iteration: bool  # True in a loop with an unknown trip count: `runs` counts one iteration
    cost: Cost  # Cost of one run: XLA's count, with the bytes that have to move (`account/traffic.py`)
    us: float | None  # µs of a run and its launch, of a collective what nothing hides; None without a device
    is_floor: bool  # True if `us` is a lower bound: XLA has no estimate, or an impossible one
    measured: MeasuredTime | None = None  # Its time in a profile; None without one, or if it did not run
    measured_us: float | None = None  # Measured time of all its launches in one run of the program
    in_branch: bool = False  # True if it runs in a branch of a conditional only
    launch_us: float = 0.0  # The part of `us` that is its launch
    wait_us: float = 0.0  # Part of `launch_us` in which a GPU waits for the host; in a profile no kernel's
    together: int = 0  # On a CPU the launches of its computation, where XLA may run them at once; else 0
    once_us: float = 0.0  # The part of `us` that further iterations of loops inside it do not add

    @property
    def is_open(self) -> bool:
        """True for a library call or a callback whose bytes say nothing of its time."""
        from .floor import is_bound_by_bytes

        return self.is_floor and self.kind in ("library", "host") and not is_bound_by_bytes(self.instruction)

    @property
    def busy_us(self) -> float:
        """Microseconds of one run without its wait for the host, as a profile counts; 0 without times."""
        return (self.us or 0.0) - self.wait_us

    @property
    def total_us(self) -> float | None:
        """Microseconds of all runs."""
        return None if self.us is None else self.us * self.runs


_Launches: TypeAlias = dict[Computation, list[Launched]]


class Totals(Record):
    """Sums over a module."""

    kernels: int
    cost: Cost
    launches: int = 0  # Launches, loop iterations counted
    per_iteration: int = 0  # Kernels counted for one iteration, since the trip count is unknown
    iteration_us: float = 0.0  # Microseconds of them that are known
    most_iterations: int | None = None  # The most that one of these loops runs; None where it is not known
    modelled_us: float | None = None  # Microseconds by XLA's model, launches included; None without a device
    floor_us: float | None = None  # Microseconds of kernels with only a lower bound; None without a device
    floors: int = 0
    open_ended: int = 0  # Kernels that may take any time
    copies: int = 0
    copy_bytes: int = 0  # Bytes read and written by copies, all launches
    measured_us: float | None = None  # Microseconds of one run from a profile; None without one
    scaled_saving_us: float | None = None
    """For a changed module, `scaled_saving` relative to the measured one."""
    exposed_collectives_us: float | None = None
    """Microseconds of collectives that no kernel hides; 0 without collectives, None if not known."""
    exposed_is_floor: bool = False  # True if `exposed_collectives_us` is a lower bound
    peak_temporary_bytes: int | None = None
    """Temporary memory by XLA's buffer assignment; None before the final module."""
    memory_bytes: int | None = None
    """All memory that is assigned: arguments, results, temporaries and constants."""
    devices: int = 1
    """Devices that the program is yet to be divided over: several if XLA's partitioner is not replayed."""
    memory_size: int = 0  # Bytes of one device's memory; 0 where it is not known
    in_branches: int = 0  # Kernels in branches of conditionals, those that are not the costliest among them
    call_us: float = 0.0  # µs of the call of the program and of its loops, on a CPU; part of `modelled_us`
    host_wait_us: float = 0.0  # Microseconds in which a GPU waits for the host, at least; part of `us`
    without_time: int = 0  # Kernels without a known time, where others have one; `us` is that of the others
    hbm_bytes: int | None = None
    """Bytes read from and written to a TPU's HBM, the rest of `cost` being VMEM; None for others."""
    vmem_temporary_bytes: int = 0  # Temporary memory in a TPU's VMEM

    @property
    def vmem_bytes(self) -> int:
        """Bytes that do not come from a TPU's HBM or go there."""
        return max(self.cost.bytes_accessed - (self.hbm_bytes or 0), 0)

    @property
    def moved_text(self) -> str:
        """Bytes read and written; `≥ ` where those of a custom call are not known."""
        return bytes_text(self.cost.bytes_accessed, self.cost.unknown)

    @property
    def lacking_bytes(self) -> int:
        """Bytes that the memory of the device lacks; 0 where the program fits, or nothing says so."""
        if not self.memory_size or self.devices > 1:
            return 0
        return max((self.memory_bytes or 0) - self.memory_size, 0)

    @property
    def unknown(self) -> int:
        """Kernels of which a bound of the time is known, or nothing."""
        return self.floors + self.without_time

    @property
    def is_floor(self) -> bool:
        """True if `us` is a lower bound: it has bounds in it, or leaves kernels out."""
        return self.unknown > 0

    @property
    def us(self) -> float | None:
        """Microseconds of all launches; a lower bound where `is_floor`."""
        if self.modelled_us is None or self.floor_us is None:
            return None
        return self.modelled_us + self.floor_us

    @property
    def compared_us(self) -> float | None:
        """Microseconds by which changes are compared; None without times."""
        return None if self.us is None else compared_us(self.us, self.iteration_us)


_COMPARED = 10  # iterations of a loop of unknown length, where changes are compared


def compared_us(us: float, iteration_us: float) -> float:
    """Microseconds where loops of unknown length, which count once in `us`, run ten times."""
    return us + (_COMPARED - 1) * iteration_us


class Account:
    def __init__(
        self,
        module: Module,
        device: DeviceDescription | None = None,
        estimate: Estimate | None = None,
        backend: str = "",
        *,
        is_final: bool = False,
        times: CpuTimes | None = None,
        buffers: CommandBuffers | None = None,
    ) -> None:
        """`device` and `estimate` together give times on a GPU, `times` on a CPU; else there are none.
        `backend` is `cpu` or `gpu` and decides the kinds of launches; empty if unknown. With `is_final`, the
        totals have the peak of temporary memory; with `buffers`, launches on a GPU its waits for the host."""
        self.module = module
        self._device = device
        self._estimate = estimate if device is not None else None
        self.costs = KernelCosts() if times is None else times.costs
        self.backend = backend
        self._is_final = is_final
        self.times = times
        self.buffers = buffers
        self.measured = measured_of(module)  # The module's times in a profile; None without one

    @cached_property
    def _rows_alone(self) -> _Launches:
        """Launches of each computation in one of its runs, each with its time if nothing else ran."""
        computations = launched_computations(self.module)
        return {c: [row for i in c if (row := self._row(i)) is not None] for c in computations}

    @cached_property
    def reuse(self) -> Mapping[Instruction, Mapping[str, float]]:
        """On a CPU, the parts of each kernel's bytes by the cache that holds them; else empty."""
        if self.times is None:
            return {}
        within = set(launched_computations(self.module))
        return self.times.reuse(c for c in self.module.computation_post_order() if c in within)

    @cached_property
    def _exchanges(self) -> dict[Instruction, Exchange]:
        launched = (r.instruction for own in self._rows_alone.values() for r in own if r.kind == "collective")
        return {i: e for i in launched if (e := exchange_of(i, self.module)) is not None}

    @cached_property
    def _us_alone(self) -> dict[Instruction, float | None]:
        return {r.instruction: r.us for own in self._rows_alone.values() for r in own}

    @cached_property
    def _overlaps(self) -> dict[Instruction, Overlap]:
        """What hides collectives, a TPU's copies, a GPU's with its host; empty on a CPU or unscheduled."""
        if self.backend == "cpu":
            return {i: Overlap(False) for i in self._exchanges}
        copies = set(filter(self._is_copied_meanwhile, self._us_alone))
        if not (self._exchanges or copies) or not self.module.is_scheduled:
            return {}
        order = [c for c in self.module.computation_post_order() if c in self._rows_alone]
        return overlaps(
            order, self._us_alone, copies | self._exchanges.keys(), self.launch_overhead_us or 0.0, copies
        )

    def _is_copied_meanwhile(self, x: Instruction) -> bool:
        from .floor import is_on_host  # loads devices, needed only here

        if self.backend == "tpu":
            return is_asynchronous(x)
        return is_on_host(x) and (is_asynchronous(x) or x.called_by("async-start") is not None)

    @cached_property
    def _rows_by_computation(self) -> _Launches:
        """As `_rows_alone`; a collective has only the time that nothing hides."""
        rows = self._rows_alone
        overhead = self.launch_overhead_us
        if overhead is None or not self._overlaps:
            return rows
        exposed = {i: o.exposed_us + overhead for i, o in self._overlaps.items() if o.exposed_us is not None}
        return {c: [replace(r, us=exposed.get(r.instruction, r.us)) for r in own] for c, own in rows.items()}

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives that the module launches, in the order of `rows`."""
        overhead = self.launch_overhead_us or 0.0
        times = {i: None if (us := self._us_alone[i]) is None else us - overhead for i in self._exchanges}
        runs = {r.instruction: r.runs for r in self.rows}
        # The bytes of a copy are all that it does.
        floors = {r.instruction for r in self.rows if r.is_floor and r.kind not in ("copy", "memset")}
        return collectives_of(self.module, runs, self._exchanges, self._overlaps, times, floors)

    @property
    def _is_timed(self) -> bool:
        return self.launch_overhead_us is not None or self.times is not None

    @cached_property
    def _run_counts(self) -> tuple[dict[Computation, int], set[Computation]]:
        rows = self._rows_by_computation
        order = [c for c in self.module.computation_post_order() if c in rows]
        time = {
            c: sum(math.inf if self._is_timed and r.is_open else r.us or 0.0 for r in rows[c]) for c in order
        }
        return count_runs({c: (time[c], sum(r.cost.bytes_accessed for r in rows[c])) for c in order})

    def runs(self, computation: Computation) -> int:
        return self._run_counts[0].get(computation, 0)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The outermost loops that launch kernels, with those of counted branches alone."""
        return outermost_loops(self.module, filterfalse(self.runs, self.module.computations))

    @cached_property
    def rows(self) -> tuple[Launched, ...]:
        """All launches, the entry's first."""
        found = list[Launched]()
        always = set(launched_computations(self.module, branches=False))
        for c, own in self._rows_by_computation.items():
            runs, open_ended, in_branch = self.runs(c), c in self._run_counts[1], c not in always
            if self.times is not None:
                together = self.times.together([r.instruction for r in own])
                launch = self.times.device.us(self.times.launch_work(runs, together)) or 0.0
                start = launch + (self.times.device.us({"loop compiled whole": 1}) or 0.0)
                own = [replace(r, launch_us=launch, together=together) for r in own]
                own = [r if r.us is None else replace(r, us=r.us + launch, once_us=start) for r in own]
            elif self.buffers is not None:
                own = [self._waiting(r) for r in own]
            if runs != 1 or open_ended or in_branch:
                own = [replace(r, runs=runs, in_branch=in_branch) for r in own]
                own = [replace(r, per_iteration=True, once_us=0.0) if open_ended else r for r in own]
            found += own
        return tuple(found)

    @cached_property
    def row_keys(self) -> list[tuple[object, ...]]:
        """For each of `rows` in what a row of a changed module is equal to it."""
        keys = list[tuple[object, ...]]()
        for row in self.rows:
            x = row.instruction
            shapes = (str(x.shape), *(str(o.shape) for o in x.operands))
            keys.append((x.opcode, x.fusion_kind, shapes, row.runs, round(row.busy_us, 6)))
        return keys

    @cached_property
    def by_name(self) -> dict[str, Launched]:
        return {r.instruction.name: r for r in self.rows}

    @cached_property
    def bounded_work(self) -> Counter[Strings]:
        """Kernels with matrix products or without XLA's estimate: the library or opcode, and shapes. Where
        they differ, times of two modules cannot be compared: these times are too rough."""
        from .floor import products  # loads devices, needed only here

        rows = (r.instruction for r in self.rows if r.is_floor or products(r.instruction))
        shapes = ((x, [str(v.shape) for v in (x, *x.operands)]) for x in rows)
        return Counter((x.fusion_kind or x.opcode, custom_call_target(x) or "", *own) for x, own in shapes)

    @property
    def call_work(self) -> Work:
        """The amounts of a call of the program on a CPU, apart from its kernels and launches."""
        entry = self.module.entry
        arguments = sum(len(list(x.shape.leaves())) for x in (*entry.parameters, entry.root))
        loops = [i for c in self._rows_alone for i in c if i.is_while]
        iterations = sum(self.runs(loop.called_computations[0]) for loop in loops)
        return {"call": 1, "argument": arguments, "iteration": iterations}

    @cached_property
    def host_reads(self) -> set[Computation]:
        """The bodies of loops whose condition the host reads after each iteration, on a GPU."""
        buffers = self.buffers
        loops = [i for c in self._rows_by_computation for i in c if i.is_while]
        open_ended = [i for i in loops if trip_count_of(i) is None and buffers and not buffers.holds(i)]
        return {c for i in open_ended for name, c in i.called if name == "body"}

    def _waiting(self, row: Launched) -> Launched:
        wait = self._waits.get(row.instruction)
        if not wait or row.us is None:
            return row
        return replace(row, us=row.us + wait, launch_us=row.launch_us + wait, wait_us=wait)

    @cached_property
    def _started(self) -> _Launches:
        """The launches that a run of each computation starts, asynchronous ones and conditionals included."""
        found = _Launches()
        for c, own in self._rows_by_computation.items():
            if self.runs(c):
                found.setdefault(self._starter(c), []).extend(own)
        return found

    def _starter(self, computation: Computation) -> Computation:
        caller = computation.first_caller
        if caller is None or caller.computation is None:
            return computation
        is_part = caller.opcode == "conditional" and self.buffers is not None and self.buffers.holds(caller)
        if caller.opcode == "async-start" or is_part:
            return self._starter(caller.computation)
        return computation

    def host_wait_us(self, computation: Computation, *, with_one_launch: bool = False) -> float:
        """At least so many microseconds of one run in which a GPU waits for the host's launches; or if there
        was a single launch that takes no longer than all do now. Only loops wait: else the host is ahead."""
        own, buffers = self._started.get(computation, []), self.buffers
        is_loop = self.runs(computation) > 1 or computation in self._run_counts[1]
        if buffers is None or self.launch_overhead_us is None or not is_loop:
            return 0.0
        if (caller := computation.first_caller) and caller.is_while and buffers.holds(caller):
            return 0.0
        host = buffers.host_us(r.instruction for r in (own[:1] if with_one_launch else own))
        waits = max(host - sum(r.us or 0.0 for r in own), 0.0)
        return waits + buffers.condition_us * (computation in self.host_reads)

    @cached_property
    def _waits(self) -> dict[Instruction, float]:
        """The wait for the host of each launch: all of a computation wait equally long."""
        each = {c: self.host_wait_us(c) / len(own) for c, own in self._started.items() if own}
        return {r.instruction: each[c] for c, own in self._started.items() for r in own}

    @cached_property
    def sums(self) -> Totals:
        """The totals without memory, which takes longer to work out."""
        totals = replace(totals_of(self.rows, timed=self._is_timed), devices=self.module.devices)
        if totals.per_iteration:
            loops = (x for c in self._run_counts[0] for x in c if x.is_while)
            most = [counted_trips(x, most=True) or 0 for x in loops if trip_count_of(x) is None]
            totals = replace(totals, most_iterations=max(most) if most and all(most) else None)
        if self.times is not None and totals.modelled_us is not None:
            work = self.call_work | self.times.handoff_work(totals.cost.flops, totals.modelled_us)
            call = self.times.device.us(work) or 0.0
            modelled, unknown = totals.modelled_us + call, totals.unknown
            totals = replace(totals, call_us=call, modelled_us=modelled, without_time=unknown, floors=0)
        exposed = exposed_us(self.collectives)
        if exposed is not None:
            totals = replace(totals, exposed_collectives_us=exposed[0], exposed_is_floor=not exposed[1])
        if self.measured is not None:
            kernels_us = sum(r.measured_us or 0.0 for r in self.rows)
            totals = replace(totals, measured_us=self.measured.profile.run_us or kernels_us)
        return totals

    @cached_property
    def totals(self) -> Totals:
        if not self._is_final:
            return self.sums
        memory = self.memory
        totals = replace(self.sums, peak_temporary_bytes=memory.temporary, memory_bytes=memory.total)
        size = self.machine.device_memory_size if self.machine is not None else 0
        return replace(totals, vmem_temporary_bytes=memory.vmem, memory_size=size)

    @cached_property
    def memory(self) -> Assignment:
        from hlofuse.memory import assign  # with numpy and passes, and slow to import
        from .floor import scheduled_us

        device, cost = self._device, None
        if device is not None and self._estimate is not None and device.compute_capability >= (9, 0):
            cost = partial(scheduled_us, device, self._estimate)
        return assign(self.module, self.backend, self.machine, cost=cost)

    @property
    def machine(self) -> DeviceDescription | TpuDevice | None:
        """The device of the times; None without times."""
        return self._device

    @property
    def time_source(self) -> str:
        """The source of times other than XLA's model with launches; empty for that."""
        return ""

    def kernel(self, instruction: Instruction) -> KernelTime | None:
        """The parts of an estimate that XLA wrote into the module; None without one."""
        return None

    @property
    def launch_overhead_us(self) -> float | None:
        """The launch time added to each kernel; None without times."""
        return self._device.launch_overhead_us if self._device is not None and self._estimate else None

    def cost(self, instruction: Instruction) -> Cost:
        return self.costs.instruction(instruction)

    def _row(self, instruction: Instruction) -> Launched | None:
        launch = launch_of(instruction, self.backend)
        if launch is None:
            return None
        cost = self.cost(instruction)
        open_ended = is_small_call(instruction) and bool(self.costs.inside(instruction)[1])
        us, is_floor = self._time(instruction, launch.kind, cost)
        launch_us = self.launch_overhead_us or 0.0
        row = Launched(instruction, launch.kind, 1, open_ended, cost, us, is_floor, launch_us=launch_us)
        measured = self.measured
        if measured is None or (time := measured.times.get(instruction.name)) is None:
            return row
        return replace(row, measured=time, measured_us=time.total_us / measured.runs)

    def _time(self, instruction: Instruction, kind: LaunchKind, cost: Cost) -> tuple[float | None, bool]:
        """Microseconds of one run with its launch, None without times; True if they are a lower bound."""
        if self.times is not None:
            shares = self.reuse.get(instruction)
            us = self.times.us(instruction, shares)
            return (us, False) if us is not None else (self.times.us(instruction, shares, least=True), True)
        if self._device is None or self._estimate is None:
            return None, False
        from hlofuse.cost.gpu.rates import tabled_collective_us  # slow to import
        from .floor import floor_us, modelled_product_us

        modelled = self._estimate(instruction)
        floor = floor_us(instruction, cost, self._device)
        if modelled is None and kind == "collective":
            exchange = exchange_of(instruction, self.module)
            if exchange is not None:
                groups = exchange.groups
                modelled = tabled_collective_us(self._device, exchange.kind, exchange.size, groups)
        elif modelled is None:
            modelled = modelled_product_us(instruction, self._device)
        # A rounding of the model is no blind spot of it.
        is_floor = modelled is None or modelled < floor * 0.98
        us = (floor if is_floor or modelled is None else modelled) + self._device.launch_overhead_us
        return us, is_floor


def totals_of(rows: Iterable[Launched], *, timed: bool) -> Totals:
    kernels = launches = floors = copies = copy_bytes = per_iteration = in_branches = without_time = 0
    open_ended = 0
    flops = transcendentals = read = written = unknown = 0
    modelled = floor = waits = iteration_us = 0.0
    for row in rows:
        kernels += 1
        launches += row.runs
        per_iteration += row.per_iteration
        iteration_us += ((row.us or 0.0) - row.once_us) * row.runs * row.per_iteration
        in_branches += row.in_branch
        cost, runs = row.cost, row.runs
        flops += cost.flops * runs
        transcendentals += cost.transcendentals * runs
        read += cost.bytes_read * runs
        written += cost.bytes_written * runs
        unknown += cost.unknown
        if row.kind == "copy":
            copies += runs
            copy_bytes += cost.bytes_accessed * runs
        waits += row.wait_us * runs
        open_ended += timed and row.is_open and runs > 0
        if row.us is not None and row.is_floor:
            floors += 1
            floor += row.us * runs
        elif row.us is not None:
            modelled += row.us * runs
        else:
            without_time += timed and runs > 0
    total = Cost(flops, transcendentals, read, written, unknown)
    found = Totals(kernels, total, launches, per_iteration, iteration_us if timed else 0.0)
    found = replace(found, copies=copies, copy_bytes=copy_bytes)
    found = replace(found, in_branches=in_branches, without_time=without_time, host_wait_us=waits)
    found = replace(found, open_ended=open_ended)
    return replace(found, modelled_us=modelled, floor_us=floor, floors=floors) if timed else found


def scaled_saving(base: Account, changed: Account) -> float | None:
    """Measured microseconds that a changed module saves in one run, scaled by XLA's estimates. Kernels in
    both modules keep their time. Other times change as their estimates do, including XLA's launch overhead,
    which is most of the time of a small kernel, without waits for the host. None without measured times, and
    where a changed kernel has no estimate or measured time."""
    if not base.totals.measured_us or base.launch_overhead_us is None:
        return None
    removed = _unmatched_rows(base, changed)
    added = _unmatched_rows(changed, base)
    if any(r.us is None or (r.is_floor and r.kind != "copy") for r in (*removed, *added)):
        return None
    if any(r.measured_us is None for r in removed):
        return None
    old, new = (sum(r.busy_us * r.runs for r in side) for side in (removed, added))
    return sum(r.measured_us or 0.0 for r in removed) * (1 - new / old) if old else -new


def share_of_change(base: Account, changed: Account) -> float:
    """The share of the time of `base` in kernels that `changed` does not have; 0 without times."""
    us = sum(r.total_us or 0.0 for r in _unmatched_rows(base, changed))
    return us / base.totals.us if base.totals.us else 0.0


def replaces_all(changed: Account, prepared: Account, original: Account) -> bool:
    """True if no kernel that only the `prepared` form of a program has is in the changed one."""
    new = Counter(prepared.row_keys) - Counter(original.row_keys)
    return bool(new) and not new & Counter(changed.row_keys)


_AS_MUCH_WORK = 0.9  # of the FLOP before a change
_LONG = 2  # FLOP for each byte


def least_saving(base: Account, changed: Account, *, apart: bool = False) -> float:
    """Microseconds that a changed module saves on a CPU where each kind of kernel that it saves is faster by
    its error, and each that it costs slower; infinite elsewhere. `apart`: those before and after."""
    if (times := base.times) is None:
        return math.inf
    saved = 0.0
    by_kind = defaultdict[tuple[str, int], float](float)
    for one, other, sign in ((base, changed, 1), (changed, base, -1)):
        for row in _unmatched_rows(one, other):
            kind = times.kind(row.instruction)
            launches = sign * row.launch_us * row.runs
            saved += launches
            by_kind[kind, sign * apart] += sign * (row.total_us or 0.0) - launches
    for (kind, _), us in by_kind.items():
        error = times.device.error(kind)
        saved += us / error if us > 0 else us * error
    return saved


def saving_in_cache(base: Account, changed: Account) -> float:
    """Microseconds that kernels whose arrays fit in the L2 cache of a CPU take less for as many FLOP, where
    new ones have long expressions: these were 1.8 times as slow as estimated (jaxlib 0.11.1, an EPYC)."""
    if base.times is None or changed.totals.cost.flops < _AS_MUCH_WORK * base.totals.cost.flops:
        return 0.0
    new = _unmatched_rows(changed, base)
    if not any(r.cost.flops > _LONG * r.cost.bytes_accessed for r in new):
        return 0.0
    saved = 0.0
    for account, sign in ((base, 1), (changed, -1)):
        for row in account.rows:
            is_copy = base.times.kind(row.instruction) == "memcpy"
            if not is_copy and row.cost.bytes_accessed <= base.times.device.caches.l2:
                launches = row.launch_us * row.runs
                saved += sign * ((row.total_us or 0.0) - launches)
    return saved


def scaled_time(base: Account, changed: Account) -> float | None:
    """Microseconds of a changed module: the measured time of `base` minus `scaled_saving`, or None."""
    saved = scaled_saving(base, changed)
    return None if saved is None else (base.totals.measured_us or 0.0) - saved


def _unmatched_rows(base: Account, other: Account) -> list[Launched]:
    """The rows without an equal among those of the other, each of which counts once."""
    return list(unmatched(zip(base.row_keys, base.rows, strict=True), Counter(other.row_keys)))
