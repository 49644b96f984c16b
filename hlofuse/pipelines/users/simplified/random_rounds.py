"""Random bits: Threefry adds words of the key to what it mixes, before the first round and between rounds."""

from __future__ import annotations

from functools import lru_cache

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.common.keys import is_turn, is_word_of_key
from hlofuse.pipelines.users.common.visits import Uses

_TIMES = 5  # that words of the key are added to what rounds gave


def with_first_round_behind(key: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a word of the `key`, with who read `0 + key` behind, the last in place of it.

    The sum went (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and its users were
    appended: what turns and adds one word in a round. Other users are the key's, for later rounds.
    """
    turned = [u for u in users if is_turn(u)]
    if key.shape.element_type != "u32" or len(turned) != 2 or turned[0].opcode == turned[1].opcode:
        return users
    whole = set(turned[0].users).intersection(turned[1].users)
    mixed = [v for w in whole if w.opcode == "or" for v in w.users if v.opcode == "xor"]
    read = [u for u in users if u in turned or (u.opcode == "add" and any(u in v.operands for v in mixed))]
    others = [u for u in users if u not in read]
    if len(read) != 3:
        return users
    if not others:  # what the count is, and the word of the key was zero; what a loop mixes is no key
        return users if key.opcode in {"add", "get-tuple-element", "xor"} else last_in_front(users)
    place = sum(u not in read for u in users[: users.index(read[0])])
    return [*others[:place], read[-1], *others[place:], *read[:-1]]


def with_last_in_place_of_counted(count: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the high half of a `count` that several calls share, whose keys begin with a zero.

    Each added the zero first, and HloCSE made one of those sums too. It went (`HandleAdd`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) when its users, the first sums of the rounds,
    had been appended.
    """
    if operation(count) != "iota_2x32_shape" or len(users) < 2:
        return users
    return last_in_front(users) if all(_is_first_sum(u, count) for u in users) else users


def _is_first_sum(x: Instruction, high: Instruction) -> bool:
    """Is it that of the `high` half and the low one, to which the other word of the key was added?"""
    if x.opcode != "add" or x.operands[0] is not high:
        return False
    low = x.operands[1]
    return low.opcode == "add" and operation(low.operands[0]) == operation(high)


def with_sums_of_word_gone(word: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of a `word` of the key without the sums that became one with a sum of their own.

    Each time a word is added to what a round gave, the number of the time is as well, and
    `(x + word) + time` is one sum (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`):
    the last user takes the place. Such a sum of another key with the number of this word comes behind.
    A word to turn by may be the number of the time itself, and was read for both.
    """
    if not is_word_of_key(word) or word.computation is None:
        return users
    if all(_is_with_time(u) or is_turn(u) for u in users):
        return users
    value = int(word.operands[0].literal.scalar or 0)
    summed = [u for u in users if value > _TIMES and _is_with_time(u)]
    listed = [u for u in users if u not in summed]
    sums = _sums_with_times(word.computation.root)
    gone: list[Instruction] = []
    for time in range(1, _TIMES + 1):
        for s in sums.get((value + time, word.shape.dimensions), ()):
            met = uses[s.operands[1], s]
            given = s.operands[0]  # stands for the sum of it and the word
            behind = (k for k, u in enumerate(listed) if u.opcode == "add" and uses.get((word, u), -1) > met)
            added = next(behind, len(listed))
            listed.insert(added, given)
            if time == value and any(map(is_turn, users)):
                listed.insert(_place_for_time(word, listed, uses, met), s)
                gone.append(s)
            gone.append(given)
    return [*without(listed, gone), *summed]


def _place_for_time(word: Instruction, listed: list[Instruction], uses: Uses, met: int) -> int:
    """The place among those that turn by the number, as the function has one of each."""
    turns = [(k, uses[word, u]) for k, u in enumerate(listed) if is_turn(u)]
    return next((k for k, at in turns if at > met), turns[-1][0] + 1)


@lru_cache(maxsize=2)  # asked for one computation after the other
def _sums_with_times(root: Instruction) -> dict[tuple[int, tuple[int, ...]], list[Instruction]]:
    """By number and dimensions the sums of it and what a round gave."""
    sums: dict[tuple[int, tuple[int, ...]], list[Instruction]] = {}
    for x in root.computation or ():
        if _is_with_time(x) and is_broadcast_of_constant(x.operands[1]):
            number = x.operands[1].operands[0].literal.scalar
            if x.shape.element_type == "u32" and number is not None:
                sums.setdefault((int(number), x.shape.dimensions), []).append(x)
    return sums


def _is_with_time(x: Instruction) -> bool:
    return x.opcode == "add" and operation(x) == "add" and x.operands[0].opcode == "xor"
