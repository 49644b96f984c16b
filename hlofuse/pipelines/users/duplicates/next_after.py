"""The bits of a number that `nextafter` is given twice, `nextafter(x, x)`."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.users.common.holes import without

_READERS = {"and": 2, "add": 1, "select": 2}


def with_bits_of_both_merged(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such bits, of which HloCSE (`xla/service/hlo_cse.cc`) made one.

    Its walk met those of the second number first, and of its readers the size and the sign. It appended the
    size, the sign and the sum of the first number, and then kept that size and the other's sign.
    """
    if any(operation(u) != "nextafter" for u in users) or operation(producer) != "nextafter":
        return users
    parts = [sorted((u for u in users if u.opcode == k), key=_number) for k in _READERS]
    if [len(p) for p in parts] != [*_READERS.values()] or len(users) != sum(_READERS.values()):
        return users
    (size, sign), sums, chosen = parts
    gone = [object(), object()]
    listed: list[object] = [gone[0], sign, *chosen, size, gone[1], *sums]
    return [u for u in without(listed, gone) if isinstance(u, Instruction)]


def _number(x: Instruction) -> int:
    return name_before_renaming(x).number
