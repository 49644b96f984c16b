"""What a stable sort gave, which counts along the dimension now to keep equal ones in order."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_sorted(element: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of an element of such a sort with the last of them in front.

    Where no operand counted, StableSortExpander (`xla/service/stable_sort_expander.cc`) makes the sort anew
    with one that does, and a tuple of the elements that there had been. When that went, the last took its
    place.
    """
    if element.opcode != "get-tuple-element" or not _is_counted_since(element.operands[0]):
        return users
    return last_in_front(users)


def _is_counted_since(x: Instruction) -> bool:
    if x.opcode != "sort" or len(x.operands) < 3:
        return False  # one of one operand is no tuple
    counter = x.operands[-1]
    if counter.opcode != "iota" or counter.shape.element_type != "s32":
        return False
    last = len(x.operands) - 1
    return all(u.opcode == "get-tuple-element" and u.tuple_index != last for u in x.users)
