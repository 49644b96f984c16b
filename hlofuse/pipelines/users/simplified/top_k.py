"""The largest elements, which are slices of what a sort gives."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.holes import last_in_front, without


def with_last_in_place_of_tuple(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a slice with the last of them in front.

    TopkDecomposer (`xla/service/topk_rewriter.cc`) makes a sort, slices and a tuple of these. The tuple goes
    when what was taken out of it has found its users, and the last user takes its place. That was a reshape
    where ReshapeMover made an operation anew in front of it, which took the place of the reshape in turn.
    Where the program takes the elements without their places the slice itself replaces them.

    AlgebraicSimplifier (`HandleSlice`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) has slices
    of the elements read the sort since; the last user takes their places, too. `order` is the post-order.

    More dimensions than two were reshaped in front of the sort, and the tuple was of what was reshaped back.
    """
    if _is_largest_reshaped(producer):
        return users if _is_without_places(producer.operands[0].operands[0]) else last_in_front(users)
    if producer.opcode != "slice" or is_of_program(producer) or operation(producer) != "top_k":
        return users
    gone = [u for u in _slices_of_largest(producer.operands[0]) if is_of_program(u)]
    if gone:
        listed = sorted([*users, *gone], key=order.__getitem__)
        listed = listed if _is_without_places(producer.operands[0]) else last_in_front(listed)
        return without(listed, sorted(gone, key=order.__getitem__))
    if _is_without_places(producer.operands[0]):
        return users
    if len(users) == 2 and any(map(_is_in_front_of_reshape, users)):
        return sorted(users, key=lambda u: u.opcode == "bitcast")
    return last_in_front(users)


def with_slices_of_largest_behind(elements: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the sorted `elements`: slices of the largest came to read them, as told above."""
    slices = _slices_of_largest(elements)
    return [*(u for u in users if u not in slices), *slices]


def _slices_of_largest(elements: Instruction) -> list[Instruction]:
    """The slices of sorted `elements` that were slices of the largest, in the order they were made."""
    slices = [u for u in elements.users if u.opcode == "slice"]
    largest = [u for u in slices if operation(u) == "top_k" and not is_of_program(u)]
    if len(largest) != 1 or len(slices) != len(elements.users):
        return []
    return sorted((u for u in slices if u not in largest), key=lambda u: u.id)


def _is_largest_reshaped(x: Instruction) -> bool:
    """Is it a reshape back of the slice, to the dimensions of the program?"""
    if x.opcode != "bitcast" or x.shape.rank < 3 or operation(x) != "top_k":
        return False
    (largest,) = x.operands
    if largest.opcode != "slice" or operation(largest) != "top_k" or largest.shape.rank != 2:
        return False
    return x.shape.dimensions[-1] == largest.shape.dimensions[-1]


def _is_in_front_of_reshape(x: Instruction) -> bool:
    """Is it read through a reshape alone that bears its name?"""
    behind = all(u.opcode == "bitcast" and u.op_name == x.op_name for u in x.users)
    return x.opcode in ELEMENTWISE_OPCODES and bool(x.users) and behind


def _is_without_places(elements: Instruction) -> bool:
    """Are `elements` the first result of a sort, of which nothing reads another?"""
    if elements.opcode != "get-tuple-element" or elements.tuple_index:
        return False
    (sort,) = elements.operands
    return not any(u.users and u.tuple_index for u in sort.users if u.opcode == "get-tuple-element")
