"""Indices that count from the end where they are negative: `select(i < 0, i + n, i)`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import last_at, without
from hlofuse.pipelines.users.common.visits import Uses

_OF_INDICES = frozenset({"s8", "s16", "s32", "s64"})


def with_signs_of_index_merged(index: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of an `index` of several dimensions, given that each had a comparison with zero.

    The framework writes comparison, sum and select for each of them, wherever it is used. HloCSE
    (`xla/service/hlo_cse.cc`) keeps the comparison that its walk meets first, and of what is equal the rest
    as well; the last user takes the place of each other one.
    """
    if index.shape.element_type not in _OF_INDICES:
        return users
    listed = users
    for sign in users:
        if sign.opcode != "compare" or len(sign.users) < 2 or not is_constant(sign.operands[1]):
            continue
        sums = {s for u in users for s in [_sum_of_index(u, sign, index)] if s in users}
        others = sorted(sums, key=lambda s: uses[index, s])[1:]
        signs: list[Hashable] = [("sign of", s) for s in others]
        with_own = [x for u in listed for x in ([("sign of", u), u] if u in others else [u])]
        listed = [u for u in without(with_own, signs) if isinstance(u, Instruction)]
    return listed


def with_sign_of_bounded_gone(
    zeros: Instruction, users: list[Instruction], order: Mapping[Instruction, int]
) -> list[Instruction]:
    """The users of `zeros`, given that an index that is at least 0 was compared with them.

    AlgebraicSimplifier (`HandleCompare`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) knows that
    it is not negative; the last user takes the place of the comparison.
    """
    for bounded in users:
        if bounded.opcode == "maximum" and bounded.operands[0] is zeros and _is_index(bounded):
            behind = [k for k, u in enumerate(users) if order[u] > order[bounded]]
            users = last_at(users, min(behind, default=len(users)))
    return users


def _is_index(x: Instruction) -> bool:
    readers = [v for u in x.users for v in (u.users if u.opcode == "bitcast" else [u])]
    return x.shape.element_type in _OF_INDICES and any(v.opcode in {"gather", "scatter"} for v in readers)


def _sum_of_index(selected: Instruction, sign: Instruction, index: Instruction) -> Instruction:
    """What is selected where the index is negative; `index` itself for another operation."""
    if selected.opcode != "select" or selected.operands[0] is not sign or selected.operands[2] is not index:
        return index
    moved = selected.operands[1]
    return moved if moved.opcode == "add" and moved.operands[0] is index else index
