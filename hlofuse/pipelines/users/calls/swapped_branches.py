"""Conditionals on a predicate that were conditionals on an index, of two branches.

AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`, `HandleConditional`) takes the
predicate behind a converted one: the branch for 0, which came first, is that of a predicate that is false.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming


def operands_before_swap(x: Instruction) -> list[Instruction] | None:
    """What the conditional `x` read in the program, in its order; None where that is not another.

    Where both operands are of the program, their numbers tell.
    """
    if x.opcode != "conditional" or x.operands[0].shape.element_type != "pred":
        return None
    condition, on_true, on_false = x.operands
    true, false = name_before_renaming(on_true), name_before_renaming(on_false)
    is_told = is_of_program(on_true) and is_of_program(on_false) and true.root == false.root
    if is_told and true.number < false.number:
        return None
    return [condition, on_false, on_true]
