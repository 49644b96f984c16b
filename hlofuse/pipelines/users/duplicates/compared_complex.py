"""Complex numbers that the program orders: by the real part, and by the imaginary one where that is equal."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_in_front, without


def with_last_in_place_of_real_part(number: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `number`: the framework takes the real part once to see whether it is equal, and
    behind the imaginary one once more to see which is larger.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the first of the two, and the last user takes the other's place.
    Of one element of a vector they were read through a reshape, behind which ReshapeMover
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) put them, and the comparisons after that.
    """
    if _is_part_of_element(number) and any(_is_ordered_by(number, x) for x in number.operands[0].users):
        return last_in_front(users)
    if not number.shape.is_array or not number.shape.element_type.startswith("c"):
        return users
    gone: list[Hashable] = ["reshape"] if _is_element(number) else []
    listed: list[Hashable] = [*gone, *users]
    for imaginary in users:
        if imaginary.opcode == "imag" and any(_is_ordered_by(u, imaginary) for u in users):
            gone.append(("real", imaginary))
            listed.insert(listed.index(imaginary) + 1, gone[-1])
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


def _is_element(x: Instruction) -> bool:
    """Is it `v[0]`, of a vector, which the program made a scalar?"""
    return x.opcode == "slice" and x.shape.dimensions == (1,) and operation(x) == "slice"


def _is_part_of_element(x: Instruction) -> bool:
    return x.opcode == "real" and _is_element(x.operands[0])


def _is_ordered_by(real: Instruction, imaginary: Instruction) -> bool:
    """Are both parts compared in one place, the `real` one twice?

    To find the larger one it takes each part once.
    """
    if real.opcode != "real" or (operation(real), operation(imaginary)) != ("real", "imag"):
        return False
    if stack_frame(real) != stack_frame(imaginary):
        return False
    compared = [u for u in real.users if u.opcode == "compare" and stack_frame(u) == stack_frame(real)]
    directions = {u.attributes.raw("direction") for u in compared}
    ordered = {u.attributes.raw("direction") for u in imaginary.users if u.opcode == "compare"}
    return "EQ" in directions and bool(ordered & (directions - {"EQ"}))
