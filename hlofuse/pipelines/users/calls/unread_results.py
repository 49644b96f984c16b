"""Loops and the like of which a result is not read.

The framework takes every result out of the tuple. An element nobody reads has no users, so that the walk
which writes the program down, operands first, starts from it as from the root (`MakeInstructionPostOrder`,
`xla/hlo/ir/hlo_computation.cc`), and comes to it earlier: the root is made last. Lists of users are in
that order when the program is read back.
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import scope
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.visits import order_of_walk


def started_from(computation: Computation) -> list[Instruction]:
    """What the walk starts from which wrote the program down, besides what has no users now."""
    starts = [x for x in computation if _has_unread_result(x)]
    if not starts:
        return []
    depth = min(_depth(x) for x in computation if is_of_program(x))
    return [x for x in starts if _depth(x) == depth]


def in_order_written(computation: Computation) -> dict[Instruction, int]:
    """Where each instruction stood when the program was written down; empty if it stands there now."""
    starts = started_from(computation)
    if not starts:
        return {}
    return order_of_walk([*starts, *(x for x in computation if not x.users)], lambda x: x.operands)


def _has_unread_result(x: Instruction) -> bool:
    # A reduce with several results, of an argmax, was in a function that leaves no trace in names.
    if x.opcode not in {"while", "conditional", "sort"} or not x.shape.is_tuple:
        return False
    if not is_of_program(x) or scope(x) or any(u.opcode != "get-tuple-element" for u in x.users):
        return False
    return len({u.tuple_index for u in x.users}) < len(x.shape.tuple_shapes)


def _depth(x: Instruction) -> int:
    """In how many loops and branches it was; what was in more than others was inlined from there."""
    name = x.op_name or ""
    return name.count("/body/") + name.count("/branch_")
