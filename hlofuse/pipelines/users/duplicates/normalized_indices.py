"""Indices that count from the end where they are negative: `select(i < 0, i + n, i)`."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.constants import is_constant
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses


def with_signs_of_index_merged(index: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of an `index` of several dimensions, given that each had a comparison with zero.

    The framework writes comparison, sum and select for each of them. HloCSE (`xla/service/hlo_cse.cc`) keeps
    the comparison that its walk meets first; the last user takes the place of each other one.
    """
    listed = users
    for sign in users:
        if sign.opcode != "compare" or len(sign.users) < 2 or not is_constant(sign.operands[1]):
            continue
        sums = {s for u in users for s in [_sum_of_index(u, sign, index)] if s in users}
        others = sorted(sums, key=lambda s: uses[index, s])[1:]
        with_own = [(u, own) for u in listed for own in ((True, False) if u in others else (False,))]
        listed = [u for u, _ in without(with_own, [(s, True) for s in others])]
    return listed


def _sum_of_index(selected: Instruction, sign: Instruction, index: Instruction) -> Instruction:
    """What is selected where the index is negative; `index` itself for another operation."""
    if selected.opcode != "select" or selected.operands[0] is not sign or selected.operands[2] is not index:
        return index
    moved = selected.operands[1]
    return moved if moved.opcode == "add" and moved.operands[0] is index else index
