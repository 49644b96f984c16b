"""The order of users as HloCSE left it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.branch_predicates import in_order_of_results, with_results_together
from hlofuse.pipelines.users.clues import Clues
from hlofuse.pipelines.users.duplicates.compared_complex import with_last_in_place_of_real_part
from hlofuse.pipelines.users.duplicates.derived_twice import (
    with_last_in_place_of_twins,
    with_readers_of_twin_behind,
)
from hlofuse.pipelines.users.duplicates.infinities import with_infinities_merged
from hlofuse.pipelines.users.duplicates.inner_literals import with_those_of_inner_calls_behind
from hlofuse.pipelines.users.duplicates.merged_broadcasts import with_merged_broadcasts
from hlofuse.pipelines.users.duplicates.merged_reshapes import with_reshapes_merged
from hlofuse.pipelines.users.duplicates.moved_readers_of_shared import with_last_in_place_of_moved_readers
from hlofuse.pipelines.users.duplicates.next_after import with_bits_of_both_merged
from hlofuse.pipelines.users.duplicates.normalized_indices import (
    with_last_in_place_of_folded_sum,
    with_lower_bound_gone,
    with_signs_of_index_merged,
)
from hlofuse.pipelines.users.duplicates.older_equals import with_older_equals_gone
from hlofuse.pipelines.users.duplicates.own_converts import with_reader_of_kept_first
from hlofuse.pipelines.users.duplicates.predicates_for_each import (
    with_last_in_place_of_predicate,
    with_nested_selects_behind,
    with_selects_where_met,
)
from hlofuse.pipelines.users.duplicates.repeated import with_last_in_place_of_repeated
from hlofuse.pipelines.users.duplicates.reshaped_broadcasts import (
    with_last_in_place_of_moved_without_ones,
    with_last_in_place_of_reshapes,
)
from hlofuse.pipelines.users.duplicates.scalars_for_each import in_order_of_first_uses
from hlofuse.pipelines.users.duplicates.shared_expansions import with_last_in_place_of_expansion
from hlofuse.pipelines.users.duplicates.sigmoids import (
    with_last_in_place_of_difference,
    with_ways_back_behind,
)
from hlofuse.pipelines.users.duplicates.single_slices import in_order_of_slices
from hlofuse.pipelines.users.duplicates.source_expressions import with_twins_users_behind
from hlofuse.pipelines.users.duplicates.twins_of_expressions import with_last_in_place_of_merged_expressions
from hlofuse.pipelines.users.layouts.grouped_reductions import with_last_in_place_of_grouped
from hlofuse.pipelines.users.simplified.bounded_indices import (
    with_points_where_met,
    with_reads_where_comparisons_were,
)
from hlofuse.pipelines.users.simplified.expanded_scatters import (
    with_bounds_around_reshapes,
    with_kept_place_in_front,
    with_last_in_place_of_element,
    with_lower_bound_of_place_gone,
    with_windows_behind,
)
from hlofuse.pipelines.users.simplified.operations_on_equals import with_larger_and_smaller_gone
from hlofuse.pipelines.users.simplified.sunk_slices import with_own_reader_first


def as_merged(producer: Instruction, users: list[Instruction], clues: Clues) -> list[Instruction]:
    """As HloCSE left them, and scatters that were expanded when slices of what they read were one."""
    if not clues.simplified:
        users = with_merged_broadcasts(
            producer, users, clues.order, clues.for_each, clues.reshaped, clues.uses
        )
    users = with_last_in_place_of_reshapes(producer, users, clues.order, clues.reshaped, clues.wide)
    passes = clues.ages.passes if clues.ids_known else None
    users = with_last_in_place_of_moved_without_ones(producer, users, clues.order, passes)
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
    users = with_last_in_place_of_merged_expressions(producer, users, clues.uses)
    users = with_own_reader_first(producer, users)
    if clues.ids_known:
        users = with_reader_of_kept_first(producer, users)
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
    if ages.repeated.keys().isdisjoint(users):
        users = with_infinities_merged(producer, users, clues.order)
    users = with_last_in_place_of_grouped(producer, users, clues.order)
    users = with_bits_of_both_merged(producer, with_last_in_place_of_expansion(producer, users))
    return with_those_of_inner_calls_behind(producer, users, clues.uses, -1 if passes is None else passes)
