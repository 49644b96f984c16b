"""Pads of a single element that had gaps between elements to begin with.

What slices every other element, as jax.lax.associative_scan does, and what puts two arrays together
alternately is a pad with gaps, the first in its derivative. Where only one element is left there is nothing
between which there could be a gap: AlgebraicSimplifier makes such a pad anew without any, the first time
around (`HandlePad` of `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_on_way_back
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming, stack_frame

_EVERY_OTHER = 2


def pads_of_one(computation: Computation) -> frozenset[Instruction]:
    """Those beside which others of the same place in the source have gaps still.

    The derivative of a scan takes the elements with odd numbers first: what lies in front of all others is a
    slice of neighbours unless one of these is right ahead of it in number.
    """
    pads = [x for x in computation if x.opcode == "pad" and is_told_of_program(x)]
    places = {stack_frame(x) for x in pads if any(d.interior for d in x.attributes["padding"])}
    pads.sort(key=lambda x: name_before_renaming(x).number)
    found: set[Instruction] = set()
    before: Instruction | None = None
    for x in pads:
        if stack_frame(x) in places and _may_be_every_other(x):
            is_first = not any(d.low for d in x.attributes["padding"])
            if not is_first or not is_on_way_back(x) or (before in found and _is_of_odd(before, x)):
                found.add(x)
        before = x
    return frozenset(found)


def _may_be_every_other(x: Instruction) -> bool:
    sizes = x.operands[0].shape.dimensions
    padded = [(d, size) for d, size in zip(x.attributes["padding"], sizes, strict=True) if d.low or d.high]
    return len(padded) == 1 and all(
        size == 1
        and not d.interior
        and 0 <= d.low <= _EVERY_OTHER
        and 0 <= d.high <= (1 if d.low else _EVERY_OTHER)
        for d, size in padded
    )


def _is_of_odd(pad: Instruction, other: Instruction) -> bool:
    """Is it of what has odd numbers among the same elements?"""
    is_first = not any(d.low for d in pad.attributes["padding"])
    return not is_first and pad.shape.dimensions == other.shape.dimensions
