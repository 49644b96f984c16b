"""The order of users as the program has it, with what passes in front of layout normalization did to it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.as_called import as_called
from hlofuse.pipelines.users.as_computed_by_products import as_computed_by_products
from hlofuse.pipelines.users.as_merged import as_merged
from hlofuse.pipelines.users.as_simplified import as_simplified
from hlofuse.pipelines.users.calls.loop_elements import in_order_of_merged_counters, is_merged_counter
from hlofuse.pipelines.users.clues import Clues
from hlofuse.pipelines.users.duplicates.initial_values import in_order_of_initial_values
from hlofuse.pipelines.users.duplicates.shared_words import in_order_of_reading_calls
from hlofuse.pipelines.users.duplicates.twins_beside_siblings import with_last_in_place_of_siblings
from hlofuse.pipelines.users.simplified.degenerate_reductions import with_own_reshape_in_front


def as_program_has_it(producer: Instruction, clues: Clues) -> list[Instruction]:
    """The users of `producer` in that order."""
    if producer.opcode == "constant":
        return in_order_of_initial_values(producer, clues.order, clues.ages.passes)
    if is_merged_counter(producer):
        return in_order_of_merged_counters(producer)
    users = as_called(producer, clues)
    users = as_simplified(producer, users, clues)
    users = as_computed_by_products(producer, users, clues)
    users = as_merged(producer, users, clues)
    users = with_last_in_place_of_siblings(producer, users, clues.order, clues.ages.numbers)
    if not clues.ids_known:
        return users
    return with_own_reshape_in_front(producer, in_order_of_reading_calls(producer, users))
