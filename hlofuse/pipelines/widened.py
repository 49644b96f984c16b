"""What float normalization made compute in single precision, and how it left the users."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import INTEGER_TYPES
from hlofuse.pipelines.holes import without
from hlofuse.pipelines.visits import Uses

_NARROW = frozenset(
    "bf16 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e3m4 f4e2m1fn f8e8m0fnu".split()
)
"""Types that `GpuCompiler::OptimizeHloPostLayoutAssignment` (`xla/service/gpu/gpu_compiler.cc`) widens."""
_WIDE = frozenset({"f16", "f32"})
"""What is computed in instead."""


def is_narrow(x: Instruction) -> bool:
    """Is it an array of such a type?"""
    return x.shape.is_array and x.shape.element_type in _NARROW


def is_inserted_convert(instruction: Instruction) -> bool:
    """Was it put in front of or behind what cannot compute in the program's precision?"""
    return is_narrowing(instruction) or is_widening(instruction)


def is_narrowing(instruction: Instruction) -> bool:
    """Was it put behind such an instruction?"""
    return _is_unnamed_convert(instruction) and instruction.shape.element_type in _NARROW


def is_widening(instruction: Instruction) -> bool:
    """Was it put in front of such an instruction?

    A convert of the program from integers, which would make narrow numbers, has taken it in.
    """
    if not _is_unnamed_convert(instruction) or instruction.shape.element_type not in _WIDE:
        return False
    before = instruction.operands[0].shape.element_type
    return before in _NARROW or before in INTEGER_TYPES


def _is_unnamed_convert(x: Instruction) -> bool:
    return x.opcode == "convert" and not x.op_name


def is_widened_broadcast(instruction: Instruction) -> bool:
    """A broadcast of a convert that was put in behind it; the broadcast of before is still there."""
    if instruction.opcode != "broadcast" or not is_widening(instruction.operands[0]):
        return False
    return any(is_same_broadcast(instruction, old) for old in instruction.operands[0].operands[0].users)


def is_same_broadcast(new: Instruction, old: Instruction) -> bool:
    """The same broadcast, maybe of another type."""
    return (
        new.opcode == old.opcode == "broadcast"
        and old.shape.dimensions == new.shape.dimensions
        and old.attributes.get("dimensions") == new.attributes.get("dimensions")
    )


def served_by(user: Instruction) -> Instruction:
    """What an inserted convert was put in front of; other users serve themselves."""
    if not is_widening(user):
        return user
    if user.users:
        return min(user.users, key=lambda u: u.id)
    broadcast = user.operands[0]
    if broadcast.opcode == "broadcast":
        # The two were swapped: what used the convert uses another broadcast now.
        for lifted in broadcast.operands[0].users:
            for new in lifted.users if lifted.opcode == "convert" else ():
                if is_same_broadcast(new, broadcast) and new.users:
                    return min(new.users, key=lambda u: u.id)
    return user


def widened(order: Iterable[Instruction]) -> frozenset[Instruction]:
    """Instructions that were narrow in the program and are f32 now.

    An element-wise operation was, if an operand was: their types are equal. A reduction says so by what
    it starts with. `order` is the post-order of a computation.
    """
    found: set[Instruction] = set()
    for x in order:
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
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    order: dict[Instruction, int],
) -> list[Instruction]:
    """The users of what was narrow, as FloatNormalization and SimplifyFPConversions leave them.

    A convert back came behind the users, and took all of them over but a convert to f32 of the program; the
    users of that read the producer at once, and it went. Those that had been widened as well got a convert
    to f32 each, until pairs of converts were removed, in the order of the walk. The convert back went when
    nobody used it any more (`xla/hlo/transforms/simplifiers/float_normalization.cc` and
    `simplify_fp_conversions.cc`). `order` is the post-order.
    """
    back = next((u for u in users if is_narrowing(u)), producer)
    at_once = [u for u in users if u not in wide and not is_narrowing(u)]
    later = [u for u in users if u in wide]
    narrow = back.users if back is not producer else []
    of_program = [*dict.fromkeys(None if u in at_once else u for u in (*at_once, *later, *narrow))]
    place = {u: order[u] for u in (*users, *narrow)}
    convert = min((place[u] for u in at_once), default=-1)
    of_program.sort(key=lambda u: convert if u is None else place[u])
    listed: list[Instruction | None] = without([*of_program, back], [u for u in of_program if u is not None])
    listed += at_once
    if at_once:
        listed = without(listed, [None])
    later.sort(key=lambda user: uses[producer, user])
    listed += later
    if back is producer:
        listed = without(listed, [back])
    return [u for u in listed if u is not None]
