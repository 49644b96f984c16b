"""Broadcasts of a number that the program shares, of which some readers were moved in front of a reshape.

A text whose program shares a broadcast, as older releases of JAX did, has no operation's name for it. What
ReshapeMover moves (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) reads a reshape of the broadcast
instead, which takes the place of what was moved; AlgebraicSimplifier makes another broadcast of each reshape
(`HandleBroadcast`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and HloCSE keeps the first
until it is dead.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hlofuse.analysis.constants import is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_older_release, operation
from hlofuse.pipelines.users.common.holes import without


def moved_from_shared(computation: Computation) -> frozenset[Instruction]:
    """What reads the like of a shared broadcast without dimensions of one, and what reads that in turn."""
    shared = [x for x in computation if _is_shared(x)]
    with_ones = {_written(x) for x in shared if _has_ones(x)}
    pending = [u for x in shared if not _has_ones(x) and _written(x) in with_ones for u in x.users]
    moved: set[Instruction] = set()
    while pending:
        x = pending.pop()
        if x.opcode in ELEMENTWISE_OPCODES and x not in moved:
            moved.add(x)
            pending += [u for u in x.users if u.shape.dimensions == x.shape.dimensions]
    return frozenset(moved)


def with_last_in_place_of_moved_readers(
    broadcast: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    moved: frozenset[Instruction],
) -> list[Instruction]:
    """The users of such a broadcast, in (post-)`order`, with the last in place of each that was `moved`.

    Where the program has a broadcast of its own like the one made, HloCSE appends those to its users.
    """
    if not moved or not _is_shared(broadcast) or users != sorted(users, key=order.__getitem__):
        return users
    if not _has_ones(broadcast):
        return sorted(users, key=lambda u: u in moved)
    gone = _in_order((u for x in _without_ones(broadcast) for u in x.users if u in moved), order)
    return without(_in_order([*users, *gone], order), [*gone[1:], *gone[:1]])


def _without_ones(broadcast: Instruction) -> list[Instruction]:
    alike = (x for x in broadcast.operands[0].users if _is_shared(x) and not _has_ones(x))
    return [x for x in alike if x.shape.true_dimensions == broadcast.shape.true_dimensions]


def _in_order(found: Iterable[Instruction], order: dict[Instruction, int]) -> list[Instruction]:
    return sorted(dict.fromkeys(found), key=order.__getitem__)


def _is_shared(x: Instruction) -> bool:
    if x.opcode != "broadcast" or not is_constant(x.operands[0]):
        return False
    return operation(x) == x.opcode if x.op_name else any(map(is_of_older_release, x.users))


def _has_ones(x: Instruction) -> bool:
    return x.shape.rank > len(x.shape.true_dimensions)


def _written(x: Instruction) -> Hashable:
    """What a broadcast and that of its reshape have in common."""
    return x.op_name, x.operands[0], tuple(x.shape.true_dimensions)
