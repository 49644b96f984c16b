"""Sums with zeros of which a part was updated, as the gradient of a slice taken at an index is.

AlgebraicSimplifier (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) adds to that part
of the other summand alone: it takes a slice, and puts the sum in its place.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def with_updates_in_place_of_sums(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of the other summand or of the index, with such slices behind and their updates in front.

    Both were appended, then the last took the place of the sum, or of the update of zeros. A bitcast was a
    reshape for each that read one: the two had theirs for themselves.
    """
    for update in [u for u in users if u.opcode == "dynamic-update-slice"]:
        part = _part_added_to(update)
        if part in users:
            at = min(users.index(part), users.index(update))
            others = [u for u in users if u is not part and u is not update]
            if producer.opcode == "bitcast":
                users = [*others[:at], update, part, *others[at:]]
            else:
                users = [*others[:at], update, *others[at:], part]
    return users


def _part_added_to(update: Instruction) -> Instruction | None:
    """The slice that the `update` puts back with something added to it, if that was a sum of the whole.

    The slice has the name of what it is taken of then, and the sum that of the update of zeros.
    """
    whole, total, *place = update.operands
    if total.opcode != "add" or operation(total) == operation(update):
        return None
    for part in total.operands:
        if part.opcode == "dynamic-slice" and part.operands == [whole, *place]:
            return part if part.op_name and part.op_name == whole.op_name else None
    return None
