"""What selects of the results of conditionals that became selects (`selected_branches`)."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import number_in_name, operation, stack_frame
from hlofuse.pipelines.users.common.fusions import has_dot
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_results(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of such a select: at first it was an element of a tuple, even of one.

    The tuple comes first, or goes if nothing reads all of it. Fusions around what read it were made since.
    """
    if not is_result_of_branches(producer):
        return users
    whole = next((u for u in users if _is_all_results(u, producer)), None)
    if whole is not None:
        return [whole, *(u for u in users if u is not whole)]
    made = [u for u in users if u.opcode == "fusion" and not has_dot(u)]
    return last_in_front([u for u in users if u not in made]) + made


def with_last_in_place_of_handed_on(value: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of a number that a branch gives as several of its results, spread within it.

    The branch ended in a tuple of its results, which goes when the last of its elements is read.
    """
    if value.opcode != "broadcast" or len(users) < 2 or not value.op_name:
        return users
    if not all(is_result_of_branches(u) and u.op_name == value.op_name for u in users):
        return users
    is_spread = any(u.operands[0] is value for u in users)
    return users if is_spread else last_in_front(users)


def is_result_of_branches(x: Instruction) -> bool:
    """Does it select what one branch or the other gives?"""
    return x.opcode == "select" and operation(x) == "cond"


def is_only_result(x: Instruction) -> bool:
    """Is it all that a conditional gives?

    A tuple of it alone, for a branch of the next, is what the conditional gives (`TupleSimplifier`,
    `xla/hlo/transforms/simplifiers/tuple_simplifier.cc`): the branch reads its own element of that, of which
    HloCSE keeps the older.
    """
    return is_result_of_branches(x) and results_beside(x) == [x]


def _is_all_results(x: Instruction, result: Instruction) -> bool:
    return x.opcode == "tuple" and x.op_name == result.op_name and [*x.operands] == results_beside(result)


def results_beside(result: Instruction) -> list[Instruction]:
    """The results of the conditional that gave the `result`, in order."""
    predicate = predicate_of(result)
    results = [x for u in predicate.users for x in results_by(u, predicate) if x.op_name == result.op_name]
    return sorted((x for x in results if stack_frame(x) == stack_frame(result)), key=number_in_name)


def predicate_of(result: Instruction) -> Instruction:
    """By what it is chosen, itself and not as it is spread."""
    predicate = result.operands[0]
    return predicate.operands[0] if predicate.opcode == "broadcast" else predicate


def results_by(user: Instruction, predicate: Instruction) -> list[Instruction]:
    """What chooses by the `predicate` through `user`, itself or spread."""
    if user.opcode == "broadcast":
        return [v for v in user.users if is_result_of_branches(v) and v.operands[0] is user]
    return [user] if is_result_of_branches(user) and user.operands[0] is predicate else []
