"""Asynchronous operations: a start is the work, its update and done only hand the result on.

XLA writes them in three ways: with opcodes of their own (`all-reduce-start`), around a computation
(`async-start(…), calls=…`), and as short forms of the latter (`all-to-all-start`).
"""

from collections.abc import Iterator
from functools import cache

from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.text.signatures import split_async


@cache
def is_async_end(opcode: str) -> bool:
    """True for what goes on with an operation that was counted when it started."""
    return opcode in _ENDS or split_async(opcode)[1] in ("update", "done")


_ENDS = with_trait("async-end")


@cache
def wrapped_opcode(opcode: str) -> str | None:
    """The operation that a short form such as `all-to-all-start` starts; None for any other opcode."""
    wrapped, stage = split_async(opcode)
    return wrapped if stage == "start" else None


def wrapped_operation(start: Instruction) -> Instruction | None:
    """The operation that a short form starts, free-standing, with the same operands; None for any other.

    The shape of a start is a tuple of the operands, the result and a context.
    """
    opcode = wrapped_opcode(start.opcode)
    if opcode is None or not start.shape.is_tuple or len(start.shape.tuple_shapes) < 2:
        return None
    operation = start.bare_copy()
    operation.opcode, operation.shape = opcode, start.shape.tuple_shapes[1]
    operation.operands = list(start.operands)  # which do not learn of this reader
    return operation


def start_of(end: Instruction) -> Instruction | None:
    """The start that an update or a done goes on with; None where it is in another computation."""
    while is_async_end(end.opcode) and end.operands:
        end = end.operands[0]
    return end if end.opcode in ("send", "recv") or end.opcode.endswith("-start") else None


def ends_of(start: Instruction) -> Iterator[Instruction]:
    """The updates and dones that go on with a start."""
    pending = [start]
    while pending:
        for user in pending.pop().users:
            if is_async_end(user.opcode):
                pending.append(user)
                yield user
