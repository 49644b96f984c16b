"""Which instructions still bear the name and number that the front end gave them.

JAX's module is named while its functions are lowered, one within another: the operations of a root get the
next free numbers when they are made, and once more when their computation is finished, callees before
callers and the entry last. The first numbers are free again then, and what passes make (clones of what is
called, too) takes them, the smallest first, and goes on behind the last one. So the numbers of a computation
lie in a window of its own, in the order of the program, and nobody else's are in there. Of N operations the
entry's are the last ones up to 2N - 1.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import chain, takewhile
from math import inf

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.calls_in_names import (
    is_in_branch,
    is_named_around_loop,
    is_of_call,
    loops_around,
    outermost_call,
)
from hlofuse.pipelines.likely_ids.against_data import NOTHING, AgainstData, against_data
from hlofuse.pipelines.named_calls import named_calls
from hlofuse.pipelines.names import is_told_of_program, is_without_op_name, name_before_renaming


def named_by_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions whose numbers lie in the window of their root and computation.

    A branch in the entry may have been inlined by framework or compiler. Clones take the free numbers, of
    which some are outside of the window.
    """
    branches = frozenset(
        x for x in module.entry if is_in_branch(x) and is_told_of_program(x) and _is_direct(x)
    )
    found = _in_windows(module, branches, {})
    if not branches <= found:
        branches = frozenset()
        found = _in_windows(module, branches, {})
    against = {
        c: contradicted
        for c in module.computations
        if c.fusion is None and (contradicted := against_data(c, _numbers_in(c, found)))
    }
    return _in_windows(module, branches, against) if against else found


def _numbers_in(computation: Computation, named: frozenset[Instruction]) -> dict[str, dict[Instruction, int]]:
    """The numbers of each root that tells of the order of the program."""
    found: dict[str, dict[Instruction, int]] = {}
    for x in computation:
        root, number = name_before_renaming(x)
        if x in named and root not in _SHARED:
            found.setdefault(root, {})[x] = number
    return found


def _is_direct(x: Instruction) -> bool:
    """Does nothing that a branch calls stand between the branch and it?"""
    return x.opcode != "parameter" and is_of_call(x) and not outermost_call(x)


def _in_windows(
    module: Module,
    branches: frozenset[Instruction],
    against: Mapping[Computation, Mapping[str, AgainstData]],
) -> frozenset[Instruction]:
    """With what was inlined from `branches` before the compiler had it."""
    candidates: dict[str, dict[Computation, dict[Instruction, int]]] = {}
    others: dict[str, list[int]] = {}
    in_clones: dict[str, list[int]] = {}
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        is_clone = _is_clone(computation)
        constants = _constants_of_program(computation)
        for x in computation:
            if x.opcode == "parameter":
                continue
            root, number = name_before_renaming(x)
            if x not in constants and (not is_told_of_program(x) or (is_of_call(x) and x not in branches)):
                others.setdefault(root, []).append(number)
            elif is_clone:
                in_clones.setdefault(root, []).append(number)
            else:
                candidates.setdefault(root, {}).setdefault(computation, {})[x] = number
    found: set[Instruction] = set()
    for root, members in candidates.items():
        passes = sorted(others.get(root, ()))
        end = inf
        for computation in sorted(members, key=lambda c: not c.is_entry):
            own = sorted(members[computation].values())
            elsewhere = (members[c].values() for c in members if c is not computation)
            foreign = sorted(chain(passes, in_clones.get(root, ()), *elsewhere))
            contradicted = against.get(computation, {}).get(root, NOTHING)
            if computation.is_entry:
                cloned = sorted(in_clones.get(root, ()))
                top = _top(own, passes, cloned, contradicted, root not in _SHARED, root == "broadcast")
                foreign = sorted(chain(foreign, contradicted.fewest(top)))
                window = _ending_at_last([n for n in own if top // 2 < n <= top], foreign)
                end = window.start or inf
            else:
                foreign = sorted(chain(foreign, contradicted.fewest(own[-1])))
                window = _fullest([n for n in own if n < end], foreign)
            found.update(x for x, number in members[computation].items() if number in window)
    return frozenset(found)


def _is_clone(computation: Computation) -> bool:
    """Has all in it been made anew?"""
    return ".clone" in computation.name or ".sunk" in computation.name


def constants_of_clone(computation: Computation) -> frozenset[Instruction]:
    """Constants that had been the front end's in what the computation is a clone of, if it is one.

    They were cloned first: behind the first one of a call or a pass, passes made all of that root.
    """
    if not _is_clone(computation):
        return frozenset()
    of_program = _constants_of_program(computation)
    numbered: dict[str, list[tuple[int, Instruction]]] = {}
    for x in computation:
        root, number = name_before_renaming(x)
        if root in _SHARED and (x in of_program or x.op_name):
            numbered.setdefault(root, []).append((number, x))
    ordered = (sorted(of_root, key=lambda e: e[0]) for of_root in numbered.values())
    return frozenset(x for of_root in ordered for _, x in takewhile(lambda e: e[1] in of_program, of_root))


def _constants_of_program(computation: Computation) -> frozenset[Instruction]:
    """What the front end makes for constants bears no op_name, unless there is but one reader.

    In a loop or a branch it has been given that of a call around it, if that was inlined
    (`CallInliner::Inline`).
    """
    told = (x for x in computation if x.op_name and not is_constant(x) and is_told_of_program(x))
    depths = (loops_around(x) for x in told if not is_named_around_loop(x))
    depth = min(depths, default=0)
    return frozenset(
        x
        for x in computation
        if is_constant(x)
        and (
            is_without_op_name(x)
            or (loops_around(x) < depth and not _is_named_after_inner_call(x))
            or _is_named_after_spread(x)
        )
    )


def _is_named_after_inner_call(x: Instruction) -> bool:
    """Did it come with a call within the loop? What bears calls by their names tells that."""
    return bool(named_calls(x.op_name or "")) and is_of_call(x)


def _is_named_after_spread(x: Instruction) -> bool:
    """Was it given the op_name of the broadcast that the front end spread it by for one operation?"""
    return x.opcode == "constant" and any(
        u.opcode == "broadcast" and u.op_name == x.op_name and is_told_of_program(u) for u in x.users
    )


_SHARED = frozenset({"broadcast", "constant"})
"""Roots that the compiler gives as well."""


def _top(
    numbers: list[int],
    others: list[int],
    cloned: list[int],
    against: AgainstData,
    told_apart: bool,
    may_be_gone: bool,
) -> int:
    """The upper end of the entry's window: it holds the most of the numbers, and the fewest of the others.

    What a pass makes anew takes a free number and leaves one in the window: those in it and below it are no
    more than the front end made. If there is no such window, all have been made anew.
    """

    def agreed(top: int) -> int:
        first = top // 2 + 1
        strange = _within(others, first, top) + against.in_window(first, top)
        return _within(numbers, first, top) - 2 * strange - _within(cloned, first, top)

    def chosen(tops: list[int]) -> int:
        # Passes spread numbers as well, and go on behind the front end's.
        best = max(map(agreed, tops), default=0)
        equal = [top for top in tops if agreed(top) == best]
        return min(equal) if may_be_gone and best > 1 else max(equal, default=-1)

    def made_at_most(top: int) -> int:
        return min(numbers[bisect_right(numbers, top // 2) :], default=-1)

    top = chosen([number for number in numbers if number])  # one that ends at 0 is empty
    if may_be_gone and agreed(top) <= -5 * _within(numbers, top // 2 + 1, top):
        return -1  # thrice as many others: what was inlined has gone on behind the front end's
    if not told_apart or bisect_right(numbers, top) <= made_at_most(top):
        return top
    return chosen([t for k, t in enumerate(numbers, 1) if t > top and k <= made_at_most(t)])


def _ending_at_last(numbers: list[int], foreign: list[int]) -> range:
    """Of the windows up to the last of these numbers the one with the most of them, few others among them."""
    agreed = ((len(numbers) - k - 2 * _within(foreign, n, numbers[-1]), n) for k, n in enumerate(numbers))
    score, first = max(agreed, default=(0, 0))
    return range(first, numbers[-1] + 1) if score > 0 else range(0)


def _fullest(numbers: list[int], foreign: list[int]) -> range:
    """Of all windows, as the body of a loop and a branch may have any, the last of the best."""
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
