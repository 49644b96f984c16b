"""Transposes that DotMerger made for operands of merged products, of what is behind all reshapes."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming
from hlofuse.pipelines.users.products.merged_dots import parts_of_merged, starts_of_part
from hlofuse.pipelines.users.products.reshaped_products import (
    PRODUCTS,
    computed_by,
    is_bitcast_of_product,
)


def with_transposes_of_merger_behind(
    product: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of the bitcast of a product with such transposes last; they have no name of the framework's.

    The operand had been a reshape of the program's transpose, which stays for others
    (`xla/hlo/transforms/simplifiers/dot_merger.cc`). A sum over it reads the product itself since
    simplification (`HandleReduce`), a user in between. `order` is the post-order.
    """
    if product.opcode == "convert":
        return _with_turned_behind(users)
    if not is_bitcast_of_product(product) or computed_by(product.operands[0]).opcode not in PRODUCTS:
        return _with_merged_behind(users)
    if any(u.opcode not in {"fusion", "reduce", "transpose"} for u in users):
        return users
    made = [u for u in users if u.opcode == "transpose" and not u.op_name]
    transposes = [u for u in users if u.opcode == "transpose" and u not in made]
    sums = [u for u in users if u.opcode == "reduce"]
    gemms = [u for u in users if u.opcode == "fusion"]
    if gemms and made and not transposes:
        # The operand was reshaped at once, and nothing but that reshape has gone.
        is_told = all(is_of_program(u) and u.id < made[0].id for u in sums)
        return [*(u for u in users if u not in made), *made] if is_told else users
    if not made or not transposes or gemms:
        return users
    # One behind may have taken the place of a transpose that was the operand alone, in front of the sum.
    is_told = users.index(made[0]) < users.index(transposes[-1])
    if not is_told and not all(_is_older_sum(u, made[0], order) for u in sums):
        return users
    return [*transposes, *sums, *made]


def _with_merged_behind(users: list[Instruction]) -> list[Instruction]:
    """Transposes of another value: those for merged products last, as these were made.

    DotMerger looked through transposes of the program, which stay for others, and so was a new user of what
    is behind them (`SimplifyConsumerChain`). LayoutAssignment copied that for each product.
    """
    if any(u.opcode != "transpose" for u in users):
        return users
    made = {u: parts for u in users if not u.op_name and (parts := parts_of_merged(_reader_of(u)))}
    others = [u for u in users if u not in made]
    if not made or not all(u.op_name for u in others):
        return users
    return [*others, *sorted(made, key=lambda u: min(x.id for x in made[u]))]


def _reader_of(x: Instruction) -> Instruction:
    """The one that reads it, through bitcasts; what several read itself."""
    while len(x.users) == 1 and x.opcode in {"bitcast", "transpose"}:
        (x,) = x.users
    return x


def _with_turned_behind(users: list[Instruction]) -> list[Instruction]:
    """Those of a product made narrow: the transpose of the program, which lost its name, and the one made.

    ConvertMover (`xla/hlo/transforms/simplifiers/convert_mover.cc`) took the former behind the convert.
    It has the batch in front; the one made is that as a matrix, turned.
    """
    if len(users) != 2 or any(u.opcode != "transpose" or u.op_name for u in users):
        return users
    first, second = (list(u.dimensions) for u in users)
    is_turned = any(first[k:] + first[:k] == second for k in range(1, len(first)))
    return users[::-1] if is_turned and first[0] and not second[0] else users


def _is_older_sum(reduce: Instruction, made: Instruction, order: dict[Instruction, int]) -> bool:
    """Did the sum read the product before DotMerger made `made`?

    What it was split into has its place. The simplifier came by it or by the operand first, as by what is
    computed of them.
    """
    if _is_first_step(reduce):
        part = _part_of(made)
        return part is not None and order[reduce] < order[part]
    # Only a sum over what was reshaped has lost its name.
    return name_before_renaming(reduce).root == "reduce" and reduce.id < made.id


def _is_first_step(reduce: Instruction) -> bool:
    """Did ReductionSplitter (`xla/backends/gpu/transforms/reduction_splitter.cc`) make two of one?"""
    return any(u.opcode == "reduce" and u.op_name == reduce.op_name for u in reduce.users)


def _part_of(operand: Instruction) -> Instruction | None:
    """The part of the merged product that is that of `operand`."""
    x, place = operand, 0
    while x.opcode != "slice":
        if len(x.users) != 1:
            parts = sorted((u for u in x.users if u.opcode == "slice"), key=starts_of_part)
            return parts[place] if len(parts) == len(x.users) > place else None
        reader = x.users[0]
        if reader.opcode == "fusion":
            place = _place_in_concatenate(reader.fused_computation.parameters[reader.operands.index(x)])
        elif reader.opcode == "concatenate":
            place = reader.operands.index(x)
        x = reader
    return x


def _place_in_concatenate(x: Instruction) -> int:
    while len(x.users) == 1:
        reader = x.users[0]
        if reader.opcode == "concatenate":
            return reader.operands.index(x)
        x = reader
    return 0
