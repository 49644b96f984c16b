"""The orders in which XLA runs a module that has no schedule (`hlo_memory_scheduler.cc`)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import accumulate
from itertools import count as numbers
from sys import maxsize
from typing import TypeAlias

from hlofuse.ir.graph import Computation, Instruction, Instructions, InstructionSequence, Module
from hlofuse.ir.grouping import numbered
from hlofuse.ir.opcodes import values, with_trait
from .alias_info import AliasInfo
from .async_ops import is_async_end, start_of
from .heap_simulator import HeapSimulation, LiveRanges
from .hlo_alias import HloAlias, HloBuffer
from .hlo_dataflow import HloDataflow
from .hlo_value import HloValue

_GIVEN = values("parameter constant")
_Sizes: TypeAlias = Mapping[HloBuffer, int]
CostOf: TypeAlias = Callable[[Instruction], float]
_WAIT = 5000.0  # units between the start and the end of a copy or collective, those of `cost`
_COLLECTIVES = with_trait("collective")
_FREE = values("get-tuple-element bitcast constant parameter broadcast iota")


def live_ranges(
    module: Module,
    alias: HloAlias,
    info: AliasInfo,
    backend: str,
    sizes: _Sizes,
    cost: CostOf | None = None,
) -> LiveRanges:
    """The live ranges in the order of the schedule, or else in the order that XLA's schedulers find. `cost`
    has an instruction's microseconds where XLA hides latencies."""
    if module.is_scheduled:
        return LiveRanges(module, alias, lambda c: c.instructions)
    if backend == "cpu":
        orders = {c: [x for x in order if x.computation is c] for c, order in module.schedules.items()}
        return LiveRanges(module, alias, lambda c: orders.get(c) or breadth_first(c))
    if backend != "gpu":
        return LiveRanges(module, alias, Computation.post_order)
    found = with_least_memory(module, alias, info, sizes)
    if cost is None:
        return found
    return LiveRanges(module, alias, lambda c: _hiding_latency(found.order_of(c), cost))


def with_least_memory(
    module: Module,
    alias: HloAlias,
    info: AliasInfo,
    sizes: _Sizes,
) -> LiveRanges:
    """The live ranges in the best of three orders, the first of equals (`DefaultMemoryScheduler`)."""
    order = _Order(alias.dataflow)
    orders = order.by_bytes_freed, order.depth_first, Computation.post_order
    found = [LiveRanges(module, alias, own) for own in orders]
    return min(found, key=lambda live: _minimum_memory(alias, info, live, sizes))


def breadth_first(computation: Computation) -> Instructions:
    """XLA:CPU's schedule: an instruction as soon as its operands have run (`BFScheduler`)."""
    waits = _predecessor_counts(computation)
    order = [x for x, count in waits.items() if not count]
    for x in order:
        for user in x.successors:
            waits[user] -= 1
            if not waits[user]:
                order.append(user)
    return order


def _hiding_latency(order: InstructionSequence, cost: CostOf) -> InstructionSequence:
    """The order in which asynchronous copies and collectives start as early and end as late as others allow,
    found from the last instruction to the first; `order` where there are none (`DefaultSchedulerCore`)."""
    ends = {x for x in order if is_async_end(x.opcode)}
    if not ends:
        return order
    occupying = {x: found for x in order if (found := list(_ends_in(x)))}
    exchanging = {x for x, found in occupying.items() if any(map(_is_of_collective, found))}
    running: Instruction | None = None  # the start of a collective that ends later: XLA has one at a time
    before: dict[Instruction, Instructions] = {x: [] for x in order}
    copies = dict[Instruction, int]()
    for x in order:
        copies[x] = max((copies[p] for p in before[x]), default=0) + (x in ends)
        for user in x.successors:
            before[user].append(x)
    left = Counter(p for found in before.values() for p in found)
    unlocked = {x: sum(left[p] == 1 for p in before[x]) for x in order}
    costs, due, place = {x: cost(x) for x in order}, dict.fromkeys(order, 0.0), numbered(order)
    ready = set[Instruction]()
    free = Instructions()
    ran = dict[Instruction, None]()
    entered = [x for x in order if not left[x]]
    now = 0.0

    def key(x: Instruction) -> tuple[float, ...]:
        stall = max(due[x] - now, 0)
        waste = abs(wait - now - costs[x]) if wait else 0
        return x in occupying, -stall, copies[x], -waste, unlocked[x], place[x]

    while entered or ready or free:
        for x in entered:
            is_free = x.opcode in _FREE or (x.opcode == "tuple" and [u.opcode for u in x.users] == ["while"])
            (free.append if is_free else ready.add)(x)
        if free:  # the last one that came
            x = free.pop()
        else:
            wait = min((due[x] for x in ready if due[x] > now), default=0)
            x = max((running and ready - exchanging) or ready, key=key)
            ready.remove(x)
        ran[x] = None
        if x is running or (x in exchanging and x in ends):
            running = None if x is running else start_of(x)
        time = max(now, due[x])
        entered = []
        now = time + costs[x]
        for p in before[x]:
            due[p] = max(due[p], time + (_WAIT if x in ends else 1))
            left[p] -= 1
            entered += [p] if not left[p] else []
            if left[p] == 1:
                for user in p.successors:
                    unlocked[user] += user not in ran
    return list(ran)[::-1]


def _ends_in(x: Instruction) -> Iterator[Instruction]:
    """The end of a copy or collective itself, or those in a loop (`DoesOccupyAnyResource`)."""
    if is_async_end(x.opcode):
        yield x
    for name, computation in x.called if x.is_while else ():
        yield from (end for i in computation if name == "body" for end in _ends_in(i))


def _is_of_collective(end: Instruction) -> bool:
    start = start_of(end) or end
    inside = (i for c in start.called_computations for i in c)
    return any(i.opcode.removesuffix("-start") in _COLLECTIVES for i in (start, *inside))


def _predecessor_counts(computation: Computation) -> dict[Instruction, int]:
    return {x: len(set(x.operands)) + len(x.control_predecessors) for x in computation}


def _minimum_memory(
    alias: HloAlias,
    info: AliasInfo,
    live: LiveRanges,
    sizes: _Sizes,
) -> int:
    """The most bytes alive at once, without gaps (`HeapSimulator::MinimumMemoryForModule`)."""
    values = [v for v in live.ranges if not v.instruction.is_constant]
    changes = Counter[int]()
    for block in HeapSimulation(values, alias, live, sizes, info).blocks:
        for start, end in zip(block.starts, block.ends, strict=True):
            changes[start] += block.size
            changes[end] -= block.size
    return max(accumulate(changes[moment] for moment in sorted(changes)), default=0)


class _Order:
    """Orders of one computation that need little memory, by greedy heuristics."""

    def __init__(self, dataflow: HloDataflow) -> None:
        self._dataflow = dataflow

    def _values(self, instructions: Iterable[Instruction]) -> list[HloValue]:
        """The values in the results of instructions, each once, elements of tuples among them."""
        found = (v for x in instructions for v in self._dataflow.values_of(x) if v is not None)
        return list(dict.fromkeys(found))

    def _bytes_defined(self, x: Instruction) -> int:
        if x.opcode in _GIVEN:
            return 0
        return sum(v.bytes for v in self._values([x]) if v.instruction is x)

    def depth_first(self, computation: Computation) -> Instructions:
        """Operands with more users before them first, then the larger ones (`DFSMemoryScheduler`)."""
        rank = dict[Instruction, tuple[int, int, str]]()
        all_bytes = 0
        most = len(computation)
        for x in computation.post_order():
            users = total = 0
            if x.opcode not in _GIVEN:
                own = self._bytes_defined(x)
                all_bytes += own
                before = [rank[o] for o in set(x.operands)]
                users = max(x.user_count - 1, 0) - sum(r[0] for r in before)
                total = own - sum(r[1] for r in before)
            rank[x] = -min(users, most), -min(total, all_bytes), x.name
        order = dict[Instruction, None]()
        entered = set[Instruction]()
        pending = [computation.root, *reversed(computation.unreachable_roots())]
        while pending:
            x = pending[-1]
            if x in entered:
                order.setdefault(pending.pop())
                continue
            entered.add(x)
            waits = {o for o in x.predecessors if o not in order}
            pending += sorted(waits, key=rank.__getitem__, reverse=True)
        return list(order)

    def by_bytes_freed(self, computation: Computation) -> Instructions:
        """The instruction that frees the most bytes first, among those that can run (`ListScheduler`)."""
        reads = {x: self._values(x.operands) for x in computation}
        left = Counter(v for values in reads.values() for v in values)
        left.update(self._values([computation.root]))
        defined = {x: self._bytes_defined(x) for x in computation}
        waits = _predecessor_counts(computation)
        ready = dict[Instruction, tuple[int, int]]()
        queue = list[tuple[int, int, int, Instruction]]()
        serial = numbers()

        def enter(x: Instruction) -> None:
            priority = maxsize, maxsize
            if not x.shape.is_effective_scalar:
                last = (v for v in reads[x] if left[v] == 1 and v.instruction.opcode not in _GIVEN)
                priority = sum(v.bytes for v in last) - defined[x], x.user_count
            if ready.get(x) != priority:
                ready[x] = priority
                # Of equals the last one that came runs first.
                heappush(queue, (-priority[0], -priority[1], -next(serial), x))

        for x in (x for x, count in waits.items() if not count):
            enter(x)
        order = dict[Instruction, None]()
        while queue:
            freed, users, _, x = heappop(queue)
            if x in order or ready[x] != (-freed, -users):
                continue
            order[x] = None
            left.subtract(reads[x])
            for user in x.successors:
                waits[user] -= 1
                if not waits[user]:
                    enter(user)
            if any(left[v] == 1 for v in reads[x]):
                for user in dict.fromkeys(u for o in x.operands for u in o.users):
                    if user in ready and user not in order:
                        enter(user)
        return list(order)
