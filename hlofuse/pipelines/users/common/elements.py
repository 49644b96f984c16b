"""Slices that are the first element of an array along one dimension, or the next."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction

_FIRST, _SECOND = (0, 1), (1, 2)


def dimension_of_first(x: Instruction) -> int | None:
    """Of which dimension the slice `x` is the first element, and the whole of all others; None if of none."""
    sizes = x.operands[0].shape.dimensions
    taken = [(r.start, r.limit) for r in x.attributes["slice"]]
    cut = [d for d, size in enumerate(sizes) if taken[d] != (0, size)]
    return cut[0] if len(cut) == 1 and taken[cut[0]] == _FIRST else None


def is_second(x: Instruction, dimension: int) -> bool:
    """Is the slice `x` the element behind the first of that `dimension`?"""
    taken = x.attributes["slice"][dimension]
    return (taken.start, taken.limit) == _SECOND
