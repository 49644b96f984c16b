"""Values that a library call adds its product to, and the sums that it gives."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import without


def with_last_in_place_of_sum_in_call(
    value: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a value, a bitcast, with the last where the sum had stood.

    GemmRewriter (`xla/backends/gpu/transforms/gemm_rewriter.cc`) has the call read the value through a
    bitcast of its own, which simplification then makes one of what is behind it. `order` is the post-order.
    """
    if value.opcode != "bitcast":
        return users
    sums = [u for x in _all_of(value.operands[0]) for u in x.users if _is_added_to(x, u)]
    if len(sums) != 1 or sums[0] in users:
        return users
    place = next((k for k, u in enumerate(users) if order[u] > order[sums[0]]), len(users))
    return without([*users[:place], *sums, *users[place:]], sums)


def is_sum_in_call(x: Instruction) -> bool:
    """Is it a bitcast of what such a call gives, in place of the sum?"""
    if x.opcode != "bitcast" or x.operands[0].opcode != "get-tuple-element":
        return False
    call = x.operands[0].operands[0]
    return (
        len(call.operands) > 2 and _is_added_to(call.operands[2], call) and operation(x) in {"add", "add_any"}
    )


def _all_of(source: Instruction) -> list[Instruction]:
    """What has its elements: the source, its equals of the call that gives it, and bitcasts of them."""
    equal = [source]
    if source.opcode == "get-tuple-element":
        equal = [
            x
            for x in source.operands[0].users
            if x.opcode == "get-tuple-element" and x.tuple_index == source.tuple_index
        ]
    return [*equal, *(u for x in equal for u in x.users if u.opcode == "bitcast")]


def _is_added_to(x: Instruction, user: Instruction) -> bool:
    if user.opcode != "custom-call" or user.operands[2:3] != [x]:
        return False
    return str(user.attributes.get("custom_call_target")).startswith("__cublas$")
