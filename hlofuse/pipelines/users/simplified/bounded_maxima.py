"""Maxima that were bounded by minus infinity, which changes nothing."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_bound(maximum: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `maximum`, with the last of them in place of `max(maximum, -inf)`, which they read.

    The framework's sum of exponentials starts from minus infinity, and replaces a maximum that is not finite.
    Over a dimension of one element it is no reduction any more.
    (`HandleMaximum`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`.)
    """
    source = maximum.operands[0] if maximum.opcode == "bitcast" else maximum
    if source.opcode not in {"reduce", "maximum"} or operation(source) != "reduce_max":
        return users
    # Where numbers are narrow a convert may have been put in front of either since.
    read = {u: u.users if u.opcode == "convert" and not u.op_name else [u] for u in users}
    finite = {v for of in read.values() for v in of if v.opcode == "is-finite" and is_of_program(v)}
    chosen = [u for u in users if any(v.opcode == "select" and v.operands[0] in finite for v in read[u])]
    return users if not chosen or users[0] in chosen else last_in_front(users)
