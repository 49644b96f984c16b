"""XLA's heap simulator: when each value is needed (`xla/hlo/utils/hlo_live_range.cc`), and the places of
values that are not needed at the same time, best fit by decreasing size (`heap_simulator.cc`)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from hlofuse.ir.graph import Computation, Instruction, Instructions, InstructionSequence, Module
from .alias_info import AliasInfo
from .async_ops import ends_of
from .call_sites import is_asynchronous, run_by
from .hlo_alias import HloAlias, HloBuffer
from .hlo_value import HloValue

Range = tuple[int, int]  # First and last moment, both included
Order: TypeAlias = Callable[[Computation], InstructionSequence]


class LiveRanges:
    """The moments of a module's instructions, and between which of them its values live."""

    def __init__(
        self,
        module: Module,
        alias: HloAlias,
        order: Order,
    ) -> None:
        self.order = Instructions()
        """All instructions that run, one moment each, those of a called computation before their caller."""
        self.ranges = dict[HloValue, Range]()
        self._module = module
        self.order_of = order
        self.alias = alias
        self._times = dict[Instruction, int]()
        self.spans = dict[Computation, Range]()
        self._started_by = dict[Computation, Instruction]()
        self._flatten()
        for value in alias.dataflow.values:
            if value.instruction in self._times:
                self.ranges[value] = self._live_range(value)
        for buffer in alias.shared_buffers:
            self._separate(buffer.values)

    @property
    def end(self) -> int:
        """The moment after the last instruction."""
        return len(self.order)

    def moment(self, instruction: Instruction) -> int:
        """The place of an instruction in `order`; `end` for one that does not run."""
        return self._times.get(instruction, self.end)

    def _flatten(self) -> None:
        """`FlattenSchedule`."""
        pending: list[Instruction | Computation | tuple[Computation, int]] = [self._module.entry]
        opened = set[Computation]()
        while pending:
            item = pending.pop()
            if isinstance(item, Instruction):
                self._times[item] = len(self.order)
                self.order.append(item)
            elif isinstance(item, tuple):
                self.spans[item[0]] = (item[1], len(self.order))
            elif item not in opened:
                opened.add(item)
                pending.append((item, len(self.order)))
                instructions = self.order_of(item)
                context = self._started_by.get(item)
                for x in reversed(instructions):
                    pending.append(x)
                    for called in reversed(run_by(x)):
                        start = x if is_asynchronous(x) else context
                        if start is not None:
                            self._started_by.setdefault(called, start)
                        pending.append(called)

    def _live_range(self, value: HloValue) -> Range:
        """`CalculateBufferStartEndMap`."""
        x = value.instruction
        computation = x.computation
        assert computation is not None
        first, after = self.spans[computation]
        end = after if x.is_root else self._times[x]
        start = self._started_by.get(computation)
        if start is not None:
            # An asynchronous call lives until it is waited for.
            done = (self._times.get(x, after) for x in ends_of(start) if x.opcode.endswith("-done"))
            end = max(end, max(done, default=after))
        is_argument = x.is_parameter and computation is self._module.entry
        if is_argument and not self.alias.config.is_aliased((x.parameter_number, value.index)):
            return first, self.end
        for place, _ in value.positions[1:]:
            if place.is_root and place.computation in self.spans:
                end = max(end, self.spans[place.computation][1])
            elif not place.is_root:
                end = max(end, self._times.get(place, -1))
        for use in value.uses:
            user = use.instruction
            if user.opcode == "call":
                continue  # what reads it in there counts
            if user.is_while:  # which has its own buffer from then on
                user = dict(user.called)["body"].parameter
            end = max(end, self._times.get(user, -1))
        return (first if x.is_parameter else self._times[x]), end

    def _separate(self, values: Sequence[HloValue]) -> None:
        """Values of one buffer hold it one after the other (`NormalizeAliasedBuffers`)."""
        rows = sorted((*self.ranges[v], v.id, v) for v in values if v in self.ranges)
        ranges = [(start, end) for start, end, _, _ in rows]
        for k in range(len(ranges) - 1):
            (start, end), (next_start, next_end) = ranges[k], ranges[k + 1]
            ranges[k + 1] = (next_start, max(end, next_end))
            ranges[k] = (start, min(end, next_start))
        for (_, _, _, value), found in zip(rows, ranges, strict=True):
            self.ranges[value] = found


class Block(Struct, eq=False):
    """Values at the same place, which was reserved for the first of them."""

    size: int
    values: list[HloValue]
    starts: list[int]
    ends: list[int] = []  # The numbers of the events that end the values; -1 before
    offset: int = 0


class HeapSimulation:
    """The places of values, with the events of each (`HeapSimulator::RunComputation`)."""

    def __init__(
        self,
        values: Collection[HloValue],
        alias: HloAlias,
        live: LiveRanges,
        sizes: Mapping[HloBuffer, int],
        info: AliasInfo,
    ) -> None:
        self.blocks = list[Block]()
        self._alias = alias
        self._info = info
        self._events = 0
        self._place = dict[HloValue, tuple[Block, int]]()
        self._freed = dict[int, dict[HloValue, None]]()
        defined = dict[int, list[HloValue]]()
        for start, end, _, value in sorted((*live.ranges[v], v.id, v) for v in values):
            defined.setdefault(start, []).append(value)
            self._freed.setdefault(end, {})[value] = None
        first = dict[HloBuffer, Block]()
        for moment in sorted({*defined, *self._freed}):
            for value in defined.get(moment, ()):
                buffer = alias.buffer_of(value)
                block = first.get(buffer)
                if block is None and len(buffer.values) == 1:
                    block = self._block_of_operand(value, moment)
                if block is None:
                    block = first[buffer] = Block(sizes[buffer], [], [])
                    self.blocks.append(block)
                self._place[value] = block, len(block.values)
                block.values.append(value)
                block.starts.append(self._events)
                block.ends.append(-1)
                self._events += block.size > 0  # XLA does not note what takes no place
            for value in self._freed.get(moment, ()):
                self._end(value)

    def _block_of_operand(self, value: HloValue, moment: int) -> Block | None:
        """The place of an operand that is read for the last time and may be overwritten."""
        x, freed = value.instruction, self._freed.get(moment, {})
        if x.opcode == "copy":
            return None
        dataflow = self._alias.dataflow
        for operand in x.operands:
            source = dataflow.value_at(operand)
            if source is None or source not in freed:
                continue
            if len(self._alias.buffer_of(source).values) > 1 or source.instruction not in x.operands:
                continue
            if self._info.can_share(dataflow, source.instruction, source.index, x, value.index):
                self._end(source)
                del freed[source]
                return self._place[source][0]
        return None

    def _end(self, value: HloValue) -> None:
        block, number = self._place[value]
        block.ends[number] = self._events
        self._events += block.size > 0  # XLA does not note what takes no place


def pack_by_start(blocks: Iterable[Block], alignment: int) -> int:
    """Give every block its offset in the order of their begin, and return the bytes of all together
    (`FinishFastMerge`). A block has its place from the begin of its first value to the end of its last."""
    placed = [b for b in blocks if b.size]
    whole = [Block(b.size, b.values[:1], [min(b.starts)], [max(b.ends)]) for b in placed]
    size = _pack_in_order(sorted(whole, key=lambda b: (b.starts, -b.size, b.values[0].id)), alignment)
    for block, found in zip(placed, whole, strict=True):
        block.offset = found.offset
    return size


def pack(blocks: Collection[Block], alignment: int) -> int:
    """Give every block its offset, and return the bytes of all together (`ChooseBestHeapAlgorithm`). Of two
    orders, the largest or the longest lived first, the one that needs less counts."""
    placed = [b for b in blocks if b.size]
    by_size = sorted(placed, key=lambda b: (-b.size, b.starts[0] - b.ends[0], b.values[0].id))
    by_duration = sorted(placed, key=lambda b: (min(b.starts) - max(b.ends), -b.size, b.values[0].id))
    found = dict[int, list[int]]()
    for order in (by_size, by_duration):
        found.setdefault(_pack_in_order(order, alignment), [b.offset for b in placed])
    least = min(found)
    for block, offset in zip(placed, found[least], strict=True):
        block.offset = offset
    return least


def _pack_in_order(blocks: list[Block], alignment: int) -> int:
    """`AllocateBuffersInSingleHeap`."""
    used = _Occupied(sum(len(b.values) for b in blocks))
    size = 0
    for block in blocks:
        padded = -(-block.size // alignment) * alignment
        block.offset = used.best_fit(block, padded)
        size = max(size, block.offset + block.size)
        used.add(block, block.offset + padded)
    return size


class _Occupied:
    """Chunks, each from its begin to its padded end, with the first and the last event of their time."""

    def __init__(self, most: int) -> None:
        import numpy as np  # slow to import

        self._count = 0
        self._firsts, self._lasts, self._begins, self._ends = np.zeros((4, most), np.int64)

    def add(self, block: Block, end: int) -> None:
        """Occupy its chunk whenever one of its values lives."""
        new = slice(self._count, self._count + len(block.values))
        self._firsts[new], self._lasts[new] = block.starts, block.ends
        self._begins[new], self._ends[new] = block.offset, end
        self._count = new.stop

    def best_fit(self, block: Block, size: int) -> int:
        """The begin of the smallest gap of at least `size` among the chunks of the same time. Before a begin
        that as many ends precede as begins, nothing is occupied."""
        import numpy as np

        firsts, lasts = self._firsts[: self._count], self._lasts[: self._count]
        is_used = np.zeros(self._count, bool)
        for first, last in zip(block.starts, block.ends, strict=True):
            is_used |= (firsts <= last) & (lasts >= first)
        begins = np.sort(self._begins[: self._count][is_used])
        ends = np.sort(self._ends[: self._count][is_used])
        if not len(begins):
            return 0
        before = np.concatenate(([0], ends[:-1]))
        rooms = begins - before
        fitting = np.flatnonzero(rooms >= size)
        return int(before[fitting[rooms[fitting].argmin()]] if len(fitting) else ends[-1])
