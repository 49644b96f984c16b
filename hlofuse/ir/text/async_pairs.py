"""What XLA checks between the start of an asynchronous operation and what goes on with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofuse.ir.text.signatures import split_async

if TYPE_CHECKING:
    from hlofuse.ir.graph import Computation, Instruction

_OWN = frozenset({"async-start", "async-update", "async-done"})
_MAIN_THREAD = '"main"'


def _is_async(opcode: str) -> bool:
    """True for `async-start`, `async-update`, `async-done` and their short forms such as `dot-start`."""
    return opcode in _OWN or split_async(opcode)[1] is not None


def disagreement(
    opcode: str, operands: Sequence[Instruction], called: Sequence[Computation], thread: str | None
) -> str | None:
    """What an update or a done says of the operation that its start does not; None if they agree.

    `thread` is the attribute async_execution_thread as it is written. Mirrors `HloParserImpl` for these
    opcodes (`xla/hlo/parser/hlo_parser.cc`).
    """
    if not operands or opcode.endswith("-start") or not _is_async(opcode):
        return None
    start = _start_of(operands[0])
    if start is None:
        return None
    wrapped, stage = split_async(opcode)
    inner = _wrapped_opcode(start)
    if stage is not None and inner is not None and wrapped != inner:
        return f"{opcode} does not belong to {start.name}, which starts {inner}"
    began = start.attributes.raw("async_execution_thread") or _MAIN_THREAD
    if thread is not None and thread != began:
        return f"{start.name} runs in the thread {began}, not {thread}"
    if called and (start.opcode != "async-start" or called[0] not in start.called_computations):
        return f"{start.name} does not call {called[0].name}"
    return None


def _start_of(x: Instruction) -> Instruction | None:
    """The start of the chain that `x` is of, followed through tuples."""
    indices: list[int] = []
    while True:
        if x.opcode == "get-tuple-element":
            indices.append(x.tuple_index)
        elif x.opcode == "tuple" and indices:
            x = x.operands[indices.pop()]
            continue
        elif not _is_async(x.opcode) or indices:
            return None
        elif x.opcode.endswith("-start"):
            return x
        if not x.operands:
            return None
        x = x.operands[0]


def _wrapped_opcode(start: Instruction) -> str | None:
    wrapped, stage = split_async(start.opcode)
    if stage is not None:
        return wrapped
    return start.called_computations[0].root.opcode if start.called_computations else None
