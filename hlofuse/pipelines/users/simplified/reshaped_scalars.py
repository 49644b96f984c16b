"""Broadcasts of scalars that were reshaped.

AlgebraicSimplifier makes one broadcast of the scalar instead (`HandleReshape`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), which comes behind the one that the program has.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation
from hlofuse.pipelines.users.common.numbers import Numbers


def with_reshaped_behind(scalar: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `scalar` where both broadcasts, and nothing else, read it.

    A number made wider or narrower for its readers was given to them anew, and is left alone.
    """
    if scalar.opcode == "convert" or scalar.shape.rank or [u.opcode for u in users] != ["broadcast"] * 2:
        return users
    written, reshaped = sorted(users, key=is_of_program, reverse=True)
    if not is_of_program(written) or is_of_program(reshaped) or written.op_name != reshaped.op_name:
        return users
    return [written, reshaped] if written.id < reshaped.id else users


def with_later_reshaped_in_front(
    scalar: Instruction, users: list[Instruction], numbers: Numbers
) -> list[Instruction]:
    """The users of a `scalar`, of which several broadcasts were reshaped by ReshapeMover.

    `HandleBroadcast` makes a broadcast for the reshape that reads the one visited, and `HandleReshape`
    another for that reshape, which nobody reads by then. That one takes the place of the first broadcast,
    which goes. When it goes as well the last user takes its place, and so on: the last come first.
    What has no name of the program's was made since, and given its users anew.
    """
    if not scalar.op_name:
        return users
    places = [k for k, u in enumerate(users) if _is_for_reshape(u, numbers)]
    listed = list(users)
    for place, u in zip(places, [users[k] for k in reversed(places)], strict=True):
        listed[place] = u
    return listed


def _is_for_reshape(x: Instruction, numbers: Numbers) -> bool:
    """Is it such a broadcast, which the number behind its own, missing in all names, tells?"""
    if x.opcode != "broadcast" or x.operands[0].shape.rank or operation(x) != "broadcast_in_dim":
        return False
    name = name_before_renaming(x)
    return name.root == x.opcode and name.number > 0 and name.number + 1 not in numbers[name.root]
