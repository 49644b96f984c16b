"""Words of one key that several numbers are mixed with, each in a call of its own (`jax.random.fold_in`).

A call takes the words out of the key anew and reshapes them. It adds each four times to what Threefry
mixes, for which AlgebraicSimplifier makes a reshape that no one reads in the end, and ReshapeMover puts what
joins both words in place of the other (`xla/hlo/transforms/simplifiers/`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.keys import is_turn

_LATER = 3  # sums with a word between rounds, behind the one in front of the first
_OF_LOOP = frozenset({"broadcast", "constant", "dynamic-update-slice"})


class _Call(NamedTuple):
    """What reads a word in one call."""

    first: tuple[Instruction, ...]
    """The sum in front of the first round, or what read that if it was with zero."""
    later: tuple[Instruction, ...]
    """The sums between rounds, by age."""


def with_calls_of_key_merged(
    word: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a word of a key, which calls had each for itself, until HloCSE made one of all.

    It appends those of each other call in turn (`xla/service/hlo_cse.cc`); what joins the words goes, as
    there is the like of it in the first, and so do reshapes, if dead ones are left. Of the first sums
    with zero one is left: AlgebraicSimplifier drops it at last, and makes anew those with constants.
    """
    joined = [u for u in users if u.opcode == "xor"]
    if len(joined) != 1 or word.opcode != "slice" or not _is_number(word):
        return users
    other = next((o for o in joined[0].operands if o is not word), word)
    if other.opcode != "slice" or other.operands != word.operands:
        return users
    is_dropped = not any(map(is_turn, users)) and any(_is_counted(u, word, other) for u in users)
    calls = _calls(word, other, [u for u in users if u not in joined], order, is_dropped=is_dropped)
    if len(calls) < 2:
        return users
    left = 0 if word.computation is None or _is_cleared(word.computation.module) else _LATER + 1
    return _merged(joined, calls, left=left, is_dropped=is_dropped)


def _merged(
    joined: list[Instruction], calls: Sequence[_Call], *, left: int, is_dropped: bool
) -> list[Instruction]:
    """`left` reshapes of each call had not gone; the first sums were all with zero if `is_dropped`."""
    listed: list[Hashable] = [*joined]
    dead: list[Hashable] = []
    for k, call in enumerate(calls):
        reshapes = [("reshape", k, n) for n in range(left)]
        own: list[Hashable] = [("joined", k)] if k else []
        listed += [*own, ("first", k), *call.later, *reshapes]
        dead += reshapes
        listed = without(listed, [("first", k), *own] if k and is_dropped else own)
    listed = without(listed, [*dead[1:], *dead[:1]])
    if is_dropped:
        listed = without([*listed, *(u for call in calls for u in call.first)], [("first", 0)])
    else:
        for k, call in enumerate(calls):
            listed = without([*listed, *call.first], [("first", k)])
    return [u for u in listed if isinstance(u, Instruction)]


def _calls(
    word: Instruction,
    other: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    *,
    is_dropped: bool,
) -> list[_Call]:
    """The calls that `word` is read in, in the order in which they were cloned; none if they are not told."""
    found: list[_Call] = []
    for user in sorted(users, key=order.__getitem__):
        if is_dropped:
            is_first = _is_counted(user, word, other)
        else:
            is_first = (
                is_turn(user)
                or other in user.operands
                or any(_is_counted(u, other, word) for u in user.users)
            )
        if not is_first and (user.opcode != "add" or not found):
            return []
        if not is_first:
            found[-1] = _Call(found[-1].first, (*found[-1].later, user))
        elif found and not found[-1].later:
            found[-1] = _Call((*found[-1].first, user), ())
        else:
            found.append(_Call((user,), ()))
    if any(len(call.later) != _LATER for call in found):
        return []
    calls = [_Call(_as_read(call.first), tuple(sorted(call.later, key=lambda x: x.id))) for call in found]
    return sorted(calls, key=lambda call: call.later[0].id)


def _as_read(first: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """In the order of the program, which adds before it turns."""
    return tuple(sorted(first, key=lambda x: x.opcode))


def _is_counted(x: Instruction, word: Instruction, other: Instruction) -> bool:
    """Is it the sum in front of the first round, of `word` and the sum that `other` has there?"""
    if x.opcode != "add" or word not in x.operands or not _is_number(x):
        return False
    return any(o is other or (o.opcode == "add" and other in o.operands) for o in x.operands)


def _is_number(x: Instruction) -> bool:
    return x.shape.is_array and x.shape.element_type == "u32" and x.shape.element_count == 1


@lru_cache(maxsize=2)
def _is_cleared(module: Module | None) -> bool:
    """Did WhileLoopSimplifier remove a loop, which ScatterExpander had made of a scatter of one window?

    It removes all that no one reads then (`xla/service/while_loop_simplifier.cc`).
    """
    if module is None:
        return False
    return any(
        x.opcode in _OF_LOOP and operation(x).startswith("scatter") for c in module.computations for x in c
    )
