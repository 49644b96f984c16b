"""The order of users as the program has it, with what passes in front of layout normalization did to it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.branch_predicates import in_order_of_results, with_results_together
from hlofuse.pipelines.users.calls.computed_of_nothing import in_order_of_meeting
from hlofuse.pipelines.users.calls.inlined_calls import in_order_of_calls
from hlofuse.pipelines.users.calls.loop_elements import (
    in_order_of_merged_counters,
    in_order_of_scan,
    in_order_of_turns,
    is_merged_counter,
    is_read_in_changed_body,
    is_read_in_scan,
    is_result_of_changed_loop,
    with_last_two_in_front,
    with_tuple_gone,
)
from hlofuse.pipelines.users.calls.merged_ties import with_ties_merged
from hlofuse.pipelines.users.calls.returned_arguments import with_reader_in_place_of_call
from hlofuse.pipelines.users.calls.selected_branches import (
    is_read_by_conditional,
    with_last_in_place_of_branches,
    with_last_or_conditional_in_front,
    with_other_branches_behind,
)
from hlofuse.pipelines.users.calls.selected_results import with_last_in_place_of_results
from hlofuse.pipelines.users.clues import Clues
from hlofuse.pipelines.users.common.fusions import has_dot
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.windows import slices_of_windows, with_those_of_program
from hlofuse.pipelines.users.duplicates.chosen_literals import with_comparisons_gone
from hlofuse.pipelines.users.duplicates.compared_complex import with_last_in_place_of_real_part
from hlofuse.pipelines.users.duplicates.converts_in_functions import readers_of_own_converts
from hlofuse.pipelines.users.duplicates.derived_twice import (
    with_last_in_place_of_twins,
    with_readers_of_twin_behind,
)
from hlofuse.pipelines.users.duplicates.infinities import with_infinities_merged
from hlofuse.pipelines.users.duplicates.initial_values import in_order_of_initial_values
from hlofuse.pipelines.users.duplicates.inner_literals import with_those_of_inner_calls_behind
from hlofuse.pipelines.users.duplicates.merged_broadcasts import with_merged_broadcasts
from hlofuse.pipelines.users.duplicates.merged_literals import in_order_of_functions, is_merged_literal
from hlofuse.pipelines.users.duplicates.merged_reshapes import with_reshapes_merged
from hlofuse.pipelines.users.duplicates.moved_readers import in_order_of_rounds
from hlofuse.pipelines.users.duplicates.moved_readers_of_shared import with_last_in_place_of_moved_readers
from hlofuse.pipelines.users.duplicates.next_after import with_bits_of_both_merged
from hlofuse.pipelines.users.duplicates.normalized_indices import (
    with_last_in_place_of_folded_sum,
    with_lower_bound_gone,
    with_signs_of_index_merged,
)
from hlofuse.pipelines.users.duplicates.older_equals import with_older_equals_gone
from hlofuse.pipelines.users.duplicates.own_broadcasts import had_each_its_own, in_order_of_own_broadcasts
from hlofuse.pipelines.users.duplicates.predicates_for_each import (
    with_last_in_place_of_predicate,
    with_nested_selects_behind,
    with_selects_where_met,
)
from hlofuse.pipelines.users.duplicates.repeated import with_last_in_place_of_repeated
from hlofuse.pipelines.users.duplicates.reshaped_broadcasts import (
    with_last_in_place_of_moved_in_clone,
    with_last_in_place_of_reshapes,
)
from hlofuse.pipelines.users.duplicates.scalars_for_each import in_order_of_first_uses
from hlofuse.pipelines.users.duplicates.shared_expansions import with_last_in_place_of_expansion
from hlofuse.pipelines.users.duplicates.shared_words import in_order_of_reading_calls
from hlofuse.pipelines.users.duplicates.sigmoids import (
    with_last_in_place_of_difference,
    with_ways_back_behind,
)
from hlofuse.pipelines.users.duplicates.single_slices import in_order_of_slices
from hlofuse.pipelines.users.duplicates.source_expressions import with_twins_users_behind
from hlofuse.pipelines.users.duplicates.sums_in_functions import with_last_in_place_of_callers_sum
from hlofuse.pipelines.users.duplicates.tested_in_functions import with_tests_where_met
from hlofuse.pipelines.users.duplicates.twins_beside_siblings import with_last_in_place_of_siblings
from hlofuse.pipelines.users.duplicates.twins_of_expressions import (
    with_last_in_place_of_merged_expressions,
)
from hlofuse.pipelines.users.floats.total_order import in_order_of_expansion
from hlofuse.pipelines.users.floats.widened import is_read_wide
from hlofuse.pipelines.users.layouts.copied_arguments import with_copies_where_read
from hlofuse.pipelines.users.layouts.grouped_reductions import (
    with_grouped_behind_squeezed,
    with_last_in_place_of_grouped,
)
from hlofuse.pipelines.users.layouts.slices_of_elements import with_slices_made_anew_in_place
from hlofuse.pipelines.users.products.accumulated_products import with_last_in_place_of_sum_in_call
from hlofuse.pipelines.users.products.canonical_dots import (
    had_no_reshape,
    with_last_in_place_of_no_reshape,
)
from hlofuse.pipelines.users.products.merged_dots import (
    with_last_behind_merged_in_front,
    with_last_in_place_of_merged,
)
from hlofuse.pipelines.users.products.reduced_products import (
    with_last_in_place_of_reduction,
    with_last_in_place_of_squeezed,
    with_last_in_place_of_transpose,
    with_sum_behind_reshape,
    with_sum_behind_transpose,
)
from hlofuse.pipelines.users.products.reshaped_products import (
    with_last_in_place_of_operand,
    with_reshape_in_front,
)
from hlofuse.pipelines.users.products.shared_vectors import (
    with_own_product_first,
    with_product_in_place_of_vector,
    with_vectors_made_one,
)
from hlofuse.pipelines.users.products.taken_constants import with_those_in_gemms
from hlofuse.pipelines.users.products.taken_in_softmax import with_those_in_softmax
from hlofuse.pipelines.users.simplified.added_updates import with_updates_in_place_of_sums
from hlofuse.pipelines.users.simplified.bounded_indices import (
    with_points_where_met,
    with_reads_where_comparisons_were,
)
from hlofuse.pipelines.users.simplified.bounded_maxima import with_last_in_place_of_bound
from hlofuse.pipelines.users.simplified.chosen_predicates import with_chosen_behind_comparison
from hlofuse.pipelines.users.simplified.converted_predicates import with_last_in_place_of_numbers
from hlofuse.pipelines.users.simplified.degenerate_reductions import (
    with_last_in_place_of_degenerate,
    with_own_reshape_in_front,
)
from hlofuse.pipelines.users.simplified.divided_again import with_divisors_products_gone
from hlofuse.pipelines.users.simplified.dropped_behind import is_moved_with_reshape_dropped
from hlofuse.pipelines.users.simplified.dropped_updates import with_results_in_place_of_update
from hlofuse.pipelines.users.simplified.expanded_scatters import (
    with_bounds_around_reshapes,
    with_kept_place_in_front,
    with_last_in_place_of_element,
    with_last_in_place_of_loop,
    with_lower_bound_of_place_gone,
    with_windows_behind,
)
from hlofuse.pipelines.users.simplified.expanded_selects import with_search_behind
from hlofuse.pipelines.users.simplified.higher_bits import (
    with_higher_bits_gone,
    with_last_in_place_of_least,
)
from hlofuse.pipelines.users.simplified.inverted_powers import with_negated_exponents_behind
from hlofuse.pipelines.users.simplified.leading_dimensions import with_last_in_place_of_leading
from hlofuse.pipelines.users.simplified.merged_concatenates import with_concatenates_merged
from hlofuse.pipelines.users.simplified.merged_factors import (
    with_merged_factors_behind,
    with_merged_gone,
    with_taken_beneath_broadcast_gone,
    with_taken_into_broadcast_behind,
    with_taken_into_broadcast_gone,
)
from hlofuse.pipelines.users.simplified.merged_rounds import with_those_of_its_round_in_front
from hlofuse.pipelines.users.simplified.merged_scalars import with_merged_scalars_behind
from hlofuse.pipelines.users.simplified.merged_slices import merged_slices, with_merged_slices_behind
from hlofuse.pipelines.users.simplified.moved_converts import with_converts_in_place_of_moved
from hlofuse.pipelines.users.simplified.multiplied_constants import with_products_gone
from hlofuse.pipelines.users.simplified.negated_sums import with_sums_of_negated_behind
from hlofuse.pipelines.users.simplified.operations_on_equals import with_larger_and_smaller_gone
from hlofuse.pipelines.users.simplified.parts_of_complex import with_angles_behind
from hlofuse.pipelines.users.simplified.random_rounds import (
    with_first_round_behind,
    with_last_in_place_of_counted,
    with_sums_of_word_gone,
)
from hlofuse.pipelines.users.simplified.reciprocals import with_divisions_gone
from hlofuse.pipelines.users.simplified.reduced_again import with_reduced_again_behind
from hlofuse.pipelines.users.simplified.remainders import (
    with_choice_in_place_of_remainder,
    with_last_in_place_of_remainder,
    with_signs_behind,
)
from hlofuse.pipelines.users.simplified.reshaped_twice import (
    with_last_in_place_of_reshaped_bits,
    with_reshaped_bits_behind,
    with_reshaped_twice,
)
from hlofuse.pipelines.users.simplified.scattered_in_itself import with_updates_behind
from hlofuse.pipelines.users.simplified.scatters_in_sums import with_last_in_place_of_scattered_sum
from hlofuse.pipelines.users.simplified.sharded_results import with_results_in_place_of_reshape
from hlofuse.pipelines.users.simplified.slices_of_padding import with_last_in_place_of_margin
from hlofuse.pipelines.users.simplified.split_reductions import with_last_in_place_of_split
from hlofuse.pipelines.users.simplified.stable_sorts import with_last_in_place_of_sorted
from hlofuse.pipelines.users.simplified.stacked_scalars import with_stacks_behind_scalar
from hlofuse.pipelines.users.simplified.summed_again import with_last_in_place_of_sum
from hlofuse.pipelines.users.simplified.sunk_scalars import with_last_in_place_of_sunk
from hlofuse.pipelines.users.simplified.sunk_slices import (
    with_own_reader_first,
    with_whole_behind_slices,
)
from hlofuse.pipelines.users.simplified.swapped_reverses import with_swapped_reverses_behind
from hlofuse.pipelines.users.simplified.top_k import (
    with_last_in_place_of_tuple,
    with_slices_of_largest_behind,
)
from hlofuse.pipelines.users.simplified.trimmed_values import with_trimmed_in_place_of_pad
from hlofuse.pipelines.users.simplified.uniform_numbers import with_sums_of_zero_gone


def as_program_has_it(producer: Instruction, clues: Clues) -> list[Instruction]:
    """The users of `producer` in that order."""
    if producer.opcode == "constant":
        return in_order_of_initial_values(producer, clues.order, clues.ages.passes)
    if is_merged_counter(producer):
        return in_order_of_merged_counters(producer)
    users = _as_called(producer, clues)
    users = _as_simplified(producer, users, clues)
    users = _as_computed_by_products(producer, users, clues)
    users = _as_merged(producer, users, clues)
    users = with_last_in_place_of_siblings(producer, users, clues.order, clues.ages.numbers)
    if not clues.ids_known:
        return users
    return with_own_reshape_in_front(producer, in_order_of_reading_calls(producer, users))


def _as_called(producer: Instruction, clues: Clues) -> list[Instruction]:
    """As calls, loops and branches left them when they were inlined."""
    # Fusions that are there already were made last, around operations that had been there before.
    # GemmFusion (`xla/backends/gpu/transforms/gemm_fusion.cc`) puts one where the dot was.
    users = sorted(producer.users, key=lambda u: u.opcode == "fusion" and not has_dot(u))
    users = with_search_behind(in_order_of_own_broadcasts(producer, users, clues.uses))
    users = with_copies_where_read(producer, users, clues.order, clues.uses, clues.ages.passes)
    is_element = producer.opcode == "get-tuple-element"
    if is_element and is_read_in_scan(producer):
        users = in_order_of_scan(producer, users)
    elif is_merged_literal(producer):
        users = _as_literals_are_merged(producer, users, clues)
    elif (in_turns := in_order_of_turns(users)) != users:
        users = in_turns
    elif not is_moved_with_reshape_dropped(producer, users, clues.ages.passes):
        users = with_reader_in_place_of_call(producer, users)
        sliced = slices_of_windows(producer)
        users = with_those_of_program(users, sliced, clues.order)
        own = readers_of_own_converts(producer, users)
        merged = merged_slices(producer, clues.ages.passes)
        left = [u for u in users if u not in own and u not in merged]
        called = left
        if not clues.ids_known or not had_each_its_own(producer, users):
            called = in_order_of_calls(
                producer, left, clues.order, passes=clues.anew, guessed=clues.guessed_anew(producer)
            )
        users = with_those_of_program(without(called, sliced) + own, merged, clues.order)
        if clues.ids_known:
            users = with_ties_merged(producer, users, clues.order)
            users = in_order_of_meeting(producer, users, clues.uses)
        users = with_concatenates_merged(producer, users, clues.order)
        users = with_last_in_place_of_callers_sum(producer, users, clues.order)
        users = with_tests_where_met(producer, users, clues.uses)
        if is_element and is_read_in_changed_body(producer):
            users = with_tuple_gone(users)
    users = with_last_in_place_of_tuple(producer, users, clues.order)
    users = with_last_in_place_of_sorted(producer, users)
    users = with_last_in_place_of_loop(producer, users)
    users = with_last_in_place_of_degenerate(producer, users)
    if is_element and is_result_of_changed_loop(producer):
        users = with_last_two_in_front(users)
    if is_read_by_conditional(producer, users, clues.given) and had_no_reshape(producer, users):
        users = with_last_or_conditional_in_front(producer, users)
    users = with_last_in_place_of_branches(producer, users, clues.order, clues.given)
    users = with_last_in_place_of_results(producer, users)
    return with_other_branches_behind(producer, users)


def _as_simplified(producer: Instruction, users: list[Instruction], clues: Clues) -> list[Instruction]:
    """As AlgebraicSimplifier and expanders left them."""
    users = with_results_in_place_of_reshape(producer, users, clues.order)
    if producer not in clues.wide:
        users = with_converts_in_place_of_moved(producer, users, clues.order)
    users = with_chosen_behind_comparison(producer, with_updates_behind(producer, users))
    users = with_angles_behind(producer, users)
    users = with_last_in_place_of_margin(producer, users, clues.order)
    users = with_merged_slices_behind(users, merged_slices(producer, clues.ages.passes))
    users = with_slices_of_largest_behind(producer, users)
    users = with_trimmed_in_place_of_pad(producer, users, clues.order)
    users = with_slices_made_anew_in_place(producer, with_sums_of_zero_gone(producer, users))
    users = with_swapped_reverses_behind(with_merged_factors_behind(producer, users, clues.ages.again))
    if producer not in clues.wide:  # what was widened was given its users in the order of a walk
        users = with_taken_into_broadcast_behind(producer, users)
    users = with_taken_into_broadcast_gone(producer, users, clues.order)
    users = with_taken_beneath_broadcast_gone(producer, users, clues.order)
    users = with_merged_gone(producer, users, clues.order, clues.ages.again)
    users = with_last_in_place_of_numbers(producer, users)
    if clues.ids_known:
        users = with_merged_scalars_behind(producer, users)
        users = with_last_in_place_of_sunk(producer, users, clues.order, clues.ages.passes)
    users = with_last_in_place_of_counted(producer, with_first_round_behind(producer, users))
    users = with_higher_bits_gone(producer, users, clues.lower_bits)
    users = with_last_in_place_of_least(producer, users)
    users = with_last_in_place_of_bound(producer, users)
    users = with_last_in_place_of_split(producer, users, clues.order)
    users = with_divisions_gone(producer, users, clues.order, clues.divided)
    if not is_read_wide(producer, clues.wide):
        users = with_last_in_place_of_sum(producer, users, clues.reductions)
    users = with_sums_of_negated_behind(with_reduced_again_behind(users))
    if clues.ids_known:
        users = with_whole_behind_slices(users)
    users = with_signs_behind(producer, with_choice_in_place_of_remainder(producer, users), clues.order)
    users = with_last_in_place_of_remainder(producer, users)
    users = with_grouped_behind_squeezed(producer, in_order_of_expansion(producer, users))
    users = with_stacks_behind_scalar(producer, users)
    users = with_updates_in_place_of_sums(producer, with_negated_exponents_behind(users))
    users = with_results_in_place_of_update(producer, users)
    users = with_last_in_place_of_scattered_sum(producer, users)
    users = with_reshaped_twice(producer, users, clues.ages.passes)
    users = with_reshaped_bits_behind(producer, users)
    users = with_last_in_place_of_reshaped_bits(producer, users, clues.order)
    users = with_divisors_products_gone(producer, users, clues.order)
    return with_last_in_place_of_leading(producer, users, clues.gone)


def _as_computed_by_products(
    producer: Instruction, users: list[Instruction], clues: Clues
) -> list[Instruction]:
    """As the passes left them that rewrite, merge and move what matrix products read and compute."""
    users = with_reshape_in_front(producer, users)
    users = with_last_behind_merged_in_front(producer, users)
    users = with_last_in_place_of_merged(producer, users, clues.order)
    if not is_read_by_conditional(producer, users, clues.given):  # or the branches were in one then
        users = with_last_in_place_of_no_reshape(producer, users)
    users = with_last_in_place_of_sum_in_call(producer, users, clues.order)
    users = with_last_in_place_of_reduction(producer, users, clues.order)
    users = with_sum_behind_transpose(producer, with_sum_behind_reshape(producer, users))
    users = with_last_in_place_of_squeezed(producer, users, clues.order)
    users = with_last_in_place_of_transpose(producer, users)
    users = with_last_in_place_of_operand(producer, users, clues.order)
    users = with_vectors_made_one(producer, users, clues.order)
    users = with_product_in_place_of_vector(producer, users, clues.uses)
    return with_own_product_first(producer, users)


def _as_merged(producer: Instruction, users: list[Instruction], clues: Clues) -> list[Instruction]:
    """As HloCSE left them, and scatters that were expanded when slices of what they read were one."""
    if not clues.simplified:
        users = with_merged_broadcasts(
            producer, users, clues.order, clues.for_each, clues.reshaped, clues.uses
        )
    users = with_last_in_place_of_reshapes(producer, users, clues.order, clues.reshaped, clues.wide)
    users = with_last_in_place_of_moved_in_clone(producer, users, clues.order)
    users = with_last_in_place_of_moved_readers(producer, users, clues.order, clues.moved_from_shared)
    users = in_order_of_results(producer, users, clues.order)
    users = with_results_together(producer, users, clues.order, clues.uses)
    users = with_twins_users_behind(producer, users, clues.gone, ids_known=clues.ids_known)
    users = in_order_of_first_uses(producer, users, clues.order, clues.for_each)
    users = in_order_of_slices(producer, users, clues.order)
    users = with_last_in_place_of_difference(producer, users, clues.order)
    users = with_ways_back_behind(producer, users)
    users = with_last_in_place_of_twins(producer, users, clues.uses)
    users = with_readers_of_twin_behind(producer, users, clues.uses)
    if clues.ids_known:
        users = with_last_in_place_of_merged_expressions(producer, users, clues.uses)
    users = with_own_reader_first(producer, users)
    users = with_last_in_place_of_element(producer, users, clues.order)
    users = with_bounds_around_reshapes(producer, users, clues.order)
    users = with_lower_bound_of_place_gone(producer, with_kept_place_in_front(producer, users))
    users = with_windows_behind(producer, users, clues.order)
    users = with_last_in_place_of_real_part(producer, users)
    users = with_reads_where_comparisons_were(producer, with_lower_bound_gone(producer, users))
    users = with_last_in_place_of_folded_sum(producer, users)
    users = with_points_where_met(producer, users, clues.uses)
    users = with_signs_of_index_merged(producer, users, clues.uses, clues.ages.numbers)
    ages = clues.ages
    users = with_last_in_place_of_repeated(producer, users, ages.repeated, clues.uses, ages.passes)
    users = with_older_equals_gone(producer, users, clues.uses, ages.numbers, ages.passes, clues.wide)
    users = with_selects_where_met(producer, users, clues.order, clues.uses)
    users = with_last_in_place_of_predicate(producer, users)
    users = with_nested_selects_behind(producer, users, clues.ages.numbers)
    users = with_larger_and_smaller_gone(producer, users)
    users = with_reshapes_merged(producer, users, clues.order, clues.gone)
    users = with_infinities_merged(producer, users, clues.order)
    users = with_last_in_place_of_grouped(producer, users, clues.order)
    users = with_bits_of_both_merged(producer, with_last_in_place_of_expansion(producer, users))
    return with_those_of_inner_calls_behind(producer, users, clues.ages.passes if clues.ids_known else -1)


def _as_literals_are_merged(
    literal: Instruction, users: list[Instruction], clues: Clues
) -> list[Instruction]:
    users, in_gemms = with_those_in_gemms(literal, users, clues.order, clues.in_gemms)
    users, in_softmax = with_those_in_softmax(literal, users, clues.order, clues.in_softmax)
    users = in_order_of_functions(literal, users, clues.at_cse)
    if clues.ids_known:
        users = in_order_of_rounds(literal, users, clues.ages.rounds)
    users = with_comparisons_gone(literal, users)
    users = with_sums_of_word_gone(literal, users, clues.uses)
    users = with_those_of_its_round_in_front(literal, users, clues.ages.passes)
    users = without(users, [*in_gemms, *in_softmax])
    return with_products_gone(literal, users, clues.program.order or clues.order, clues.program.products)
