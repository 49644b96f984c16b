"""What convolutions and matrix products read before they took additions along."""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_of_derivative, scope
from hlofuse.pipelines.names import is_of_program, stack_frame
from hlofuse.pipelines.users.common.extents import extents_apart

_OF_CONVOLUTION, _OF_PRODUCT = 3, 2
_FORWARD = frozenset({"__cudnn$convForward", "__cudnn$convBiasActivationForward"})
_ADDS = re.compile(r'"beta":(?!0[,}])')
"""What is added is scaled by beta. It need not be given up for the result: others may read it."""


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
    if is_library_product(x) and side.opcode == "bitcast":
        return [side.operands[0], *x.operands]
    return [side, *(o for o in x.operands if o is not side)]


def reads_addend_first(x: Instruction) -> bool:
    """Is it a matrix product of which a walk met the addend, its last operand, first until GemmRewriter?"""
    side = _side_input(x) if is_library_product(x) else None
    return side is not None and not _is_written_behind(x, side)


def is_read_as_addend(x: Instruction) -> bool:
    """Is it the bitcast through which a matrix product reads what it adds?"""
    return x.opcode == "bitcast" and any(is_library_product(u) and _side_input(u) is x for u in x.users)


def has_side_input(x: Instruction) -> bool:
    """Is it a convolution, or a matrix product, that adds something to what it computes?"""
    return _side_input(x) is not None


def has_bias(x: Instruction) -> bool:
    """Is it a matrix product that adds a vector to each row of what it computes?"""
    return is_library_product(x) and '"epilogue":"BIAS' in (x.attributes.raw("backend_config") or "")


def _side_input(x: Instruction) -> Instruction | None:
    side = None
    if _target(x) == "__cudnn$convBiasActivationForward" and len(x.operands) > _OF_CONVOLUTION:
        side = x.operands[_OF_CONVOLUTION]
    # A product that adds something is written where that was.
    elif is_library_product(x) and _ADDS.search(x.attributes.raw("backend_config") or ""):
        side = x.operands[_OF_PRODUCT]
    if side is None or _is_of_other_call(side):
        return None  # of two calls, the first takes the addition along
    # What a program broadcasts to the shape of the result it writes behind it.
    return None if _source(side).opcode == "broadcast" else side


def _is_of_other_call(x: Instruction) -> bool:
    """Is it what another such call computes, for this one alone?"""
    if x.opcode != "get-tuple-element" or len(x.users) > 1:
        return False
    return is_library_product(x.operands[0]) or _target(x.operands[0]) in _FORWARD


def is_library_product(x: Instruction) -> bool:
    """Is it a matrix product that cuBLAS computes?"""
    return _target(x).startswith("__cublas$")


def _target(x: Instruction) -> str:
    return str(x.attributes.get("custom_call_target")) if x.opcode == "custom-call" else ""


def _source(x: Instruction) -> Instruction:
    return x.operands[0] if x.opcode == "bitcast" else x


def _is_written_behind(call: Instruction, side: Instruction) -> bool:
    """Is what is added younger than the product, which came behind what it is computed of?"""
    read = call.operands[0]
    is_told = _is_as_written(read)
    # What a pass made of what is written there was an operation of the program, too.
    first, added = _written(read) + (not is_told), _written(side)
    if added <= first and _is_as_written(_source(side)):
        return False
    is_later = _comes_later(call, _source(side))
    return is_told and added > first if is_later is None else is_later


def _comes_later(call: Instruction, side: Instruction) -> bool | None:
    """Is what is added written further on than the `call`? A derivative goes back; None if nothing tells."""
    if side.opcode == "get-tuple-element":
        side = side.operands[0]
    if (
        call.computation is None
        or call.computation.module is None
        or is_of_derivative(call) != is_of_derivative(side)
    ):
        return None
    apart = extents_apart(call.computation.module, stack_frame(call), stack_frame(side))
    if apart is None or apart[0] == apart[1]:
        return None
    here, there = apart
    if here.encloses(there) or there.encloses(here):
        is_later = there.encloses(here)
    else:
        is_later = there.start > here.start
    return is_later != is_of_derivative(call)


def _written(x: Instruction) -> int:
    """The age of what the program computes `x` of; of what passes or calls made, the youngest behind that."""
    last, seen, behind = -1, {x}, [x]
    while behind:
        y = behind.pop()
        if _is_as_written(y):
            last = max(last, y.id)
        else:
            behind += (o for o in y.operands if o not in seen)
            seen.update(y.operands)
    return last


def _is_as_written(x: Instruction) -> bool:
    """Is its id that of the program's own operation? Ids have to be XLA's."""
    return is_of_program(x) and not scope(x) and not is_made_by_pass(x)
