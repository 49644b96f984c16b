"""The order of users as the passes left it that rewrite, merge and move what products read."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.calls.selected_branches import is_read_by_conditional
from hlofuse.pipelines.users.clues import Clues
from hlofuse.pipelines.users.products.accumulated_products import with_last_in_place_of_sum_in_call
from hlofuse.pipelines.users.products.canonical_dots import with_last_in_place_of_no_reshape
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


def as_computed_by_products(
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
