"""Random bits: Threefry adds words of the key to what it mixes, before the first round and between rounds."""

from __future__ import annotations

from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.constants import is_broadcast_of_constant
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.common.keys import is_turn, is_word_of_key
from hlofuse.pipelines.users.common.visits import Uses


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

    Each time a word is added the number of the time is as well, and `(x + word) + time` is one sum
    (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the last user takes the place.
    """
    if not is_word_of_key(word) or word.computation is None:
        return users
    value = int(word.operands[0].literal.scalar or 0)
    sums = _sums_with_numbers(word.computation.root)
    gone = [s for time in range(1, 6) for s in sums.get(value + time, ()) if s not in users]
    listed: list[Instruction] = list(users)
    for s in gone:
        met = uses[s.operands[1], s]
        behind = [u for u in listed if u.opcode == "add" and uses.get((word, u), -1) > met]
        if behind[:1] != listed[:1]:  # of the first one numbers tell that it is gone
            listed.insert(listed.index(behind[0]) if behind else len(listed), s)
    return without(listed, [s for s in gone if s in listed])


@lru_cache(maxsize=2)  # asked for one computation after the other
def _sums_with_numbers(root: Instruction) -> dict[int, list[Instruction]]:
    """By number the sums of it and what a round gave."""
    sums: dict[int, list[Instruction]] = {}
    for x in root.computation or ():
        if x.opcode == "add" and x.operands[0].opcode == "xor" and is_broadcast_of_constant(x.operands[1]):
            number = x.operands[1].operands[0].literal.scalar
            if x.shape.element_type == "u32" and operation(x) == "add" and number is not None:
                sums.setdefault(int(number), []).append(x)
    return sums
