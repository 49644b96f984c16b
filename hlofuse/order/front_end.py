"""Which instructions still bear the name and number that the front end gave them.

JAX's module is named while its functions are lowered, one within another: the operations of a stem get the
next free numbers when they are made, and once more when their computation is finished, callees before
callers and the entry last. The first numbers are free again then, and what passes make (clones of callees,
too) takes them, the smallest first, and goes on after the last one. So the numbers of a computation lie in a
window of its own, in the order of the program, and nobody else's are in there. Of N operations the entry's
are the last ones up to 2N - 1.
"""

from bisect import bisect_left, bisect_right
from itertools import chain
from math import inf

from hlofuse.analysis.elementwise import is_constant
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.order.names import (
    is_named_around_loop,
    is_of_call,
    is_of_program,
    is_without_op_name,
    loops_around,
    name_before_renaming,
)

_SHARED = frozenset({"broadcast", "constant"})
"""Stems that the compiler gives as well."""


def named_by_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions whose numbers lie in the window of their stem and computation."""
    candidates: dict[str, dict[Computation, dict[Instruction, int]]] = {}
    others: dict[str, list[int]] = {}
    in_clones: dict[str, list[int]] = {}
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
            elif is_clone(computation):
                in_clones.setdefault(stem, []).append(number)
            else:
                candidates.setdefault(stem, {}).setdefault(computation, {})[x] = number
    found: set[Instruction] = set()
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


def is_clone(computation: Computation) -> bool:
    """True if a pass cloned the computation, or sank constants into it."""
    return ".clone" in computation.name or ".sunk" in computation.name


def constants_of_program(computation: Computation) -> frozenset[Instruction]:
    """The constants that the front end may have made: those without an op_name, or with their reader's.

    In a loop or a branch a constant got the op_name of a call around it, if that was inlined.
    """
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
    """The upper end of the entry's window: it holds the most of the numbers, and the fewest of the others.

    What a pass recreates takes a free number and leaves one in the window: those in it and below it are no
    more than the front end made. If there is no such window, all were recreated.
    """

    def agreed(top: int) -> int:
        first = top // 2 + 1
        strange = 2 * _within(others, first, top) + _within(cloned, first, top)
        return _within(numbers, first, top) - strange

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
    """The best window up to the last number: it holds the most of the numbers, and few others."""
    agreed = ((len(numbers) - k - 2 * _within(foreign, n, numbers[-1]), n) for k, n in enumerate(numbers))
    score, first = max(agreed, default=(0, 0))
    return range(first, numbers[-1] + 1) if score > 0 else range(0)


def _fullest(numbers: list[int], foreign: list[int]) -> range:
    """The last one of the best windows: the body of a loop and a branch may have any."""
    best, found = 0, range(0)
    score, first = 0, 0
    for k, number in enumerate(numbers):
        score -= 2 * _within(foreign, numbers[k - 1], number) if k else 0
        if score <= 0:
            score, first = 0, number
        score += 1
        if score >= best:
            best, found = score, range(first, number + 1)
    return found


def _within(numbers: list[int], first: int, last: int) -> int:
    return bisect_right(numbers, last) - bisect_left(numbers, first)
