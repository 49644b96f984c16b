"""Elements of tuples, and what lies behind them (`FollowTupleIndirection`, `FollowNoOpIndirection`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction

Index = tuple[int, ...]
"""A path into a nested tuple (`ShapeIndex`)."""


def element_given(x: Instruction) -> int | None:
    """Which element of what its computation is given `x` is; None for anything else."""
    is_element = x.opcode == "get-tuple-element" and x.operands[0].opcode == "parameter"
    return x.tuple_index if is_element else None


def follow_tuples(instruction: Instruction, index: Index) -> tuple[Instruction, Index]:
    """Where the element at `index` really comes from: tuples first, then get-tuple-elements."""
    while instruction.opcode == "tuple" and index:
        instruction, index = instruction.operands[index[0]], index[1:]
    while instruction.opcode == "get-tuple-element":
        instruction, index = instruction.operands[0], (instruction.tuple_index, *index)
    return instruction, index


def follow_tuples_and_bitcasts(instruction: Instruction, index: Index) -> tuple[Instruction, Index]:
    """The same, then through any number of bitcasts of a whole array."""
    instruction, index = follow_tuples(instruction, index)
    while not index and instruction.opcode == "bitcast":
        instruction = instruction.operands[0]
    return instruction, index
