"""Broadcasts of numbers that are written in the program, in whatever function.

The framework makes one such broadcast for each function that needs it: what a program and the functions it
calls use was as many broadcasts. HloCSE (`xla/service/hlo_cse.cc`) keeps the first of them in post-order and
appends the users of each other one in turn.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.constants import is_broadcast_of_constant
from hlofuse.pipelines.names import is_made_by_pass, is_of_call, outermost_call, stack_frame
from hlofuse.pipelines.widened import served_by


def is_literal(x: Instruction) -> bool:
    """Is it a broadcast of a number written in the program, rather than of one that was computed?"""
    return is_broadcast_of_constant(x) and not x.op_name


def in_order_of_functions(users: list[Instruction], *, ids_known: bool) -> list[Instruction]:
    """The users of such a broadcast, by the functions they are of, as the walk came to these."""
    groups: dict[Hashable, list[Instruction]] = {}
    for user in users:
        groups.setdefault(_function(user, ids_known=ids_known), []).append(user)
    return [user for group in groups.values() for user in group]


def _function(user: Instruction, *, ids_known: bool) -> Hashable:
    reader = served_by(user)
    if ids_known and not _is_in_fusion(reader) and is_made_by_pass(reader) and not is_of_call(reader):
        return reader  # with a broadcast of its own
    call = outermost_call(reader)
    return (call, stack_frame(reader), reader.op_name) if call else ""


def _is_in_fusion(x: Instruction) -> bool:
    return x.computation is not None and x.computation.fusion is not None
