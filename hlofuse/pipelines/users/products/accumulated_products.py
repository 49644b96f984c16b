"""Results of library calls that another call adds its product to."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without


def with_last_in_place_of_sum_in_call(
    result: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a result, a bitcast of what the call gives, with the last where the sum had stood.

    GemmRewriter (`xla/backends/gpu/transforms/gemm_rewriter.cc`) has the other call read the result through a
    bitcast of its own, which simplification then makes one of what is behind it. `order` is the post-order.
    """
    if result.opcode != "bitcast" or result.operands[0].opcode != "get-tuple-element":
        return users
    call = result.operands[0].operands[0]
    if call.opcode != "custom-call":
        return users
    elements = [x for x in call.users if x.opcode == "get-tuple-element" and x.tuple_index == 0]
    sums = [u for x in elements for u in x.users if u.opcode == "custom-call" and u.operands[2:3] == [x]]
    if len(sums) != 1:
        return users
    return without(sorted([*users, *sums], key=order.__getitem__), sums)
