"""Broadcasts of a number that were made for what passes made, in the order in which CSE merged them.

In each round (`rounds`) HloCSE (`xla/service/hlo_cse.cc`) keeps the broadcast that it meets first and appends
what read the others. All that ReshapeMover moved in one turn reads one.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.duplicates.rounds import Rounds, is_clone


def in_order_of_rounds(literal: Instruction, users: list[Instruction], rounds: Rounds) -> list[Instruction]:
    """The `users` of the `literal`, given in the order in which a single round would have merged them."""
    place = {u: k for k, u in enumerate(users)}
    if literal not in rounds and any(u in rounds and u.id < literal.id for u in users):
        return users  # it was made when layouts were normalized, and all were merged in the end
    kept_in, first = rounds.get(literal, -1), rounds.get(users[0])
    made: dict[int, dict[Hashable, list[Instruction]]] = {}
    left: list[Instruction] = []
    group = left
    younger = [u for u in users if u.id > literal.id]
    for u in users:
        if u.computation is literal.computation:  # what a fusion took along is with what it stands behind
            group = left
            if u in rounds and _was_given_another(u):
                # The only one that is younger stands where what it was made of stood.
                is_own = younger == [u] or _was_made_for(u, literal)
                turn = kept_in if is_own else rounds[u]
                is_moved = not is_own and (is_clone(u) or (u.id < literal.id and turn == first))
                group = made.setdefault(turn, {}).setdefault(is_moved or u, [])
        group.append(u)
    if not made:
        return users
    moved = {u for groups in made.values() for group in groups.values() for u in group}
    left = _as_moved_leave_it(literal, left, moved, rounds)
    for turn, groups in sorted(made.items()):
        met = sorted(groups.values(), key=lambda group: place[group[0]])
        if left:
            start = min(map(place.__getitem__, left)) if turn <= kept_in else -1
            at = sum(place[group[0]] < start for group in met)
            met.insert(at, left)
        left = [u for group in met for u in group]
    return left


def _was_made_for(x: Instruction, literal: Instruction) -> bool:
    """Was the `literal` made right ahead of `x`, but for what else was made for that?"""
    return x.id - literal.id == 1 + sum(literal.id < o.id < x.id for o in set(x.operands))


def _was_given_another(x: Instruction) -> bool:
    """Was a broadcast made for it when a pass made it? What else passes make reads what is there.

    AlgebraicSimplifier multiplies by reciprocals and by products of constants, and adds what is negated.
    """
    return is_clone(x) or x.opcode in {"add", "multiply"}


def _as_moved_leave_it(
    literal: Instruction, left: list[Instruction], moved: set[Instruction], rounds: Rounds
) -> list[Instruction]:
    """Those that are `left` when some were `moved`, given that all of the program's own read one broadcast.

    The reshape that was put behind it for each that was moved took the place of that. HloCSE made those one,
    the first, which went last.
    """
    own = {u for u in left if u not in rounds and not outermost_call(u)}.intersection(literal.users)
    went = [u for u in literal.users if u in moved and is_clone(u) and _kept_shape(u, rounds)]
    by_age = iter(without([u for u in literal.users if u in went or u in own], [*went[1:], *went[:1]]))
    return [next(by_age) if u in own else u for u in left]


def _kept_shape(moved: Instruction, rounds: Rounds) -> bool:
    """Has it the shape that it had in the program? It was moved, and moved back then."""
    elementwise = all(u.opcode in {*ELEMENTWISE_OPCODES, "tuple"} for u in moved.users)
    return elementwise and all(_kept_shape(u, rounds) for u in moved.users if u in rounds)
