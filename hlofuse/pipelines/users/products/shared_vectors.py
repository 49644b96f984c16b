"""Matrices of one row or column that several products read as a vector."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import without


def with_vectors_made_one(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer`, of which the first is the reshape to a vector that products share.

    A product with a vector is made a broadcast, a multiplication and a sum (`DotStrengthReduction`,
    `xla/backends/gpu/transforms/dot_strength_reduction.cc`). Each, the derivatives of another among them, had
    a reshape of its own until they were made one, and the last users took the places of the rest.
    """
    if len(users) < 2 or not _is_vector(users[0], producer):
        return users
    gone = range(_products_of(users[0]) - 1)
    listed: list[Instruction | int] = [users[0], *gone, *users[1:]]
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


def _is_vector(user: Instruction, matrix: Instruction) -> bool:
    if user.opcode != "bitcast" or not matrix.shape.is_array or matrix.shape.rank != 2:
        return False
    return user.shape.rank == 1 and 1 in matrix.shape.dimensions


def _products_of(vector: Instruction) -> int:
    """How many products there are in which it was spread over the rows of the other operand."""
    spread = (x for x in vector.users if x.opcode == "broadcast" and _is_of_product(x))
    return len({u for x in spread for u in x.users if _is_of_product(u)})


def _is_of_product(x: Instruction) -> bool:
    return operation(x) == "dot_general"
