"""How often simplification had gone around before an instruction was made anew.

The pipeline that holds AlgebraicSimplifier and ReshapeMover is run until nothing changes. Once around,
ReshapeMover puts a reshape behind the elementwise operations that read it, not behind those that read what
they give, and leaves it where somebody else reads it as well (`TryReshapeMoveOnCandidates`). The next time
around AlgebraicSimplifier takes it into the broadcasts that read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.folded_numbers import is_of_difference, is_of_folded_number, is_variance
from hlofuse.pipelines.likely_ids.merged_quotients import is_of_merged_quotient
from hlofuse.pipelines.likely_ids.moved_reshapes import arrays_read_by, is_row_of_loop
from hlofuse.pipelines.likely_ids.updated_slices import is_of_updated
from hlofuse.pipelines.names import name_before_renaming, operation


def in_rounds(made: Iterable[Instruction]) -> list[list[Instruction]]:
    """Those that were `made` behind the first time around, turn by turn of the two passes."""
    of_updated: list[Instruction] = []
    rest: dict[Instruction, None] = {}
    for x in made:
        if is_of_updated(x):
            of_updated.append(x)
        else:
            rest[x] = None
    simplified = {x for x in rest if _is_simplified(x, rest)}
    turns: list[list[Instruction]] = []
    while rest:
        moved = _moved(rest, simplified)
        for x in moved:
            del rest[x]
        taken = [x for x in rest if x in simplified or _takes_reshape(x, rest, simplified)]
        for x in taken:
            del rest[x]
        turns += [moved, taken]
        if not moved and not taken:
            turns.append([*rest])
            break
    return [*turns, of_updated]


def _is_simplified(x: Instruction, made: Collection[Instruction]) -> bool:
    """Can only AlgebraicSimplifier have made it? A sum with what was moved, or reshaped, was moved itself."""
    if is_of_merged_quotient(x) or is_variance(x) or is_of_difference(x):
        return True
    sums = [u for u in (x.users if is_broadcast_of_constant(x) else [x]) if u.opcode == "add"]
    return is_of_folded_number(x) and not any(
        o in made or is_row_of_loop(o) for u in sums for o in arrays_read_by(u)
    )


def _takes_reshape(
    x: Instruction, rest: dict[Instruction, None], simplified: Collection[Instruction]
) -> bool:
    """Nothing that it needs is to be made but by the same turn of AlgebraicSimplifier."""
    if not _has_dimensions_of_its_own(x):
        return False
    return all(y not in rest or y in simplified for y in _needed(x))


def _has_dimensions_of_its_own(x: Instruction) -> bool:
    return x.opcode in ("broadcast", "iota")


def _needed(x: Instruction) -> list[Instruction]:
    """What has to be there: of a number that is spread, who reads it first, as CSE keeps that one's."""
    return x.users[:1] if is_broadcast_of_constant(x) else x.operands


def _moved(rest: dict[Instruction, None], simplified: Collection[Instruction]) -> list[Instruction]:
    """Those that read nothing that is still to be made, unless somebody who stays reads it as well."""
    moved = {
        x
        for x in rest
        if not _has_dimensions_of_its_own(x) and x not in simplified
        if rest.keys().isdisjoint(_arrays_in_the_way(x))
    }
    stay: set[Instruction] | None = None
    while stay is None or stay:
        stay = {
            x for x in moved if any(u in rest and u not in moved for o in arrays_read_by(x) for u in o.users)
        }
        moved -= stay
    return sorted((x for x in rest if x in moved), key=_was_simplified)


def _arrays_in_the_way(x: Instruction) -> list[Instruction]:
    """What it reads, but for what is spread beside it: ReshapeMover rearranges that along with it."""
    arrays = arrays_read_by(x)
    return [o for o in arrays if o.opcode != "broadcast" or o.operands[0].shape.true_rank > 1] or arrays


def _was_simplified(x: Instruction) -> bool:
    """Had AlgebraicSimplifier made it before? Candidates are moved by their ids (`HloInstructionSet`)."""
    return name_before_renaming(x).root == x.opcode != operation(x)
