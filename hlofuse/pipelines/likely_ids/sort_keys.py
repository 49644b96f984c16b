"""The order in which SortRewriter makes the keys of a sort, which no number tells: each is of another root.

Mirrors `AddNumpySortKey` of `xla/backends/gpu/transforms/sort_rewriter.cc`: zeros are made alike, then
not-a-numbers, and of the bits the first is turned over before all are. A text would have operands in turn.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.simplified.sort_keys import is_bits_of_key


def with_keys_as_made(order: list[Instruction]) -> list[Instruction]:
    """What one pass made, given in its likely `order`, with what makes a key in the order of its making."""
    place = {x: k for k, x in enumerate(order)}
    found = [*order]
    seen: set[Instruction] = set()
    for key in order:
        made = [x for x in _steps(key) if x in place and x not in seen]
        seen.update(made)
        for k, x in zip(sorted(place[x] for x in made), made, strict=True):
            found[k] = x
    return found


def _steps(key: Instruction) -> list[Instruction]:
    """All that is made for a `key`, numbers included, which later keys share; nothing if it is none."""
    if key.opcode != "select" or [o.opcode for o in key.operands] != ["compare", "not", "xor"]:
        return []
    is_negative, all_turned, first_turned = key.operands
    bits = all_turned.operands[0]
    known = bits.operands[0]
    if not is_bits_of_key(bits) or known.opcode != "select":
        return []
    is_unknown, unknown, alike = known.operands
    if alike.opcode != "select" or is_unknown.operands != [alike.operands[2]] * 2:
        return []
    made: list[Instruction] = []
    steps = (alike.operands[0], alike, unknown, is_unknown, known, is_negative, first_turned, all_turned, key)
    for x in steps:
        numbers = [o for y in (*x.operands, x) if is_broadcast_of_constant(y) for o in (y.operands[0], y)]
        made += [*numbers, x]
    return [*dict.fromkeys(made)]
