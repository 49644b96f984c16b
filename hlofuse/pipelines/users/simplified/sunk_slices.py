"""Operations on slices that became one on the whole, of which the slices are taken.

SliceSinker (`xla/hlo/transforms/simplifiers/slice_sinker.cc`) makes the operation, then the slices in turn.
"""

from __future__ import annotations

from functools import partial

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import behind_last


def in_order_of_sinking(producer: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of such an operation, slices made right behind it; `passes` gave ids from that on.

    What reads the whole was made of slices as well, behind those. ConvertMover may have made a convert anew
    since.
    """
    if producer.opcode not in ELEMENTWISE_OPCODES or producer.id < passes:
        return users
    made = sorted(users, key=lambda u: u.id)
    slices = [u for u in made if u.opcode == "slice"]
    if not slices or any(operation(u) == "pad" for u in slices):  # gradients of pads are sliced, too
        return users
    first, others = made[0].id, made[len(slices) :]
    if slices[-1].id - first != len(slices) - 1 or any(u.opcode not in ELEMENTWISE_OPCODES for u in others):
        return users
    was_made_anew = producer.opcode == "convert" and producer.id > made[-1].id and first >= passes
    return made if first == producer.id + 1 or was_made_anew else users


def with_whole_behind_slices(users: list[Instruction]) -> list[Instruction]:
    """The users of an array, with what is computed of it as a whole behind the slice that was read before."""
    if not any(u.opcode == "slice" for u in users):
        return users
    for whole in filter(_is_sliced, users):
        users = behind_last(users, whole, partial(_was_read_by, whole))
    return users


def with_own_reader_first(part: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a slice that was moved behind what has a place in the source: CSE kept that of its own."""
    if part.opcode != "slice":
        return users
    (whole,) = part.operands
    if not is_sliced_since(whole):
        return users
    return sorted(users, key=lambda u: stack_frame(u) != stack_frame(whole))


def is_sliced_since(whole: Instruction) -> bool:
    """Is it computed as a whole where the program has a slice in front, which others read as well?"""
    return _is_sliced(whole) and any(_was_read_by(whole, u) for o in whole.operands for u in o.users)


def _was_read_by(whole: Instruction, part: Instruction) -> bool:
    """Is `part` an older slice of what the sliced `whole` is computed of, which is sliced in the same way?"""
    if part.opcode != "slice" or part.id > whole.id or part.operands[0] not in whole.operands:
        return False
    ranges = part.attributes.raw("slice")
    return all(u.attributes.raw("slice") == ranges for u in whole.users)


def _is_sliced(whole: Instruction) -> bool:
    if whole.opcode not in ELEMENTWISE_OPCODES or not whole.users:
        return False
    return all(u.opcode == "slice" for u in whole.users)
