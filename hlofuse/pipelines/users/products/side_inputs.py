"""What convolutions read before they took additions along."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program

_SIDE_INPUT = 3


def operands_before_side_input(x: Instruction) -> list[Instruction]:
    """The operands with what was added to a convolution in front of it.

    In `add(x, convolution)` the walk met `x` first, and so were users listed. CudnnFusedConvRewriter
    (`xla/backends/gpu/transforms/cudnn_fused_conv_rewriter.cc`) made `x` the last operand of the library
    call. The framework adds in the order in which it made the operands.
    """
    if not has_side_input(x) or _is_written_behind(x):
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


def _is_written_behind(convolution: Instruction) -> bool:
    """Is what is added younger than what the convolution reads, of which passes made neither?"""
    read, side = convolution.operands[0], convolution.operands[_SIDE_INPUT]
    return side.id > read.id and not any(is_made_by_pass(x) or not is_of_program(x) for x in (read, side))
