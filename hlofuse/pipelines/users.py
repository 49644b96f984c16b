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
from hlofuse.pipelines.clamps import with_clamps_behind
from hlofuse.pipelines.constants import is_broadcast_of_constant, is_made_of_nothing
from hlofuse.pipelines.dead_at_cse import UsesAtCse
from hlofuse.pipelines.dot_operands import with_dot_operands_in_place
from hlofuse.pipelines.dropped_identities import with_readers_in_place
from hlofuse.pipelines.holes import without
from hlofuse.pipelines.inlined_calls import in_order_of_calls
from hlofuse.pipelines.layout_normalization import restore_normalized_users
from hlofuse.pipelines.merged_broadcasts import with_merged_broadcasts
from hlofuse.pipelines.merged_dots import with_last_behind_merged_in_front
from hlofuse.pipelines.merged_literals import in_order_of_functions, is_merged_literal
from hlofuse.pipelines.moved_reshapes import with_moved_in_front
from hlofuse.pipelines.multiplied_constants import with_products_gone
from hlofuse.pipelines.names import name_before_renaming
from hlofuse.pipelines.narrowed_concatenates import with_narrowed_behind
from hlofuse.pipelines.operands_as_written import Program, as_written
from hlofuse.pipelines.reshaped_back import with_last_in_place_of_reshape_back
from hlofuse.pipelines.sort_keys import in_order_of_keys, is_bits_of_key
from hlofuse.pipelines.source_expressions import with_twins_users_behind
from hlofuse.pipelines.split_reductions import with_split_reductions_behind
from hlofuse.pipelines.swapped_converts import with_swapped_behind
from hlofuse.pipelines.taken_along import (
    SoftmaxReaders,
    softmax_readers,
    with_gemms_behind,
    with_those_in_softmax,
    without_those_in_softmax,
)
from hlofuse.pipelines.unread_results import in_order_written
from hlofuse.pipelines.visits import Uses, uses_in_order
from hlofuse.pipelines.widened import (
    is_widened_broadcast,
    is_widening,
    users_of_widened,
    widened,
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
        taken = softmax_readers(order)
        uses, wide = uses_in_order(computation), widened(order)
        at_cse = UsesAtCse(computation, uses)
        normalized = restore_normalized_users(computation, order, uses, ids_known=ids_known)
        for instruction in computation:
            users = instruction.users
            if len(users) < 2:
                continue
            if instruction not in normalized:
                users = _as_program_has_it(instruction, order, taken, at_cse, program, ids_known=ids_known)
            users = _as_normalization_leaves_it(instruction, users, uses, wide, order)
            if instruction not in normalized:
                users = with_clamps_behind(instruction, users, order)
                users = with_dot_operands_in_place(instruction, users, order)
                if ids_known:
                    users = _as_age_tells(instruction, users, order, taken, at_cse)
                users = with_readers_in_place(instruction, users)
            instruction.users[:] = users


def _as_program_has_it(
    producer: Instruction,
    order: dict[Instruction, int],
    taken: SoftmaxReaders,
    at_cse: UsesAtCse,
    program: Program,
    *,
    ids_known: bool,
) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = sorted(producer.users, key=lambda u: u.opcode == "fusion")
    if is_merged_literal(producer):
        users, gone = with_those_in_softmax(producer, users, order, taken)
        users = without(in_order_of_functions(producer, users, at_cse, ids_known=ids_known), gone)
        users = with_products_gone(producer, users, program.order or order, program.products)
    else:
        users = in_order_of_calls(producer, users, ids_known=ids_known)
    users = with_last_behind_merged_in_front(producer, users)
    users = with_merged_broadcasts(producer, users, order)
    users = with_twins_users_behind(producer, users, ids_known=ids_known)
    return with_last_in_place_of_reshape_back(producer, users)


def _as_normalization_leaves_it(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    order: dict[Instruction, int],
) -> list[Instruction]:
    if is_widening(producer) or is_widened_broadcast(producer):
        # Every user got one of its own; CSE made them one, in the order of the walk.
        return sorted(users, key=lambda user: uses[producer, user])
    if producer in wide:
        users = users_of_widened(producer, users, uses, wide, order)
    users = with_split_reductions_behind(with_swapped_behind(users))
    return with_gemms_behind(producer, users, order)


def _as_age_tells(
    producer: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    taken: SoftmaxReaders,
    at_cse: UsesAtCse,
) -> list[Instruction]:
    if is_widening(producer) or is_widened_broadcast(producer):
        return users
    if is_bits_of_key(producer):
        return sorted(users, key=_age)
    if producer.opcode == "broadcast" and _made_together(producer, users):
        users = at_cse.sorted(producer, sorted(users, key=_age))
        return without_those_in_softmax(producer, users, order, taken)
    if is_broadcast_of_constant(producer) and not is_merged_literal(producer):
        return without_those_in_softmax(producer, users, order, taken)
    users = in_order_of_keys(producer, with_narrowed_behind(users))
    return with_moved_in_front(producer, users, at_cse)


def _made_together(broadcast: Instruction, users: list[Instruction]) -> bool:
    """The users were made one after the other, right behind the broadcast or by one pass for it."""
    if all(name_before_renaming(u).root == "multiply" == u.opcode for u in users):
        return True  # division by a constant became multiplication
    ids = [u.id for u in users]
    return min(ids) > broadcast.id and max(ids) - broadcast.id == len(ids)


def _age(instruction: Instruction) -> int:
    return instruction.id
