"""The order of users as AlgebraicSimplifier and expanders left it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.clues import Clues
from hlofuse.pipelines.users.floats.total_order import in_order_of_expansion
from hlofuse.pipelines.users.floats.widened import is_read_wide
from hlofuse.pipelines.users.layouts.grouped_reductions import with_grouped_behind_squeezed
from hlofuse.pipelines.users.layouts.slices_of_elements import with_slices_made_anew_in_place
from hlofuse.pipelines.users.simplified.added_updates import with_updates_in_place_of_sums
from hlofuse.pipelines.users.simplified.bounded_maxima import with_last_in_place_of_bound
from hlofuse.pipelines.users.simplified.chosen_predicates import with_chosen_behind_comparison
from hlofuse.pipelines.users.simplified.chosen_variances import with_last_in_place_of_choice
from hlofuse.pipelines.users.simplified.converted_predicates import (
    with_last_in_place_of_numbers,
    with_last_in_place_of_product,
)
from hlofuse.pipelines.users.simplified.divided_again import (
    with_divided_by_products_behind,
    with_divisors_products_gone,
)
from hlofuse.pipelines.users.simplified.dropped_updates import with_results_in_place_of_update
from hlofuse.pipelines.users.simplified.higher_bits import with_higher_bits_gone, with_last_in_place_of_least
from hlofuse.pipelines.users.simplified.inverted_powers import with_negated_exponents_behind
from hlofuse.pipelines.users.simplified.leading_dimensions import with_last_in_place_of_leading
from hlofuse.pipelines.users.simplified.merged_factors import (
    with_merged_factors_behind,
    with_merged_gone,
    with_taken_beneath_broadcast_gone,
    with_taken_into_broadcast_behind,
    with_taken_into_broadcast_gone,
)
from hlofuse.pipelines.users.simplified.merged_scalars import with_merged_scalars_behind
from hlofuse.pipelines.users.simplified.merged_slices import merged_slices, with_merged_slices_behind
from hlofuse.pipelines.users.simplified.moved_converts import with_converts_in_place_of_moved
from hlofuse.pipelines.users.simplified.negated_sums import with_sums_of_negated_behind
from hlofuse.pipelines.users.simplified.negated_twice import with_last_in_place_of_second
from hlofuse.pipelines.users.simplified.parts_of_complex import with_angles_behind
from hlofuse.pipelines.users.simplified.random_rounds import (
    with_first_round_behind,
    with_last_in_place_of_counted,
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
from hlofuse.pipelines.users.simplified.stacked_scalars import with_stacks_behind_scalar
from hlofuse.pipelines.users.simplified.summed_again import with_last_in_place_of_sum
from hlofuse.pipelines.users.simplified.sunk_scalars import with_last_in_place_of_sunk
from hlofuse.pipelines.users.simplified.sunk_slices import with_whole_behind_slices
from hlofuse.pipelines.users.simplified.swapped_reverses import (
    with_last_in_place_of_slice_of_reverse,
    with_swapped_reverses_behind,
)
from hlofuse.pipelines.users.simplified.top_k import with_slices_of_largest_behind
from hlofuse.pipelines.users.simplified.trimmed_values import with_trimmed_in_place_of_pad
from hlofuse.pipelines.users.simplified.uniform_numbers import with_sums_of_zero_gone


def as_simplified(producer: Instruction, users: list[Instruction], clues: Clues) -> list[Instruction]:
    """As AlgebraicSimplifier and expanders left them."""
    users = with_results_in_place_of_reshape(producer, users, clues.order)
    if producer not in clues.wide:
        users = with_converts_in_place_of_moved(producer, users, clues.order)
    users = with_last_in_place_of_choice(producer, users)
    users = with_chosen_behind_comparison(producer, with_updates_behind(producer, users))
    users = with_angles_behind(producer, users)
    users = with_last_in_place_of_margin(producer, users, clues.order)
    users = with_merged_slices_behind(users, merged_slices(producer, clues.ages.passes))
    users = with_slices_of_largest_behind(producer, users)
    users = with_trimmed_in_place_of_pad(producer, users, clues.order)
    users = with_slices_made_anew_in_place(producer, with_sums_of_zero_gone(producer, users))
    users = with_swapped_reverses_behind(with_merged_factors_behind(producer, users, clues.ages.again))
    users = with_last_in_place_of_slice_of_reverse(producer, users, clues.order)
    if producer not in clues.wide:  # what was widened was given its users in the order of a walk
        users = with_taken_into_broadcast_behind(producer, users)
    users = with_taken_into_broadcast_gone(producer, users, clues.order)
    users = with_taken_beneath_broadcast_gone(producer, users, clues.order)
    users = with_merged_gone(producer, users, clues.order, clues.ages.again)
    users = with_last_in_place_of_numbers(producer, users, clues.uses)
    users = with_last_in_place_of_product(producer, users, clues.order)
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
        users = with_last_in_place_of_second(producer, users, clues.order)
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
    users = with_divided_by_products_behind(producer, users)
    return with_last_in_place_of_leading(producer, users, clues.gone)
