"""Computations that run inside one operation (`GetInstructionCallContext`, `IsEmbeddedComputation`)."""

from __future__ import annotations

from hlofuse.ir.graph import Computation

_EMBEDDING = frozenset(
    """
    all-reduce all-reduce-start custom-call fusion map reduce reduce-scatter reduce-window scan scatter
    select-and-scatter sort
    """.split()
)


def is_embedded(computation: Computation) -> bool:
    """True if the first caller applies the computation element by element; the others are not asked."""
    first = computation.first_caller
    return first is not None and first.opcode in _EMBEDDING
