"""First elements of what is scanned from that very element on, as `scan(f, xs[0], xs)` is.

The scan takes it once more. ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moves what
reads the one in front of its reshape, HloCSE (`xla/service/hlo_cse.cc`) makes the two slices one, and what
reads the other is moved then: each was alone with its reshape, and comes behind those before it.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.elements import dimension_of_first, is_second
from hlofuse.pipelines.users.floats.widened import served_by


def is_first_of_scan_from_it(x: Instruction, passes: int) -> bool:
    """Is it such an element, and are its users two that were made from `passes` on, one for each slice?

    It is in a place of its own; the scan has the next element, of which it computes the same.
    """
    if x.opcode != "slice" or len(x.users) != 2 or not all(_is_moved(u, passes) for u in x.users):
        return False
    dimension = dimension_of_first(x)
    if dimension is None:
        return False
    place = stack_frame(x)
    beside = (u for u in x.operands[0].users if u.opcode == "slice" and stack_frame(u) not in {0, place})
    return place != 0 and any(
        u.shape.dimensions == x.shape.dimensions and is_second(u, dimension) and _is_read_alike(u, x)
        for u in beside
    )


def in_order_of_elements(users: list[Instruction]) -> list[Instruction]:
    """The `users` of such an element, which came one after the other."""
    return sorted(users, key=lambda u: served_by(u).id)


def _is_moved(user: Instruction, passes: int) -> bool:
    reader = served_by(user)
    return reader.opcode in ELEMENTWISE_OPCODES and reader.id >= passes


def _is_read_alike(u: Instruction, x: Instruction) -> bool:
    places = {(v.op_name, stack_frame(v)) for v in map(served_by, x.users)}
    return any((v.op_name, stack_frame(v)) in places for v in map(served_by, u.users))
