"""What a sort gave that a pass made anew as something else, of which a tuple stood for it."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_sorted(result: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a result of such a sort with the last of them in front.

    Where no operand counted, StableSortExpander (`xla/service/stable_sort_expander.cc`) makes the sort anew
    with one that does, and a tuple of the elements that there had been. SortRewriter
    (`xla/backends/gpu/transforms/sort_rewriter.cc`) makes one of what a library's sort of keys with values
    gives, be they elements or unpacked from one. When the tuple went, the last took its place.
    """
    if _is_element_of_sort(result) or _is_unpacked(result):
        return last_in_front(users)
    return users


def _is_element_of_sort(x: Instruction) -> bool:
    return x.opcode == "get-tuple-element" and (
        _is_counted_since(x.operands[0])
        or (_is_sort_of_pairs(x.operands[0]) and not _is_sort_of_one(x.operands[0]))
    )


def _is_counted_since(x: Instruction) -> bool:
    if x.opcode != "sort" or len(x.operands) < 3:
        return False  # one of one operand is no tuple
    counter = x.operands[-1]
    if counter.opcode != "iota" or counter.shape.element_type != "s32":
        return False
    last = len(x.operands) - 1
    return all(u.opcode == "get-tuple-element" and u.tuple_index != last for u in x.users)


def _is_sort_of_pairs(x: Instruction) -> bool:
    return custom_call_target(x) == "xla.gpu.ext.cub_sort_pairs"


def _is_sort_of_one(sort: Instruction) -> bool:
    """Were the keys made of the bits of the values, which are all that was to be sorted?"""
    keys = sort.operands[0]
    return keys.opcode == "select" and {o.opcode for o in keys.operands} >= {"not", "xor"}


def _is_unpacked(x: Instruction) -> bool:
    """Is it the upper or lower half of the values that were sorted, in which both had been packed?"""
    if x.opcode != "bitcast":
        return False
    half = x.operands[0]
    half = half.operands[0] if half.opcode == "not" else half
    if half.opcode != "convert":
        return False
    packed = half.operands[0]
    packed = packed.operands[0] if packed.opcode == "shift-right-logical" else packed
    return packed.opcode == "get-tuple-element" and _is_sort_of_pairs(packed.operands[0])
