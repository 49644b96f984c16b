"""Converts of what a function is given, within the function, and of the same in its caller.

`mean(x)` and `var(x)` both compute in single precision and give back the precision of `x`, the second within
a function. HloCSE (`xla/service/hlo_cse.cc`) keeps the convert that its walk meets first, and appends the
users of the other one.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program, stack_frame


def readers_of_own_converts(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """Those `users` of the caller's convert that read one of their function, operands first."""
    if producer.opcode != "convert" or not is_of_program(producer):
        return []
    around = outermost_call(producer)
    narrow = producer.operands[0].shape.element_type
    calls: dict[tuple[str, int], list[Instruction]] = {}
    for user in users:
        function = outermost_call(user)
        if function and function != around and is_of_program(user):
            calls.setdefault((function, stack_frame(user)), []).append(user)
    own: list[Instruction] = []
    for call in calls.values():
        if any(_is_converted_back(u, narrow) for u in call):
            own += sorted(call, key=lambda u: u.id)
    return own


def _is_converted_back(start: Instruction, narrow: str | None) -> bool:
    """Does the function make the type `narrow` of what it computes of `start`?"""
    function, frame = outermost_call(start), stack_frame(start)
    found, pending = {start}, [start]
    while pending:
        for u in pending.pop().users:
            if u in found or outermost_call(u) != function or stack_frame(u) != frame:
                continue
            if u.opcode == "convert" and u.shape.element_type == narrow:
                return True
            found.add(u)
            pending.append(u)
    return False
