"""What float normalization made compute in single precision, and how it left the users."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.analysis.custom_calls import is_library_convolution, is_library_matmul
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_narrowing, is_widening

_MADE_FOR_CONVOLUTIONS = frozenset({"pad", "transpose"})


def is_widened_broadcast(instruction: Instruction) -> bool:
    """A broadcast of a convert that was put in behind it; the broadcast of before is still there.

    Behind a convert of the program from single precision the one put in has gone, and that with it.
    """
    if instruction.opcode != "broadcast":
        return False
    if is_widening(instruction.operands[0]):
        return any(is_same_broadcast(instruction, old) for old in instruction.operands[0].operands[0].users)
    return was_swapped(instruction) and not instruction.op_name


def is_same_broadcast(new: Instruction, old: Instruction) -> bool:
    """The same broadcast, maybe of another type."""
    return (
        new.opcode == old.opcode == "broadcast"
        and old.shape.dimensions == new.shape.dimensions
        and old.attributes.get("dimensions") == new.attributes.get("dimensions")
    )


def was_swapped(broadcast: Instruction) -> bool:
    """Was there a broadcast in less with a convert behind it? It is still there, and nobody reads it."""
    return bool(_narrow_ones(broadcast))


def was_merged(broadcast: Instruction) -> bool:
    """Was there such a one beside this, which the program had in single precision, too?

    CSE made the swapped one and this one: it has the name that it had, not that of the one in less. What read
    the two became one as well.
    """
    if broadcast.opcode != "broadcast" or not broadcast.op_name:
        return False
    narrow = _narrow_ones(broadcast)
    return bool(narrow) and not any(_has_place_of(broadcast, old) for old in narrow)


def _has_place_of(broadcast: Instruction, old: Instruction) -> bool:
    """Has it the name of `old` in the program, and the place?"""
    same = broadcast.op_name == old.op_name and stack_frame(broadcast) == stack_frame(old)
    return same or not old.op_name


def _narrow_ones(broadcast: Instruction) -> list[Instruction]:
    """The same broadcast of the number in less."""
    source = broadcast.operands[0]
    origin = source.operands[0] if is_widening(source) else source
    narrow = [origin, *(u for u in origin.users if u.opcode == "convert" and is_narrow(u))]
    return [
        old for x in narrow for old in x.users if old is not broadcast and is_same_broadcast(broadcast, old)
    ]


def served_by(user: Instruction) -> Instruction:
    """What an inserted convert was put in front of, or a pad or a copy; other users serve themselves."""
    if user.opcode in _MADE_FOR_CONVOLUTIONS and (convolution := _convolution_for(user)) is not None:
        return convolution
    if not is_widening(user):
        return user
    if user.users:
        return min(user.users, key=lambda u: u.id)
    broadcast = user.operands[0]
    if broadcast.opcode == "broadcast":
        # The two were swapped: what used the convert uses another broadcast now.
        for lifted in broadcast.operands[0].users:
            for new in lifted.users if lifted.opcode == "convert" else ():
                if is_same_broadcast(new, broadcast) and new.users:
                    return min(new.users, key=lambda u: u.id)
    return user


def _convolution_for(x: Instruction) -> Instruction | None:
    """The convolution that it pads for or lays out for, by the name of what it reads or without any.

    (`xla/backends/gpu/transforms/conv_padding_legalization.cc`, `xla/service/layout_assignment.cc`.)
    """
    while x.opcode in _MADE_FOR_CONVOLUTIONS and len(x.users) == 1:
        if x.op_name not in ("", x.operands[0].op_name):
            return None
        (x,) = x.users
    return x if is_library_convolution(x) else None


def is_read_wide(producer: Instruction, wide: frozenset[Instruction]) -> bool:
    """Was it narrow in the program, and yet all that used it was a convert to f32?"""
    return producer in wide and not any(u in wide or is_narrowing(u) for u in producer.users)


def users_of_widening(
    convert: Instruction, uses: Uses, wide: frozenset[Instruction], place: dict[Instruction, int]
) -> list[Instruction]:
    """The users of an inserted convert, one for each use, which CSE made one in the order of the walk.

    What was in single precision read a convert of the program instead, all the same one, which CSE met
    with the first of them. `place` tells where those stood, by default the post-order. A matrix product had
    a convert in front of each operand, too, which ConvertMover
    (`xla/hlo/transforms/simplifiers/convert_mover.cc`) moved in front of reshapes.
    """
    spread, others = _split_off_spread(convert.users, wide)
    own = {u for u in others if u in wide or _is_for_product(u)}
    shared = min((uses[convert, u] for u in others if u not in own), default=0)
    others.sort(key=lambda u: (uses[convert, u], 0) if u in own else (shared, place[u]))
    return with_spread_as_met(convert, [*spread, *others], uses, wide)


def with_spread_as_met(
    convert: Instruction, users: list[Instruction], uses: Uses, wide: frozenset[Instruction]
) -> list[Instruction]:
    """The users of what widens a narrow value, with broadcasts of it that are read instead of narrow ones.

    AlgebraicSimplifier made those, each of a convert of its own, where a convert had been put in behind a
    broadcast, by when HloCSE (`xla/service/hlo_cse.cc`), HostOffloader's last step, had made the others one.
    Of all these it kept, the next time, the one that it met first.
    """
    spread, others = _split_off_spread(users, wide)
    if not spread or not others or not is_narrow(convert.operands[0]):
        return users
    met = min(uses[convert, u] for u in others)
    return sorted([*others, *spread], key=lambda u: uses[convert, u] if u in spread else met)


def _split_off_spread(
    users: list[Instruction], wide: frozenset[Instruction]
) -> tuple[list[Instruction], list[Instruction]]:
    """The broadcasts that only what was widened reads, and the others."""
    spread = [u for u in users if u.opcode == "broadcast" and u.users and wide.issuperset(u.users)]
    return spread, [u for u in users if u not in spread]


def _is_for_product(user: Instruction) -> bool:
    """Is it a matrix product by a library, or read by nothing but one?"""
    while user.opcode in {"bitcast", "transpose"} and len(user.users) == 1:
        (user,) = user.users
    return is_library_matmul(user)


def users_of_widened(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    place: dict[Instruction, int],
) -> list[Instruction]:
    """The users of what was narrow, as FloatNormalization and SimplifyFPConversions leave them.

    A convert back came behind the users, and took all of them over but a convert to f32 of the program; the
    users of that read the producer at once, and it went. Those that had been widened as well got a convert
    to f32 each, until pairs of converts were removed, in the order of the walk. The convert back went when
    nobody used it any more (`xla/hlo/transforms/simplifiers/float_normalization.cc` and
    `simplify_fp_conversions.cc`), those of the program before it, the last one first. One to f16 was made
    anew, of the producer. `place` tells where each user stood before, by default the post-order.
    """
    back = next((u for u in users if is_narrowing(u)), producer)
    half = _convert_to_half(producer, users)
    if half is not None and wide.isdisjoint(users):
        return sorted(users, key=lambda u: (u is not half, place[u]))
    later = [u for u in users if u in wide or u.opcode == "is-finite" or _is_swapped_broadcast(u)]
    at_once = [u for u in users if u not in later and u is not back]
    narrow = back.users if back is not producer else []
    converts = {u: _convert_read_by(u) for u in at_once}
    of_program: list[Hashable] = [*dict.fromkeys(converts.get(u, u) for u in (*at_once, *later, *narrow))]
    place = {u: place[u if u in place else back] for u in (*users, *narrow)}
    met = {it: min(place[u] for u in at_once if converts[u] == it) for it in converts.values()}
    of_program.sort(key=lambda u: place[u] if isinstance(u, Instruction) else met[u])
    listed: list[Hashable] = [*of_program, back]
    listed = without(listed, [u for u in of_program if isinstance(u, Instruction)])
    listed += at_once
    if not all(map(_is_shortened, at_once)):
        listed = without(listed, [u for u in reversed(of_program) if u in met])
    later.sort(key=lambda user: uses[producer, user])
    listed += later
    if back is producer:
        listed = without(listed, [back])
    return [u for u in listed if isinstance(u, Instruction)]


def _convert_read_by(user: Instruction) -> Hashable:
    """Which convert of the program it read: matrix products that read it in two layouts had one in each."""
    return user.opcode if user.opcode in {"bitcast", "transpose"} and _is_for_product(user) else ""


def _is_shortened(x: Instruction) -> bool:
    return x.opcode == "convert" and x.shape.element_type == "f16"


def _is_swapped_broadcast(x: Instruction) -> bool:
    return x.opcode == "broadcast" and was_swapped(x)


def _convert_to_half(producer: Instruction, users: list[Instruction]) -> Instruction | None:
    """The program's convert of a narrow value to f16; likely the other users read that, converted to f32.

    SimplifyFPConversions makes one convert of that and the convert back, which goes, before the others come.
    They may have read the value itself, converted to f32: a text does not tell.
    """
    if producer.shape.element_type != "f32" or any(is_narrowing(u) for u in users):
        return None
    halves = [u for u in users if u.opcode == "convert" and u.shape.element_type == "f16"]
    return halves[0] if len(halves) == 1 else None


def users_through_convert(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    *,
    as_written: bool = False,
) -> list[Instruction]:
    """The users of what was in single precision, given that those in `wide` read a narrow copy of it.

    They got converts to f32 behind the program's own convert, and read `producer` when the pairs were
    removed, in the order of the walk; the program's convert went with the last. Where `producer` is a
    convert of a narrow value, it is that value which they read, and CSE made their converts and it one.
    The sum of a narrow value has a convert to f32 in the program, which is one of them; that of what the
    program converted itself has none.

    Where the list is `as_written`, the program's convert stood where the walk came to it.
    """
    is_wide = producer.opcode == "convert" and is_of_program(producer)
    through = {u for u in users if u in wide or (not is_wide and _sums_narrow(u))}
    others = [u for u in users if u not in through]
    later = sorted(filter(through.__contains__, users), key=lambda user: uses[producer, user])
    met = min(uses[producer, u] for u in users if u in wide)
    place = next(k for k, u in enumerate(users) if u in wide or (as_written and uses[producer, u] > met))
    if any(map(was_merged, producer.operands)):
        # What they read was computed beside, and had a convert back in front of them: CSE made the two one.
        return [*others, *(u for u in without([None, *later], [None]) if u is not None)]
    if producer.opcode == "convert" or any(map(_narrows, others)):
        return [*others, *later]
    ahead = [u for u in users[:place] if u not in through]
    listed: list[Instruction | None] = [*ahead, None, *others[len(ahead) :]]
    return [u for u in without([*listed, *later], [None]) if u is not None]


def _sums_narrow(x: Instruction) -> bool:
    """Is it a sum that the framework takes in f32 of what is narrow, as the result is?"""
    if x.opcode != "reduce" or operation(x) != "reduce_sum":
        return False
    back = (u for u in x.users if u.opcode == "convert" and is_narrow(u) and is_of_program(u))
    return any(stack_frame(u) == stack_frame(x) for u in back)


def _narrows(user: Instruction) -> bool:
    return user.opcode == "convert" and user.shape.element_type == "bf16"
