"""What reads a convert to f32 of a narrow value, and read the value itself when layouts were normalized.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) put each such convert in later,
in the place of its reader. Ahead of that no walk came to the value by way of the convert: an operation of two
operands that is met for the first one is gone through for the second one, too, before it is done.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_widening

Readers = dict[Instruction, Instruction]
"""The convert in front of each reader."""


def read_narrow(
    graph: ShadowGraph, anew: Iterable[Instruction], wide: frozenset[Instruction]
) -> dict[Instruction, Readers]:
    """Have the readers of such converts, where each has one of its own, read the narrow value; by value."""
    found: dict[Instruction, Readers] = {}
    for x in anew:
        if not is_narrow(x) or len(x.users) < 2:
            continue
        for convert in x.users:
            if is_widening(convert) and len(convert.users) == 1:
                (reader,) = convert.users
                if reader not in wide or len(reader.operands) < 2 or x in reader.operands:
                    continue
                graph.bypass(graph.of[convert])
                found.setdefault(x, {})[reader] = convert
    return found


def with_converts(users: list[Node], graph: ShadowGraph, readers: Readers) -> list[Node]:
    """The `users` of such a value with the convert of each reader in its place."""
    return [graph.of[readers[u.source]] if u.source in readers else u for u in users]
