"""Clamps that simplification made of a minimum of a maximum, or the other way round."""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant, is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.ages import was_two
from hlofuse.pipelines.users.common.holes import last_at
from hlofuse.pipelines.users.floats.inserted_converts import is_widening
from hlofuse.pipelines.users.floats.widened import is_widened_broadcast, served_by


def with_clamps_behind(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of `producer`, given that such clamps came last and took an inner operation's user away.

    Where the inner operation went as well, the clamp took its place.
    `HandleMinimum` and `HandleMaximum` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`); `order`
    is the post-order.
    """
    if is_widening(producer):
        return users  # CSE put them in the order of a walk since
    clamps = [u for u in users if _came_beside_another(served_by(u), producer) or _bounds_start(u, producer)]
    users = [*(u for u in users if u not in clamps), *clamps]
    users = _with_own_clamp_next(producer, users)
    clamp = _made_of(producer)
    if clamp is None:
        return users
    # The outer operation had stood where the clamp stands now.
    place = next((k for k, u in enumerate(users) if order[u] > order[clamp]), len(users))
    return last_at(users, place)


def _with_own_clamp_next(bound: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a bound that was made for its inner operation alone: HloCSE appended all others later."""
    inner = users[0]
    clamp = _made_of(inner)
    if not is_broadcast_of_constant(bound) or bound.op_name != inner.op_name or clamp not in users:
        return users
    return [inner, clamp, *(u for u in users[1:] if u is not clamp)]


def _came_beside_another(x: Instruction, producer: Instruction) -> bool:
    """Is it such a clamp, and its inner operation, which reads `producer` too, still there?

    One that was widened found what it reads anew and so came behind as well.
    """
    if not was_two(x):
        return False
    value = _bare(x.operands[1])
    if producer is value and any(is_widening(o) or is_widened_broadcast(o) for o in x.operands):
        return True
    inner = (u for u in value.users if _made_of(u) is x)
    return any(producer in u.operands for u in inner)


def _bounds_start(x: Instruction, start: Instruction) -> bool:
    """Was it made of where a window starts, to be added to where another one does that is in the same value?

    `HandleDynamicSlice` (`algebraic_simplifier.cc`) makes one window of one in another, behind both.
    """
    if x.opcode != "clamp" or x.operands[1] is not start or x.op_name != start.op_name:
        return False
    return is_constant(x.operands[0]) and is_constant(x.operands[2])


def _made_of(inner: Instruction) -> Instruction | None:
    """The clamp that bounds the same value by the same number, and does not read `inner` any more."""
    if inner.opcode not in {"maximum", "minimum"}:
        return None
    bound = 0 if inner.opcode == "maximum" else 2
    for value, limit in (inner.operands, inner.operands[::-1]):
        for user in value.users:
            clamp = served_by(user)
            if was_two(clamp) and _bare(clamp.operands[1]) is value and _bare(clamp.operands[bound]) is limit:
                return clamp
    return None


def _bare(x: Instruction) -> Instruction:
    return x.operands[0] if is_widening(x) else x
