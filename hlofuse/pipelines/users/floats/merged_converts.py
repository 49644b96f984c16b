"""Converts of the program that passes made one: with equal converts, or with the one in front.

`convert(x)` of the program and what was put between `x` and an operation that cannot compute in its precision
are equal. HloCSE (`xla/service/hlo_cse.cc`) keeps the one that it meets first.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import behind_last, without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_narrowing, is_widening


def with_last_in_place_of_converts(
    users: list[Instruction],
    wide: frozenset[Instruction],
    order: dict[Instruction, int],
    uses: Uses,
    *,
    is_told: bool,
) -> list[Instruction]:
    """The users of a narrow value, one of which is such a convert: the last took the places of its equals.

    What is in `wide` got a convert each, in its own place; what else is in single precision read that of the
    program. All but the one met first went, as CSE met them. A single one is in its reader's place, too, as
    is told of what was made anew.
    `order` is the post-order, which tells of a constant, merged of many, no more than where the first convert
    stood.
    """
    convert = next((u for u in users if is_widening(u)), None)
    if convert is None:
        return users
    met = {order[u]: uses[convert, u] for u in convert.users if u in wide}
    of_program = [u for u in convert.users if u not in wide]
    if not met or len(met) + bool(of_program) < 2:
        return _where_read(convert, users, order) if met and not is_told else users
    if is_made_of_nothing(convert.operands[0]):
        met = {min(met): -1}
    if of_program:
        met[min(map(order.__getitem__, of_program))] = min(uses[convert, u] for u in of_program)
    kept, *gone = sorted(met, key=met.__getitem__)
    place = {u: order[u] for u in users} | {convert: kept}
    listed: list[Instruction | int] = list(users)
    for one in sorted(gone, reverse=True):
        listed.insert(sum(place[u] < one for u in users), one)
    return [u for u in without(listed, gone) if not isinstance(u, int)]


def _where_read(
    convert: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """`users` with a `convert` that took its reader's place behind what a text has in between."""
    read = min(order[u] for u in convert.users)
    return behind_last(users, convert, lambda u: order[convert] < order[u] < read)


def with_last_in_place_of_widened(
    producer: Instruction,
    users: list[Instruction],
    wide: frozenset[Instruction],
    order: dict[Instruction, int],
) -> list[Instruction]:
    """The users of what the program converts from f32 to less, given that those in `wide` read it, too.

    SimplifyFPConversions (`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`) had these read what is
    converted; the last user took the place of each.
    """
    if producer.opcode != "convert" or not is_narrow(producer) or is_narrowing(producer):
        return users
    (source,) = producer.operands
    gone = sorted((u for u in source.users if u in wide), key=order.__getitem__)
    if source.shape.element_type != "f32" or source in wide:
        return users
    listed = list(users)
    for one in reversed(gone):
        listed.insert(sum(order[u] < order[one] for u in users), one)
    return without(listed, gone)


def with_shortened_behind(users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of a value with the second of two converts behind the first, which others read as well.

    SimplifyFPConversions (`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`) made it anew, of the
    value itself, though a walk may come along it first. Where nothing else read the first it took the place
    of that, in front of what passes had made; only from f64 there are two steps that do not lead back.
    `passes` is the first id that a pass gave.
    """
    converts = [u for u in users if u.opcode == "convert" and u.shape.element_type in FLOATING_TYPES]
    shortened = [u for u in converts if u.id >= passes and is_of_program(u)]
    others = [u for u in users if u not in shortened]
    if len(converts) > 1:
        return [*others, *shortened] if any(u.id < passes for u in converts) else users
    if not shortened or any(u.id > shortened[0].id for u in others):
        return users
    if shortened[0].operands[0].shape.element_type != "f64":
        return users
    place = next((k for k, u in enumerate(users) if u.id >= passes), len(users))
    return [*others[:place], *shortened, *others[place:]]
