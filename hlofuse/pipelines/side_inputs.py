"""The order of users before convolutions took additions along."""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction

_SIDE_INPUT = 3


def order_before_side_inputs(computation: Computation) -> dict[Instruction, int]:
    """The post-order with what was added to a convolution in front of it.

    In `add(x, convolution)` the walk met `x` first, and so were users listed. CudnnFusedConvRewriter
    (`xla/backends/gpu/transforms/cudnn_fused_conv_rewriter.cc`) made `x` the last operand of the library
    call.
    """
    order: dict[Instruction, int] = {}
    visiting: set[Instruction] = set()
    for start in computation:
        if start.users:
            continue
        stack = [start]
        while stack:
            x = stack[-1]
            if x in order or x in visiting:
                stack.pop()
                order.setdefault(x, len(order))
                continue
            visiting.add(x)
            operands = x.operands
            if has_side_input(x):
                operands = [operands[_SIDE_INPUT], *operands[:_SIDE_INPUT]]
            stack += [o for o in reversed(operands) if o not in order]
    return order


def has_side_input(x: Instruction) -> bool:
    """Is it a convolution that adds something to what it computes?"""
    return (
        x.opcode == "custom-call"
        and x.attributes.get("custom_call_target") == "__cudnn$convBiasActivationForward"
        and len(x.operands) > _SIDE_INPUT
        # What a program broadcasts to the shape of the convolution it writes behind it.
        and x.operands[_SIDE_INPUT].opcode != "broadcast"
    )
