"""Broadcasts of a number that are equal only since what they were for was computed in front of a reshape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_cloned_whole, is_in_branch, is_of_called
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_in_front, without

Reshaped: TypeAlias = "dict[Instruction, list[Instruction]]"
_BOUNDS = frozenset({"ge", "le"})


def with_moved_behind(
    broadcast: Instruction, users: list[Instruction], moved: frozenset[Instruction]
) -> list[Instruction]:
    """The users of a broadcast of a number with those behind that ReshapeMover made.

    It reshapes the other operands too (`xla/hlo/transforms/simplifiers/reshape_mover.cc`), and
    AlgebraicSimplifier makes a broadcast of the reshape of one. HloCSE had merged what the program has equal
    by then, and appends the users of the new one when it runs again, be they such comparisons or others that
    it `moved`; what is younger it appended in a later round. Ids have to be XLA's, but for what reads the
    broadcast of a constant.
    """
    if broadcast.opcode != "broadcast":
        return users
    number = broadcast.operands[0]
    # Older front ends give the broadcast of a constant no name of an operation.
    if number.shape.rank or (is_made_by_pass(broadcast) and not is_constant(number)):
        return users
    if is_constant(number):
        bounds = [] if operation(broadcast) in _BOUNDS else [u for u in users if _is_bound_of_index(u)]
        last = max((u.id for u in bounds), default=0)
        later = [u for u in users if bounds and (u in bounds or u in moved)]
        rounds = {u: 1 + (u in moved and u.id > last) for u in later}
        return sorted(users, key=lambda u: rounds.get(u, 0))
    return sorted(users, key=lambda u: _was_moved(u, broadcast))


def made_of_reshapes(computation: Iterable[Instruction]) -> Reshaped:
    """By broadcast of a number in the program those that AlgebraicSimplifier made of its reshapes.

    ReshapeMover had put a reshape behind it, to compute in front of a reshape what was computed with it. The
    result is reshaped to what it still is. That of a constant in the program has no name: it is the older.
    """
    made: Reshaped = {}
    for number in computation:
        if number.shape.rank or not number.shape.is_array:
            continue
        broadcasts = [u for u in number.users if u.opcode == "broadcast"]
        is_later = is_made_by_pass if is_constant(number) else _is_of_no_program
        written = {(u.shape.dimensions, _place(u)): u for u in broadcasts if not is_later(u)}
        for u in filter(is_later, broadcasts) if written else ():
            of = {written.get((shape, _place(u))) for shape in _reshaped_to(u)}
            if len(of) == 1 and (it := of.pop()) is not None:
                made.setdefault(it, []).append(u)
    return made


def with_last_in_place_of_reshapes(
    broadcast: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    reshaped: Reshaped,
    wide: frozenset[Instruction],
) -> list[Instruction]:
    """The users of a broadcast of the program with the last in place of its reshapes.

    They stood where CSE's walk (post-`order`) comes to what reads them, and went one by one. Of those made
    ahead of it, CSE had appended the first only, in one with the others; what reads an operation that was
    moved was moved after it, for each of them, and CSE kept the first until the next time. What was
    numbered first of all tells of a reshape in front (`with_last_in_place_of_moved`).

    The broadcast of a constant without a name the program has once: all that was moved had read it.
    """
    moved = sorted((u for b in reshaped.get(broadcast, ()) for u in b.users), key=order.__getitem__)
    if not moved or users != sorted(users, key=order.__getitem__):
        return users
    is_shared = is_constant(broadcast.operands[0]) and not broadcast.op_name
    if order[moved[0]] < order[users[0]] and not is_shared:
        return users
    if is_constant(broadcast.operands[0]) and any(u in moved for v in moved for u in v.users):
        return users  # CSE ran between the rounds in which they were moved
    rounds: dict[bool, list[Instruction]] = {}
    for u in moved:
        rounds.setdefault(_reads_moved(u, wide), []).append(u)
    gone: list[Instruction] = []
    kept: list[Instruction] = []
    for is_later, own in sorted(rounds.items()):
        first, *others = own
        gone += [*others, *kept] if is_shared or is_later else kept
        kept = [first]
    return without(sorted([*users, *kept, *gone], key=order.__getitem__), [*gone, *kept])


def with_last_in_place_of_moved(
    broadcast: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a `broadcast` that was made for an operation which ReshapeMover moved since.

    The framework spreads a scalar for every operation and numbers it right behind the broadcast. CSE gave the
    first of equal ones the users of the others; the reshape that the one moved had left, of the broadcast as
    well, went after that, and the last took its place. So did the one before it in the place of a reshape to
    other dimensions of one, which stood where CSE's walk (post-`order`) came to what reads it.
    """
    if broadcast.opcode != "broadcast" or not is_of_program(broadcast) or is_of_called(broadcast):
        return users
    root, number = name_before_renaming(broadcast)
    spread = broadcast.operands[0]
    if spread.shape.rank or is_constant(broadcast) or operation(broadcast) == "broadcast_in_dim":
        return users
    names = [name_before_renaming(u) for u in users if is_of_program(u)]
    if len(names) < len(users) or any(n.root != root or n.number in (0, number + 1) for n in names):
        return users
    ahead = last_in_front(users)
    if users != sorted(users, key=order.__getitem__):
        return ahead
    made = [u for u in spread.users if u.opcode == "broadcast" and _adds_dimensions(u, broadcast) and u.users]
    read = sorted((min(b.users, key=order.__getitem__) for b in made), key=order.__getitem__)
    if not read or order[read[0]] > order[users[0]]:
        return ahead
    return without(sorted([*users, *read], key=order.__getitem__), read)


def with_last_in_place_of_moved_without_ones(
    broadcast: Instruction, users: list[Instruction], order: dict[Instruction, int], passes: int | None
) -> list[Instruction]:
    """The users of a broadcast of a scalar, with those gone that were moved behind a reshape without ones.

    ReshapeMover puts a reshape of its operands where what it moves had been among the users, and
    AlgebraicSimplifier makes another broadcast of that (`HandleReshape`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the last user takes its place. The broadcast
    that was made has the place of this one, no dimensions of one and a greater number in its name; `passes`
    is the first id that a pass gave. In the body of a loop that was cloned ids may be of the clone: what is
    computed with it is reshaped to those of this one.
    """
    if broadcast.opcode != "broadcast" or broadcast.operands[0].shape.rank:
        return users
    made = [u for u in broadcast.operands[0].users if _is_reshape_of(u, broadcast)]
    read = [u for b in made for u in b.users]
    moved: list[Instruction] = []
    if broadcast.computation is not None and is_cloned_whole(broadcast.computation):
        moved = [u for u in read if _leads_to_reshape(u, broadcast.shape.dimensions)]
    elif users != sorted(users, key=order.__getitem__):
        return users
    if passes is not None and not moved and not is_in_branch(broadcast):
        moved = [u for u in read if u.id >= passes and u.opcode in ELEMENTWISE_OPCODES and is_of_program(u)]
    if not moved:
        return users
    first, *others = sorted(moved, key=order.__getitem__)
    # CSE made one of the reshapes, and the broadcast came of that.
    return without(sorted([*users, *moved], key=order.__getitem__), [*others, first])


def _leads_to_reshape(moved: Instruction, dimensions: tuple[int, ...]) -> bool:
    found, pending = {moved}, [moved]
    while pending:
        x = pending.pop()
        if x.opcode == "bitcast" and x.shape.dimensions == dimensions:
            return True
        if x.opcode in ELEMENTWISE_OPCODES and x.shape.dimensions == moved.shape.dimensions:
            pending += [u for u in x.users if u not in found]
            found.update(x.users)
    return False


def _is_of_no_program(x: Instruction) -> bool:
    return not is_of_program(x)


def _is_reshape_of(made: Instruction, broadcast: Instruction) -> bool:
    if made.opcode != "broadcast" or _place(made) != _place(broadcast):
        return False
    name, of = name_before_renaming(made), name_before_renaming(broadcast)
    if name.root != made.opcode or (of.root == name.root and of.number > name.number):
        return False
    dimensions = list(made.shape.dimensions)
    return len(dimensions) < broadcast.shape.rank and dimensions == broadcast.shape.true_dimensions


def _adds_dimensions(made: Instruction, broadcast: Instruction) -> bool:
    """Was it made of a reshape of the `broadcast` to further dimensions of one?"""
    if is_of_program(made) or _place(made) != _place(broadcast) or made.shape.rank <= broadcast.shape.rank:
        return False
    return made.shape.true_dimensions == [*broadcast.shape.dimensions]


def _place(broadcast: Instruction) -> tuple[str | None, int]:
    return broadcast.op_name, stack_frame(broadcast)


def _reads_moved(moved: Instruction, wide: frozenset[Instruction]) -> bool:
    """Does it read an operation of the program, or did so: the convert of what was narrow (in `wide`)?"""
    if any(o.opcode in ELEMENTWISE_OPCODES and is_of_program(o) and _is_young(o) for o in moved.operands):
        return True
    return moved not in wide and not wide.isdisjoint(moved.operands)


def _is_young(x: Instruction) -> bool:
    return is_made_by_pass(x) or is_of_called(x)


def _reshaped_to(broadcast: Instruction) -> set[tuple[int, ...]]:
    """The dimensions to which what is computed with it is reshaped, be it converted in front of that."""
    readers = [v for u in broadcast.users for v in (u.users if _is_converted(u) else [u])]
    return {v.shape.dimensions for u in readers for v in u.users if v.opcode == "bitcast"}


def _is_converted(x: Instruction) -> bool:
    return len(x.users) == 1 and x.users[0].opcode == "convert"


def _is_bound_of_index(x: Instruction) -> bool:
    """Does it compare an index of a gather or scatter with a bound?

    The framework gives indices a dimension of one for that, which ReshapeMover takes away.
    """
    if x.opcode != "compare" or operation(x) not in _BOUNDS:
        return False
    index = x.operands[0]
    if index.opcode not in ELEMENTWISE_OPCODES:
        return False
    return any(
        v.opcode in {"gather", "scatter"} and v.operands[0] is not o
        for u in index.users
        for o, readers in [(u, u.users) if u.opcode == "bitcast" else (index, [u])]
        for v in readers
    )


def _was_moved(user: Instruction, broadcast: Instruction) -> bool:
    if user.opcode not in ELEMENTWISE_OPCODES or user.id < broadcast.id:
        return False
    return is_made_by_pass(user) and is_of_program(user)
