"""Slices of what was a slice itself.

AlgebraicSimplifier (`HandleSlice`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes the two
one, of what the first was taken of. The first goes with its last reader, and the last user takes its place.

Slices along the leading dimension of one along others, squeezed, are told, as in `jnp.roll(x[..., 2], 1, 0)`:
a function that slices was given it, and does so along what dimensions are left. There it slices first and
reshapes then (`TryToReorderSliceAndReshape`, of the leading dimension alone). So are those of equal parts
that a value was split into, if all of every part is taken in pieces.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import FUNCTIONS_OF_SCAN, scope
from hlofuse.pipelines.users.common.holes import without


def merged_slices(producer: Instruction, passes: int) -> list[Instruction]:
    """Those of the `producer` in the order they were made; `passes` is the first id that a pass gave."""
    made = [u for u in producer.users if u.opcode == "slice" and u.id >= passes]
    merged = made if _parts(made) else [u for u in made if _is_merged(u, producer)]
    return sorted(merged, key=lambda u: u.id)


def with_merged_slices_behind(users: list[Instruction], merged: list[Instruction]) -> list[Instruction]:
    """The `users` with the `merged` behind, but for the last of each first one, which took its place."""
    if not merged:
        return users
    first_of = _parts(merged) or {u: _taken(u) for u in merged}
    kept = {_taken(u) for u in users if u.opcode == "slice" and not _is_cut(u, 0)}
    of_first: dict[Hashable, list[Instruction]] = {}
    for u in merged:
        of_first.setdefault(first_of[u], []).append(u)
    firsts = (first_of.get(u, u) for u in users)
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


def _parts(slices: Sequence[Instruction]) -> dict[Instruction, Hashable]:
    """Of which of equal parts each of the `slices` is, as few as can be; none unless each part is in pieces.

    Where all pieces have one size they may be the parts themselves.
    """
    dimensions = {d for u in slices for d in range(u.shape.rank) if _is_cut(u, d)}
    if len(slices) < 4 or len(dimensions) != 1:
        return {}
    (dimension,) = dimensions
    size = slices[0].operands[0].shape.dimensions[dimension]
    taken = {u: u.attributes["slice"][dimension] for u in slices}
    sizes = {u: u.shape.dimensions[dimension] for u in slices}
    if len(set(sizes.values())) == 1 or any(r.limit - r.start != sizes[u] for u, r in taken.items()):
        return {}
    ranges = sorted(taken.values(), key=lambda r: r.start)
    if ranges[0].start or ranges[-1].limit != size or any(a.limit != b.start for a, b in pairwise(ranges)):
        return {}  # not all of it is taken
    starts = {r.start for r in ranges}
    for count in range(2, len(slices) // 2 + 1):
        part = size // count
        is_whole = any((r.start % part, r.limit - r.start) == (0, part) for r in ranges)
        if size % count == 0 and not is_whole and starts.issuperset(range(0, size, part)):
            return {u: r.start // part for u, r in taken.items()}
    return {}
