"""The instructions of a run's input and of its result: which became which (`Instruction.origin`)."""

from collections.abc import Iterable

from hlofuse.ir.graph import Instruction
from hlofuse.ir.origin import names_in, own_name


def final_instructions(result: Iterable[Instruction]) -> dict[str, Instruction]:
    """By the names of a run's input, the instruction of its result that stands for each, if there is one.

    That is the instruction itself, else a clone or new one in its place, else one that took over its uses.
    """
    found: dict[str, Instruction] = {}
    ranks: dict[str, int] = {}
    for x in result:
        own = own_name(x.origin)
        for name in names_in(x.origin):
            rank = 0 if x.name == name else 1 if own == name else 2
            if rank < ranks.get(name, 3):
                found[name], ranks[name] = x, rank
    return found
