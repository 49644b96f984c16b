"""What SortRewriter puts in front of a sort by a library: keys of which the bits are ordered.

Mirrors `xla/backends/gpu/transforms/sort_rewriter.cc`: not-a-numbers and zeros are made alike (a comparison
with zero, a choice, a comparison with itself, in that order), then the bits become an integer.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program


def is_bits_of_key(x: Instruction) -> bool:
    """The bits of a key, of which either all or the first is turned over."""
    return (
        x.opcode == "bitcast"
        and sorted(u.opcode for u in x.users) == ["not", "xor"]
        and len({v for u in x.users for v in u.users}) == 1
    )


def in_order_of_keys(key: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `key` with what made the keys behind the others, by age.

    What reads the key for the sake of the sort took the place of the sort, which was there before.
    """
    made = [u for u in users if _makes_key(u, key)]
    if len(made) != 3 or sum(u.operands == [key, key] for u in made) != 1:
        return users
    return [*(u for u in users if u not in made), *sorted(made, key=lambda u: u.id)]


def _makes_key(x: Instruction, key: Instruction) -> bool:
    if is_of_program(x):  # which may make not-a-numbers and zeros alike itself, in front of a sort of its own
        return False
    if x.opcode == "compare":
        return x.operands == [key, key] or any(_is_choice(u, key) and u.operands[0] is x for u in x.users)
    return _is_choice(x, key)


def _is_choice(x: Instruction, key: Instruction) -> bool:
    """select(compare(key, zero), zero, key)"""
    if x.opcode != "select" or x.operands[2] is not key:
        return False
    zero = x.operands[1]
    return x.operands[0].opcode == "compare" and x.operands[0].operands == [key, zero]
