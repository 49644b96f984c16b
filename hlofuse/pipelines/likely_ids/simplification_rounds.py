"""How often simplification had gone around before an instruction was made anew.

The pipeline that holds AlgebraicSimplifier and ReshapeMover is run until nothing changes. Once around,
ReshapeMover puts a reshape behind the elementwise operations that read it, not behind those that read what
they give, and leaves it where somebody else reads it as well (`TryReshapeMoveOnCandidates`). The next time
around AlgebraicSimplifier takes it into the broadcasts that read it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.instruction import Instruction


def in_rounds(made: Iterable[Instruction]) -> list[list[Instruction]]:
    """Those that were `made` behind the first time around, turn by turn of the two passes."""
    rest = dict.fromkeys(made)
    turns: list[list[Instruction]] = []
    while rest:
        moved = _moved(rest)
        for x in moved:
            del rest[x]
        taken = [x for x in rest if x.opcode == "broadcast" and x.operands[0] not in rest]
        for x in taken:
            del rest[x]
        turns += [moved, taken]
        if not moved and not taken:
            return [*turns, [*rest]]
    return turns


def _moved(rest: dict[Instruction, None]) -> list[Instruction]:
    """Those that read nothing that is still to be made, unless somebody who stays reads it as well."""
    moved = {x for x in rest if x.opcode != "broadcast" and rest.keys().isdisjoint(x.operands)}
    stay: set[Instruction] | None = None
    while stay is None or stay:
        stay = {x for x in moved if any(u in rest and u not in moved for o in x.operands for u in o.users)}
        moved -= stay
    return [x for x in rest if x in moved]
