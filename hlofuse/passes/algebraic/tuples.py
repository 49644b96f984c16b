"""Elements of tuples, and barriers around them."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make


def handle_get_tuple_element(c: Context, x: Instruction) -> None:
    source = x.operands[0]
    if source.opcode == "tuple":
        c.replace_if_compatible(x, source.operands[x.tuple_index])


def handle_barrier(c: Context, barrier: Instruction) -> None:
    """Elements nobody reads behind the barrier do not go through it."""
    users = barrier.users
    if not barrier.shape.is_tuple or barrier.is_root or any(u.opcode != "get-tuple-element" for u in users):
        return
    used = {u.tuple_index for u in users}
    operand = barrier.operands[0]
    elements = operand.operands if operand.opcode == "tuple" else []
    for k, e in enumerate(elements):
        if len(e.users) > 1 or e.is_root or has_side_effect(e):
            used.add(k)
    kept = sorted(used)
    if len(kept) == len(barrier.shape.tuple_shapes):
        return
    parts = [elements[k] if elements else make.get_tuple_element(barrier, operand, k) for k in kept]
    new = make.tuple_of(operand, parts)
    barrier.replace_operand(0, new)
    barrier.shape = new.shape
    for user in users:
        set_tuple_index(user, kept.index(user.tuple_index))
    c.changed = True
