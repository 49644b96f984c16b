"""Memory that a scheduled module takes, and its peak, by XLA's `xla/service/buffer_assignment.cc`."""

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain, pairwise
from math import inf

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.heap_simulator import Block, HeapSimulation, LiveRanges, Range, pack, pack_by_start
from hlofuse.analysis.hlo_alias import HloAlias, HloBuffer
from hlofuse.analysis.hlo_value import HloValue, Index, shape_tree
from hlofuse.analysis.memory_scheduler import CostOf, live_ranges, with_least_memory
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tpu import TpuDevice
from hlofuse.ir import Instruction, Instructions, Module, Record, Shape, callees, reach
from hlofuse.ir.shape import HBM, HOST, VMEM
from hlofuse.passes.copy_insertion.buffer_alias import GpuAliasInfo
from hlofuse.releases import AROUND_FUSION

_ALIGNMENT = {"gpu": 256, "tpu": 512}
_CPU_ALIGNMENT, _HBM_ALIGNMENT = 64, 16384


class LiveArray(Record):
    value: HloValue
    instruction: Instruction  # The instruction that writes it
    index: Index
    shape: Shape
    bytes: int  # Bytes of its place, which other arrays may need larger
    readers: tuple[Instruction, ...]  # Its readers in the order of the schedule, tuples not among them


@dataclass(frozen=True)
class Assignment:
    """Bytes that a module takes, as `memory_analysis()` of XLA's executable has them."""

    arguments: int
    outputs: int
    temporary: int
    aliased: int  # Bytes of arguments in which results lie: part of `arguments` and of `outputs`
    constants: int
    total: int  # All allocations, with constants and the scalars of computations applied element by element
    host: int  # Bytes in the memory of the host, none of them part of the others
    vmem: int  # Bytes of temporary arrays in a TPU's VMEM, none of them part of the others
    live: LiveRanges = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)  # The places in the temporary memory
    donated: tuple[tuple[HloValue, int], ...] = field(repr=False)  # Arguments with a result's place; bytes

    def readers(self, value: HloValue) -> Instructions:
        """What reads a value, in the order of the schedule; tuples are no readers."""
        found = (u.instruction for u in value.uses if u.instruction.opcode != "tuple")
        moment = self.live.moment
        return sorted((x for x in dict.fromkeys(found) if moment(x) < self.live.end), key=moment)

    @cached_property
    def over_time(self) -> list[int]:
        """Bytes of temporary arrays alive at each instruction of `live.order`, without gaps and tuples."""
        return _over_time(self.blocks, self.live)

    @cached_property
    def peak(self) -> list[LiveArray]:
        """The temporary arrays alive when their bytes are the most, for the first time, largest first."""
        moment = self.over_time.index(max(self.over_time))
        found = []
        for block in self.blocks:
            alive = [v for v in block.values if self.live.ranges[v][0] <= moment <= self.live.ranges[v][1]]
            if alive and block.size:
                value = alive[-1]
                x, readers = value.instruction, tuple(self.readers(value))
                found.append(LiveArray(value, x, value.index, value.shape, block.size, readers))
        return sorted(found, key=lambda array: -array.bytes)


def assign(
    module: Module,
    backend: str,
    device: DeviceDescription | TpuDevice | None = None,
    other: Assignment | None = None,
    cost: CostOf | None = None,
) -> Assignment:
    """The memory of a module in the order of its schedule, or, without one, in post-order. `backend` is
    `cpu`, `gpu` or `tpu`; a GPU's and a TPU's rules need their `device`. For TPUs it is that of HBM; `vmem`
    has the rest. With `other`, in another order, arrays die as early as they can; `cost`: `live_ranges`."""
    return _Assigner(module, backend, device, other, cost).result()


@dataclass(eq=False, slots=True)
class _Allocation:
    size: int
    space: int
    is_argument: bool = False
    is_aliased: bool = False
    is_constant: bool = False
    is_tuple: bool = False
    is_inside: bool = False
    """True for a scalar of a computation that is applied element by element (`is_thread_local`)."""
    lives_out: bool = False
    room: int | float = field(default=inf, init=False)  # moments of the longest time without a value
    occupied: list[tuple[int, int, int, HloValue]] = field(default_factory=list, init=False)
    """Values in order of their live ranges: first and last moment, id, value. They meet at most."""

    @property
    def is_temporary(self) -> bool:
        """`IsPreallocatedTempBuffer`."""
        return not (self.is_argument or self.is_constant or self.is_inside or self.lives_out)

    @property
    def is_reusable(self) -> bool:
        """True if other values may lie there."""
        is_read_only = self.is_constant or (self.is_argument and not self.is_aliased)
        return not (is_read_only or self.is_inside or self.is_tuple)


class _Assigner:
    def __init__(
        self,
        module: Module,
        backend: str,
        device: DeviceDescription | TpuDevice | None,
        other: Assignment | None,
        cost: CostOf | None,
    ) -> None:
        self._module = module
        self._backend = backend
        self._info = AliasInfo(AROUND_FUSION)
        if isinstance(device, DeviceDescription):
            self._info = GpuAliasInfo(device, AROUND_FUSION)
        self._alignment = _ALIGNMENT.get(backend, _CPU_ALIGNMENT)
        self._alias = HloAlias(module, self._info) if other is None else other.live.alias
        self._dataflow = self._alias.dataflow
        self._may_reuse = device.reuses_results if isinstance(device, TpuDevice) else backend != "tpu"
        self._sizes = self._alias.sizes()
        self._buffers = list(self._sizes)
        if backend == "tpu":
            unit = self._alignment
            self._sizes = {b: -(-size // unit) * unit for b, size in self._sizes.items()}
        if other is None:
            self._live = live_ranges(module, self._alias, self._info, backend, self._sizes, cost)
        else:
            self._live = with_least_memory(module, self._alias, self._info, self._sizes)
        self._spaces = {b: _space(b) for b in self._buffers}
        root = self._dataflow.values_of(module.entry.root)
        self._results = {self._alias.buffer_of(v) for v in root if v is not None}
        self._allocations = list[_Allocation]()
        self._found = dict[HloBuffer, _Allocation]()
        self._open = list[_Allocation]()  # the allocations in which later buffers may lie
        self._donations = list[_Allocation]()  # its arguments: no result lies where another does
        self._donated = list[tuple[HloValue, int]]()
        self._delayed = dict[int, list[HloValue]]()  # temporary values by memory space

    def result(self) -> Assignment:
        """`RunAssignBuffers`."""
        for buffer in self._in_order():
            self._assign(buffer)
        blocks = list[Block]()
        for space in sorted(self._delayed):
            values = self._delayed[space]
            found = HeapSimulation(values, self._alias, self._live, self._sizes, self._info).blocks
            pitch = self._pitch(space)
            packed = pack_by_start if pitch == _HBM_ALIGNMENT else pack
            self._allocations.append(_Allocation(packed(found, pitch), space))
            blocks += found if self._is_device(space) else []
        # Computations applied element by element, also in fusions (`GatherComputationsByAllocationType`).
        runs = self._live.spans
        inside = {c for c in reach(runs, callees) if c not in runs and c.fusion is None}
        for buffer in self._buffers:
            if buffer not in self._found and buffer.values[0].instruction.computation in inside:
                is_constant = any(v.instruction.is_constant for v in buffer.values)
                self._add(buffer, is_constant=is_constant, is_inside=not is_constant)
        temporary = self._combined()
        is_tpu = self._backend == "tpu"
        if is_tpu:
            temporary[0] = self._of_hbm(temporary.get(0, 0), blocks)
            blocks = blocks if temporary[0] else []
        every = self._allocations
        if is_tpu:  # where scalar constants are part of the program
            every = [a for a in every if not (a.is_inside or (a.is_constant and a.size <= self._alignment))]
        device = [a for a in every if self._is_device(a.space)]
        sizes = [(a.space, a.size) for a in every if not a.is_temporary] + [*temporary.items()]
        return Assignment(
            arguments=sum(a.size for a in device if a.is_argument),
            outputs=sum(a.size for a in device if a.lives_out),
            temporary=sum(size for space, size in temporary.items() if self._is_device(space)),
            aliased=sum(a.size for a in device if a.is_argument and a.is_aliased),
            constants=sum(a.size for a in every if a.is_constant),
            total=sum(size for space, size in sizes if self._is_device(space)),
            host=sum(size for space, size in sizes if space == HOST),
            vmem=temporary.get(VMEM, 0) if is_tpu else 0,
            live=self._live,
            blocks=tuple(blocks),
            donated=tuple(self._donated),
        )

    def _of_hbm(self, end: int, blocks: list[Block]) -> int:
        """Temporary bytes of HBM: XLA:TPU counts rounding twice; tuples and unwritten scalars take none."""
        if not any(map(_is_of_kernel, self._delayed.get(0, ()))):
            return 0
        arrays = _peak_of_trace(blocks)
        tuples = sum(a.size for a in self._allocations if a.is_tuple and a.is_temporary)
        return 2 * -(-end // _HBM_ALIGNMENT) * _HBM_ALIGNMENT - arrays - tuples

    def _is_device(self, space: int) -> bool:
        """True for the memory of the device: all but the host's, on a TPU HBM alone."""
        return space != HOST and (self._backend != "tpu" or not space)

    def _pitch(self, space: int) -> int:
        """Temporary arrays begin at multiples of it."""
        return _HBM_ALIGNMENT if self._backend == "tpu" and not space else self._alignment

    def _in_order(self) -> list[HloBuffer]:
        """Buffers of what runs, the largest first (`AssignBuffersForComputations`)."""
        runs = set(self._live.spans)
        place = dict[Instruction, int]()
        for computation in reversed(self._module.computation_post_order()):
            if computation in runs:
                for x in computation.post_order():
                    place[x] = len(place)
        own = [b for b in self._buffers if b.values[0].instruction.computation in runs]

        def key(buffer: HloBuffer) -> tuple[int, bool, int]:
            first = min(place[v.instruction] for v in buffer.values)
            return -self._sizes[buffer], buffer not in self._results, first

        return sorted(own, key=key)

    def _assign(self, buffer: HloBuffer) -> None:
        """`AssignSpecialHloBuffer` and `AssignSingleHloBuffer`."""
        for value in buffer.values:
            x = value.instruction
            if x.is_constant:
                self._add(buffer, is_constant=True)
                return
            if x.is_parameter and x.computation is self._module.entry:
                is_aliased = self._alias.config.is_aliased((x.parameter_number, value.index))
                allocation = self._add(buffer, is_argument=True, is_aliased=is_aliased)
                if is_aliased:
                    self._open.append(allocation)
                    self._donations.append(allocation)
                    self._donated.append((value, allocation.size))
                return
        if any(v.shape.is_tuple for v in buffer.values):
            self._add(buffer, is_tuple=True)
        elif not self._may_reuse or not self._reuse(buffer):
            if buffer in self._results:
                self._open.append(self._add(buffer))
            else:
                self._delayed.setdefault(self._spaces[buffer], []).extend(buffer.values)

    def _add(self, buffer: HloBuffer, **kinds: bool) -> _Allocation:
        """An allocation for a buffer alone; `kinds` are the fields that are true."""
        allocation = _Allocation(self._sizes[buffer], self._spaces[buffer], **kinds)
        allocation.lives_out = buffer in self._results
        self._allocations.append(allocation)
        self._put(buffer, allocation)
        return allocation

    def _put(self, buffer: HloBuffer, allocation: _Allocation) -> None:
        self._found[buffer] = allocation
        allocation.lives_out |= buffer in self._results
        if allocation.is_reusable:
            for value in buffer.values:
                insort(allocation.occupied, (*self._live.ranges[value], value.id, value))
            times = [
                (-inf, 0),
                *((first, last) for first, last, _, _ in allocation.occupied),
                (self._live.end, 0),
            ]
            allocation.room = max(b[0] - a[1] for a, b in pairwise(times))

    def _reuse(self, buffer: HloBuffer) -> bool:
        """Put a buffer where an argument or a result lies at other times; false where none has room."""
        ranges = [(v, self._live.ranges[v]) for v in buffer.values]
        longest = max(last - first for _, (first, last) in ranges)
        places = self._donations if buffer in self._results else self._open
        open_ones = (a for a in reversed(places) if a.room >= longest)
        for allocation in chain(self._of_operands(buffer), open_ones):
            if self._has_room(allocation, buffer, ranges):
                self._put(buffer, allocation)
                return True
        return False

    def _of_operands(self, buffer: HloBuffer) -> Iterable[_Allocation]:
        for value in buffer.values:
            for operand in () if value.index else value.instruction.operands:
                source = self._dataflow.value_at(operand)
                allocation = self._found.get(self._alias.buffer_of(source)) if source is not None else None
                if allocation is not None:
                    yield allocation

    def _has_room(
        self, allocation: _Allocation, buffer: HloBuffer, ranges: list[tuple[HloValue, Range]]
    ) -> bool:
        """`MaybeAssignBuffer`."""
        size = self._sizes[buffer]
        if not allocation.is_reusable or size > allocation.size or self._spaces[buffer] != allocation.space:
            return False
        if buffer in self._results and size != allocation.size:
            return False
        occupied = allocation.occupied
        for value, (start, end) in ranges:
            k = bisect_right(occupied, (end + 1,))
            while k and occupied[k - 1][1] >= start:
                k -= 1
                other_start, other_end, _, other = occupied[k]
                if end == other_start:
                    can_share = self._may_overwrite(other, value)
                else:
                    can_share = other_end == start and self._may_overwrite(value, other)
                if not can_share:
                    return False
            if value.instruction.opcode == "copy" and self._is_copied(value.instruction, allocation):
                return False
        return True

    def _may_overwrite(self, new: HloValue, old: HloValue) -> bool:
        """True if an instruction may write `new` into the place of its operand."""
        x = new.instruction
        if x.opcode == "copy":
            return False
        return any(
            value is old and self._info.can_share(self._dataflow, operand, index, x, new.index)
            for operand in dict.fromkeys(x.operands)
            for index, value in zip(
                shape_tree(operand.shape).indices, self._dataflow.values_of(operand), strict=True
            )
        )

    def _is_copied(self, copy: Instruction, allocation: _Allocation) -> bool:
        sources = [v for o in copy.operands for v in self._dataflow.values_of(o) if v is not None]
        return any(self._found.get(self._alias.buffer_of(v)) is allocation for v in sources)

    def _combined(self) -> dict[int, int]:
        """Bytes of all temporary allocations of a memory space, end to end (`CombineTempAllocations`)."""
        found = dict[int, int]()
        for allocation in _moved_to_end(self._allocations):
            at = found.get(allocation.space, 0)
            pitch = self._pitch(allocation.space)
            found[allocation.space] = -(-at // pitch) * pitch + allocation.size
        return found


def _moved_to_end(allocations: list[_Allocation]) -> list[_Allocation]:
    """The temporary allocations in the order of `std::partition`: the last one is not padded."""
    left, first, last = list(allocations), 0, len(allocations)
    while True:
        while first < last and not left[first].is_temporary:
            first += 1
        last -= 1
        while first < last and left[last].is_temporary:
            last -= 1
        if first >= last:
            return left[first:]
        left[first], left[last] = left[last], left[first]
        first += 1


def _over_time(blocks: Iterable[Block], live: LiveRanges) -> list[int]:
    changes = [0] * (live.end + 2)
    for block in blocks:
        after = 0
        for start, end in sorted(live.ranges[v] for v in block.values):
            if end >= after:
                changes[max(start, after)] += block.size
                after = end + 1
                changes[after] -= block.size
    return list(accumulate(changes))[: live.end + 1]


def _peak_of_trace(blocks: Iterable[Block]) -> int:
    """The most bytes alive by XLA's trace (`ComputePeakMemoryLogicalBuffers`), where values share places."""
    changes = dict[int, int]()
    for block in blocks:
        latest = -1
        for start, end in zip(block.starts, block.ends, strict=True):
            if start > latest:
                changes |= {start: block.size, end: -block.size}
            latest = max(latest, end)
    return max(accumulate(changes[n] for n in sorted(changes)), default=0)


def _is_of_kernel(value: HloValue) -> bool:
    """True if a kernel writes it, not the scalar core."""
    x = value.instruction
    is_carried = x.opcode in ("while", "conditional", "parameter")
    return not is_carried and not all(i.shape.is_effective_scalar for i in (x, *x.operands))


def _space(buffer: HloBuffer) -> int:
    layouts = (v.shape.layout for v in buffer.values)
    return next((x.memory_space for x in layouts if x is not None and x.memory_space), HBM)
