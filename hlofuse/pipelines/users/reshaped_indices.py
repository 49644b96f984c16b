"""Indices that a gather and a scatter read, reshaped for each of them.

GatherSimplifier and ScatterSimplifier (`xla/hlo/transforms/simplifiers/gather_simplifier.cc`,
`xla/service/scatter_simplifier.cc`) make the indices a matrix, for each operation anew: that of the gather is
older. HloCSE (`xla/service/hlo_cse.cc`) keeps the one that it meets first; the other goes, and the last user of
the indices takes its place.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.holes import without
from hlofuse.pipelines.users.visits import Uses

_GATHER, _SCATTER = "gather", "scatter"
_INDICES = 1


def with_last_in_place_of_indices(users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of such indices."""
    for bitcast in users:
        if bitcast.opcode != "bitcast" or {u.opcode for u in bitcast.users} != {_GATHER, _SCATTER}:
            continue
        if any(u.operands[_INDICES] is not bitcast for u in bitcast.users):
            continue
        first = min(bitcast.users, key=lambda u: uses[bitcast, u])
        listed: list[Instruction | None] = list(users)
        place = listed.index(bitcast)
        listed.insert(place + (first.opcode == _GATHER), None)
        users = [u for u in without(listed, [None]) if u is not None]
    return users
