"""What convolutions and matrix products read before they took additions along."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program

_OF_CONVOLUTION, _OF_PRODUCT = 3, 2


def operands_before_side_input(x: Instruction) -> list[Instruction]:
    """The operands with what was added to a convolution, or to a matrix product, in front of it.

    In `add(x, convolution)` the walk met `x` first, and so were users listed. CudnnFusedConvRewriter
    (`xla/backends/gpu/transforms/cudnn_fused_conv_rewriter.cc`) made `x` the last operand of the library
    call, as did GemmRewriter (`xla/backends/gpu/transforms/gemm_rewriter.cc`), which may read it through a
    bitcast: that stands where the sum was. The framework adds in the order in which it made the operands.
    """
    side = _side_input(x)
    if side is None or _is_written_behind(x, side):
        return x.operands
    if _is_product(x) and side.opcode == "bitcast":
        return [side.operands[0], *x.operands]
    return [side, *(o for o in x.operands if o is not side)]


def reads_addend_first(x: Instruction) -> bool:
    """Is it a matrix product of which a walk met the addend, its last operand, first until GemmRewriter?"""
    side = _side_input(x) if _is_product(x) else None
    return side is not None and not _is_written_behind(x, side)


def is_read_as_addend(x: Instruction) -> bool:
    """Is it the bitcast through which a matrix product reads what it adds?"""
    return x.opcode == "bitcast" and any(_is_product(u) and _side_input(u) is x for u in x.users)


def has_side_input(x: Instruction) -> bool:
    """Is it a convolution, or a matrix product, that adds something to what it computes?"""
    return _side_input(x) is not None


def _side_input(x: Instruction) -> Instruction | None:
    side = None
    if _target(x) == "__cudnn$convBiasActivationForward" and len(x.operands) > _OF_CONVOLUTION:
        side = x.operands[_OF_CONVOLUTION]
    # A product that adds something is written where that was.
    elif _is_product(x) and "output_to_operand_aliasing" in x.attributes:
        side = x.operands[_OF_PRODUCT]
        if _is_other_product(side):
            return None  # of two, the first takes the addition along
    # What a program broadcasts to the shape of the result it writes behind it.
    return None if side is None or _source(side).opcode == "broadcast" else side


def _is_other_product(x: Instruction) -> bool:
    return x.opcode == "get-tuple-element" and _is_product(x.operands[0]) and len(x.users) == 1


def _is_product(x: Instruction) -> bool:
    return _target(x).startswith("__cublas$")


def _target(x: Instruction) -> str:
    return str(x.attributes.get("custom_call_target")) if x.opcode == "custom-call" else ""


def _source(x: Instruction) -> Instruction:
    return x.operands[0] if x.opcode == "bitcast" else x


def _is_written_behind(call: Instruction, side: Instruction) -> bool:
    """Is what is added younger than what is computed of, of which passes made neither?"""
    read = call.operands[0]
    return side.id > read.id and not any(is_made_by_pass(x) or not is_of_program(x) for x in (read, side))
