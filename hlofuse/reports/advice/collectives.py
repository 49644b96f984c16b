"""Recipes about collectives between devices."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.graph import Instruction
from hlofuse.reports.advice.patterns import combines_by, each, is_constant, only_reader, sum_of
from hlofuse.reports.advice.recipe import Recipe


def _is_mapped_later(x: Instruction) -> bool:
    """True if all that was gathered goes through an operation on each element alone."""
    user = only_reader(x)
    if user is None or user.opcode not in ELEMENTWISE_OPCODES:
        return False
    return all(o is x or is_constant(o) for o in user.operands)


def _is_sliced_later(x: Instruction) -> bool:
    user = only_reader(x)
    return user is not None and user.opcode == "slice" and 4 * user.shape.byte_size <= x.shape.byte_size


def _is_summed_later(x: Instruction) -> bool:
    return combines_by(x, "add") and sum_of(only_reader(x)) is not None


COLLECTIVES = (
    Recipe("map-before-the-gather", "Map before the all-gather", each(_is_mapped_later, "all-gather")),
    Recipe("slice-before-the-gather", "Slice before the all-gather", each(_is_sliced_later, "all-gather")),
    Recipe("sum-before-the-psum", "Sum on each device before the psum", each(_is_summed_later, "all-reduce")),
)
