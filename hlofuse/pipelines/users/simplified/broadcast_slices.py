"""Slices of what a scan goes over that are broadcast, and computed with as they are taken."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import SLICE_OF_SCAN
from hlofuse.pipelines.names import is_of_program


def with_reshape_for_broadcasts_behind(slice_: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a slice: the one that ReshapeMover made of it, then the reshape that broadcasts read.

    A scan drops the dimension it goes along at once, and what is broadcast then gets another. Of the two
    reshapes AlgebraicSimplifier makes one of the slice (`HandleReshape`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), once with the dimension and, after ReshapeMover
    took away who else had read that, once more without it: behind what was moved, as the reshape there was
    at first is gone by then. Of several that were moved another rule tells.
    """
    if slice_.opcode != "dynamic-slice" or not (slice_.op_name or "").endswith(SLICE_OF_SCAN):
        return users
    moved = [u for u in users if _is_moved(u, slice_)]
    reshapes = [u for u in users if u not in moved]
    if len(moved) != 1 or len(reshapes) != 1 or not _is_for_broadcasts(reshapes[0]):
        return users
    return [*moved, *reshapes]


def _is_moved(x: Instruction, slice_: Instruction) -> bool:
    """Does the program compute it, of the slice without its dimension?"""
    is_alike = x.opcode in ELEMENTWISE_OPCODES and x.shape.dimensions == slice_.shape.dimensions
    return is_alike and is_of_program(x)


def _is_for_broadcasts(reshape: Instruction) -> bool:
    return reshape.opcode == "bitcast" and all(u.opcode == "broadcast" for u in reshape.users)
