"""Values that got a dimension in front, `x[None]`, before they were broadcast along it."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, operation
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.duplicates.merged_reshapes import GonePlaces
from hlofuse.pipelines.users.duplicates.source_expressions import extent_of


def with_last_in_place_of_leading(
    producer: Instruction, users: list[Instruction], gone: GonePlaces
) -> list[Instruction]:
    """The users of `producer`, of which one is the broadcast of `x[None]`. Ids have to be XLA's.

    Operations on that are made anew in front of it (`TryToSinkBroadcastAfterElementwiseOps` and others,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). They and the broadcast read `producer` then, in
    the order of a walk, instead of the reshape that put the dimension in, and the last takes its place. What
    is element-wise comes behind a broadcast that the program had made itself. What a division in front of
    that became took the place of that division.
    """
    if producer.opcode == "bitcast" and operation(producer) == "broadcast_in_dim":
        return users  # that is the reshape
    if is_made_by_pass(producer):
        return users  # it was moved itself, and never reshaped
    spread = [u for u in users if u.opcode == "broadcast" and operation(u) == "broadcast_in_dim"]
    if len(spread) != 1 or spread[0].shape.rank != producer.shape.rank + 1 or 0 in spread[0].dimensions:
        return users
    here = extent_of(spread[0])
    if here is None or not any(here.encloses(place) for place in gone.get(here.context, ())):
        return users
    place = users.index(spread[0])
    anew = [u for u in users if u.opcode != "bitcast" and is_made_by_pass(u) and u not in spread]
    anew = [u for u in anew if users.index(u) > place or not was_division(u)]
    at = sum(users.index(u) < place for u in anew)
    if not is_made_by_pass(spread[0]):
        at = next((k for k, u in enumerate(anew[:at]) if is_elementwise(u)), at)
    anew[at:at] = spread
    there = [u for u in users if u not in anew]
    place = sum(users.index(u) < place for u in there)
    return [*there[:place], anew[-1], *there[place:], *anew[:-1]]
