"""Results that are copied into the layout that the entry gives them back in.

LayoutAssignment takes the tuple at the root apart for that and makes another one of the copies
(`CreateCopyWithNewLayout` of `xla/service/layout_assignment.cc`). So LayoutNormalization comes to the copies,
of which it makes transpositions, when it has been through all else.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def apart_from_copied_results(made: list[Instruction]) -> tuple[list[Instruction], list[Instruction]]:
    """What LayoutNormalization `made`, and of that the copies, which have no op_name: they come behind."""
    copies = [x for x in made if x.opcode == "transpose" and not x.op_name and _is_for_result(x)]
    copied = frozenset(copies)
    return [x for x in made if x not in copied], copies


def _is_for_result(x: Instruction) -> bool:
    computation = x.computation
    if computation is None or not computation.is_entry or not x.users:
        return False
    root = computation.root
    return all(
        (u is root and u.opcode == "tuple") or (u.opcode == "bitcast" and _is_for_result(u)) for u in x.users
    )
