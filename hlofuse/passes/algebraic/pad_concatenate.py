"""Pads and concatenations."""

from hlofuse.analysis.elementwise import ELEMENTWISE_BINARY
from hlofuse.ir import Instruction, replace
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, ones_moved, ranges_of, without
from .context import Context, is_spread_scalar
from .slice import is_unstrided

_BINARY = ELEMENTWISE_BINARY - {"compare", "mulhi", "stochastic-convert"}


def handle_pad(c: Context, pad: Instruction) -> bool:
    operand, value = pad.operands
    config: PaddingConfig = pad.attributes["padding"]
    if operand.shape.element_count == 0:
        return c.broadcast(pad, value)
    sizes = operand.shape.dimensions
    if any(p.interior > 0 and n == 1 for p, n in zip(config, sizes, strict=True)):
        remaining = [replace(p, interior=0) if n == 1 else p for p, n in zip(config, sizes, strict=True)]
        return c.become(pad, make.pad, pad.shape, operand, value, PaddingConfig(remaining))
    if not any(p.low or p.high for p in config) and c.replace_if_compatible(pad, operand):
        return True
    if _of_broadcast(c, pad, config):
        return True
    if any(p.low < 0 or p.high < 0 for p in config):
        return _negative(c, pad, config)
    return False


def _of_broadcast(c: Context, pad: Instruction, config: PaddingConfig) -> bool:
    """Pad only the dimensions that need it, then broadcast."""
    whole = pad.operand
    padded = [d for d, p in enumerate(config) if p.low or p.high or p.interior]
    if whole.opcode != "broadcast" or len(whole.users) > 1 or len(padded) == len(config):
        return False
    if not {*padded}.issuperset(whole.dimensions):
        return False
    inner, outer = (array(pad.element_type, [x.shape.dimensions[d] for d in padded]) for x in (whole, pad))
    small = make.broadcast(whole, inner, whole.operand, [padded.index(d) for d in whole.dimensions])
    new = make.pad(pad, outer, small, pad.operands[1], PaddingConfig(config[d] for d in padded))
    return c.broadcast(pad, new, padded)


def _negative(c: Context, pad: Instruction, config: PaddingConfig) -> bool:
    """A pad that adds, then a slice that takes away."""
    operand = pad.operand
    more = (PaddingDimension(max(0, p.low), max(0, p.high), p.interior) for p in config)
    grown = PaddingConfig(more)
    sizes = [
        n + p.low + p.high + max(0, n - 1) * p.interior
        for n, p in zip(operand.shape.dimensions, grown, strict=True)
    ]
    bigger = make.pad(pad, array(pad.element_type, sizes), operand, pad.operands[1], grown)
    starts = [max(0, -p.low) for p in config]
    limits = [n + min(0, p.high) for n, p in zip(sizes, config, strict=True)]
    return c.become(pad, make.slice_of, bigger, starts, limits)


def _reverse(at: Instruction, operand: Instruction, dimensions: list[int]) -> Instruction:
    return make.add(at, "reverse", operand.shape, [operand], dimensions=dimensions)


def handle_reverse(c: Context, x: Instruction) -> bool:
    (inner,) = x.operands
    dimensions = list(x.dimensions)
    if all(x.shape.dimensions[d] == 1 for d in dimensions):
        return c.replace(x, inner)
    if c.options.layout_sensitive:
        return False
    if inner.opcode == "reverse":
        left = sorted(set(dimensions) ^ set(inner.dimensions))
        source = inner.operand
        return c.replace(x, _reverse(source, source, left) if left else source)
    if inner.opcode in _BINARY:
        for place in (0, 1):
            scalar = inner.operands[place]
            if is_spread_scalar(scalar):
                other = inner.operands[1 - place]
                operands = [_reverse(other, other, dimensions)]
                operands.insert(place, scalar)
                return c.become(x, make.add, inner.opcode, inner.shape, operands)
    elif inner.opcode == "reshape":
        moved = ones_moved(inner.operand.shape, inner.shape)
        if moved is None or moved[0]:
            return False
        source = inner.operand
        remaining = [d - sum(i < d for i in moved[1]) for d in dimensions if inner.shape.dimensions[d] != 1]
        return c.become(x, make.reshape, inner.shape, _reverse(source, source, remaining))
    return False


def handle_concatenate(c: Context, x: Instruction) -> bool:
    operands = x.operands
    (dimension,) = x.dimensions
    if len(operands) == 1:
        return c.replace_if_compatible(x, operands[0])
    full = [o for o in operands if o.shape.element_count]
    if len(full) < len(operands):
        new = operands[0] if not full else full[0] if len(full) == 1 else make.copy_of(x, full)
        return c.replace_if_compatible(x, new)
    if c.options.layout_sensitive:
        return False
    flat = []
    for o in operands:
        flat += o.operands if o.opcode == "concatenate" and o.dimensions == (dimension,) else [o]
    if len(flat) != len(operands):
        return c.become(x, make.concatenate, flat, dimension)
    joined = _join_slices(operands, dimension)
    if len(joined) < len(operands):
        return c.replace_if_compatible(x, make.copy_of(x, joined))
    if len(operands) == 2:
        return _as_pad(c, x)
    if all(o is operands[0] for o in operands) and operands[0].shape.dimensions[dimension] == 1:
        small = make.reshape(operands[0], without(operands[0].shape, [dimension]), operands[0])
        rest = [d for d in range(x.shape.rank) if d != dimension]
        return c.replace(x, make.broadcast(small, x.shape, small, rest))
    return False


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
            first = make.slice_of(first, first.operand, ranges.starts, limits)
        joined.append(first)
    return joined


def _as_pad(c: Context, x: Instruction) -> bool:
    """Two pieces, one of them a scalar everywhere."""
    (dimension,) = x.dimensions
    wide = [is_spread_scalar(o) for o in x.operands]
    if not any(wide):
        return False
    low = wide[0]
    value, remaining = x.operands if low else x.operands[::-1]
    size = value.shape.dimensions[dimension]
    at = PaddingDimension(size, 0) if low else PaddingDimension(0, size)
    config = [at if d == dimension else PaddingDimension(0, 0) for d in range(x.shape.rank)]
    return c.become(x, make.pad, x.shape, remaining, value.operand, PaddingConfig(config))
