"""What convolutions read before they took additions along."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction

_SIDE_INPUT = 3


def operands_before_side_input(x: Instruction) -> list[Instruction]:
    """The operands with what was added to a convolution in front of it.

    In `add(x, convolution)` the walk met `x` first, and so were users listed. CudnnFusedConvRewriter
    (`xla/backends/gpu/transforms/cudnn_fused_conv_rewriter.cc`) made `x` the last operand of the library
    call.
    """
    if not has_side_input(x):
        return x.operands
    side = x.operands[_SIDE_INPUT]
    return [side, *(o for o in x.operands if o is not side)]


def has_side_input(x: Instruction) -> bool:
    """Is it a convolution that adds something to what it computes?"""
    return (
        x.opcode == "custom-call"
        and x.attributes.get("custom_call_target") == "__cudnn$convBiasActivationForward"
        and len(x.operands) > _SIDE_INPUT
        # What a program broadcasts to the shape of the convolution it writes behind it.
        and x.operands[_SIDE_INPUT].opcode != "broadcast"
    )
