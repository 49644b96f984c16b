"""What a program computes alike in several turns of one expression, such as the moments of an optimizer.

`a * m + b * g` is computed for each parameter, and more than once by some optimizers: where gradients are the
same, so is `b * g`, of which HloCSE (`xla/service/hlo_cse.cc`) keeps the first. The framework numbers
operations of one name as it makes them: beside what else the second sum reads a number is missing.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.numbers import Numbers


def with_last_in_place_of_siblings(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int], numbers: Numbers
) -> list[Instruction]:
    """The users of a number that is one in the program, given that twins of some went from among them."""
    if producer.opcode != "broadcast" or producer.op_name or not is_made_of_nothing(producer):
        return users
    if users != sorted(users, key=order.__getitem__):
        return users
    twins = sorted(place for u in users for place in _readers_of_twins(u, order, numbers))
    if not twins:
        return users
    listed = [*((order[u], u) for u in users), *((place, None) for place in twins)]
    listed.sort(key=lambda entry: entry[0])
    return [u for _, u in without(listed, [(place, None) for place in twins]) if u is not None]


def _readers_of_twins(x: Instruction, order: dict[Instruction, int], numbers: Numbers) -> list[int]:
    """Where those of its readers are that had one like `x` of their own."""
    if not is_of_program(x):
        return []
    readers = sorted(dict.fromkeys(x.users), key=order.__getitem__)
    root, number = name_before_renaming(x)
    apart = [_sibling(x, r) for r in readers]
    if len(readers) < 2 or apart[0] is None:
        return []
    step = apart[0] - number
    if abs(step) != 1:
        return []  # other operations of that name came between
    others = zip(readers[1:], apart[1:], strict=True)
    return [order[r] for r, at in others if at is not None and at - step not in numbers[root]]


def _sibling(x: Instruction, reader: Instruction) -> int | None:
    """The number of what is named like `x` and read beside it; None if there is not one."""
    others = [o.operands[0] if o.opcode == "bitcast" else o for o in reader.operands if o is not x]
    own = name_before_renaming(x).root
    if not is_of_program(reader) or len(others) != 1 or not is_of_program(others[0]):
        return None
    root, number = name_before_renaming(others[0])
    return number if root == own else None
