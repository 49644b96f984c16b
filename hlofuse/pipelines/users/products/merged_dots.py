"""Slices that stand for what were products of their own, before DotMerger made one of several."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.products.taken_prologues import leads_to_gemm_with_prologue


def with_last_behind_merged_in_front(slice_: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a slice: the last took the place of a reshape.

    DotDecomposer had made the product a matrix with a reshape behind it. Where the slice has the reshape's
    shape already that one goes, after all of its users were appended to the slice's
    (`SimplifyConsumerChain`, `xla/hlo/transforms/simplifiers/dot_merger.cc`).
    """
    if not is_behind_merged(slice_):
        return users
    late = [u for u in users if leads_to_gemm_with_prologue(u, slice_)]
    users = [u for u in users if u not in late]
    return [*last_in_front(users), *late]


def is_behind_merged(x: Instruction) -> bool:
    """Is it such a slice?"""
    return _was_product(x) and x.operands[0].opcode == "bitcast"


def in_order_of_merged_products(users: list[Instruction]) -> list[Instruction]:
    """The users of such a merged product by age, if they stand for what was merged."""
    return sorted(users, key=lambda u: u.id) if all(map(_is_part, users)) else users


def _is_part(x: Instruction) -> bool:
    """Was it cut of a merged product? What a library computed may have the name of a transpose of it."""
    if x.opcode != "slice" or is_of_program(x):
        return False  # or it is a slice of the program that was made anew
    name = operation(x)
    return name == "dot_general" or (name == "transpose" and _is_of_call(x.operands[0]))


def _is_of_call(x: Instruction) -> bool:
    while x.opcode in {"bitcast", "convert", "get-tuple-element"}:
        x = x.operands[0]
    return x.opcode == "custom-call"


def _was_product(x: Instruction) -> bool:
    return x.opcode == "slice" and not is_of_program(x) and operation(x) == "dot_general"
