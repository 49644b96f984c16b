"""Random bits: Threefry adds words of the key to what it mixes, before the first round and between rounds."""

from __future__ import annotations

from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.users.common.constants import is_broadcast_of_constant
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
    if not others:  # what the count is, and the word of the key was zero
        return users if key.opcode in {"add", "xor"} else last_in_front(users)
    place = sum(u not in read for u in users[: users.index(read[0])])
    return [*others[:place], read[-1], *others[place:], *read[:-1]]


def with_sums_of_word_gone(word: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of a `word` of the key without the sums that became one with a sum of their own.

    Each time a word is added to what a round gave, the number of the time is as well, and
    `(x + word) + time` is one sum (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`):
    the last user takes the place. Such a sum of another key with the number of this word comes behind.
    """
    if not is_word_of_key(word) or word.computation is None:
        return users
    if all(_is_with_time(u) or is_turn(u) for u in users):
        return users
    summed = [u for u in users if _number_of(word) > _TIMES and _is_with_time(u)]
    listed = [u for u in users if u not in summed]
    gone = _sums_of(word, word.computation.root)
    for s in gone:
        met = uses[s.operands[1], s]
        behind = [u for u in listed if u.opcode == "add" and uses.get((word, u), -1) > met]
        listed.insert(listed.index(behind[0]) if behind else len(listed), s)
    return [*without(listed, gone), *summed]


def is_first_sum_with_time(word: Instruction) -> bool:
    """Was the first sum such a one? That, the time if it is new, and both were numbered behind the `word`."""
    if word.computation is None:
        return False
    root, number = name_before_renaming(word)
    next_ = {(root, number + 2), (root, number + 3)}
    return any(name_before_renaming(s) in next_ for s in _sums_of(word, word.computation.root))


def _sums_of(word: Instruction, root: Instruction) -> list[Instruction]:
    """What became one with the number of a time, by times."""
    sums, numbers = _sums_with_times(root), range(_number_of(word) + 1, _number_of(word) + _TIMES + 1)
    return [s for number in numbers for s in sums.get((number, word.shape.dimensions), ())]


def _number_of(word: Instruction) -> int:
    return int(word.operands[0].literal.scalar or 0)


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
