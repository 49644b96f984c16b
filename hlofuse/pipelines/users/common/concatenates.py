"""Concatenates of concatenates, which became one.

DynamicDimensionSimplifier makes `concat(concat(a, b), c)` into `concat(a, b, c)`
(`xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.cc`) when calls have been inlined, ahead of CSE.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program


def is_of_merged(outer: Instruction) -> bool:
    """Is it such a one, made anew for what was there already?"""
    if outer.opcode != "concatenate" or not is_of_program(outer):
        return False
    if outer.users and not any(u.id < outer.id for u in outer.users):
        return False  # of a result that nothing reads ids do not tell
    others = {u for o in outer.operands for u in o.users if u.opcode == outer.opcode}
    return any(_is_around(outer, inner) for inner in others)


def outer_ones(inner: Instruction) -> list[Instruction]:
    """Those that read `inner`, of the program; what read one of them has all of its operands, too."""
    if inner.opcode != "concatenate" or not is_of_program(inner):
        return []
    around = dict.fromkeys(u for u in inner.operands[0].users if _is_around(u, inner))
    return [x for x in around if not any(_is_around(x, y) for y in around)]


def _is_around(x: Instruction, inner: Instruction) -> bool:
    """Has the concatenate `x` all operands of `inner`, one behind the other, and more?"""
    if x.opcode != inner.opcode or len(x.operands) <= len(inner.operands):
        return False
    run = inner.operands
    starts = range(len(x.operands) - len(run) + 1)
    return x.dimensions == inner.dimensions and any(x.operands[k : k + len(run)] == run for k in starts)
