"""Values that got dimensions of one, `x[:, None]`, before several operations broadcast them."""

from __future__ import annotations

from collections.abc import Iterator

from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.constants import is_made_of_nothing

_LAYOUT_ONLY = frozenset({"bitcast", "copy", "transpose"})


def with_last_in_place_of_expansion(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer` with the last in front if they broadcast it all in the same way.

    An operation with operands of different sizes needs equal ranks; the framework names the broadcast of
    its operand after it. Where several broadcast alike, the dimensions of one were put in once, for all of
    them. That reshape goes when simplification makes one broadcast of two: its users are appended and the
    last takes its place (`HandleReshape` and `HandleBroadcast`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    """
    if producer.opcode == "bitcast" or not producer.shape.is_array or not producer.shape.rank:
        return users
    if is_made_of_nothing(producer):
        return users
    ways = {way for user in users for way in _ways(user)}
    alike = None not in ways and len({way.rank for way in ways if way}) == 1
    alike = alike and len({way.dimensions for way in ways if way and way.dimensions}) <= 1
    return [users[-1], *users[:-1]] if alike else users


class _Way(NamedTuple):
    """How something is broadcast."""

    rank: int
    dimensions: tuple[int, ...]
    """Where its own went; none where layout normalization has numbered them anew."""


def _ways(user: Instruction) -> Iterator[_Way | None]:
    """How `user` broadcasts, or what reads it in another layout; None for what does something else."""
    pending, is_in_other_layout = [user], user.opcode in _LAYOUT_ONLY
    while pending:
        x = pending.pop()
        if x.opcode == "broadcast" and operation(x) not in {"", "broadcast_in_dim"}:
            way = _Way(x.shape.rank, () if is_in_other_layout else tuple(x.dimensions))
            yield None if is_in_other_layout and _was_reshaped_late(x) else way
        elif x.opcode in _LAYOUT_ONLY and x.users:
            pending += x.users
        else:
            yield None
            return


def _was_reshaped_late(broadcast: Instruction) -> bool:
    """Did it get dimensions of one when a reshape of it went, while its derivative read the one of before?

    Then it came behind all others.
    """
    return 1 in broadcast.shape.dimensions and any("transpose(" in (u.op_name or "") for u in broadcast.users)
