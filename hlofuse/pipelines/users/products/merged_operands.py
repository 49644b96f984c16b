"""Transposes that DotMerger made for operands of merged products, of what is behind all reshapes."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming
from hlofuse.pipelines.users.products.reshaped_products import PRODUCTS, is_bitcast_of_product


def with_transposes_of_merger_behind(
    product: Instruction, users: list[Instruction], *, ids_known: bool
) -> list[Instruction]:
    """The users of the bitcast of a product with such transposes last; they have no name of the framework's.

    The operand had been a reshape of the program's transpose, which stays for others
    (`xla/hlo/transforms/simplifiers/dot_merger.cc`). A sum over it reads the product itself since
    simplification (`HandleReduce`), a user in between.
    """
    if not is_bitcast_of_product(product):
        return users
    source = product.operands[0]
    if source.opcode not in PRODUCTS or any(u.opcode not in {"fusion", "reduce", "transpose"} for u in users):
        return users
    made = [u for u in users if u.opcode == "transpose" and not u.op_name]
    transposes = [u for u in users if u.opcode == "transpose" and u not in made]
    sums = [u for u in users if u.opcode == "reduce"]
    gemms = [u for u in users if u.opcode == "fusion"]
    if gemms and made and not transposes:
        # The operand was reshaped at once, and nothing but that reshape has gone.
        is_told = ids_known and all(is_of_program(u) and u.id < made[0].id for u in sums)
        return [*(u for u in users if u not in made), *made] if is_told else users
    if not made or not transposes or gemms:
        return users
    # One behind may have taken the place of a transpose that was the operand alone, in front of the sum.
    is_told = users.index(made[0]) < users.index(transposes[-1])
    if not is_told and not (ids_known and all(_was_of_reshape(u) and u.id < made[0].id for u in sums)):
        return users
    return [*transposes, *sums, *made]


def _was_of_reshape(reduce: Instruction) -> bool:
    """Only a sum over what was reshaped has lost its name."""
    return name_before_renaming(reduce).root == "reduce"
