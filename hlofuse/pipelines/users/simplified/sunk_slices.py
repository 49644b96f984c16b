"""Operations on slices that became one on the whole, of which the slices are taken.

SliceSinker (`xla/hlo/transforms/simplifiers/slice_sinker.cc`) makes the operation, then the slices in turn.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def in_order_of_sinking(producer: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of such an operation, slices made right behind it; `passes` gave ids from that on."""
    if producer.opcode not in ELEMENTWISE_OPCODES or producer.id < passes:
        return users
    if any(u.opcode != "slice" or operation(u) == "pad" for u in users):  # gradients of pads are sliced, too
        return users
    made = sorted(users, key=lambda u: u.id)
    return made if made[0].id == producer.id + 1 and made[-1].id == producer.id + len(made) else users
