"""The order of an instruction's users, as far as it can be told.

XLA appends a user when it is made, or when a pass gives it another operand, and puts the last one
where one was taken out. Between front end and compiler a program is written down and read back, operands
first, and so are the lists of users then; a text is in the same order, and nearly always the lists a
reader builds from it are what XLA has. What follows are the exceptions that ids, names, places in the
source, or what an instruction is, give away.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.reordering import reorder_users
from hlofuse.pipelines.users.by_age import as_age_tells
from hlofuse.pipelines.users.calls.unread_results import in_order_written
from hlofuse.pipelines.users.clues import Clues, clues_of
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.duplicates.merged_reshapes import GonePlaces, places_of_gone
from hlofuse.pipelines.users.duplicates.own_broadcasts import with_own_user_first
from hlofuse.pipelines.users.duplicates.widened_in_functions import with_functions_as_met
from hlofuse.pipelines.users.floats.distributed_factors import merged_beside_sum
from hlofuse.pipelines.users.floats.inserted_converts import is_widening
from hlofuse.pipelines.users.floats.merged_converts import (
    with_last_in_place_of_converts,
    with_last_in_place_of_widened,
)
from hlofuse.pipelines.users.floats.reshaped_converts import with_reductions_behind_reshape
from hlofuse.pipelines.users.floats.swapped_broadcasts import with_last_in_place_of_merged_converts
from hlofuse.pipelines.users.floats.swapped_converts import with_swapped_behind
from hlofuse.pipelines.users.floats.widened import (
    is_read_wide,
    is_widened_broadcast,
    users_of_widened,
    users_of_widening,
    users_through_convert,
    with_spread_as_met,
)
from hlofuse.pipelines.users.floats.widened_products import (
    is_read_through_pair,
    with_pair_gone,
    with_pair_of_sum_gone,
)
from hlofuse.pipelines.users.in_program import as_program_has_it
from hlofuse.pipelines.users.layouts.copied_ones import with_last_in_place_of_copied_ones
from hlofuse.pipelines.users.layouts.grouped_reductions import (
    reductions_but_last,
    with_grouped_of_program,
    with_grouped_where_met,
    with_split_where_met,
    with_squeezed_where_reduced,
)
from hlofuse.pipelines.users.layouts.last_in_place import (
    with_last_in_place_of_bitcast,
    with_last_in_place_of_layout,
)
from hlofuse.pipelines.users.layouts.layout_normalization import restore_normalized_users
from hlofuse.pipelines.users.layouts.merged_bitcasts import (
    with_copied_behind,
    with_merged_bitcasts_behind,
    with_transposed_behind,
)
from hlofuse.pipelines.users.layouts.moved_copies import (
    with_copy_of_part_in_front,
    with_last_in_place_of_copy,
    with_last_part_of_product_in_front,
    with_older_behind,
)
from hlofuse.pipelines.users.layouts.turned_broadcasts import with_turned_behind
from hlofuse.pipelines.users.operands_as_written import Program, as_written, is_made_for_each
from hlofuse.pipelines.users.products.dot_operands import with_dot_operands_in_place
from hlofuse.pipelines.users.products.merged_dots import in_order_of_merged_products
from hlofuse.pipelines.users.products.merged_operands import with_transposes_of_merger_behind
from hlofuse.pipelines.users.products.read_elements import results_told_of, with_last_in_place_of_widening
from hlofuse.pipelines.users.products.sliced_products import (
    called_slices,
    with_calls_behind,
    without_called_slices,
)
from hlofuse.pipelines.users.products.split_vectors import with_last_in_place_of_bitcasts
from hlofuse.pipelines.users.products.taken_prologues import with_gemms_behind
from hlofuse.pipelines.users.products.taken_readers import with_last_in_place_of_taken
from hlofuse.pipelines.users.simplified.broadcast_slices import with_reshape_for_broadcasts_behind
from hlofuse.pipelines.users.simplified.clamps import with_clamps_behind
from hlofuse.pipelines.users.simplified.dropped_identities import with_readers_in_place
from hlofuse.pipelines.users.simplified.dropped_roundings import (
    rounded_values,
    with_last_in_place_of_rounding,
)
from hlofuse.pipelines.users.simplified.hidden_casts import (
    with_last_in_place_of_cast,
    with_last_in_place_of_cast_back,
    with_last_in_place_of_pair,
)
from hlofuse.pipelines.users.simplified.inverted_quotients import restore_around_quotients
from hlofuse.pipelines.users.simplified.moved_reshapes import with_moved_in_front
from hlofuse.pipelines.users.simplified.moved_transposes import (
    with_last_in_place_of_folded,
    with_last_in_place_of_transposes,
)
from hlofuse.pipelines.users.simplified.reshaped_scalars import (
    with_later_reshaped_in_front,
    with_reshaped_behind,
)
from hlofuse.pipelines.users.simplified.split_reductions import with_split_reductions_behind


def restore_users(
    module: Module, *, ids_known: bool, makers: Mapping[Instruction, Maker] | None = None
) -> None:
    """Put the users of every instruction outside of fusions into their likely order.

    `makers` are those of a guess at ids, where there was one.
    """
    gone = places_of_gone(module)
    with results_told_of(module):
        for computation in module.computations:
            if computation.fusion is None and any(len(x.users) > 1 for x in computation):
                _restore(computation, gone, makers or {}, ids_known=ids_known)


def _restore(
    computation: Computation, gone: GonePlaces, makers: Mapping[Instruction, Maker], *, ids_known: bool
) -> None:
    program = _put_in_order_of_program(computation)
    clues = clues_of(computation, program, gone, ids_known=ids_known)
    normalized = restore_normalized_users(
        computation, clues.order, clues.uses, clues.wide, ids_known=ids_known, makers=makers
    )
    rounded, called = rounded_values(computation), called_slices(computation)
    for instruction in computation:
        users = instruction.users
        if len(users) < 2:
            continue
        if instruction in normalized:
            users, is_cast_told = _made_anew(instruction, clues)
        else:
            users, is_cast_told = _kept(instruction, clues)
        users = with_transposes_of_merger_behind(instruction, users, clues.order)
        users = in_order_of_merged_products(instruction, users)
        users = with_last_in_place_of_transposes(instruction, users)
        users = with_copy_of_part_in_front(instruction, with_last_in_place_of_copy(users))
        if ids_known:
            users = with_older_behind(instruction, users)
            users = with_turned_behind(instruction, users, clues.ages.passes)
            users = with_transposed_behind(instruction, users)
        # Of what was narrow itself that convert is told of already, by how it was widened.
        if clues.wide.isdisjoint([instruction, *users]) and not is_cast_told:
            listed = with_last_in_place_of_cast(instruction, users, clues.cast)
            if ids_known and listed == users:
                listed = with_last_in_place_of_pair(instruction, users, gone, clues.ages.numbers)
            users = listed
        users = with_last_in_place_of_cast_back(instruction, users, clues.order)
        users = with_last_in_place_of_rounding(instruction, users, rounded)
        users = with_last_part_of_product_in_front(instruction, users)
        users = with_own_user_first(instruction, users)
        users = without_called_slices(instruction, with_calls_behind(instruction, users), called)
        reorder_users(instruction, users)


def _put_in_order_of_program(computation: Computation) -> Program:
    program = as_written(computation)
    if program.order:
        for instruction in computation:
            program.put_in_order(instruction)
        restore_around_quotients(program.by_quotients, program.order)
    elif written := in_order_written(computation):
        for instruction in computation:
            # CSE made one of many since.
            if not is_made_of_nothing(instruction) and not is_made_for_each(instruction):
                instruction.users.sort(key=written.__getitem__)
    return program


def _made_anew(producer: Instruction, clues: Clues) -> tuple[list[Instruction], bool]:
    """The users of a value that layout normalization made anew, and whether they tell of a cast already."""
    users = with_copied_behind(with_last_in_place_of_bitcast(producer, producer.users))
    users = with_grouped_where_met(producer, users, clues.uses)
    place = {u: k for k, u in enumerate(users)}
    behind = reductions_but_last(users, clues.order) if producer in clues.wide else []
    users = [u for u in users if u not in behind]
    users = [*_as_converts_leave_it(producer, users, clues, place), *behind]
    users = with_split_where_met(producer, users, clues.uses)
    is_cast_told = is_read_through_pair(producer, clues.wide, clues.narrow_products)
    return (last_in_front(users) if is_cast_told else users), is_cast_told


def _kept(producer: Instruction, clues: Clues) -> tuple[list[Instruction], bool]:
    """The same of a value that it left alone."""
    users = with_grouped_of_program(producer, as_program_has_it(producer, clues), clues.uses)
    users = with_pair_gone(producer, users, clues.wide, clues.narrow_products)
    users = _as_converts_leave_it(producer, users, clues, clues.order)
    users = with_split_where_met(producer, users, clues.uses)
    if producer.opcode == "broadcast":
        users = with_last_in_place_of_merged_converts(users, clues.order, clues.uses)
    users = with_clamps_behind(producer, users, clues.order)
    users = with_dot_operands_in_place(producer, users, clues.order)
    users = with_last_in_place_of_folded(users, clues.gone)
    users = with_last_in_place_of_layout(producer, users, clues.ages.passes)
    users = with_last_in_place_of_copied_ones(producer, users, clues.order)
    users = with_reshaped_behind(producer, users)
    users = with_later_reshaped_in_front(producer, users, clues.ages.numbers)
    if clues.ids_known:
        users = with_merged_bitcasts_behind(producer, users)
    aged = with_pair_of_sum_gone(producer, as_age_tells(producer, users, clues), clues.wide)
    aged = with_last_in_place_of_widening(producer, with_last_in_place_of_bitcasts(producer, aged))
    aged = with_reshape_for_broadcasts_behind(producer, aged)
    return with_readers_in_place(producer, aged), aged != users


def _is_narrowed_for_some(
    producer: Instruction, users: list[Instruction], wide: frozenset[Instruction]
) -> bool:
    """Is it in single precision, so that some read a narrow copy? Indices are not converted."""
    is_single = producer.opcode != "broadcast" and producer.shape.element_type == "f32"
    return is_single and not wide.isdisjoint(users)


def _as_converts_leave_it(
    producer: Instruction, users: list[Instruction], clues: Clues, place: dict[Instruction, int]
) -> list[Instruction]:
    """What FloatNormalization and the fusions that came first made of it; `place` is what is known of it."""
    uses, wide = clues.uses, clues.wide
    if is_widening(producer) or is_widened_broadcast(producer):
        users = with_functions_as_met(producer, sorted(users, key=place.__getitem__), uses, wide)
        return users_of_widening(producer, uses, wide, {u: k for k, u in enumerate(users)})
    if producer in wide:
        merged = merged_beside_sum(producer)
        users = [u for u in users if u not in merged]
        users = with_reductions_behind_reshape(producer, users)
        users = with_functions_as_met(producer, users, uses, wide)
        if is_read_wide(producer, wide):  # through a convert of the program, which was reshaped
            ages = clues.ages
            users = with_moved_in_front(producer, users, ages.passes, ages.calls, uses, is_convert=True)
        users = [*users_of_widened(producer, users, uses, wide, place), *merged]
    elif _is_narrowed_for_some(producer, users, wide):
        as_written = place is clues.order and users == sorted(users, key=place.__getitem__)
        users = users_through_convert(producer, users, uses, wide, as_written=as_written)
    else:
        is_told = place is not clues.order  # what was made anew has been told of it
        users = users if is_told else with_squeezed_where_reduced(users, clues.order)
        users = with_last_in_place_of_converts(users, wide, clues.order, uses, is_told=is_told)
        if not is_told:
            users = with_last_in_place_of_widened(producer, users, wide, clues.order)
    if producer.opcode == "convert" and producer not in wide:
        users = with_spread_as_met(producer, users, uses, wide)
    users = with_swapped_behind(users)
    if producer not in wide:  # else they got converts of their own since, in the order of the walk
        users = with_split_reductions_behind(producer, users, clues.order)
    if producer.id < clues.ages.passes:  # layout normalization made others anew, with users of its own
        order = clues.program.order or clues.order
        users = with_last_in_place_of_taken(producer, users, order, clues.taken)
    return with_gemms_behind(producer, users, clues.order)
