"""What passes did to lists of users, as far as ids tell it."""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages import first_of_passes
from hlofuse.pipelines.dead_at_cse import UsesAtCse
from hlofuse.pipelines.divisions import Divisions, are_divisions, divisions, in_order_of_divisions
from hlofuse.pipelines.dropped_behind import with_last_of_older_in_front
from hlofuse.pipelines.dropped_operations import Numbers, numbers_in_names, with_last_in_place_of_dropped
from hlofuse.pipelines.inserted_converts import is_widening
from hlofuse.pipelines.merged_dots import in_order_of_merged_products
from hlofuse.pipelines.merged_literals import is_merged_literal
from hlofuse.pipelines.moved_in_functions import with_moved_in_function_in_front
from hlofuse.pipelines.moved_reshapes import with_moved_in_front
from hlofuse.pipelines.narrowed_concatenates import with_narrowed_behind
from hlofuse.pipelines.reciprocals import with_last_for_first_product
from hlofuse.pipelines.sort_keys import in_order_of_keys, is_bits_of_key
from hlofuse.pipelines.taken_along import SoftmaxReaders, without_those_in_softmax
from hlofuse.pipelines.taken_constants import GemmReaders, gemm_readers, without_those_in_gemms
from hlofuse.pipelines.visits import Uses
from hlofuse.pipelines.widened import is_widened_broadcast


class Ages(NamedTuple):
    """What is known of a computation of which the ids are XLA's."""

    order: dict[Instruction, int]
    uses: Uses
    passes: int
    """The first id that a pass gave."""
    in_softmax: SoftmaxReaders
    at_cse: UsesAtCse
    in_gemms: GemmReaders
    products: Divisions
    numbers: Numbers


def ages_of(
    computation: Computation,
    order: dict[Instruction, int],
    uses: Uses,
    in_softmax: SoftmaxReaders,
    at_cse: UsesAtCse,
) -> Ages:
    """`order` is the post-order of the computation, `uses` the order in which a walk comes along each use."""
    return Ages(
        order,
        uses,
        first_of_passes(computation),
        in_softmax,
        at_cse,
        gemm_readers(order),
        divisions(order),
        numbers_in_names(order),
    )


def as_age_tells(producer: Instruction, users: list[Instruction], ages: Ages) -> list[Instruction]:
    """The `users` of a value, given the order they have in the program."""
    users = _as_passes_leave_it(producer, users, ages)
    if is_merged_literal(producer):
        return users
    return without_those_in_gemms(producer, users, ages.order, ages.in_gemms, ages.passes)


def _as_passes_leave_it(producer: Instruction, users: list[Instruction], ages: Ages) -> list[Instruction]:
    if is_widening(producer) or is_widened_broadcast(producer):
        return users
    if is_bits_of_key(producer):
        return sorted(users, key=_age)
    if producer.opcode == "broadcast" and _made_together(producer, users):
        users = _as_made(producer, users, ages)
        return without_those_in_softmax(producer, users, ages.order, ages.in_softmax)
    users = in_order_of_keys(producer, with_narrowed_behind(users))
    users = with_last_in_place_of_dropped(producer, users, ages.uses, ages.numbers)
    users = with_last_of_older_in_front(producer, in_order_of_merged_products(users), ages.passes)
    return with_moved_in_function_in_front(producer, with_moved_in_front(producer, users, ages.passes))


def _as_made(producer: Instruction, users: list[Instruction], ages: Ages) -> list[Instruction]:
    """Users made together: by age, unless one of three things has happened since."""
    by_age = sorted(users, key=_age)
    divided = in_order_of_divisions(users, ages.products) if are_divisions(users) else by_age
    for listed in (divided, ages.at_cse.sorted(producer, by_age)):
        if listed != by_age:
            return listed
    return with_last_for_first_product(producer, by_age)


def _made_together(broadcast: Instruction, users: list[Instruction]) -> bool:
    """The users were made one after the other, right behind the broadcast or by one pass for it."""
    if are_divisions(users):
        return True
    ids = [u.id for u in users]
    return min(ids) > broadcast.id and max(ids) - broadcast.id == len(ids)


def _age(instruction: Instruction) -> int:
    return instruction.id
