"""Products of the divisors of what was divided twice.

AlgebraicSimplifier makes `(a / b) / c` into `a / (b * c)` (`HandleDivide`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and gives the product no metadata.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def is_made_for(product: Instruction, division: Instruction) -> bool:
    """Was the `product` made for that `division`, which alone reads it?"""
    if product.opcode != "multiply" or product.op_name or product.users != [division]:
        return False
    return name_before_renaming(product).root == product.opcode


def was_divisors(x: Instruction) -> bool:
    """Is it such a product?"""
    return bool(x.users) and x.users[0].opcode == "divide" and is_made_for(x, x.users[0])
