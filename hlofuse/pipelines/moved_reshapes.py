"""Values that were reshaped before they were used, until ReshapeMover moved the reshape."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import (
    is_made_by_pass,
    is_of_called,
    is_of_program,
    name_before_renaming,
    operation,
)


def with_moved_in_front(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a reduction with the last one in front, if ReshapeMover made that.

    It moves the reshape behind an element-wise operation, which reads the reduction then
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`). The reshape, the only user before, goes and the
    last user takes its place. Ids have to be XLA's.
    """
    if producer.opcode != "reduce" or is_made_by_pass(producer) or len(users) < 2:
        return users
    if not all(is_made_by_pass(u) for u in users):
        return users
    *others, last = sorted(users, key=lambda u: u.id)
    return [last, *others] if last.opcode in ELEMENTWISE_OPCODES and is_of_program(last) else users


def behind_moved_reshapes(computation: Computation) -> frozenset[Instruction]:
    """Element-wise operations that ReshapeMover cloned to compute in front of a reshape.

    A clone is young and asks for the name of what it was cloned of, which is taken; it gets the first
    number that is free, which is lower than those of the program. Ids have to be XLA's.
    """
    first = min((x.id for x in computation if _was_division(x)), default=None)
    young: list[Instruction] = []
    lowest: dict[str, int] = {}
    for x in computation:
        if x.opcode not in ELEMENTWISE_OPCODES or not is_of_program(x):
            continue
        if (first is not None and x.id > first) or (is_made_by_pass(x) and not is_of_called(x)):
            young.append(x)
        else:
            root, number = name_before_renaming(x)
            lowest[root] = min(number, lowest.get(root, number))
    names = {x: name_before_renaming(x) for x in young}
    return frozenset(x for x, name in names.items() if name.number < lowest.get(name.root, name.number + 1))


def _was_division(x: Instruction) -> bool:
    """A division no more: the first simplification makes it, after calls have been inlined."""
    return x.opcode == "multiply" == name_before_renaming(x).root and operation(x) == "div"


def with_last_in_place_of_reshape(
    producer: Instruction, users: list[Instruction], moved: frozenset[Instruction]
) -> list[Instruction]:
    """The users of one of `moved`. A reshape was the only one, until it went as well.

    Simplification appended what had read it, and the last took its place (`ReplaceInstruction`,
    `xla/hlo/ir/hlo_computation.cc`); or it went with its last reader, which was moved in front of it.
    """
    if all(u.id < producer.id for u in users):
        # What calls brought in when they were inlined may be younger than what reads it for no such reason.
        return users if is_of_called(producer) else [users[-1], *users[:-1]]
    *others, last = sorted(users, key=lambda u: u.id)
    if others[0].id < producer.id or last.opcode not in ELEMENTWISE_OPCODES or not is_of_program(last):
        return users
    came_alone = not any(u in moved for u in others) if last in moved else all(u in moved for u in others)
    return [last, *others] if came_alone else users
