"""First elements of two or three, taken once as such and once as every other element.

An associative scan computes of pairs until a pair is left, and puts the first element in front of what it
gets: `x[:1]`, and `x[:-1:2]`, which AlgebraicSimplifier makes a slice without steps where it is one element
(`HandleSlice`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). HloCSE (`xla/service/hlo_cse.cc`)
keeps the one that is met first, in front, and appends the users of the other to its own.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_at


def in_order_of_slices(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such an element: what it is put in front of, then the others as they are in the program.

    Of what it is the element of, the last user takes the place of the other slice.
    """
    if _is_taken_twice(producer):
        return sorted(users, key=lambda u: (not _is_put_in_front(producer, u), order[u]))
    place = next((k for k, u in enumerate(users, 1) if _is_taken_twice(u)), None)
    return users if place is None else last_at(users, place)


def _is_taken_twice(x: Instruction) -> bool:
    """Is it such an element, put in front of something, of what the next is taken of as well?"""
    dimension = _dimension(x)
    if dimension is None or not any(_is_put_in_front(x, u) for u in x.users):
        return False
    return any(_is_next(u, x, dimension) for u in x.operands[0].users)


def _is_put_in_front(x: Instruction, reader: Instruction) -> bool:
    return reader.opcode in {"concatenate", "pad"} and reader.operands[0] is x and _is_beside(x, reader)


def _is_next(u: Instruction, x: Instruction, dimension: int) -> bool:
    """Is `u` the slice of the element behind that of `x`, in the same place of the program?"""
    if u.opcode != "slice" or u.op_name != x.op_name or not _is_beside(x, u):
        return False
    taken = u.attributes["slice"][dimension]
    return (taken.start, taken.limit) == (1, 2)


def _is_beside(x: Instruction, y: Instruction) -> bool:
    return stack_frame(x) == stack_frame(y) != 0


def _dimension(x: Instruction) -> int | None:
    """Of which dimension, of two or three elements, it is the first, and the whole of all others."""
    if x.opcode != "slice" or operation(x) != "slice":
        return None
    sizes = x.operands[0].shape.dimensions
    taken = [(r.start, r.limit) for r in x.attributes["slice"]]
    cut = [d for d, size in enumerate(sizes) if taken[d] != (0, size)]
    if len(cut) != 1 or taken[cut[0]] != (0, 1):
        return None
    return cut[0] if sizes[cut[0]] in {2, 3} else None
