"""Values that were reshaped before they were used, until the reshape was moved behind the use."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages import is_in_nameless_function
from hlofuse.pipelines.names import is_made_by_pass, is_of_program, outermost_call, stack_frame
from hlofuse.pipelines.widened import is_inserted_convert

_RESHAPED_FOR_EACH = ELEMENTWISE_OPCODES | {"parameter", "slice"}


def with_moved_in_front(producer: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of a value with the last of those in front that ReshapeMover made.

    It makes all element-wise operations on what was reshaped anew, on what it was reshaped from, and reshapes
    the results (`xla/hlo/transforms/simplifiers/reshape_mover.cc`). The reshape in front, a user from the
    beginning, goes and the last user takes its place. `passes` is the first id that a pass gave.
    """
    moved = sorted((u for u in users if _is_moved(u, passes)), key=lambda u: u.id)
    others = [u for u in users if u not in moved]
    if not moved or not _was_reshaped_once(producer, moved, others, passes):
        return users
    if producer.id > moved[-1].id and (others or is_of_program(producer)):
        return users  # it was made anew later
    in_front = users[: min(map(users.index, moved))]
    place = sum(u.id < passes and not is_made_by_pass(u) for u in in_front)
    return [*others[:place], moved[-1], *others[place:], *moved[:-1]]


def _was_reshaped_once(
    x: Instruction, moved: list[Instruction], others: list[Instruction], passes: int
) -> bool:
    """Was it reshaped for those together that were `moved`?"""
    if x.opcode in {"broadcast", "iota"}:
        return False  # it is made anew in the shape of who reads it
    if x.id >= passes or x.opcode not in _RESHAPED_FOR_EACH:
        return True
    if not is_of_program(x):
        return False
    # The framework reshapes what is written in different places for each of them.
    if len(moved) == 1:
        return all(is_inserted_convert(u) for u in others)
    return len({(stack_frame(u), u.op_name and outermost_call(u)) for u in moved}) == 1


def _is_moved(x: Instruction, passes: int) -> bool:
    if x.id < passes or x.opcode not in ELEMENTWISE_OPCODES:
        return False
    return is_of_program(x) and not is_in_nameless_function(x)
