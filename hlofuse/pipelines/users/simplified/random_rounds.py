"""Random bits of a count that is zero: Threefry adds the words of the key to it before the first round."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def with_first_round_behind(key: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a word of the `key`, with who read `0 + key` behind, the last in place of it.

    The sum went (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and its users were
    appended: what turns and adds one word in a round. Other users are the key's, for later rounds.
    """
    turned = [u for u in users if u.opcode in {"shift-left", "shift-right-logical"}]
    if key.shape.element_type != "u32" or len(turned) != 2 or turned[0].opcode == turned[1].opcode:
        return users
    whole = set(turned[0].users).intersection(turned[1].users)
    mixed = [v for w in whole if w.opcode == "or" for v in w.users if v.opcode == "xor"]
    read = [u for u in users if u in turned or (u.opcode == "add" and any(u in v.operands for v in mixed))]
    others = [u for u in users if u not in read]
    if len(read) != 3 or not others:
        return users
    place = sum(u not in read for u in users[: users.index(read[0])])
    return [*others[:place], read[-1], *others[place:], *read[:-1]]
