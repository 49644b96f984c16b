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
from hlofuse.pipelines.users.common.ages import came_behind_its_users
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_widening
from hlofuse.pipelines.users.floats.narrow_in_program import is_computed_narrow
from hlofuse.pipelines.users.floats.widened import is_same_broadcast


class Swapped(NamedTuple):
    """One such broadcast."""

    broadcast: Instruction
    convert: Instruction
    """Behind it; nobody reads that any more."""
    wide: Instruction
    """The broadcast of the converted constant, which is read instead."""


def swapped_broadcasts(order: Iterable[Instruction]) -> list[Swapped]:
    """Those in a computation of this post-order."""
    return [x for x in map(_swapped_of, order) if x is not None]


def with_last_in_place_of_merged_converts(
    users: list[Instruction], order: dict[Instruction, int], uses: Uses
) -> list[Instruction]:
    """The users of such a broadcast that several read: each had a convert of its own.

    HloCSE (`xla/service/hlo_cse.cc`) kept the first in post-order (`order`); the last user takes the place of
    each of the others. Where ReshapeMover made the users, each had a broadcast of its own as well, younger
    than it was itself, and CSE came to those in the order of `uses`.
    """
    swapped = next((x for x in map(_swapped_of, users) if x is not None), None)
    if swapped is None:
        return users
    narrow, convert, wide = swapped
    if len(wide.users) == 1 and users[-1] is not convert:
        return users  # it stands where the one that reads it stood
    place = {u: order[u] for u in (*users, *wide.users)}
    readers = [*wide.users, *(u for u in users if u is not convert)]
    if came_behind_its_users(narrow, readers):
        place |= {u: uses[wide, u] for u in wide.users}
        place |= {u: uses[narrow, u] for u in users if u is not convert}
    listed = [u for u in users if u is not convert]
    for reader in (widened := sorted(wide.users, key=place.__getitem__)):
        older = [u for u in listed if place[u] < place[reader]]
        behind = max(older, key=place.__getitem__, default=None)
        listed.insert(listed.index(behind) + 1 if behind is not None else 0, reader)
    left = without(listed, widened[1:])
    return [convert if u is widened[0] else u for u in left]


def _swapped_of(x: Instruction) -> Swapped | None:
    """The one whose convert `x` is."""
    if not is_widening(x) or x.users or x.operands[0].opcode != "broadcast":
        return None
    wide = _wide_broadcast(x.operands[0])
    return Swapped(x.operands[0], x, wide) if wide is not None and wide.users else None


def _wide_broadcast(narrow: Instruction) -> Instruction | None:
    (value,) = narrow.operands
    sources = [x for x in value.users if is_widening(x)]
    if value.opcode == "convert" and not is_narrow(value.operands[0]):
        sources += value.operands  # SimplifyFPConversions had the convert there and back gone
    return next((u for x in sources for u in x.users if is_same_broadcast(u, narrow)), None)


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
        graph.later.add(wide)
        broadcast.users.sort(key=place.__getitem__)


def give_order_as_swapped(node: Node, x: Swapped) -> bool:
    """Give the broadcast the order of the node's users; False where these are not its users.

    What was widened read a convert of its own from then on, which took its place; HloCSE kept the first.
    Where Triton is used (`OptimizeHloPostLayoutAssignment`, `xla/service/gpu/nvptx_compiler.cc` and
    `gpu_compiler.cc`) HloCSE had made the broadcasts one before; elsewhere it did so as it came to the
    converts, and each was the last when it went.
    """
    readers = [u.source for u in node.users if u.source is not None]
    widened = [u for u in x.wide.users if u in readers]
    if any(is_computed_narrow(u) for u in readers):
        readers = without(readers, widened[1:])
    listed = dict.fromkeys(x.convert if u in widened else u for u in readers)
    return reorder_users(x.broadcast, list(listed))
