"""Values that got dimensions of one, `x[:, None]`, before several operations broadcast them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.constants import is_made_of_nothing

_LAYOUT_ONLY = frozenset({"bitcast", "copy", "transpose"})


def with_last_in_place_of_expansion(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer` with the last in front if they broadcast it all in the same way.

    An operation with operands of different sizes needs equal ranks; the framework names the broadcast of
    its operand after it. Where several broadcast alike, the dimensions of one were put in once, for all of
    them. That reshape goes when simplification makes one broadcast of two: its users are appended and the
    last takes its place (`HandleReshape` and `HandleBroadcast`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). What one operation reads spread in either
    layout was expanded in two ways.
    """
    if producer.opcode == "bitcast" or not producer.shape.is_array or not producer.shape.rank:
        return users
    if is_made_of_nothing(producer):
        return users
    found = {user: list(_ways(user)) for user in users}
    spread = [u for u in users if None not in found[u]]
    ways = [way for u in spread for way in found[u] if way is not None]
    if len({way.broadcast.shape.rank for way in ways}) != 1:
        return users
    known = {way.dimensions for way in ways} - {None}
    if len(known) != 1 or not _readers(ways, in_other=True).isdisjoint(_readers(ways, in_other=False)):
        return users
    place = users.index(spread[0])
    others = [u for u in users[place:] if u not in spread]
    return [*users[:place], spread[-1], *others, *spread[:-1]]


class _Way(NamedTuple):
    """How a broadcast spreads what it reads."""

    broadcast: Instruction
    dimensions: tuple[int, ...] | None
    """None where it was given another layout: they are in the order of that."""


def _readers(ways: Iterable[_Way], *, in_other: bool) -> set[Instruction]:
    return {u for way in ways if (way.dimensions is None) is in_other for u in way.broadcast.users}


def _ways(user: Instruction) -> Iterator[_Way | None]:
    """How `user` broadcasts, or what reads it in another layout; None for what does something else."""
    pending = [(user, False)]
    while pending:
        x, is_transposed = pending.pop()
        if x.opcode == "broadcast" and operation(x) not in {"", "broadcast_in_dim"}:
            if _was_moved_twice(x):
                yield None
            yield _Way(x, None if is_transposed else x.dimensions)
        elif x.opcode in _LAYOUT_ONLY and x.users:
            pending += ((u, is_transposed or x.opcode == "transpose") for u in x.users)
        else:
            yield None
            return


def _was_moved_twice(broadcast: Instruction) -> bool:
    """Did ReshapeMover make it anew for the program and again, later on, for the derivative?

    It did where there is a dimension of one, which the framework puts in with a reshape. The broadcasts of
    the first time, made in post-order, are those that HloCSE kept.
    """
    if 1 not in broadcast.shape.dimensions:
        return False
    return any(map(is_of_derivative, broadcast.users))
