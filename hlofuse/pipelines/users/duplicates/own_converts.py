"""Converts that an operation makes of its own operand, while what is beside it made another of the same.

In `x - mean(x)` of a narrow `x` the mean converts it, and so does the difference. HloCSE
(`xla/service/hlo_cse.cc`) keeps the convert that its walk meets first, that of the difference, and appends
the users of the other one.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_on_way_back
from hlofuse.pipelines.names import is_of_program, operation, stack_frame


def is_converted_for_one(x: Instruction, users: list[Instruction]) -> bool:
    """Did an operation convert its own operand to `x`? Nobody else reads that, but what derives it.

    What is younger and stands in the same place is of another turn of it. Ids have to be XLA's.
    """
    place = stack_frame(x)
    if not place or not is_converted(x) or is_on_way_back(x):
        return False
    readers = [_reader(u, x) for u in users]
    # A reduction that a pass split or grouped has the place of the program's.
    if not all((is_of_program(u) or u.opcode == "reduce") and stack_frame(u) for u in readers):
        return False
    own = [u for u in readers if stack_frame(u) == place]
    if any(u.id < x.id for u in own):
        return False
    return any(not is_on_way_back(u) and operation(u) != operation(x) for u in own)


def by_place(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of each place together, those in that of `x` first."""
    rank = {stack_frame(x): -1}
    for k, user in enumerate(users):
        rank.setdefault(stack_frame(_reader(user, x)), k)
    return sorted(users, key=lambda u: rank[stack_frame(_reader(u, x))])


def is_converted(x: Instruction) -> bool:
    return x.opcode == "convert" and operation(x) == "convert_element_type"


def is_of_same_operation(u: Instruction, x: Instruction) -> bool:
    return (stack_frame(u), u.op_name) == (stack_frame(x), x.op_name)


def _reader(user: Instruction, x: Instruction) -> Instruction:
    """What reads `x` through a reshape of ReductionDimensionGrouper, which has a copy of its metadata."""
    is_put_in = user.opcode == "bitcast" and is_of_same_operation(user, x)
    return user.users[0] if is_put_in and len(user.users) == 1 else user


def with_reader_of_kept_first(convert: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `convert` of the program with that first which was made right behind it. Ids are XLA's.

    Others are older than the convert: they read an equal one, and HloCSE (`xla/service/hlo_cse.cc`) appended
    them to the users of the one that its walk met first. A derivative makes none for itself.
    """
    if convert.opcode != "convert" or not is_of_program(convert) or is_on_way_back(convert):
        return users
    if not any(u.id < convert.id for u in users):
        return users
    return sorted(users, key=lambda u: u.id != convert.id + 1)
