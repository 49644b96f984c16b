"""How often simplification had gone around before an instruction was made anew.

The pipeline that holds AlgebraicSimplifier and ReshapeMover is run until nothing changes. Once around,
ReshapeMover puts a reshape behind the elementwise operations that read it, not behind those that read what
they give, and leaves it where somebody else reads it as well (`TryReshapeMoveOnCandidates`). The next time
around AlgebraicSimplifier takes it into the broadcasts that read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import accumulate

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.likely_ids.folded_numbers import is_of_difference, is_of_folded_number, is_variance
from hlofuse.pipelines.likely_ids.merged_quotients import is_of_merged_quotient
from hlofuse.pipelines.likely_ids.moved_products import is_sum_of_moved
from hlofuse.pipelines.likely_ids.moved_reshapes import arrays_read_by, is_row_of_loop
from hlofuse.pipelines.likely_ids.updated_slices import is_of_updated
from hlofuse.pipelines.names import (
    is_told_of_program,
    name_before_renaming,
    number_in_name,
    operation,
    stack_frame,
)


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
    while True:
        moved = _moved(rest, simplified)
        for x in moved:
            del rest[x]
        taken = [x for x in rest if x in simplified or _takes_reshape(x, rest, simplified)]
        for x in taken:
            del rest[x]
        if not moved and not taken:
            break
        turns += [_as_read([x for turn in turns for x in turn], moved), taken]
    return [*_with_numbers_rising(turns), [*rest], of_updated]


def _with_numbers_rising(turns: list[list[Instruction]]) -> list[list[Instruction]]:
    """The same turns, but for what has a higher number than something of its root that was made later.

    Nothing is made ahead of what it needs, so that the others are at least as late as they seem to be. What
    was made in the place of another one has the number of that.
    """
    turn = {x: k for k, members in enumerate(turns) for x in members}
    chains = chains_of(x for x in turn if not is_told_of_program(x) and _has_number_of_its_own(x))
    for chain in chains.values():
        chain.sort(key=number_in_name)
        turn.update(zip(chain, accumulate((turn[x] for x in chain), max), strict=True))
    risen: list[list[Instruction]] = [[] for _ in turns]
    for x in turn:
        risen[turn[x]].append(x)
    return risen


def _has_number_of_its_own(x: Instruction) -> bool:
    if x.opcode == "broadcast":
        return is_broadcast_of_constant(x)
    return x.opcode in ELEMENTWISE_OPCODES and not is_of_merged_quotient(x)


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
    return x.opcode in ("broadcast", "iota") or is_sum_of_moved(x)


def _needed(x: Instruction) -> list[Instruction]:
    """What has to be there: of a number that is spread, who reads it first, as CSE keeps that one's."""
    return x.users[:1] if is_broadcast_of_constant(x) else x.operands[:1]


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


def _as_read(older: list[Instruction], moved: list[Instruction]) -> list[Instruction]:
    """What was `moved` in the order of what it reads, where all of it reads one of what is `older`.

    Who reads the same is met as places in the source are numbered. The program computes with a value soon.
    """
    place = {x: k for k, x in enumerate(older)}
    read = {x: [*dict.fromkeys(arrays_read_by(x))] for x in moved}
    if any(len(arrays) != 1 or arrays[0] not in place for arrays in read.values()):
        return moved
    return sorted(moved, key=lambda x: (place[read[x][0]], stack_frame(x)))


def _was_simplified(x: Instruction) -> bool:
    """Had AlgebraicSimplifier made it before? Candidates are moved by their ids (`HloInstructionSet`)."""
    return name_before_renaming(x).root == x.opcode != operation(x)
