"""Loops and the like of which a result is not read.

The framework takes every result out of the tuple. An element nobody reads has no users, so that the walk
which writes the program down, operands first, starts from it as from the root (`MakeInstructionPostOrder`,
`xla/hlo/ir/hlo_computation.cc`), and comes to it earlier: the root is made last. Lists of users are in
that order when the program is read back.
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_loop_of_one_turn, scope
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.visits import order_of_walk


def started_from(computation: Computation) -> list[Instruction]:
    """What the walk starts from which wrote the program down, besides what has no users now."""
    starts = [x for x in computation if _has_unread_result(x)]
    if not starts:
        return []
    depth = min(_depth(x) for x in computation if is_of_program(x))
    return _with_loops_that_are_gone([x for x in starts if _depth(x) == depth], computation)


def _with_loops_that_are_gone(starts: list[Instruction], computation: Computation) -> list[Instruction]:
    """The `starts`, given what came out of loops of one turn, of which the counter was not read either.

    Whatever is in front of others in the text is likely to have been so in the program.
    """
    gone = [x for x in computation if is_loop_of_one_turn(x)]
    if not gone:
        return starts
    order = {x: k for k, x in enumerate(computation.post_order())}
    last = max(map(order.__getitem__, starts), default=-1)
    listed = list(starts)
    for x in sorted(gone, key=order.__getitem__):
        if order[x] < last:
            listed.insert(next(k for k, s in enumerate(listed) if order[s] > order[x]), x)
    return listed


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
