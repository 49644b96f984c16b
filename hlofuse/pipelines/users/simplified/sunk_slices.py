"""Operations on slices that became one on the whole, of which the slices are taken.

SliceSinker (`xla/hlo/transforms/simplifiers/slice_sinker.cc`) makes the operation, then the slices in turn.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


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
