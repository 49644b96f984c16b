"""Concatenations (`HandleConcatenate`)."""

from __future__ import annotations

from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.slice import is_unstrided
from hlofuse.passes.common import make
from hlofuse.passes.common.reading import ranges_of
from hlofuse.passes.common.shapes import without


def handle_concatenate(c: Context, x: Instruction) -> None:
    operands = x.operands
    (dimension,) = x.dimensions
    if len(operands) == 1:
        c.replace_if_compatible(x, operands[0])
        return
    full = [o for o in operands if o.shape.element_count]
    if len(full) < len(operands):
        new = operands[0] if not full else full[0] if len(full) == 1 else make.copy_of(x, full)
        c.replace_if_compatible(x, new)
        return
    if c.options.layout_sensitive:
        return
    flat: list[Instruction] = []
    for o in operands:
        flat += o.operands if o.opcode == "concatenate" and o.dimensions == (dimension,) else [o]
    if len(flat) != len(operands):
        c.replace(x, make.concatenate(x, flat, dimension))
        return
    joined = _join_slices(operands, dimension)
    if len(joined) < len(operands):
        c.replace_if_compatible(x, make.copy_of(x, joined))
        return
    if len(operands) == 2:
        _as_pad(c, x)
        return
    if all(o is operands[0] for o in operands) and operands[0].shape.dimensions[dimension] == 1:
        small = make.reshape(operands[0], without(operands[0].shape, [dimension]), operands[0])
        rest = [d for d in range(x.shape.rank) if d != dimension]
        c.replace(x, make.broadcast(small, x.shape, small, rest))


def _join_slices(operands: list[Instruction], dimension: int) -> list[Instruction]:
    """Slices of one array that lie side by side are one slice."""
    joined = []
    k = 0
    while k < len(operands):
        first = operands[k]
        k += 1
        if not is_unstrided(first):
            joined.append(first)
            continue
        ranges = ranges_of(first)
        end, start = ranges[dimension].limit, k
        while (
            k < len(operands) and is_unstrided(operands[k]) and operands[k].operands[0] is first.operands[0]
        ):
            other = ranges_of(operands[k])
            same = all(
                a.start == b.start
                for d, (a, b) in enumerate(zip(ranges, other, strict=True))
                if d != dimension
            )
            if other[dimension].start != end or not same:
                break
            end = other[dimension].limit
            k += 1
        if k > start:
            limits = [end if d == dimension else r.limit for d, r in enumerate(ranges)]
            first = make.slice_of(first, first.operands[0], ranges.starts, limits)
        joined.append(first)
    return joined


def _as_pad(c: Context, x: Instruction) -> None:
    """Two pieces, one of them a scalar everywhere."""
    (dimension,) = x.dimensions
    wide = [o.opcode == "broadcast" and not o.operands[0].shape.dimensions for o in x.operands]
    if not any(wide):
        return
    low = wide[0]
    value, kept = (x.operands[0], x.operands[1]) if low else (x.operands[1], x.operands[0])
    size = value.shape.dimensions[dimension]
    at = PaddingDimension(size, 0) if low else PaddingDimension(0, size)
    config = [at if d == dimension else PaddingDimension(0, 0) for d in range(x.shape.rank)]
    c.replace(x, make.pad(x, x.shape, kept, value.operands[0], PaddingConfig(tuple(config))))
