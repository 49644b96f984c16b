"""The instructions of a run's input and of its result: which became which (`Instruction.origin`)."""

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.origin import names_in, own_name


def final_instructions(result: Module) -> dict[str, Instruction]:
    """By the names of a run's input, the instruction of its result that stands for each, if there is one.

    That is the instruction itself, else a clone or new one in its place, else one that took over its uses.
    """
    found: dict[str, tuple[tuple[bool, bool], Instruction]] = {}
    for x in result.instructions():
        own = own_name(x.origin)
        for name in names_in(x.origin):
            rank = (x.name != name, own != name)
            if name not in found or rank < found[name][0]:
                found[name] = rank, x
    return {name: x for name, (_, x) in found.items()}
