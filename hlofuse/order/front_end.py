"""Instructions that still have the name and number given by the front end. JAX names its module while
lowering functions, one within another. The operations of a stem get the next free numbers when they are
created, and once more when their computation is finished, callees before callers and the entry last. Passes
then take the freed first numbers (clones of callees, too), the smallest first, and continue after the last
one. So the numbers of a computation form a window of its own, in program order, without others. Of N
operations the entry's are the last ones up to 2N - 1."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from math import inf

from hlofuse.analysis.elementwise import is_constant
from hlofuse.ir import Computation, Instruction, Module, reach
from .names import (
    is_named_around_loop,
    is_of_call,
    is_of_derivative,
    is_of_program,
    is_without_op_name,
    loops_around,
    name_before_renaming,
    stack_frame,
)

_SHARED = frozenset({"broadcast", "constant"})  # stems that the compiler also assigns


def named_by_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions with numbers in the window of their stem and computation."""
    candidates = dict[str, dict[Computation, dict[Instruction, int]]]()
    others = dict[str, list[int]]()
    in_clones = dict[str, list[int]]()
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        constants = constants_of_program(computation)
        for x in computation:
            if x.opcode == "parameter":
                continue
            stem, number = name_before_renaming(x)
            if x not in constants and (not is_of_program(x) or is_of_call(x)):
                others.setdefault(stem, []).append(number)
            elif ".clone" in computation.name or ".sunk" in computation.name:
                in_clones.setdefault(stem, []).append(number)
            else:
                candidates.setdefault(stem, {}).setdefault(computation, {})[x] = number
    found = set[Instruction]()
    for stem, members in candidates.items():
        passes, cloned = sorted(others.get(stem, ())), sorted(in_clones.get(stem, ()))
        end = inf
        for computation in sorted(members, key=lambda c: not c.is_entry):
            own = sorted(members[computation].values())
            elsewhere = (members[c].values() for c in members if c is not computation)
            foreign = sorted(chain(passes, cloned, *elsewhere))
            if computation.is_entry:
                top = _top(own, passes, cloned, stem)
                window = _ending_at_last([n for n in own if top // 2 < n <= top], foreign)
                end = window.start or inf
            else:
                window = _fullest([n for n in own if n < end], foreign)
            found.update(x for x, number in members[computation].items() if number in window)
    return frozenset(found)


def constants_of_program(computation: Computation) -> frozenset[Instruction]:
    """The constants that the front end may have created: without an op_name, or with their reader's. In a
    loop or a branch a constant got the op_name of an inlined call around it."""
    named = (x for x in computation if x.op_name and not is_constant(x) and is_of_program(x))
    depth = min((loops_around(x) for x in named if not is_named_around_loop(x)), default=0)
    return frozenset(
        x
        for x in computation
        if is_constant(x)
        and (is_without_op_name(x) or loops_around(x) < depth or _is_named_after_broadcast(x))
    )


def _is_named_after_broadcast(x: Instruction) -> bool:
    return x.opcode == "constant" and any(
        u.opcode == "broadcast" and u.op_name == x.op_name and is_of_program(u) for u in x.users
    )


def _top(numbers: list[int], others: list[int], cloned: list[int], stem: str) -> int:
    """The upper end of the entry's window: it has the most of the numbers, and the fewest of the others. An
    operation that a pass recreates takes a free number and leaves one in the window: those in it and below it
    are no more than the front end created. Without such a window, all were recreated."""

    def agreed(top: int) -> int:
        first = top // 2 + 1
        strange = 2 * _count_within(others, first, top) + _count_within(cloned, first, top)
        return _count_within(numbers, first, top) - strange

    def chosen(tops: list[int]) -> int:
        # Passes make broadcasts as well, and go on after the front end's.
        best = max(map(agreed, tops), default=0)
        equal = [top for top in tops if agreed(top) == best]
        return min(equal) if stem == "broadcast" and best > 1 else max(equal, default=-1)

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


def _fullest(numbers: list[int], foreign: list[int]) -> range:
    """The last of the best windows; for the body of a loop or branch, which may have any."""
    best, found = 0, range(0)
    score, first = 0, 0
    for k, number in enumerate(numbers):
        score -= 2 * _count_within(foreign, numbers[k - 1], number) if k else 0
        if score <= 0:
            score, first = 0, number
        score += 1
        if score >= best:
            best, found = score, range(first, number + 1)
    return found


def _count_within(numbers: list[int], first: int, last: int) -> int:
    return bisect_right(numbers, last) - bisect_left(numbers, first)


def program_order(operations: list[Instruction]) -> list[Instruction]:
    """The operations, given in text order, in program order: the front end has put its constants first."""
    place = {x: k for k, x in enumerate(operations)}
    number = {x: name_before_renaming(x).number for x in operations}
    chains = dict[object, list[Instruction]]()
    for x in operations:
        chains.setdefault(x if x.opcode == "constant" else name_before_renaming(x).stem, []).append(x)
    lower = dict[Instruction, Instruction]()
    for own in chains.values():
        own.sort(key=lambda x: (-number[x], -place[x]))
        lower.update(pairwise(own))
    chain_of = {x: k for k, own in enumerate(chains.values()) for x in own}
    last_of = [own[0] for own in chains.values()]
    """The last one of each chain that is still to come."""
    sources = {x: _sources(x, place) for x in operations}
    for x, needed in sources.items():
        for y in [y for y in needed if chain_of[y] == chain_of[x] and number[y] > number[x]]:
            del needed[y]  # the program has it after its reader: CSE kept the later of two equal ones
    unread = dict.fromkeys(operations, 0)
    """The number of readers that are still to come."""
    for needed in sources.values():
        for source in needed:
            unread[source] += 1
    rank = {
        x: (1, -number.get(_constant(x), 0), place[x]) if _is_in_front(x) else (0, -place[x], 0)
        for x in operations
    }
    heads = {chain[0] for chain in chains.values()}
    of_constants = {0, *(stack_frame(x) for x in operations if is_constant(x))}
    """Source locations numbered early, as constants are written first."""
    ready = [(rank[x], place[x]) for x in heads if not unread[x]]
    heapq.heapify(ready)
    backwards = list[Instruction]()
    needed_once = _needed_once(sources)
    pending = list[Instruction]()
    """Operations whose only reader is placed already; the latest goes first."""

    def latest(found: list[Instruction]) -> Instruction:
        """The operation with the latest source location, if its sources follow all others."""
        is_placed = all(stack_frame(x) not in of_constants and not is_of_derivative(x) for x in found)
        x = min(found, key=lambda x: (-stack_frame(x) if is_placed else 0, rank[x]))
        others = max((stack_frame(y) for y in found if y is not x), default=0)
        if is_placed and any(stack_frame(y) < others for y in needed_once[x]):
            return min(found, key=rank.__getitem__)
        return x

    while heads:
        at = len(backwards)
        last = sources[backwards[-1]] if backwards else ()
        if near := [x for x in last if not unread[x] and x in heads and not rank[x][0]]:
            x = latest(near)
        elif later := [
            y for x in last if not unread[x] and not rank[x][0] and not unread[y := last_of[chain_of[x]]]
        ]:  # numbers say that this came later than what is needed next
            x = min(later, key=rank.__getitem__)
            if not sources[x]:  # nothing kept it from standing right before its reader
                positions = (
                    k
                    for k in range(at, 0, -1)
                    if x in sources[y := backwards[k - 1]] or chain_of[y] == chain_of[x]
                )
                at = next(positions, at)
        elif pending and pending[-1] in heads and not unread[pending[-1]]:
            x = pending[-1]
        elif ready:
            x = operations[heapq.heappop(ready)[1]]
            if x not in heads:
                continue
        else:  # a pass has turned the data around
            x = min(heads, key=rank.__getitem__)
        heads.remove(x)
        backwards.insert(at, x)
        unread[x] = -1
        pending += [o for o in needed_once.get(x, ()) if not rank[o][0]]
        while pending and unread[pending[-1]] < 0:
            pending.pop()
        for source in sources[x]:
            unread[source] -= 1
            if unread[source] == 0 and source in heads:
                heapq.heappush(ready, (rank[source], place[source]))
        if x in lower:
            last_of[chain_of[x]] = lower[x]
            heads.add(lower[x])
            if unread[lower[x]] <= 0:
                heapq.heappush(ready, (rank[lower[x]], place[lower[x]]))
    backwards.reverse()
    return sorted(backwards, key=_is_tuple_at_root)


def _needed_once(
    sources: Mapping[Instruction, Iterable[Instruction]],
) -> dict[Instruction, list[Instruction]]:
    """Sources with one reader, right before it in a text whenever they were created; not the root."""
    readers = dict[Instruction, list[Instruction]]()
    for x, needed in sources.items():
        if x.computation is not None and x is not x.computation.root:
            for source in needed:
                readers.setdefault(source, []).append(x)
    return {x: [source for source in needed if readers.get(source) == [x]] for x, needed in sources.items()}


def _is_tuple_at_root(x: Instruction) -> bool:
    """True for the tuple at the root, which the front end creates last, after unread operations."""
    return x.opcode == "tuple" and x.is_root


def _is_in_front(x: Instruction) -> bool:
    """True for a constant placed first, rather than in a loop by WhileLoopConstantSinking."""
    return is_constant(x) and ".sunk" not in _constant(x).name


def _constant(x: Instruction) -> Instruction:
    return x.operands[0] if x.operands else x


def _sources(x: Instruction, members: dict[Instruction, int]) -> dict[Instruction, None]:
    above = reach(x.operands, lambda source: () if source in members else source.operands)
    return dict.fromkeys(source for source in above if source in members)
