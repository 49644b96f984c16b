"""Functions that give back what they are given, as `jnp.pad` does where it pads by nothing.

`sum(jnp.pad(x[i:], (0, i)) for i in range(n))` calls it for `x` itself first. CallInliner
(`xla/service/call_inliner.cc`) gives the reader of such a call its operand: it is appended to the users of
that, and takes the place of the call, the last filling the hole.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.extents import callers_of


def with_reader_in_place_of_call(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` with what reads such a call of `producer` in front of the slice the next call was given."""
    for u in users:
        if u.opcode == "add" and len(u.operands) == 2 and u.operands[0] is producer:
            given = _given_to_next(u, producer)
            if given in users:
                others = [v for v in users if v is not u]
                place = others.index(given)
                return [*others[:place], u, *others[place:]]
    return users


def _given_to_next(total: Instruction, first: Instruction) -> Instruction | None:
    """The slice of `first` that was padded, in a call from the place of `total`, for the second summand."""
    second = total.operands[1]
    if second.opcode != "pad" or not outermost_call(second) or outermost_call(total):
        return None
    given = second.operands[0]
    if given.opcode != "slice" or given.operands[0] is not first or first.shape != total.shape:
        return None
    return given if stack_frame(total) in callers_of(second) else None
