"""Bitcasts in front of reductions and behind them: who made them, and which were two."""

from __future__ import annotations

from itertools import accumulate, takewhile
from math import prod
from operator import mul

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming


def last_in_a_row(numbered: list[Instruction]) -> list[Instruction]:
    """The last of those in front of reductions that no other bitcast comes between, given by their numbers.

    ReductionDimensionGrouper and TreeReductionRewriter put them there, and nobody else makes any meanwhile.
    """
    backwards = numbered[::-1]
    others = len([*takewhile(lambda x: not _regroups(x), backwards)])
    return [*takewhile(_regroups, backwards[others:])][::-1]


def was_two(x: Instruction) -> bool:
    """Was there a bitcast already that another one for the reduction was put behind?

    ReductionDegenerateDimRemover drops dimensions of size one, ReductionDimensionGrouper joins neighbours,
    TreeReductionRewriter splits one dimension: what did more than one of these was more than one.
    """
    given, made = x.operands[0].shape.dimensions, x.shape.dimensions
    if _joins_kept(x):
        return True
    at = _split_dimension(x)
    if at is not None:
        return given != (*made[:at], prod(made[at : at + 2]), *made[at + 2 :])
    if 1 in given:
        return x.operands[0].shape.true_dimensions != x.shape.true_dimensions
    return not {*accumulate(made, mul)} <= {*accumulate(given, mul)}


def is_reduced(x: Instruction) -> bool:
    """Does a reduction read it, which float normalization may have widened?"""
    return any(u.opcode == "reduce" for source in _as_read(x) for u in source.users)


def is_only_reduced(x: Instruction) -> bool:
    """Does nothing else read it?"""
    read = _as_read(x)
    return all(u.opcode == "reduce" or u in read for source in read for u in source.users)


def splits(x: Instruction) -> bool:
    """Does it take a dimension apart?"""
    return not {*accumulate(x.shape.dimensions, mul)} <= {*accumulate(x.operands[0].shape.dimensions, mul)}


def reads_reduction(x: Instruction) -> bool:
    """Does it read what a reduction gives?"""
    return _reduction_read(x) is not None


def had_ones_dropped_since(x: Instruction) -> bool:
    """Were the dimensions of size one taken behind the reduction that it reads when it was there already?"""
    read = _bitcast_reduced_for(x)
    return (
        read is not None
        and _reads_reduction_without_ones(x)
        and name_before_renaming(read).number > name_before_renaming(x).number
    )


def _reads_reduction_without_ones(x: Instruction) -> bool:
    """Had the reduction that it reads dimensions of size one, which ReductionDegenerateDimRemover took?

    That puts a bitcast in the place of the reduction, so that the new one is called after its opcode
    (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`).
    """
    read, reduction = _bitcast_reduced_for(x), _reduction_read(x)
    if read is None or reduction is None or name_before_renaming(reduction).root != reduction.opcode:
        return False
    if reduction.shape.dimensions and x.shape.dimensions == (*reduction.shape.dimensions, 1):
        return False  # the program keeps the dimension so
    given = read.operands[0].shape
    return given.rank != read.shape.rank and given.true_dimensions == read.shape.true_dimensions


def gives_back_ones_of(x: Instruction, merged: set[Instruction]) -> bool:
    """Does it read a reduction of what one of these drops dimensions from, which were elsewhere before?"""
    return _reads_reduction_without_ones(x) and _bitcast_reduced_for(x) in merged


def _bitcast_reduced_for(x: Instruction) -> Instruction | None:
    """The bitcast of which it reads the reduction."""
    reduction = _reduction_read(x)
    if reduction is None:
        return None
    read = reduction.operands[0]
    read = read.operands[0] if read.opcode == "convert" else read
    return read if read.opcode == "bitcast" else None


def _reduction_read(x: Instruction) -> Instruction | None:
    source = x.operands[0]
    if source.opcode == "get-tuple-element":
        source = source.operands[0]
    return source if source.opcode == "reduce" else None


def _as_read(x: Instruction) -> list[Instruction]:
    """It, and what it is converted to."""
    return [x, *(u for u in x.users if u.opcode == "convert")]


def _reductions(x: Instruction) -> tuple[Instruction | None, Instruction | None]:
    """The one that reads it, and the one that reads that one.

    Float normalization widens what is reduced.
    """
    read = _as_read(x)
    users = (u for source in read for u in source.users)
    inner = next((u for u in users if u.opcode == "reduce" and _reduces(u, read)), None)
    readers = inner.users if inner is not None else []
    return inner, next((u for u in readers if u.opcode == "reduce"), None)


def _reduces(reduction: Instruction, sources: list[Instruction]) -> bool:
    """Is one of these what is reduced, rather than what that begins with?"""
    return any(x in sources for x in reduction.operands[: len(reduction.operands) // 2])


def _regroups(x: Instruction) -> bool:
    """Does it join what is reduced together? What is kept together stays as it is."""
    inner, outer = _reductions(x)
    if inner is None:
        return False
    rank = len(x.shape.dimensions)
    reduced = set(inner.attributes["dimensions"])
    if outer is not None:
        kept = [d for d in range(rank) if d not in reduced]
        reduced |= {kept[d] for d in outer.attributes["dimensions"]}
    kept_beside = any(reduced.isdisjoint((d, d + 1)) for d in range(rank - 1))
    if kept_beside and rank >= len(x.operands[0].shape.dimensions):
        return False
    return [d for d in range(rank - 1) if {d, d + 1} <= reduced] in ([], [_split_dimension(x)])


def _joins_kept(x: Instruction) -> bool:
    """Does it join dimensions that the reduction keeps? The program does."""
    inner, outer = _reductions(x)
    if inner is None or outer is not None:
        return False
    reduced = inner.attributes["dimensions"]
    ends = [*accumulate(x.shape.dimensions, mul)]
    given = {*accumulate(x.operands[0].shape.dimensions, mul)}
    return any(
        d not in reduced and any(start < between < end for between in given)
        for d, (start, end) in enumerate(zip([1, *ends], ends, strict=False))
    )


def _split_dimension(x: Instruction) -> int | None:
    """The first of two neighbours of which one is reduced at once, the other one by the next reduction."""
    inner, outer = _reductions(x)
    if inner is None or outer is None:
        return None
    reduced = set(inner.attributes["dimensions"])
    kept = [d for d in range(len(x.shape.dimensions)) if d not in reduced]
    later = {kept[d] for d in outer.attributes["dimensions"]}
    return next((min(a, b) for a in sorted(later) for b in (a - 1, a + 1) if b in reduced), None)
