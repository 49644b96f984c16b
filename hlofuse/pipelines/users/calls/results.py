"""Whether a call has other results than one that is read outside of it: it ended in a tuple then."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TypeAlias

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_called_once, outermost_call
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.calls.clones import is_element, operands_of, readers_of, twins_of
from hlofuse.pipelines.users.calls.derived_choices import choice_in_front
from hlofuse.pipelines.users.common.ages import was_division, was_product_with_predicate
from hlofuse.pipelines.users.common.constants import is_made_of_nothing

_TRANSPOSED = re.compile(r"(?<![^/])transpose\((jvp\([^/]*\))\)(?=/|$)")


CallOf: TypeAlias = "Callable[[Instruction], str]"
"""Which call something is of; "" for none."""


class Results:
    """Asks of the calls in one computation, and keeps what several of them come across."""

    def __init__(self) -> None:
        self._readers: dict[tuple[Instruction, str, bool], bool] = {}

    def has_others(self, result: Instruction, function: str, call_of: CallOf = outermost_call) -> bool:
        """Does anything else that the same call computed have users outside?"""
        if result.opcode == "sort" and result.shape.is_tuple:
            return False  # its elements are read, wherever
        if result.opcode == "select" and _is_derived(result):
            return True
        ways = (operands_of, readers_of, twins_of)
        return any(self._reaches_result(result, function, near, call_of) for near in ways)

    def _reaches_result(
        self,
        start: Instruction,
        function: str,
        near: Callable[[Instruction], Iterable[Instruction]],
        call_of: CallOf,
    ) -> bool:
        opcode, op_name, kind = start.opcode, start.op_name, kind_of(start)
        found, pending = {start}, [start]
        # That is the same result. Of what a library's matrix product reads the last is in front all the same.
        if opcode == "bitcast" and all(u.opcode != "custom-call" for u in start.users):
            found.update(operands_of(start))
        while pending:
            for x in near(pending.pop()):
                if x in found:
                    continue
                if x.opcode == opcode and x.op_name == op_name and kind_of(x) == kind:
                    continue  # the like of it is that of another call
                if is_of_next_call(x, start, function, call_of):
                    continue
                if is_of_next_call(start, x, function, call_of):
                    continue
                if call_of(x) != function:
                    is_outermost = call_of is outermost_call
                    if is_outermost and is_same_function(x, function) and is_read_in_transpose(x, function):
                        return True
                    continue
                found.add(x)
                pending.append(x)
                if not self._is_read_behind(x, function, start, call_of):
                    continue
                computed = is_of_program(x) or (was_division(x) and is_of_program(start))
                # CSE made one of what all calls compute of nothing.
                if computed and not is_computed_of_nothing(x, call_of):
                    return True
        return False

    def _is_read_behind(self, x: Instruction, function: str, result: Instruction, call_of: CallOf) -> bool:
        """Is it read where the function was called? In another function the like of it may have been.

        What reads `result`, which a pass may have put behind it, does not count.
        """
        key = (x, function, call_of is outermost_call)
        is_read = self._readers.get(key)
        if is_read is None:
            is_read = self._readers[key] = _is_read_outside(x, function, call_of)
        if is_read and any(o is x or is_element(o) for o in result.operands):
            is_read = _is_read_outside(x, function, call_of, but=result)
        if is_read:
            return True
        if x.op_name != result.op_name or x not in twins_of(result):
            return False
        return any(_is_like_elsewhere(u, x) for u in readers_of(x, but=result))


def _is_derived(choice: Instruction) -> bool:
    """Is there a derivative of it that was given another result of the call?"""
    return any(choice_in_front(u) is choice for u in choice.operands[0].users)


def is_of_next_call(x: Instruction, result: Instruction, function: str, call_of: CallOf) -> bool:
    """Is `x` the same operation, given the `result` of one call and a value of outside of calls?"""
    if result not in x.operands:
        return False
    computed = result.operands[0] if result.opcode == "bitcast" else result
    if (x.opcode, x.op_name) != (computed.opcode, computed.op_name):
        return False
    others = (o for o in x.operands if o is not result and not is_made_of_nothing(o))
    if call_of is outermost_call and is_called_once(x):
        return False
    return any(call_of(o) != function for o in others)


def _is_read_outside(x: Instruction, function: str, call_of: CallOf, but: Instruction | None = None) -> bool:
    """Is it read where the function was called, or in another call of its derivative?"""
    is_derivative = "jvp(" in function
    for user in readers_of(x, but=but):
        if was_product_with_predicate(user):
            continue  # by the number that is made of it
        call = call_of(user)
        if not call or (is_derivative and call != function):
            return True
    return False


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
