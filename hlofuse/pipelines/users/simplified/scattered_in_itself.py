"""Arrays that are scattered into themselves."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_updates_behind(array: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of an `array` with that reshape of it behind which a scatter has beside the array itself.

    ScatterSimplifier (`xla/service/scatter_simplifier.cc`) gives the updates the dimensions that it asks for
    in a reshape, which is appended; the new scatter takes the place of the one of the program.
    """
    behind = [u for u in users if _is_of_updates(u, array)]
    return [*(u for u in users if u not in behind), *behind] if behind else users


def _is_of_updates(x: Instruction, array: Instruction) -> bool:
    if x.opcode != "bitcast" or len(x.users) != 1 or x.op_name != array.op_name:
        return False
    (user,) = x.users
    return user.opcode == "scatter" and array in user.operands
