"""Which dimensions of a dot's operands are what."""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.ir.graph import Instruction

DotDimensions: TypeAlias = tuple[tuple[int, ...], ...]
"""Left batch, right batch, left contracting, right contracting."""

_NAMES = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")


def dot_dimensions(dot: Instruction) -> DotDimensions:
    """The `DotDimensionNumbers` of a dot."""
    return tuple(tuple(dot.attributes.get(n, ())) for n in _NAMES)
