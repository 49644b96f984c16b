"""Indices that several gathers and scatters read: each had reshaped them for itself."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses

_READERS = frozenset({"gather", "scatter"})


def with_reshapes_of_indices_merged(users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of indices, given that each gather and scatter behind a bitcast of theirs had its own.

    GatherSimplifier and ScatterSimplifier (`xla/service/gather_simplifier.cc`, `scatter_simplifier.cc`) make
    a matrix of the indices. HloCSE keeps the reshape that its walk meets first; the last user takes the place
    of each other one.
    """
    listed: list[tuple[Instruction, Instruction]] = []
    gone: list[tuple[Instruction, Instruction]] = []
    for user in users:
        readers = _readers(user)
        listed += ((user, reader) for reader in readers)
        kept = min(readers, key=lambda reader: uses.get((user, reader), 0))
        gone += ((user, reader) for reader in readers if reader is not kept)
    return [user for user, _ in without(listed, gone)]


def _readers(user: Instruction) -> list[Instruction]:
    readers = user.users if user.opcode == "bitcast" else ()
    own = sorted((x for x in readers if x.opcode in _READERS), key=lambda x: x.id)
    return own or [user]
