"""The numbers by which the derivative of a maximum in a scan tells whose it is.

JAX shares it among equals: `(x == max ? 1 : 0) / (y == max ? 2 : 1)`, of arrays of one number each, which are
made outside of what a scan does and given to that function.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_called_once, outermost_call
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import last_in_front


def function_given(literal: Instruction, reader: Instruction) -> Hashable | None:
    """The function of a scan that was given the `literal` for `reader`; None if that is no such choice."""
    if literal.op_name or not is_called_once(reader) or operation(reader) != "select_n":
        return None
    if reader.opcode != "select" or operation(reader.operands[0]) != "eq":
        return None
    numbers = reader.operands[1:]
    return (
        outermost_call(reader)
        if all(is_broadcast_of_constant(x) and not x.op_name for x in numbers)
        else None
    )


def with_last_in_place_of_call(given: list[Instruction]) -> list[Instruction]:
    """The choices `given` a number.

    CallInliner (`xla/service/call_inliner.cc`) appended the clones to the call, the first user, whose place
    the last of them took; they were cloned operands first.
    """
    return last_in_front(sorted(given, key=lambda u: u.id))
