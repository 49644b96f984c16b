"""Slices that stand for what were products of their own, before DotMerger made one of several."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.products.taken_along import leads_to_gemm_with_prologue


def with_last_behind_merged_in_front(slice_: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a slice: the last took the place of a reshape.

    DotDecomposer had made the product a matrix with a reshape behind it. Where the slice has the reshape's
    shape already that one goes, after all of its users were appended to the slice's
    (`SimplifyConsumerChain`, `xla/hlo/transforms/simplifiers/dot_merger.cc`).
    """
    if not _was_product(slice_) or slice_.operands[0].opcode != "bitcast":
        return users
    late = [u for u in users if leads_to_gemm_with_prologue(u, slice_)]
    users = [u for u in users if u not in late]
    return [*users[-1:], *users[:-1], *late]


def in_order_of_merged_products(users: list[Instruction]) -> list[Instruction]:
    """The users of such a merged product by age, if they stand for what was merged."""
    return sorted(users, key=lambda u: u.id) if all(map(_is_part, users)) else users


def _is_part(x: Instruction) -> bool:
    """Was it cut of a merged product? A transpose folded into that has left its name to all."""
    if x.opcode != "slice" or is_of_program(x):
        return False
    (product,) = x.operands
    made = product.operands[0] if product.opcode == "get-tuple-element" else product
    return operation(x) == "dot_general" or (made.opcode == "custom-call" and made.op_name == x.op_name)


def in_order_of_parts_of_call(users: list[Instruction]) -> list[Instruction]:
    """The same where products were transposed in the program: their parts bear the name of that."""
    return sorted(users, key=lambda u: u.id) if all(map(_is_part_of_call, users)) else users


def _is_part_of_call(x: Instruction) -> bool:
    """Is it a slice, made by a pass for a product or its transpose, of what a library computed?"""
    if x.opcode != "slice" or is_of_program(x) or operation(x) not in {"dot_general", "transpose"}:
        return False  # or it is a slice of the program that was made anew
    source = x.operands[0]
    while source.opcode in {"bitcast", "convert", "get-tuple-element"}:
        source = source.operands[0]
    return source.opcode == "custom-call"


def _was_product(x: Instruction) -> bool:
    return x.opcode == "slice" and not is_of_program(x) and operation(x) == "dot_general"
