"""Does fusing an operation into a matrix product pay? (`IsInputWorthFusing`, `IsOutputWorthFusing`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction

_TOLERANCE = 1024
"""Bytes by which a fusion's traffic may grow."""


def is_worth_as_input(hlo: Instruction) -> bool:
    """`IsInputWorthFusing`."""
    growth = _input_minus_output(hlo)
    if growth is None:
        return False
    if growth <= _TOLERANCE:
        return True
    if len(hlo.users) > 1:
        return False
    if hlo.opcode == "slice":
        if all(o.opcode in ("parameter", "constant") for o in hlo.operands):
            return True
        operand = hlo.operands[0]
        while operand.opcode in ("bitcast", "transpose", "reshape") and len(operand.users) == 1:
            operand = operand.operands[0]
        if len(operand.users) > 1 and not _only_like_slices(operand, hlo) and _is_cheap_to_repeat(operand):
            return True
    if hlo.opcode == "multiply":
        return False
    return all(o.opcode in ("parameter", "constant") and len(o.users) <= 1 for o in hlo.operands)


def is_worth_as_output(hlo: Instruction) -> bool:
    """`IsOutputWorthFusing`."""
    growth = _input_minus_output(hlo)
    if growth is None:
        return False
    if hlo.is_root or (len(hlo.users) == 1 and hlo.users[0].is_root and hlo.users[0].opcode == "tuple"):
        return True
    return growth >= -_TOLERANCE


def _input_minus_output(hlo: Instruction) -> int | None:
    if hlo.shape.is_tuple or any(o.shape.is_tuple for o in hlo.operands):
        return None
    return sum(o.shape.byte_size for o in hlo.operands) - hlo.shape.byte_size


def _only_like_slices(operand: Instruction, hlo: Instruction) -> bool:
    return all(u.opcode == "slice" and u.shape.dimensions == hlo.shape.dimensions for u in operand.users)


def _is_cheap_to_repeat(operand: Instruction) -> bool:
    if operand.opcode in ("parameter", "constant") or is_elementwise(operand):
        return True
    return all(u.opcode == "slice" for u in operand.users)
