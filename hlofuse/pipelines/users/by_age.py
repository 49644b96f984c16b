"""What passes did to lists of users, as far as ids tell it."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_loop_of_one_turn
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.clues import Ages, Clues
from hlofuse.pipelines.users.duplicates.merged_keys import with_calls_of_key_merged
from hlofuse.pipelines.users.duplicates.merged_literals import is_merged_literal
from hlofuse.pipelines.users.duplicates.moved_readers import in_order_of_rounds
from hlofuse.pipelines.users.duplicates.reshaped_broadcasts import (
    with_last_in_place_of_moved,
    with_moved_behind,
)
from hlofuse.pipelines.users.duplicates.shared_indices import (
    in_order_of_own_indices,
    with_reshapes_of_indices_merged,
)
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_widening
from hlofuse.pipelines.users.floats.merged_converts import with_shortened_behind
from hlofuse.pipelines.users.floats.widened import is_widened_broadcast
from hlofuse.pipelines.users.layouts.normalized_convolutions import users_of_normalized
from hlofuse.pipelines.users.products.taken_constants import is_first_reader_in_gemm, without_those_in_gemms
from hlofuse.pipelines.users.products.taken_in_softmax import (
    with_those_in_softmax,
    without_those_in_softmax,
)
from hlofuse.pipelines.users.simplified.divisions import are_divisions, in_order_of_divisions
from hlofuse.pipelines.users.simplified.dropped_behind import with_last_of_older_in_front
from hlofuse.pipelines.users.simplified.dropped_operations import with_last_in_place_of_dropped
from hlofuse.pipelines.users.simplified.inverted_powers import with_made_for_quotients_behind
from hlofuse.pipelines.users.simplified.moved_in_each_place import with_moved_in_turn
from hlofuse.pipelines.users.simplified.moved_operations import with_last_in_place_of_reshape
from hlofuse.pipelines.users.simplified.moved_reshapes import with_moved_in_front
from hlofuse.pipelines.users.simplified.multiplied_constants import with_products_gone
from hlofuse.pipelines.users.simplified.narrowed_concatenates import with_narrowed_behind
from hlofuse.pipelines.users.simplified.operations_on_equals import with_last_in_place_of_equals
from hlofuse.pipelines.users.simplified.reads_of_reshapes import (
    with_last_in_place_of_reshaped_again,
    with_reads_behind_reshape,
)
from hlofuse.pipelines.users.simplified.reciprocals import (
    with_last_for_first_product,
    with_last_in_place_of_moved_products,
)
from hlofuse.pipelines.users.simplified.reshaped_back import with_reduction_in_front
from hlofuse.pipelines.users.simplified.scalars_of_broadcasts import with_last_in_place_of_broadcast
from hlofuse.pipelines.users.simplified.sort_keys import in_order_of_keys, is_bits_of_key
from hlofuse.pipelines.users.simplified.sunk_operations import in_order_of_sunk, with_sunk_as_made
from hlofuse.pipelines.users.simplified.sunk_slices import in_order_of_sinking


def as_age_tells(producer: Instruction, users: list[Instruction], clues: Clues) -> list[Instruction]:
    """The `users` of a value, given the order they have in the program, by ids that are XLA's or guessed."""
    if (sunk := in_order_of_sunk(producer, users)) is not None:
        return sunk
    ages = clues.ages
    if clues.ids_known and (sunk := with_sunk_as_made(producer, users, ages.moved)) is not None:
        return sunk
    listed = _as_passes_leave_it(producer, users, clues)
    if not is_merged_literal(producer):
        listed = without_those_in_gemms(producer, listed, clues.order, clues.in_gemms, ages.passes)
    if listed == users and producer in ages.moved and clues.wide.isdisjoint(users):
        listed = with_last_in_place_of_reshape(producer, users, ages.moved)
    return users_of_normalized(listed) if producer in clues.of_convolutions else listed


def _as_passes_leave_it(producer: Instruction, users: list[Instruction], clues: Clues) -> list[Instruction]:
    ages = clues.ages
    if is_widening(producer) or is_widened_broadcast(producer):
        return users
    if is_bits_of_key(producer):
        return sorted(users, key=_age)
    if clues.ids_known and _is_younger_than_a_division(producer, users):
        _, in_softmax = with_those_in_softmax(producer, users, clues.order, clues.in_softmax)
        if not in_softmax and is_merged_literal(producer):
            return users  # that is told of it already
        if not in_softmax:
            return in_order_of_rounds(producer, users, ages.rounds)
    if producer.opcode == "broadcast" and _made_together(producer, users, ages.passes):
        users = _as_made(producer, users, clues, ages)
        return without_those_in_softmax(producer, users, clues.order, clues.in_softmax)
    users = with_moved_behind(producer, in_order_of_keys(producer, with_narrowed_behind(users)), ages.moved)
    if not is_first_reader_in_gemm(producer, clues.in_gemms):
        users = with_last_in_place_of_dropped(producer, users, clues.uses, ages.numbers)
        users = with_last_in_place_of_equals(producer, users, clues.uses, ages.on_equals)
    users = with_last_of_older_in_front(producer, users, ages.passes)
    # What was widened was given its users in the order of the walk, as was what it reads made narrow.
    if producer not in clues.wide and (clues.wide.isdisjoint(users) or not any(map(_narrows, users))):
        passes = producer.id if producer in ages.younger else ages.passes
        if is_loop_of_one_turn(producer):
            passes = max(passes, ages.unrolled + 1)
        users = with_moved_in_front(producer, users, passes, ages.calls, clues.uses, clues.wide)
        users = with_moved_in_turn(producer, users)
    users = with_last_in_place_of_moved(producer, users, clues.order)
    users = with_reads_behind_reshape(producer, users, ages.passes)
    users = with_last_in_place_of_reshaped_again(producer, users, clues.uses)
    users = with_made_for_quotients_behind(producer, users)
    users = with_shortened_behind(users, ages.passes)
    if clues.ids_known and producer not in clues.wide:
        users = with_reduction_in_front(producer, users, ages.passes)
    users = with_last_in_place_of_broadcast(producer, users, clues.order)
    users = in_order_of_own_indices(producer, users, clues.at_cse.at_first)
    users = with_reshapes_of_indices_merged(users, clues.at_cse.at_first)
    users = in_order_of_sinking(producer, users, ages.passes)
    return with_calls_of_key_merged(producer, users, clues.order)


def _as_made(producer: Instruction, users: list[Instruction], clues: Clues, ages: Ages) -> list[Instruction]:
    """Users made together: by age, unless one of four things has happened since."""
    by_age = sorted(users, key=_age)
    if (left := with_last_in_place_of_moved_products(producer, by_age, clues.order)) is not None:
        return left
    listed = in_order_of_divisions(users, ages.products) if are_divisions(users) else by_age
    if listed == by_age:
        listed = clues.at_cse.sorted(producer, by_age)
    listed = with_products_gone(producer, listed, clues.order, clues.program.products)
    if listed != by_age:
        return listed
    return with_last_for_first_product(producer, by_age, ids_known=clues.ids_known)


def _is_younger_than_a_division(x: Instruction, users: list[Instruction]) -> bool:
    """Is it a broadcast that an older division reads? HloCSE gave it those, in the order of its walk."""
    return x.opcode == "broadcast" and are_divisions(users) and min(u.id for u in users) < x.id


def _made_together(broadcast: Instruction, users: list[Instruction], passes: int) -> bool:
    """The users were made one after the other, right behind the broadcast or by one pass for it.

    Of operations that the program has in places of their own ids run on by chance, where passes made anew
    whatever was in between.
    """
    if are_divisions(users):
        return True
    ids = [u.id for u in users]
    if max(ids) < passes and len({stack_frame(u) for u in users}) == len(users):
        return False
    return min(ids) > broadcast.id and max(ids) - broadcast.id == len(ids)


def _narrows(user: Instruction) -> bool:
    return user.opcode == "convert" and is_narrow(user)


def _age(instruction: Instruction) -> int:
    return instruction.id
