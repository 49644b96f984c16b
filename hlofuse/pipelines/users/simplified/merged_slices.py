"""Slices along the leading dimension of what was a slice along others, squeezed: `jnp.roll(x[..., 2], 1, 0)`.

A function that slices was given one, and does so along what dimensions are left.
AlgebraicSimplifier (`HandleSlice`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) slices first and
reshapes then (`TryToReorderSliceAndReshape`, of the leading dimension alone), and makes the two slices one,
of what the first was taken of. The first goes with its last reader.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import FUNCTIONS_OF_SCAN, scope
from hlofuse.pipelines.users.common.holes import without


def merged_slices(producer: Instruction, passes: int) -> list[Instruction]:
    """Those of the `producer` in the order they were made; `passes` is the first id that a pass gave."""
    merged = [u for u in producer.users if u.opcode == "slice" and u.id >= passes and _is_merged(u, producer)]
    return sorted(merged, key=lambda u: u.id)


def with_merged_slices_behind(users: list[Instruction], merged: list[Instruction]) -> list[Instruction]:
    """The `users` with the `merged` behind, but for the last of each first one, which took its place."""
    kept = {_taken(u) for u in users if merged and u.opcode == "slice" and not _is_cut(u, 0)}
    of_first: dict[Hashable, list[Instruction]] = {}
    for u in merged:
        of_first.setdefault(_taken(u), []).append(u)
    firsts = (_taken(u) if u in merged else u for u in users)
    listed: list[Hashable] = list(dict.fromkeys(x for x in firsts if x not in kept))
    for first, made in of_first.items():
        listed = [*listed, *made] if first in kept else without([*listed, *made], [first])
    return [u for u in listed if isinstance(u, Instruction)]


def _is_merged(x: Instruction, producer: Instruction) -> bool:
    function = scope(x)
    if not function or function == scope(producer) or function.endswith(FUNCTIONS_OF_SCAN):
        return False
    return _is_cut(x, 0) and any(_is_cut(x, d) for d in range(1, x.shape.rank))


def _is_cut(x: Instruction, dimension: int) -> bool:
    return x.shape.dimensions[dimension] != x.operands[0].shape.dimensions[dimension]


def _taken(x: Instruction) -> tuple[tuple[int, int], ...]:
    """What of the dimensions behind the leading one."""
    return tuple((r.start, r.limit) for r in x.attributes["slice"][1:])
