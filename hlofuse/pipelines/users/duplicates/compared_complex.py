"""Complex numbers that the program orders: by the real part, and by the imaginary one where that is equal."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import without


def with_last_in_place_of_real_part(number: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a `number`: the framework takes the real part once to see whether it is equal, and
    behind the imaginary one once more to see which is larger.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the first of the two, and the last user takes the other's place.
    """
    if not number.shape.is_array or not number.shape.element_type.startswith("c"):
        return users
    listed: list[Hashable] = [*users]
    gone: list[Hashable] = []
    for imaginary in users:
        if imaginary.opcode == "imag" and any(_is_ordered_by(u, imaginary) for u in users):
            gone.append(("real", imaginary))
            listed.insert(listed.index(imaginary) + 1, gone[-1])
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


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
