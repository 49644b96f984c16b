"""Instructions that still have the name and number given by the front end. JAX names its module while
lowering functions, one within another. The operations of a stem get the next free numbers when they are
created, and once more when their computation is finished, callees before callers and the entry last. Passes
then take the freed first numbers (clones of callees, too), the smallest first, and continue after the last
one. So the numbers of a computation form a window of its own, in program order, without others. Of N
operations the entry's are the last ones up to 2N - 1."""

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise

from hlofuse.analysis.elementwise import is_constant
from hlofuse.ir import Computation, Instruction, Module, grouped, numbered
from hlofuse.ir.opcodes import values
from .names import is_of_call, is_of_program, is_without_op_name, name_before_renaming

_SHARED = values("broadcast constant")  # stems that the compiler also assigns


def named_by_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions with numbers in the window of their stem and computation."""
    candidates = dict[str, dict[Computation, dict[Instruction, int]]]()
    others = dict[str, list[int]]()
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        for x in computation:
            if x.opcode == "parameter":
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
            window = _ending_at_last(own, foreign)
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


def _ending_at_last(numbers: list[int], foreign: list[int]) -> range:
    """The best window up to the last number: it has the most of the numbers, and few others."""
    agreed = (
        (len(numbers) - k - 2 * _count_within(foreign, n, numbers[-1]), n) for k, n in enumerate(numbers)
    )
    score, first = max(agreed, default=(0, 0))
    return range(first, numbers[-1] + 1) if score > 0 else range(0)


def _count_within(numbers: list[int], first: int, last: int) -> int:
    return bisect_right(numbers, last) - bisect_left(numbers, first)


def program_order(operations: list[Instruction]) -> list[Instruction]:
    """The operations, given in text order, in program order: the front end has put its constants first."""
    place = numbered(operations)
    number = {x: name_before_renaming(x).number for x in operations}
    chains = grouped((x if x.opcode == "constant" else name_before_renaming(x).stem, x) for x in operations)
    lower = dict[Instruction, Instruction]()
    for own in chains.values():
        own.sort(key=lambda x: (-number[x], -place[x]))
        lower.update(pairwise(own))
    sources = {x: dict.fromkeys(o for o in x.operands if o in place) for x in operations}
    unread = Counter(chain.from_iterable(sources.values()))
    """The number of readers that are still to come."""
    rank = {
        x: (1, -number.get(_constant(x), 0), place[x]) if is_constant(x) else (0, -place[x], 0)
        for x in operations
    }
    heads = {own[0] for own in chains.values()}
    ready = [(rank[x], place[x]) for x in heads if not unread[x]]
    heapq.heapify(ready)
    backwards = list[Instruction]()
    needed_once = _needed_once(sources)
    pending = list[Instruction]()
    """Operations whose only reader is placed already; the latest goes first."""

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
        pending += [o for o in needed_once.get(x, ()) if not rank[o][0]]
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


def _needed_once(
    sources: Mapping[Instruction, Iterable[Instruction]],
) -> dict[Instruction, list[Instruction]]:
    """Sources with one reader, right before it in a text whenever they were created; not the root."""
    inside = (x for x in sources if x.computation is not None and x is not x.computation.root)
    readers = grouped((source, x) for x in inside for source in sources[x])
    return {x: [source for source in needed if readers.get(source) == [x]] for x, needed in sources.items()}


def _constant(x: Instruction) -> Instruction:
    return x.operand if x.operands else x
