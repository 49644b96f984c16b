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
from hlofuse.pipelines.dead_at_cse import UsesAtCse
from hlofuse.pipelines.dot_operands import with_dot_operands_in_place
from hlofuse.pipelines.dropped_identities import with_readers_in_place
from hlofuse.pipelines.hidden_casts import narrowed_places, with_last_in_place_of_cast
from hlofuse.pipelines.holes import without
from hlofuse.pipelines.inlined_calls import in_order_of_calls
from hlofuse.pipelines.inserted_converts import is_widening
from hlofuse.pipelines.layout_normalization import restore_normalized_users
from hlofuse.pipelines.loop_elements import (
    in_order_of_scan,
    is_read_in_scan,
    is_result_of_changed_loop,
    with_last_two_in_front,
)
from hlofuse.pipelines.merged_broadcasts import with_merged_broadcasts
from hlofuse.pipelines.merged_dots import (
    with_last_behind_merged_in_front,
    with_last_part_in_front,
)
from hlofuse.pipelines.merged_factors import with_merged_factors_behind
from hlofuse.pipelines.merged_literals import in_order_of_functions, is_merged_literal
from hlofuse.pipelines.moved_reshapes import (
    behind_moved_reshapes,
    with_last_in_place_of_reshape,
)
from hlofuse.pipelines.multiplied_constants import with_products_gone
from hlofuse.pipelines.narrow_in_program import widened
from hlofuse.pipelines.normalized_convolutions import results_of_normalized, with_last_in_front
from hlofuse.pipelines.operands_as_written import Program, as_written
from hlofuse.pipelines.reciprocals import (
    Divided,
    divided_by_constants,
    with_divisions_gone,
)
from hlofuse.pipelines.reshaped_products import with_reshape_in_front
from hlofuse.pipelines.shared_expansions import with_last_in_place_of_expansion
from hlofuse.pipelines.source_expressions import with_twins_users_behind
from hlofuse.pipelines.split_reductions import with_split_reductions_behind
from hlofuse.pipelines.summed_again import names_of_reductions, with_last_in_place_of_sum
from hlofuse.pipelines.swapped_converts import with_swapped_behind
from hlofuse.pipelines.swapped_reverses import with_swapped_reverses_behind
from hlofuse.pipelines.taken_along import (
    SoftmaxReaders,
    softmax_readers,
    with_gemms_behind,
    with_those_in_softmax,
)
from hlofuse.pipelines.top_k import with_last_in_place_of_tuple
from hlofuse.pipelines.unread_results import in_order_written
from hlofuse.pipelines.visits import Uses, uses_in_order
from hlofuse.pipelines.widened import (
    is_widened_broadcast,
    users_of_widened,
    users_of_widening,
    users_through_convert,
)


def restore_users(module: Module, *, ids_known: bool) -> None:
    """Put the users of every instruction outside of fusions into their likely order."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        program = as_written(computation, ids_known=ids_known)
        if program.order:
            for instruction in computation:
                instruction.users.sort(key=program.order.__getitem__)
        written = in_order_written(computation)
        if written:
            for instruction in computation:
                if not is_made_of_nothing(instruction):  # CSE made one of many since
                    instruction.users.sort(key=written.__getitem__)
        order = {x: k for k, x in enumerate(computation.post_order())}
        divided = divided_by_constants(order)
        moved = behind_moved_reshapes(computation) if ids_known else frozenset[Instruction]()
        uses, wide = uses_in_order(computation), widened(order)
        taken, at_cse = softmax_readers(order), UsesAtCse(computation, uses)
        ages = ages_of(computation, order, uses, taken, at_cse) if ids_known else None
        normalized = restore_normalized_users(computation, order, uses, ids_known=ids_known)
        places, reductions = narrowed_places(computation), names_of_reductions(order)
        of_convolutions = results_of_normalized(computation)
        for instruction in computation:
            users = instruction.users
            if len(users) < 2:
                continue
            if instruction not in normalized:
                users = _as_program_has_it(
                    instruction, order, divided, None if ages is None else ages.passes, taken, at_cse, program
                )
                if instruction in of_convolutions:
                    users = with_last_in_front(users)
                users = with_last_in_place_of_sum(instruction, users, reductions)
                users = with_last_in_place_of_expansion(instruction, users)
            place = {u: k for k, u in enumerate(users)} if instruction in normalized else order
            users = _as_normalization_leaves_it(instruction, users, uses, wide, place, order)
            if instruction not in normalized:
                users = with_clamps_behind(instruction, users, order)
                users = with_dot_operands_in_place(instruction, users, order)
                before = users
                if ages is not None:
                    users = as_age_tells(instruction, users, ages)
                if (
                    ages is not None
                    and users == before
                    and instruction in moved
                    and not any(u in wide for u in users)
                ):
                    users = with_last_in_place_of_reshape(instruction, users, moved)
                users = with_readers_in_place(instruction, users)
            if not any(u in wide for u in users):
                users = with_last_in_place_of_cast(instruction, users, places)
            instruction.users[:] = with_last_part_in_front(instruction, users)


def _as_program_has_it(
    producer: Instruction,
    order: dict[Instruction, int],
    divided: Divided,
    passes: int | None,
    taken: SoftmaxReaders,
    at_cse: UsesAtCse,
    program: Program,
) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = with_last_in_place_of_tuple(producer, producer.users)
    users = sorted(users, key=lambda u: u.opcode == "fusion")
    if producer.opcode == "get-tuple-element" and is_read_in_scan(producer):
        users = in_order_of_scan(producer, users)
    elif is_merged_literal(producer):
        users, gone = with_those_in_softmax(producer, users, order, taken)
        users = without(in_order_of_functions(producer, users, at_cse, ids_known=passes is not None), gone)
        users = with_products_gone(producer, users, program.order or order, program.products)
    else:
        users = in_order_of_calls(producer, users, passes=passes)
    if producer.opcode == "get-tuple-element" and is_result_of_changed_loop(producer):
        users = with_last_two_in_front(users)
    users = with_swapped_reverses_behind(with_merged_factors_behind(users))
    users = with_reshape_in_front(producer, users)
    users = with_last_behind_merged_in_front(producer, users)
    users = with_merged_broadcasts(producer, users, order)
    users = with_divisions_gone(producer, users, order, divided)
    return with_twins_users_behind(producer, users, ids_known=passes is not None)


def _as_normalization_leaves_it(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    place: dict[Instruction, int],
    order: dict[Instruction, int],
) -> list[Instruction]:
    if is_widening(producer) or is_widened_broadcast(producer):
        return users_of_widening(producer, uses, wide, order)
    if producer in wide:
        users = users_of_widened(producer, users, uses, wide, place)
    elif producer.opcode != "broadcast" and any(u in wide for u in users):
        users = users_through_convert(producer, users, uses, wide)
    users = with_split_reductions_behind(with_swapped_behind(users))
    return with_gemms_behind(producer, users, order)
