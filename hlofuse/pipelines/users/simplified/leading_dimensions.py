"""Values that got a dimension in front, `x[None]`, before they were broadcast along it."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.sunk_broadcasts import was_sunk
from hlofuse.pipelines.users.duplicates.merged_reshapes import GonePlaces
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert


def with_last_in_place_of_leading(
    producer: Instruction, users: list[Instruction], gone: GonePlaces
) -> list[Instruction]:
    """The users of `producer`, of which one is the broadcast of `x[None]`.

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
    anew = [u for u in anew if users.index(u) > place or not was_division(u) or was_sunk(u, spread[0])]
    anew = [u for u in anew if not is_inserted_convert(u) and not _is_turned(u)]
    later = _of_later_rounds(anew)
    listed = _as_met(spread[0], [u for u in anew if u not in later], users)
    if listed == spread:
        return users
    there = [u for u in users if u not in listed and u not in later]
    place = sum(users.index(u) < place for u in there)
    return [*there[:place], listed[-1], *there[place:], *listed[:-1], *later]


def _as_met(spread: Instruction, anew: list[Instruction], users: list[Instruction]) -> list[Instruction]:
    """The broadcast among those made anew: what is element-wise at once, all others when they were met.

    A transpose of it comes behind, at once where the broadcast itself was made anew, unless it is the first
    that was met.
    """
    place = users.index(spread)
    turned = [u for u in users if _is_turned(u)]
    if is_made_by_pass(spread):
        listed = [u for u in users if u is spread or u in anew]
        place = listed.index(spread) + 1
        return [*listed[:place], *turned, *listed[place:]]
    sunk = sorted(filter(is_elementwise, anew), key=lambda u: u.id)
    first = sunk[0].id if sunk else 0
    others = [u for u in anew if u not in sunk]
    behind = [u for u in others if users.index(u) > place or u.id > first > 0]
    others = [u for u in others if u not in behind]
    if turned and users.index(turned[0]) < min(map(users.index, (spread, *sunk))):
        return [*others, *turned, spread, *sunk, *behind]
    return [*others, spread, *sunk, *behind, *turned]


def _of_later_rounds(anew: list[Instruction]) -> list[Instruction]:
    """What is element-wise and yet younger than a reduction that the walk met behind such ones.

    The reshape was gone when it was made.
    """
    first = min((u.id for u in anew if is_elementwise(u)), default=0)
    met = [u.id for u in anew if u.opcode == "reduce" and u.id > first > 0]
    return [u for u in anew if met and is_elementwise(u) and u.id > max(met)]


def _is_turned(x: Instruction) -> bool:
    """Is it a transpose of the broadcast, which became another (`HandleTranspose`)?"""
    return x.opcode == "broadcast" and operation(x) == "transpose"
