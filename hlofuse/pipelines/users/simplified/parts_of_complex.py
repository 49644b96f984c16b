"""Who reads a part of a complex number that was put together in the program.

AlgebraicSimplifier gives the users of the part to what the number was put together of (`HandleReal` and
`HandleImag`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), behind those that read that.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_angles_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a part of a number with those behind that compute the angle of it.

    Where both parts are one convert there were two until CSE: who negates the imaginary one read the other.
    """
    together = {tuple(u.operands) for u in users if u.opcode == "complex"}
    if not together:
        return users
    is_merged = producer.opcode == "convert" and (producer, producer) in together

    def step(u: Instruction) -> int:
        if u.opcode == "negate" and is_merged:
            return 2
        return int(u.opcode == "atan2" and tuple(u.operands[::-1]) in together)

    return sorted(users, key=step)
