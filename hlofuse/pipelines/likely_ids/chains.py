"""Instructions by the root of their names: in what passes make, numbers rise along such a chain."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def chains_of(members: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """Those of each root, in the order in which they are given."""
    chains: dict[str, list[Instruction]] = {}
    for x in members:
        chains.setdefault(name_before_renaming(x).root, []).append(x)
    return chains
