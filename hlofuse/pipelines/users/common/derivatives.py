"""Which of the derivatives that are derived once more an operation belongs to, as its name tells."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def is_derived_twice(x: Instruction) -> bool:
    """Is it of the forward derivative of a forward derivative?"""
    return "/jvp(jvp(" in (x.op_name or "")


def is_on_first_way_back(x: Instruction) -> bool:
    """Is it of the way back that is derived once more, or of the derivative of that?"""
    return "jvp(transpose(jvp(" in (x.op_name or "")


def is_on_second_way_back(x: Instruction) -> bool:
    """Is it of the way back of the forward derivative that was derived?"""
    return "/transpose(jvp(jvp(" in (x.op_name or "")
