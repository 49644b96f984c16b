"""Whether a call has other results than one that is read outside of it: it ended in a tuple then."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TypeAlias

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_called_once, outermost_call
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.calls.clones import operands_of, readers_of, twins_of
from hlofuse.pipelines.users.calls.derived_choices import choice_in_front
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.constants import is_made_of_nothing

_TRANSPOSED = re.compile(r"(?<![^/])transpose\((jvp\([^/]*\))\)(?=/|$)")


CallOf: TypeAlias = "Callable[[Instruction], str]"
"""Which call something is of; "" for none."""


def has_other_results(result: Instruction, function: str, call_of: CallOf = outermost_call) -> bool:
    """Does anything else that the same call computed have users outside?"""
    if result.opcode == "sort" and result.shape.is_tuple:
        return False  # its elements are read, wherever
    if result.opcode == "select" and _is_derived(result):
        return True
    ways = (operands_of, readers_of, twins_of)
    return any(_reaches_result(result, function, near, call_of) for near in ways)


def _is_derived(choice: Instruction) -> bool:
    """Is there a derivative of it that was given another result of the call?"""
    return any(choice_in_front(u) is choice for u in choice.operands[0].users)


def _reaches_result(
    start: Instruction,
    function: str,
    near: Callable[[Instruction], Iterable[Instruction]],
    call_of: CallOf,
) -> bool:
    kind = kind_of(start)
    found, pending = {start}, [start]
    # That is the same result. Of what a library's matrix product reads the last is in front all the same.
    if start.opcode == "bitcast" and all(u.opcode != "custom-call" for u in start.users):
        found.update(operands_of(start))
    while pending:
        for x in near(pending.pop()):
            if x in found or kind_of(x) == kind:
                continue  # the like of it is that of another call
            if is_of_next_call(x, start, function, call_of) or is_of_next_call(start, x, function, call_of):
                continue
            if call_of(x) != function:
                is_outermost = call_of is outermost_call
                if is_outermost and is_same_function(x, function) and is_read_in_transpose(x, function):
                    return True
                continue
            found.add(x)
            pending.append(x)
            # CSE made one of what all calls compute of nothing.
            computed = is_of_program(x) or (was_division(x) and is_of_program(start))
            is_read = computed and _is_read_behind(x, function, start, call_of)
            if is_read and not is_computed_of_nothing(x, call_of):
                return True
    return False


def is_of_next_call(x: Instruction, result: Instruction, function: str, call_of: CallOf) -> bool:
    """Is `x` the same operation, given the `result` of one call and a value of outside of calls?"""
    computed = result.operands[0] if result.opcode == "bitcast" else result
    if result not in x.operands or (x.opcode, x.op_name) != (computed.opcode, computed.op_name):
        return False
    others = (o for o in x.operands if o is not result and not is_made_of_nothing(o))
    if call_of is outermost_call and is_called_once(x):
        return False
    return any(call_of(o) != function for o in others)


def _is_read_behind(x: Instruction, function: str, result: Instruction, call_of: CallOf) -> bool:
    """Is it read where the function was called? In another function the like of it may have been.

    What reads `result`, which a pass may have put behind it, does not count.
    """
    readers = list(readers_of(x, but=result))
    calls = {call_of(u) for u in readers} - {function}
    if "" in calls or ("jvp(" in function and bool(calls)):
        return True
    return x in twins_of(result) and any(_is_like_elsewhere(u, x) for u in readers)


def _is_like_elsewhere(user: Instruction, x: Instruction) -> bool:
    """Is it the same operation in another place? Then it is of another call of the function."""
    of_both = user.opcode == x.opcode and user.op_name == x.op_name
    return of_both and stack_frame(user) != stack_frame(x)


def is_read_in_transpose(x: Instruction, call: str) -> bool:
    """Was it kept for the derivative of the call?"""
    transposed = {outermost_call(u) for u in readers_of(x)} - {call}
    return any(_of_transpose(it) == call for it in transposed)


def _of_transpose(call: str) -> str:
    """The call of which this is the transpose; otherwise as it is."""
    return _TRANSPOSED.sub(r"\1", call)


def is_same_function(x: Instruction, call: str, call_of: CallOf = outermost_call) -> bool:
    """Is it of this call of a function, or of another? CSE made one of what several of them computed."""
    return _called(call_of(x)) == _called(call)


def _called(call: str) -> str:
    """The function that was called, by whatever transformation of it."""
    return call.rpartition("jit(")[2].rstrip(")")


def is_computed_of_nothing(x: Instruction, call_of: CallOf = outermost_call) -> bool:
    """Does it depend on nothing that a call is given, through element-wise operations, as an index does?

    What calls of a function compute of nothing CSE made one, whichever it was of.
    """
    found, pending, call = {x}, [x], call_of(x)
    while pending:
        x = pending.pop()
        if is_made_of_nothing(x):
            continue
        if x.opcode != "broadcast" and x.opcode not in ELEMENTWISE_OPCODES:
            return False
        if not is_same_function(x, call, call_of):
            return False
        pending += [o for o in x.operands if o not in found]
        found.update(x.operands)
    return True


def kind_of(x: Instruction) -> Hashable:
    return (x.opcode, x.op_name, tuple((o.opcode, o.op_name) for o in x.operands))
