"""The order of an instruction's users, as far as it can be told.

XLA appends a user when it is made, or when a pass gives it another operand, and puts the last one
where one was taken out. Between front end and compiler a program is written down and read back, operands
first, and so are the lists of users then; a text is in the same order, and nearly always the lists a
reader builds from it are what XLA has. What follows are the exceptions that ids, names, places in the
source, or what an instruction is, give away.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.by_age import ages_of, as_age_tells
from hlofuse.pipelines.clamps import with_clamps_behind
from hlofuse.pipelines.constants import is_made_of_nothing
from hlofuse.pipelines.dot_operands import with_dot_operands_in_place
from hlofuse.pipelines.dropped_identities import with_readers_in_place
from hlofuse.pipelines.inlined_calls import in_order_of_calls
from hlofuse.pipelines.layout_normalization import restore_normalized_users
from hlofuse.pipelines.merged_broadcasts import with_merged_broadcasts
from hlofuse.pipelines.merged_dots import with_last_behind_merged_in_front
from hlofuse.pipelines.side_inputs import has_side_input, order_before_side_inputs
from hlofuse.pipelines.source_expressions import with_twins_users_behind
from hlofuse.pipelines.split_reductions import with_split_reductions_behind
from hlofuse.pipelines.swapped_converts import with_swapped_behind
from hlofuse.pipelines.taken_along import with_gemms_behind
from hlofuse.pipelines.top_k import with_last_in_place_of_tuple
from hlofuse.pipelines.unread_results import in_order_written
from hlofuse.pipelines.visits import Uses, uses_in_order
from hlofuse.pipelines.widened import (
    is_widened_broadcast,
    is_widening,
    users_of_widened,
    widened,
)


def restore_users(module: Module, *, ids_known: bool) -> None:
    """Put the users of every instruction outside of fusions into their likely order."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        if any(has_side_input(x) for x in computation):
            before = order_before_side_inputs(computation)
            for instruction in computation:
                instruction.users.sort(key=before.__getitem__)
        written = in_order_written(computation)
        if written:
            for instruction in computation:
                if not is_made_of_nothing(instruction):  # CSE made one of many since
                    instruction.users.sort(key=written.__getitem__)
        order = {x: k for k, x in enumerate(computation.post_order())}
        uses, wide = uses_in_order(computation), widened(order)
        ages = ages_of(computation, order, uses) if ids_known else None
        normalized = restore_normalized_users(computation, order, uses, ids_known=ids_known)
        for instruction in computation:
            users = instruction.users
            if len(users) < 2:
                continue
            if instruction not in normalized:
                users = _as_program_has_it(instruction, order, None if ages is None else ages.passes)
            users = _as_normalization_leaves_it(instruction, users, uses, wide, order)
            if instruction not in normalized:
                users = with_clamps_behind(instruction, users, order)
                users = with_dot_operands_in_place(instruction, users, order)
                if ages is not None:
                    users = as_age_tells(instruction, users, ages)
                users = with_readers_in_place(instruction, users)
            instruction.users[:] = users


def _as_program_has_it(
    producer: Instruction, order: dict[Instruction, int], passes: int | None
) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = with_last_in_place_of_tuple(producer, producer.users)
    users = sorted(users, key=lambda u: u.opcode == "fusion")
    users = in_order_of_calls(producer, users, passes=passes)
    users = with_last_behind_merged_in_front(producer, users)
    users = with_merged_broadcasts(producer, users, order)
    return with_twins_users_behind(producer, users, ids_known=passes is not None)


def _as_normalization_leaves_it(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    order: dict[Instruction, int],
) -> list[Instruction]:
    if is_widening(producer) or is_widened_broadcast(producer):
        # Every user got one of its own; CSE made them one, in the order of the walk.
        return sorted(users, key=lambda user: uses[producer, user])
    if producer in wide:
        users = users_of_widened(producer, users, uses, wide, order)
    users = with_split_reductions_behind(with_swapped_behind(users))
    return with_gemms_behind(producer, users, order)
