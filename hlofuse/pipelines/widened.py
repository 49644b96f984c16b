"""What float normalization made compute in single precision, and how it left the users."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.visits import Uses

_NARROW = frozenset({"bf16"})


def is_inserted_convert(instruction: Instruction) -> bool:
    """Was it put in front of or behind what cannot compute in less than single precision?"""
    return instruction.opcode == "convert" and not instruction.op_name


def is_narrowing(instruction: Instruction) -> bool:
    """Was it put behind such an instruction?"""
    return is_inserted_convert(instruction) and instruction.shape.element_type in _NARROW


def widened(computation: Computation) -> frozenset[Instruction]:
    """Instructions that were narrow in the program and are f32 now.

    An element-wise operation was, if an operand was: their types are equal. A reduction says so by what
    it starts with.
    """
    found: set[Instruction] = set()
    for x in computation.post_order():
        if x.shape.is_tuple or x.shape.element_type != "f32" or x.opcode in {"convert", "parameter"}:
            continue
        if x.opcode == "reduce":
            narrow = is_inserted_convert(x.operands[1])
        else:
            narrow = is_elementwise(x) and any(o in found or is_inserted_convert(o) for o in x.operands)
        if narrow or any(is_narrowing(u) for u in x.users):
            found.add(x)
    return frozenset(found)


def users_of_widened(
    producer: Instruction, users: list[Instruction], uses: Uses, wide: frozenset[Instruction]
) -> list[Instruction]:
    """The users of what was narrow.

    Float normalization handed all of them to a convert back, and those that it widened got a convert to
    f32 from it; what had used such a convert in the program got the producer at once. Then pairs of
    converts were removed, in the order of the walk. The convert back went when nobody used it any
    more, and the last user took its place.
    """
    back = [u for u in users if is_narrowing(u)]
    at_once = [u for u in users if u not in wide and not is_narrowing(u)]
    later = sorted([u for u in users if u in wide], key=lambda user: uses[producer, user])
    users = [*back, *at_once, *later]
    return users if back or not later else [users[-1], *users[:-1]]
