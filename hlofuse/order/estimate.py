"""An estimate of XLA's ids from a text, which is in post-order and does not carry them. New instructions are
appended (`HloComputation::AddInstruction`), and removed ones leave no gap (`Cleanup`). So ids follow the pass
that created an instruction last, and the time at which it did."""

import heapq
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import chain, pairwise

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, is_broadcast_of_constant, is_constant
from hlofuse.ir import Computation, Computations, Instruction, Instructions, Module, grouped, numbered, values
from .names import (
    LOWERED,
    is_of_call,
    is_of_program,
    is_without_op_name,
    name_before_renaming,
    number,
    operation,
    stem,
)

# The order in which passes go through the computations of a module.
#
# `HloModule::MakeComputationPostOrder` reads off an order that is kept while computations are added
# (`TopologicalSort`, `xla/online_topsort.h`): callees first, and what is new comes last. A computation that
# calls something new goes after that, and so does all that it is called by. Those of the framework bear
# numbers in the order in which it created them.


_NUMBERED = re.compile(r"[^.]*\.(\d+)(?:\.clone.*)?(?:\.sunk.*)?")


def processing_order(module: Module) -> Computations:
    """All computations in XLA's processing order, the entry last."""
    written = {c: k for k, c in enumerate(module.computations)}
    since = dict[Computation, tuple[int, ...]]()
    for c in module.computation_post_order():
        times = [_first_place(c, written)]
        times += [(*since[x], 0) for i in c for x in i.called_computations if since[x] > (0, 1)]
        since[c] = max(times)
    return sorted(since, key=lambda c: (c is module.entry, since[c], written[c]))


def _first_place(computation: Computation, written: dict[Computation, int]) -> tuple[int, ...]:
    """The place by number, or by when a pass added it: bodies last (`WhileUtil::MakeCountedLoop`)."""
    if (match := _NUMBERED.fullmatch(computation.name)) is not None:
        return (0, 0, int(match[1]))
    caller = computation.first_caller
    if caller is None:
        return (0, 1, written[computation], 0)
    called = caller.called_computations
    is_body = caller.is_while and called[0] is computation
    return (0, 1, min(written[c] for c in called), int(is_body))


# Instructions that still have the name and number given by the front end. JAX names its module while lowering
# functions, one within another. The operations of a stem get the next free numbers when they are created, and
# once more when their computation is finished, callees before callers and the entry last. Passes then take
# the freed first numbers (clones of callees, too), the smallest first, and continue after the last one. So
# the numbers of a computation form a window of its own, in program order, without others. Of N operations the
# entry's are the last ones up to 2N - 1.

_SHARED = values("broadcast constant")  # stems that the compiler also assigns


def named_by_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions with numbers in the window of their stem and computation."""
    candidates = dict[str, dict[Computation, dict[Instruction, int]]]()
    others = dict[str, list[int]]()
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        for x in computation:
            if x.is_parameter:
                continue
            stem, number = name_before_renaming(x)
            is_first = is_constant(x) and is_without_op_name(x)  # the front end may have created it
            if not is_first and (not is_of_program(x) or is_of_call(x)):
                others.setdefault(stem, []).append(number)
            else:
                candidates.setdefault(stem, {}).setdefault(computation, {})[x] = number
    found = set[Instruction]()
    for stem, members in candidates.items():
        passes = sorted(others.get(stem, ()))
        for computation in members:
            own = sorted(members[computation].values())
            elsewhere = (members[c].values() for c in members if c is not computation)
            foreign = sorted(chain(passes, *elsewhere))
            if computation.is_entry:
                top = _top(own, passes, stem)
                own = [n for n in own if top // 2 < n <= top]
            # The best window up to the last number has the most of the numbers, and few others.
            few = (2 * _count_within(foreign, n, own[-1]) for n in own)
            score, first = max(((len(own) - k - f, own[k]) for k, f in enumerate(few)), default=(0, 0))
            window = range(first, own[-1] + 1) if score > 0 else range(0)
            found.update(x for x, number in members[computation].items() if number in window)
    return frozenset(found)


def _top(numbers: list[int], others: list[int], stem: str) -> int:
    """The upper end of the entry's window: it has the most of the numbers, and the fewest of the others. An
    operation that a pass recreates takes a free number and leaves one in the window: those in it and below it
    are no more than the front end created. Without such a window, all were recreated."""

    def agreed(top: int) -> int:
        first = top // 2 + 1
        return _count_within(numbers, first, top) - 2 * _count_within(others, first, top)

    def chosen(tops: list[int]) -> int:
        best = max(map(agreed, tops), default=0)
        return max((top for top in tops if agreed(top) == best), default=-1)

    def created_at_most(top: int) -> int:
        return min(numbers[bisect_right(numbers, top // 2) :], default=-1)

    top = chosen([number for number in numbers if number])
    if stem in _SHARED or bisect_right(numbers, top) <= created_at_most(top):
        return top
    return chosen([t for k, t in enumerate(numbers, 1) if t > top and k <= created_at_most(t)])


def _count_within(numbers: list[int], first: int, last: int) -> int:
    return bisect_right(numbers, last) - bisect_left(numbers, first)


def program_order(operations: Instructions) -> Instructions:
    """The operations, given in text order, in program order: the front end has put its constants first."""
    place = numbered(operations)
    number = {x: name_before_renaming(x).number for x in operations}
    chains = grouped((x if x.is_constant else name_before_renaming(x).stem, x) for x in operations)
    lower = dict[Instruction, Instruction]()
    for own in chains.values():
        own.sort(key=lambda x: (-number[x], -place[x]))
        lower.update(pairwise(own))
    sources = {x: dict.fromkeys(o for o in x.operands if o in place) for x in operations}
    unread = Counter(chain.from_iterable(sources.values()))  # The number of readers that are still to come
    rank = {
        x: (1, -number.get(_constant(x), 0), place[x]) if is_constant(x) else (0, -place[x], 0)
        for x in operations
    }
    heads = {own[0] for own in chains.values()}
    ready = [(rank[x], place[x]) for x in heads if not unread[x]]
    heapq.heapify(ready)
    backwards = Instructions()
    inside = (x for x in sources if x.computation is not None and x is not x.computation.root)
    readers = grouped((source, x) for x in inside for source in sources[x])
    pending = Instructions()  # Operations whose only reader is placed already; the latest goes first

    while heads:
        last = sources[backwards[-1]] if backwards else ()
        if near := [x for x in last if not unread[x] and x in heads and not rank[x][0]]:
            x = min(near, key=rank.__getitem__)
        elif pending and pending[-1] in heads and not unread[pending[-1]]:
            x = pending[-1]
        elif ready:
            x = operations[heapq.heappop(ready)[1]]
            if x not in heads:
                continue
        else:  # a pass has turned the data around
            x = min(heads, key=rank.__getitem__)
        heads.remove(x)
        backwards.append(x)
        unread[x] = -1
        # What has one reader stands right before it in a text whenever it was created.
        pending += [o for o in sources[x] if readers.get(o) == [x] and not rank[o][0]]
        while pending and unread[pending[-1]] < 0:
            pending.pop()
        for source in sources[x]:
            unread[source] -= 1
            if unread[source] == 0 and source in heads:
                heapq.heappush(ready, (rank[source], place[source]))
        if x in lower:
            heads.add(lower[x])
            if unread[lower[x]] <= 0:
                heapq.heappush(ready, (rank[lower[x]], place[lower[x]]))
    backwards.reverse()
    return backwards


def _constant(x: Instruction) -> Instruction:
    return x.operand if x.operands else x


def estimate_order(module: Module) -> None:
    """Give instructions outside fusions ids in estimated creation order, if the dump has op_names."""
    module.processing_order = processing_order(module)
    named = named_by_front_end(module)
    for computation in module.computations:
        if computation.fusion is None and any(is_of_program(x) for x in computation):
            computation.reorder(_place_elements(_by_id(computation, named)))


def _place_elements(order: Instructions) -> Instructions:
    """The order with get-tuple-elements right after their tuple, as passes create them."""
    place = {x: (k, 0) for k, x in enumerate(order)}
    for k, x in enumerate(order, 1):
        if x.is_get_tuple_element:
            place[x] = (place[x.operand][0], k)
    return sorted(order, key=place.__getitem__)


# The part of the compiler that created an instruction last, from names and neighbours. A pass names new
# instructions after the opcode (`multiply.7`), but one that replaces another of its opcode takes over the
# name (`HloComputation::ReplaceInstruction`). Then its operands, new as well, give the phase.


class Phase(IntEnum):
    """Passes of `GpuCompiler`, in the order in which they run last."""

    FRONT_END = 0
    CALLS = 1  # CallInliner clones callees after everything else
    SIMPLIFIED = 3  # AlgebraicSimplifier, first run
    SIMPLIFIED_AGAIN = 4  # AlgebraicSimplifier and ReshapeMover afterwards
    LAYOUTS = 6
    FUSIONS = 8  # Triton fusions and library calls
    BITCASTS = 12  # Any pass: numbers decide


class Evidence:
    """Facts about one computation; `named` have names of the front end."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        self.named = named
        self._names = {name_before_renaming(x) for x in computation}
        self._last = dict[str, int]()
        for x in named:
            if x.computation is computation or computation.is_entry:
                name = name_before_renaming(x)
                self._last[name.stem] = max(name.number, self._last.get(name.stem, 0))

    def phase_of_name(self, x: Instruction) -> Phase:
        if is_of_program(x):
            if is_of_call(x) and x not in self.named:
                return Phase.CALLS
            if x in self.named:
                return Phase.FRONT_END
            return self._recreated_phase(x) if stem(x) == x.opcode else Phase.SIMPLIFIED_AGAIN
        return self._recreated_phase(x) if LOWERED.get(operation(x)) == x.opcode else Phase.SIMPLIFIED

    def _recreated_phase(self, x: Instruction) -> Phase:
        """ReshapeMover's phase where there is only one layout: dimensions of size one rarely have others."""
        return Phase.SIMPLIFIED_AGAIN if x.shape.true_rank < 2 and not x.is_tuple else Phase.LAYOUTS

    def are_missing_before(self, x: Instruction) -> bool:
        """True if two operations before it in the program added or dropped dimensions of size one."""
        stem, number = name_before_renaming(x)
        first = self._last.get(stem, 0) // 2 + 1 if x in self.named else 0
        before = {(stem, number - 1), (stem, number - 2)}
        return number - 2 >= first and before.isdisjoint(self._names)


def _is_constant_of_call(e: Evidence, x: Instruction) -> bool:
    if x.is_constant:
        return is_of_call(x)
    if not is_broadcast_of_constant(x) or not is_of_call(x):
        return False
    if is_of_program(x) or is_without_op_name(x):
        return x not in e.named
    created = (Phase.SIMPLIFIED, Phase.LAYOUTS)
    return not all(operation(u) == operation(x) or e.phase_of_name(u) in created for u in x.users)


def _is_broadcast_after_reshape(e: Evidence, x: Instruction) -> bool:
    if not x.is_broadcast or not is_of_program(x):
        return False
    source = x.operand
    if not source.is_bitcast and source.sizes:
        return True  # two broadcasts, a reshape between them, became one
    return not source.sizes and source not in e.named and e.are_missing_before(x)


_TABLE: tuple[tuple[Callable[[Evidence, Instruction], bool], Phase], ...] = (
    (lambda e, x: x.is_bitcast, Phase.BITCASTS),
    (
        lambda e, x: x.past("get-tuple-element").opcode == "custom-call" or x.is_fusion,
        Phase.FUSIONS,
    ),
    (lambda e, x: x in e.named and is_constant(x), Phase.FRONT_END),
    (_is_constant_of_call, Phase.CALLS),
    (_is_broadcast_after_reshape, Phase.SIMPLIFIED_AGAIN),
    (
        lambda e, x: x.opcode == "negate" and x.operand.is_reduce and not is_of_program(x),
        Phase.SIMPLIFIED,
    ),
)
"""The phase of instructions by the first row that holds; without one the name alone decides."""


def phase_of(e: Evidence, x: Instruction) -> Phase:
    for holds, phase in _TABLE:
        if holds(e, x):
            return phase
    if x.is_constant or is_broadcast_of_constant(x):
        return Phase.SIMPLIFIED
    return e.phase_of_name(x)


# Instructions recreated by ReshapeMover and AlgebraicSimplifier together, and their rounds. The pipeline with
# the two runs until nothing changes. In one round, ReshapeMover
# (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moves a reshape after the element-wise operations that
# read it, not after their readers, unless it has other users. The next AlgebraicSimplifier merges it.

Phases = dict[Instruction, Phase]
_SAME_NAMES = (Phase.CALLS, Phase.SIMPLIFIED, Phase.LAYOUTS)
"""Phases whose instructions have the same names as those that ReshapeMover creates."""


def add_recreated(phases: Phases) -> None:
    """Add the readers of moved instructions, and the broadcasts of constants that only moved ones read."""
    moved = dict.fromkeys(
        x for x, p in phases.items() if p == Phase.SIMPLIFIED_AGAIN and x.opcode in ELEMENTWISE_OPCODES
    )
    pending = [*moved]
    for source in pending:
        for x in source.users:
            if x not in moved and x.opcode in ELEMENTWISE_OPCODES and phases.get(x) in _SAME_NAMES:
                moved[x] = None
                pending.append(x)
    read = (o for x in moved for o in x.operands if is_broadcast_of_constant(o))
    spread = (o for o in read if moved.keys() >= {*o.users})
    phases.update(dict.fromkeys([*moved, *spread], Phase.SIMPLIFIED_AGAIN))


def alone_in_layout(phases: Phases) -> Instructions:
    """Operations without neighbours in another layout, but with a stem shared by framework and compiler.
    LayoutNormalization recreated all in one layout, or none. One after a reshape keeps its stem."""
    laid_out = {x for x, p in phases.items() if p == Phase.LAYOUTS and not is_broadcast_of_constant(x)}
    shared = [x for x in phases if x in laid_out and is_of_program(x) and x.opcode in ELEMENTWISE_OPCODES]
    members = {*shared}

    def near(x: Instruction) -> set[Instruction]:
        return laid_out.intersection([*x.operands, *x.users])

    return [x for x in shared if near(x) <= members]


_SPREAD = ("broadcast", "iota")


def split_rounds(recreated: Iterable[Instruction]) -> Instructions:
    """The instructions recreated after the first round, by round of the two passes."""
    rest = dict.fromkeys(recreated)
    rounds = Instructions()
    while rest:
        done = len(rounds)
        found = {x: None for x in rest if rest.keys().isdisjoint(_sources(x))}
        rounds += found
        rest = {x: None for x in rest if x not in found}
        if len(rounds) == done:
            break
    return [*rounds, *rest]


def _sources(x: Instruction) -> Instructions:
    """The instructions recreated earlier: the arrays that one reads, and for a constant its first reader."""
    if x.opcode not in _SPREAD:
        return [o for o in x.operands if not is_constant(o)]
    return x.users[:1] if is_broadcast_of_constant(x) else x.operands[:1]


def _by_id(computation: Computation, named: frozenset[Instruction]) -> Instructions:
    evidence = Evidence(computation, named)
    phases = {x: phase_of(evidence, x) for x in computation if not x.is_parameter}
    phases.update(dict.fromkeys(alone_in_layout(phases), Phase.SIMPLIFIED_AGAIN))
    add_recreated(phases)
    parameters = [x for x in computation if x not in phases]
    order = sorted(parameters, key=lambda x: x.parameter_number or 0)
    for phase in Phase:
        members = [x for x, p in phases.items() if p == phase]
        if phase == Phase.FRONT_END:
            members = program_order(members)
        elif phase == Phase.SIMPLIFIED_AGAIN:
            members = split_rounds(members)
        elif phase == Phase.BITCASTS:
            members.sort(key=number)
        order += members
    return order
