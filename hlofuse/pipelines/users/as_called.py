"""The order of users as calls, loops and branches left it when they were inlined."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.users.calls.computed_of_nothing import in_order_of_meeting
from hlofuse.pipelines.users.calls.inlined_calls import in_order_of_calls
from hlofuse.pipelines.users.calls.inlined_outside import with_calls_inlined
from hlofuse.pipelines.users.calls.loop_elements import (
    in_order_of_scan,
    in_order_of_turns,
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
from hlofuse.pipelines.users.calls.selected_results import (
    with_last_in_place_of_handed_on,
    with_last_in_place_of_results,
)
from hlofuse.pipelines.users.clues import Clues
from hlofuse.pipelines.users.common.fusions import has_dot
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.windows import slices_of_windows, with_those_of_program
from hlofuse.pipelines.users.duplicates.chosen_literals import with_comparisons_gone
from hlofuse.pipelines.users.duplicates.converts_in_functions import readers_of_own_converts
from hlofuse.pipelines.users.duplicates.merged_literals import in_order_of_functions, is_merged_literal
from hlofuse.pipelines.users.duplicates.moved_readers import in_order_of_rounds
from hlofuse.pipelines.users.duplicates.own_broadcasts import had_each_its_own, in_order_of_own_broadcasts
from hlofuse.pipelines.users.duplicates.sums_in_functions import with_last_in_place_of_callers_sum
from hlofuse.pipelines.users.duplicates.tested_in_functions import with_tests_where_met
from hlofuse.pipelines.users.floats.widened import is_read_wide
from hlofuse.pipelines.users.layouts.copied_arguments import with_copies_where_read
from hlofuse.pipelines.users.products.canonical_dots import had_no_reshape
from hlofuse.pipelines.users.products.taken_constants import with_those_in_gemms
from hlofuse.pipelines.users.products.taken_in_softmax import with_those_in_softmax
from hlofuse.pipelines.users.simplified.degenerate_reductions import with_last_in_place_of_degenerate
from hlofuse.pipelines.users.simplified.dropped_behind import is_moved_with_reshape_dropped
from hlofuse.pipelines.users.simplified.expanded_scatters import with_last_in_place_of_loop
from hlofuse.pipelines.users.simplified.expanded_selects import with_search_behind
from hlofuse.pipelines.users.simplified.merged_concatenates import with_concatenates_merged
from hlofuse.pipelines.users.simplified.merged_rounds import with_those_of_its_round_in_front
from hlofuse.pipelines.users.simplified.merged_slices import merged_slices
from hlofuse.pipelines.users.simplified.multiplied_constants import with_products_gone
from hlofuse.pipelines.users.simplified.random_rounds import with_sums_of_word_gone
from hlofuse.pipelines.users.simplified.sorted_again import with_last_in_place_of_sorted
from hlofuse.pipelines.users.simplified.top_k import with_last_in_place_of_tuple


def as_called(producer: Instruction, clues: Clues) -> list[Instruction]:
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
        function = outermost_call(producer)
        if is_read_wide(producer, clues.wide) and function not in {"", *map(outermost_call, left)}:
            # The convert that they read was the result's only user.
            called = with_calls_inlined(left, function, clues.order, clues.anew)
        elif not clues.ids_known or not had_each_its_own(producer, users):
            called = in_order_of_calls(
                producer,
                left,
                clues.order,
                clues.results,
                passes=clues.anew,
                guessed=clues.guessed_anew(producer),
            )
        users = with_those_of_program(without(called, sliced) + own, merged, clues.order)
        if clues.ids_known:
            users = with_ties_merged(producer, users, clues.order)
            users = in_order_of_meeting(producer, users, clues.at_cse.of(producer))
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
    users = with_last_in_place_of_handed_on(producer, users)
    return with_other_branches_behind(producer, users)


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
