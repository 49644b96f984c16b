"""Slices of running sums, which are taken of what ReduceWindowRewriter computes since.

ReduceWindowRewriter (`xla/hlo/transforms/simplifiers/reduce_window_rewriter.cc`) pads what is summed and cuts
the sums to size, once functions have been inlined. Of a slice of that AlgebraicSimplifier makes one slice of
what was cut (`HandleSlice`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.ages import is_in_nameless_function


def is_cut_from_windows(x: Instruction) -> bool:
    """Is it such sums cut to size? It bears the name of what reads it."""
    if x.opcode != "slice" or is_of_program(x):
        return False
    (sums,) = x.operands
    while sums.opcode == "bitcast" and not sums.op_name:
        (sums,) = sums.operands
    return is_in_nameless_function(sums)


def slices_of_windows(producer: Instruction) -> list[Instruction]:
    """What the program has for slices of `producer`, if that is cut from windows."""
    if not is_cut_from_windows(producer):
        return []
    return [u for u in producer.operands[0].users if u is not producer and _is_within(u, producer)]


def with_those_of_program(
    users: list[Instruction], slices: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The `users` with the `slices` where the program has them, by post-order."""
    for x in slices:
        place = sum(order[u] < order[x] for u in users)
        users = [*users[:place], x, *users[place:]]
    return users


def _is_within(x: Instruction, around: Instruction) -> bool:
    if x.opcode != "slice" or not is_of_program(x):
        return False
    cut, whole = x.attributes["slice"], around.attributes["slice"]
    bounds = zip(cut.starts, cut.limits, whole.starts, whole.limits, strict=True)
    return all(start <= s and e <= end for s, e, start, end in bounds)
