"""Narrow broadcasts that float normalization widened: the convert behind each was swapped with it.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) put the convert in; how the two
were swapped is said in `swapped_converts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.reordering import reorder_users
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users.floats.inserted_converts import is_widening
from hlofuse.pipelines.users.floats.widened import is_same_broadcast


class Swapped(NamedTuple):
    """One such broadcast."""

    broadcast: Instruction
    convert: Instruction
    """Behind it; nobody reads that any more."""
    wide: Instruction
    """The broadcast of the converted constant, which is read instead."""


def swapped_broadcasts(order: Iterable[Instruction]) -> list[Swapped]:
    """Those in a computation of this post-order that one operation reads: of several CSE merged converts."""
    return [
        Swapped(x.operands[0], x, wide)
        for x in order
        if is_widening(x) and not x.users and x.operands[0].opcode == "broadcast"
        for wide in [_wide_broadcast(x.operands[0])]
        if wide is not None and len(wide.users) == 1
    ]


def _wide_broadcast(narrow: Instruction) -> Instruction | None:
    converts = (x for x in narrow.operands[0].users if is_widening(x))
    return next((u for x in converts for u in x.users if is_same_broadcast(u, narrow)), None)


def swap_back(graph: ShadowGraph, swapped: Iterable[Swapped]) -> None:
    """Have the narrow broadcasts read as before float normalization."""
    place = {node: k for k, node in enumerate(graph.nodes)}
    for x in swapped:
        broadcast, convert, wide = graph.of[x.broadcast], graph.of[x.convert], graph.of[x.wide]
        convert.dead = True
        broadcast.users.remove(convert)
        for user in wide.users:
            user.operands = [broadcast if o is wide else o for o in user.operands]
            broadcast.add_user(user)
        wide.users = []
        broadcast.users.sort(key=place.__getitem__)


def give_order_as_swapped(node: Node, x: Swapped) -> bool:
    """Give the broadcast the order of the node's users; False where these are not its users.

    What was widened read the convert from then on, which took its place.
    """
    readers = [u.source for u in node.users if u.source is not None]
    return reorder_users(x.broadcast, [x.convert if u in x.wide.users else u for u in readers])
