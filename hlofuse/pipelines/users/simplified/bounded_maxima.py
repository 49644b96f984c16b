"""Maxima that were bounded by minus infinity, which changes nothing."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_bound(maximum: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `maximum`, with the last of them in place of `max(maximum, -inf)`, which they read.

    The framework's sum of exponentials starts from minus infinity, and replaces a maximum that is not finite.
    Over a dimension of one element it is no reduction any more. A softmax of the same has a maximum without a
    bound: HloCSE made them one when the bound had gone, and put the users of the other behind.
    (`HandleMaximum`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`.)
    """
    source = maximum.operands[0] if maximum.opcode == "bitcast" else maximum
    if source.opcode not in {"reduce", "maximum"} or operation(source) != "reduce_max":
        return users
    # Where numbers are narrow a convert may have been put in front of either since.
    read = {u: u.users if u.opcode == "convert" and not u.op_name else [u] for u in users}
    finite = {v for of in read.values() for v in of if v.opcode == "is-finite" and is_of_program(v)}
    chosen = [u for u in users if any(v.opcode == "select" and v.operands[0] in finite for v in read[u])]
    if not chosen:
        return users
    places = {stack_frame(v) for v in finite}
    within = [u for u in users if any(stack_frame(v) in places for v in read[u])]
    others = [u for u in users if u not in within]
    if within[0] not in chosen:
        within = last_in_front(within)
    return [*within, *others] if stack_frame(maximum) in places else [*others, *within]
