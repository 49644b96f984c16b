"""The numbers that names have: one that none has was of an operation that is gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming

Numbers: TypeAlias = "dict[str, set[int]]"
"""By root of the name the numbers that instructions have."""


def numbers_in_names(instructions: Iterable[Instruction]) -> Numbers:
    """Those of the names of `instructions`."""
    found: Numbers = {}
    for x in instructions:
        name = name_before_renaming(x)
        found.setdefault(name.root, set()).add(name.number)
    return found
