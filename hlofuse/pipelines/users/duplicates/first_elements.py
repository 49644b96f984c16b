"""First elements of what is scanned from that very element on, as `scan(f, xs[0], xs)` is.

The scan takes it once more. ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moves what
reads the one in front of its reshape, HloCSE (`xla/service/hlo_cse.cc`) makes the two slices one, and what
reads the other is moved then: each was alone with its reshape, and comes behind those before it.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert


def is_first_of_scan_from_it(x: Instruction, passes: int) -> bool:
    """Is it such an element, and are its users two that were made from `passes` on, one for each slice?

    It is in a place of its own; the scan has the next element, of which it computes the same.
    """
    if x.opcode != "slice" or len(x.users) != 2 or not all(_is_moved(u, passes) for u in x.users):
        return False
    dimension = _dimension_of_first(x)
    if dimension is None:
        return False
    place = stack_frame(x)
    beside = (u for u in x.operands[0].users if u.opcode == "slice" and stack_frame(u) not in {0, place})
    return place != 0 and any(_begins_at_second(u, x, dimension) and _is_read_alike(u, x) for u in beside)


def in_order_of_elements(users: list[Instruction]) -> list[Instruction]:
    """The `users` of such an element, which came one after the other."""
    return sorted(users, key=lambda u: _read(u).id)


def _is_moved(user: Instruction, passes: int) -> bool:
    reader = _read(user)
    return reader.opcode in ELEMENTWISE_OPCODES and reader.id >= passes


def _read(user: Instruction) -> Instruction:
    """What FloatNormalization put the convert `user` in front of, since; `user` itself otherwise."""
    return user.users[0] if is_inserted_convert(user) and len(user.users) == 1 else user


def _dimension_of_first(x: Instruction) -> int | None:
    sizes = x.operands[0].shape.dimensions
    cut = [d for d, r in enumerate(x.attributes["slice"]) if (r.start, r.limit) != (0, sizes[d])]
    if len(cut) != 1:
        return None
    taken = x.attributes["slice"][cut[0]]
    return cut[0] if (taken.start, taken.limit) == (0, 1) else None


def _begins_at_second(u: Instruction, first: Instruction, dimension: int) -> bool:
    taken = u.attributes["slice"][dimension]
    return u.shape.dimensions == first.shape.dimensions and (taken.start, taken.limit) == (1, 2)


def _is_read_alike(u: Instruction, x: Instruction) -> bool:
    places = {(v.op_name, stack_frame(v)) for v in map(_read, x.users)}
    return any((v.op_name, stack_frame(v)) in places for v in map(_read, u.users))
