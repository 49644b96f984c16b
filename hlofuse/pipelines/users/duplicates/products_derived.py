"""Products that the program computes again, as their derivatives tell.

The way back through a product multiplies by either factor, in the place where the product is written. Where
no product of those factors is there any more, HloCSE (`xla/service/hlo_cse.cc`) made it one with another.
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import is_of_program, operation, stack_frame


def derived_again(computation: Computation) -> dict[Instruction, int]:
    """By product of a forward derivative how many equal to it are gone."""
    products = [x for x in computation if _is_product(x)]
    forward = {stack_frame(x) for x in products if not is_of_derivative(x)}
    back: dict[int, list[Instruction]] = {}
    for x in products:
        if is_of_derivative(x) and stack_frame(x) not in forward:
            back.setdefault(stack_frame(x), []).append(x)
    gone: dict[frozenset[Instruction], int] = {}
    for read in back.values():
        for factors in _factors_read(read):
            gone[factors] = gone.get(factors, 0) + 1
    return {
        x: gone[factors]
        for x in products
        if not is_of_derivative(x)
        and "jvp(" in (x.op_name or "")
        and (factors := frozenset(x.operands)) in gone
    }


def _factors_read(back: list[Instruction]) -> set[frozenset[Instruction]]:
    """What the factors of a product may have been that the way `back` multiplies by; a square has one."""
    if len(back) == 1:
        return {frozenset((factor,)) for factor in back[0].operands}
    if len(back) > 2:
        return set()
    one, other = (set(x.operands) for x in back)
    return {frozenset((a, b)) for a in one - other for b in other - one}


def _is_product(x: Instruction) -> bool:
    return x.opcode == "multiply" and operation(x) == "mul" and is_of_program(x) and stack_frame(x) > 0
