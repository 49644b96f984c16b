"""From what a person typed to what they meant."""

from __future__ import annotations

from hlofuse.format.escape import shorten
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir import Computation, HlofuseError, Instruction, Module


def lookup(module: Module, name: str) -> Instruction | Computation:
    """The instruction, or else the computation, of that name.

    Raises HlofuseError with the nearest names where there is none.
    """
    name = name.lstrip("%")
    found = module.find(name) or module.find_computation(name)
    if found is None:
        known = [i.name for i in module.instructions()] + [c.name for c in module.computations]
        raise HlofuseError(
            f"no instruction or computation is named {shorten(name, 80)} in {shorten(module.name, 80)}"
            + did_you_mean(name, known)
        )
    return found


def part_number(name: str) -> int | None:
    """The number of a part of an overview, written `part7`, `part 7` or `7`; None for any other name."""
    digits = name.lower().removeprefix("part").strip(" .-")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
