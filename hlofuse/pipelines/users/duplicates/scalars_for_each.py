"""Scalars that the program computes anew for every use, such as `1 - decay` in the update of each parameter.

HloCSE (`xla/service/hlo_cse.cc`) made one of all. Two things tell that there were more: the framework
numbers operations of one name as it makes them, and the numbers of the others are missing; or the scalar
stands within the expressions of arrays, without a name, in a function called for every array of a tree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.ages_of_program import is_made_by_pass, last_of_program
from hlofuse.pipelines.calls_in_names import is_in_branch, is_of_called, scope
from hlofuse.pipelines.names import (
    is_of_older_release,
    is_of_program,
    name_before_renaming,
    stack_frame,
)
from hlofuse.pipelines.users.common.extents import extent_of, extents_apart, is_in_lambda


def in_order_of_first_uses(
    number: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    for_each: frozenset[Instruction],
) -> list[Instruction]:
    """The users of one of those: each was given to it with the scalar that it had read, in post-order."""
    if number not in for_each:
        return users
    return sorted(users, key=lambda u: min(order[v] for v in _uses_through(u)))


def made_for_each(
    computation: Computation, numbers: dict[str, set[int]], *, ids_known: bool
) -> frozenset[Instruction]:
    """Those of a `computation` whose names have these `numbers`, by root."""
    told = _told_by_numbers(computation, numbers)
    if ids_known:
        told |= _missing_ahead_of_each(computation, numbers) | _computed_again(computation)
    return told | {x for x in computation if _is_written_around(x) or _is_followed_by_gap(x, numbers)}


def _missing_ahead_of_each(computation: Computation, numbers: dict[str, set[int]]) -> frozenset[Instruction]:
    """The scalars of which one more of that name is missing from one use to the next, each time.

    The framework makes the operations for one array of a tree like those for the next, one after the other.
    Where another scalar is computed of it, two are.
    """
    named: dict[str, list[tuple[int, int]]] = {}
    for x in computation:
        if _is_numbered_by_name(x):
            name = name_before_renaming(x)
            named.setdefault(name.root, []).append((x.id, name.number))
    for by_age in named.values():
        by_age.sort()
    arrays = (x for x in computation if x.shape.rank and x.opcode in ELEMENTWISE_OPCODES)
    renamed = Counter(x.op_name for x in arrays if not is_of_program(x))

    def are_missing(x: Instruction, it: Instruction) -> bool:
        root = name_before_renaming(it).root
        made = [it, *(u for u in x.users if u.opcode != "broadcast")]
        count = sum(name_before_renaming(of).root == root for of in made)
        return _are_missing_each_time(count, x, named[root], numbers[root], renamed[it.op_name])

    spread = filter(_may_be_spread_for_each, computation)
    return frozenset(x for x in spread if any(are_missing(x, it) for it in _computed_for(x)))


def _computed_again(computation: Computation) -> frozenset[Instruction]:
    """The scalars written behind something that was made between two of their uses.

    Functions run from front to back: what is written behind it was computed once more. The framework makes
    operations as they are called.
    """
    module = computation.module
    if module is None or not module.stack_frames:
        return frozenset()
    last = last_of_program(computation.root)
    made = [x for x in computation if x.id <= last and _is_numbered_by_name(x) and stack_frame(x)]
    made.sort(key=lambda x: x.id)
    ids = [x.id for x in made]

    def is_computed_again(x: Instruction) -> bool:
        uses = sorted(u.id for u in uses_of_scalar(x) if _is_numbered_by_name(u) and u.id <= last)
        if len(uses) < 2:
            return False
        between = made[bisect_right(ids, uses[0]) : bisect_left(ids, uses[-1])]
        return any(_is_ahead(module, k, stack_frame(x)) for k in {stack_frame(u) for u in between})

    return frozenset(x for x in computation if _may_be_spread_for_each(x) and is_computed_again(x))


def _is_ahead(module: Module, frame: int, other: int) -> bool:
    """Is what is in the one `frame` written ahead of what is in the other?"""
    extents = extents_apart(module, frame, other)
    return extents is not None and extents[0].end <= extents[1].start


def _computed_for(x: Instruction) -> Iterator[Instruction]:
    """It, and the scalars that nothing else is computed of, as far as the framework numbers them by name."""
    while x.opcode in ELEMENTWISE_OPCODES and _is_numbered_by_name(x):
        yield x
        own = [o for o in x.operands if not o.shape.rank and len(o.users) == 1 and not is_constant(o)]
        if len(own) != 1:
            return
        (x,) = own


def _may_be_spread_for_each(x: Instruction) -> bool:
    if x.shape.rank or not x.shape.is_array or x.opcode not in ELEMENTWISE_OPCODES:
        return False
    return len(x.users) > 2 and _is_numbered_by_name(x) and any(u.opcode == "broadcast" for u in x.users)


def _are_missing_each_time(
    count: int, x: Instruction, named: list[tuple[int, int]], there: set[int], renamed: int
) -> bool:
    """Are so many `named` alike missing from each use to the next, where others of that name are?

    Passes may have given another name to as many as are `renamed`, of the same part of the program.
    """
    spread = sorted(u.id for u in x.users if u.opcode == "broadcast" and is_of_program(u))
    missing: set[int] = set()
    for one, following in pairwise(spread):
        first, last = bisect_left(named, (one, 0)), bisect_left(named, (following, 0))
        if last == len(named) and following == spread[-1]:
            continue  # nothing behind it tells
        if first in (0, last) or last == len(named):
            return False
        between = range(named[first - 1][1], named[last][1])
        absent = set(between) - there
        if len(absent) < count:
            return False
        missing |= absent
    return len(spread) > 2 and len(missing) > renamed


def _told_by_numbers(computation: Computation, numbers: dict[str, set[int]]) -> frozenset[Instruction]:
    """The scalars behind which as many numbers are missing as they have uses but one.

    A number is missing for one only: the last that it may be of.
    """
    found: set[Instruction] = set()
    taken: dict[str, int] = {}
    candidates = [(name_before_renaming(x), x) for x in computation if _may_be_made_for_each(x)]
    for (root, first), x in sorted(candidates, key=lambda it: it[0], reverse=True):
        others, there = len(uses_of_scalar(x)) - 1, numbers[root]
        missing = max(there) - first - sum(number > first for number in there)
        if int(not all(map(_is_spread, x.users))) < others <= missing - taken.get(root, 0):
            found.add(x)
            taken[root] = taken.get(root, 0) + others
    return frozenset(found)


def _is_followed_by_gap(x: Instruction, numbers: dict[str, set[int]]) -> bool:
    """Is it a scalar, computed of whatever, behind which the numbers of just as many others are missing?"""
    if x.shape.rank or not x.shape.is_array or not x.users or not _is_numbered_by_name(x):
        return False
    if x.opcode == "broadcast" or not all(u.opcode == "broadcast" for u in x.users):
        return False
    root, first = name_before_renaming(x)
    others = len(uses_of_scalar(x)) - 1
    later = [number for number in numbers[root] if number > first]
    return others > 1 and bool(later) and min(later) == first + others + 1


def _may_be_made_for_each(x: Instruction) -> bool:
    if not _is_scalar_of_one(x) or not x.users or not _is_numbered_by_name(x):
        return False
    return any(map(_is_read_spread, x.users)) and all(map(_is_read_alone, uses_of_scalar(x)))


def _is_read_spread(x: Instruction) -> bool:
    return x.opcode == "broadcast" or (_is_scalar_of_one(x) and any(map(_is_read_spread, x.users)))


def _is_read_alone(use: Instruction) -> bool:
    """Does it read a scalar as it is, or spread?"""
    return not use.shape.rank or any(o.opcode == "broadcast" for o in use.operands)


def _is_numbered_by_name(x: Instruction) -> bool:
    """Does the framework number those of its name alone? Older releases number all in one go.

    Of a conditional that is decided it writes the branch in the place of that.
    """
    if not is_of_program(x) or is_of_older_release(x):
        return False
    return not is_of_called(x) or (is_in_branch(x) and not scope(x) and not is_made_by_pass(x))


def _is_written_around(x: Instruction) -> bool:
    """Are the arrays computed with a scalar written around it, or all together where nothing has a name?"""
    here = extent_of(x)
    if here is None or x.shape.rank or x.opcode not in ELEMENTWISE_OPCODES | {"reduce"}:
        return False
    if not x.users or not all(map(_is_spread, x.users)):
        return False
    extents = [extent_of(u) for u in uses_of_scalar(x)]
    if is_in_lambda(x):
        return all(e is not None and e[:2] == here[:2] for e in extents)
    return all(e is not None and e != here and e.encloses(here) for e in extents)


def _is_spread(x: Instruction) -> bool:
    if x.opcode == "broadcast":
        return True
    return _is_scalar_of_one(x) and bool(x.users) and all(map(_is_spread, x.users))


def uses_of_scalar(x: Instruction) -> list[Instruction]:
    """What reads it in the end, through broadcasts and products with constants."""
    uses: list[Instruction] = []
    pending = [x]
    while pending:
        it = pending.pop()
        if it.users and (it is x or it.opcode == "broadcast" or _is_scalar_of_one(it)):
            pending += it.users
        else:
            uses.append(it)
    return uses


def _uses_through(user: Instruction) -> list[Instruction]:
    return uses_of_scalar(user) if user.opcode == "broadcast" or _is_scalar_of_one(user) else [user]


def _is_scalar_of_one(x: Instruction) -> bool:
    """Is it computed of one scalar and constants?"""
    if x.shape.rank or not x.shape.is_array or x.opcode not in ELEMENTWISE_OPCODES:
        return False
    return sum(not is_constant(o) for o in x.operands) == 1
