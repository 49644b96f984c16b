"""Slices (`HandleSlice`, `HandleDynamicSlice`, `HandleDynamicUpdateSlice`), pads and concatenations."""

import math

from hlofuse.analysis.elementwise import ELEMENTWISE_BINARY
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Instruction, Instructions, replace
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import (
    array,
    ones_moved,
    permuted,
    ranges_of,
    unmodified_dimensions,
    without,
)
from .context import Context, is_all, is_integral, is_spread_scalar, scalar_constant


def is_unstrided(slice_: Instruction) -> bool:
    return slice_.is_slice and all(r.stride == 1 for r in ranges_of(slice_))


def handle_slice(c: Context, x: Instruction) -> bool:
    (operand,) = x.operands
    if c.replace_if_compatible(x, operand):
        return True
    ranges = ranges_of(x)
    if operand.opcode == "pad" and _slice_of_pad(c, x):
        return True
    if is_unstrided(x) and is_unstrided(operand):
        inner = ranges_of(operand).starts
        starts = [r.start + s for r, s in zip(ranges, inner, strict=True)]
        limits = [r.limit + s for r, s in zip(ranges, inner, strict=True)]
        return c.become(x, make.slice_of, operand.operand, starts, limits)
    if operand.is_broadcast:
        return _slice_of_broadcast(c, x)
    if operand.opcode == "dynamic-update-slice" and c.release.slices_of_updates and _slice_of_update(c, x):
        return True
    if operand.is_concatenate and (_scalar_of_concatenate(c, x) or _slice_of_concatenate(c, x)):
        return True
    if not c.options.layout_sensitive and _slice_of_reshape(c, x):
        return True
    if operand.opcode == "reverse":
        starts, limits = list(ranges.starts), list(ranges.limits)
        for d in operand.dimensions:
            size = operand.sizes[d]
            starts[d], limits[d] = size - ranges[d].limit, size - ranges[d].start
        new = make.slice_of(x, operand.operand, starts, limits, ranges.strides)
        return c.become(x, make.add, "reverse", new.shape, [new], dimensions=operand.dimensions)
    idle = [
        d
        for d, r in enumerate(ranges)
        if r.stride != 1 and (r.stride >= r.limit or r.start + r.stride >= r.limit)
    ]
    if idle:
        limits = [r.start + 1 if d in idle else r.limit for d, r in enumerate(ranges)]
        strides = [1 if d in idle else r.stride for d, r in enumerate(ranges)]
        return c.become(x, make.slice_of, operand, ranges.starts, limits, strides)
    return False


def _slice_of_pad(c: Context, x: Instruction) -> bool:
    pad = x.operand
    undoes = inside = True
    starts, limits = [], []
    for d, r in enumerate(ranges_of(x)):
        p = pad.attributes["padding"][d]
        edge = pad.sizes[d] - p.high
        if r.limit <= p.low or r.start >= edge:
            c.broadcast(x, pad.second)
            return True
        undoes &= r.start == p.low and r.stride - 1 == p.interior
        inside &= p.low <= r.start and r.limit <= edge and p.interior == 0 and r.stride == 1
        starts.append(r.start - p.low)
        limits.append(r.limit - p.low)
    if undoes and c.replace_if_compatible(x, pad.operand):
        return True
    return inside and c.become(x, make.slice_of, pad.operand, starts, limits)


def _slice_of_update(c: Context, x: Instruction) -> bool:
    whole, update, *places = x.operand.operands
    starts = [scalar_of(place) if scalar_constant(place) else None for place in places]
    if None in starts or not is_unstrided(x):
        return False
    sizes = zip(starts, whole.sizes, update.sizes, strict=True)
    first = [min(max(int(start), 0), most - size) for start, most, size in sizes if start is not None]
    ranges, ends = ranges_of(x), zip(first, update.sizes, strict=True)
    if any(r.start < a or r.limit > a + size for r, (a, size) in zip(ranges, ends, strict=True)):
        return False
    moved = [(r.start - a, r.limit - a) for r, a in zip(ranges, first, strict=True)]
    return c.become(x, make.slice_of, update, [a for a, _ in moved], [b for _, b in moved])


def _slice_of_broadcast(c: Context, x: Instruction) -> bool:
    broadcast = x.operand
    inner = broadcast.operand
    taken = [ranges_of(x)[d] for d in broadcast.dimensions]
    if any(r.start or r.stride != 1 or r.limit != n for r, n in zip(taken, inner.sizes, strict=True)):
        starts, limits = [r.start for r in taken], [r.limit for r in taken]
        inner = make.slice_of(x, inner, starts, limits, [r.stride for r in taken])
    return c.replace(x, make.broadcast(broadcast, x.shape, inner, broadcast.dimensions))


def _scalar_of_concatenate(c: Context, x: Instruction) -> bool:
    """One element (`TrySimplifyScalarSlice`)."""
    if not x.shape.is_effective_scalar or x.rank != 1:
        return False
    start, base = ranges_of(x)[0].start, 0
    for operand in x.operand.operands:
        size = operand.sizes[0]
        if base + size > start:
            if not c.replace_if_compatible(x, operand):
                first = start - base
                new = make.slice_of(x, operand, [first], [first + 1], ranges_of(x).strides)
                c.replace(x, new)
            return True
        base += size
    return False


def _slice_of_concatenate(c: Context, x: Instruction) -> bool:
    if not is_unstrided(x):
        return False
    concatenate = x.operand
    (dimension,) = concatenate.dimensions
    ranges = ranges_of(x)
    operands, place, base = concatenate.operands, 0, 0
    first = last = None
    for k, operand in enumerate(operands):
        size = operand.sizes[dimension]
        if first is None and place <= ranges[dimension].start < place + size:
            first, base = k, place
        place += size
        if place >= ranges[dimension].limit:
            last = k + 1
            break
    if first is None or last is None:
        return False
    if first + 1 == last and c.same_shape(operands[first].shape, x.shape):
        return c.replace(x, operands[first])
    if last - first == len(operands):
        return False
    starts, limits = list(ranges.starts), list(ranges.limits)
    starts[dimension] -= base
    limits[dimension] -= base
    source = (
        operands[first]
        if first + 1 == last
        else make.concatenate(concatenate, operands[first:last], dimension)
    )
    return c.become(x, make.slice_of, source, starts, limits)


def _slice_of_reshape(c: Context, x: Instruction) -> bool:
    """Slice along the first dimension ahead of the reshape (`TryToReorderSliceAndReshape`)."""
    reshape = x.operand
    if not reshape.is_reshape or not is_unstrided(x):
        return False
    ranges, sizes = ranges_of(x), reshape.sizes
    if [d for d, r in enumerate(ranges) if r.start or r.limit != sizes[d]] != [0]:
        return False
    source = reshape.operand
    before = source.sizes
    offset, left = ranges[0].start * math.prod(sizes[1:]), x.element_count
    ones = next((d for d, n in enumerate(before) if n != 1), 0) if c.release.slices_past_ones else 0
    step = math.prod(before[ones + 1 :])
    anywhere = c.release.slices_reshapes_anywhere
    if (step == 0 or offset % step or left % step) if anywhere else offset:
        return False
    starts, limits = [0] * len(before), list(before)
    for d in range(len(before) - 1, -1, -1):
        size = before[d]
        if left >= size:
            if left % size or offset % size:
                return False
            left //= size
        else:
            first = offset % size
            if first + left > size:
                return False
            starts[d], limits[d], left = first, first + left, 1
        offset //= size
    if offset != 0 or left != 1:
        return False
    return c.become(x, make.reshape, x.shape, make.slice_of(x, source, starts, limits))


def handle_dynamic_slice(c: Context, x: Instruction) -> bool:
    operand, *starts = x.operands
    sizes = x.sizes
    if not sizes or c.same_shape(operand.shape, x.shape):
        return c.replace(x, operand)
    if _start_at_zero(c, x, operand):
        return True
    if operand.is_broadcast:
        inner = operand.operand
        if operand.dimensions:
            taken = [sizes[d] for d in operand.dimensions]
            inner = make.dynamic_slice(x, inner, [starts[d] for d in operand.dimensions], taken)
        return c.replace(x, make.broadcast(operand, x.shape, inner, operand.dimensions))
    if not c.options.layout_sensitive:
        if operand.is_reshape and _dynamic_of_reshape(c, x):
            return True
        if operand.is_transpose:
            order = inverse(operand.dimensions)
            source, taken = operand.operand, [sizes[k] for k in order]
            inner = make.dynamic_slice(x, source, [starts[k] for k in order], taken)
            inner.shape = permuted(x.shape, order)
            return c.replace(x, make.transpose(x, inner, operand.dimensions))
    if not operand.is_constant and all(s.is_constant and is_integral(s) for s in starts):
        return _at_constant_offset(c, x)
    return _slice_of_iota(c, x) or _nested(c, x)


def _dynamic_of_reshape(c: Context, x: Instruction) -> bool:
    reshape = x.operand
    source = reshape.operand
    if ones_moved(source.shape, reshape.shape) is None:
        return False
    zero = make.scalar_like(x.second, 0)
    starts, sizes = [zero] * source.rank, [1] * source.rank
    for a, b in unmodified_dimensions(source.shape, reshape.shape):
        if source.sizes[a] != 1:
            starts[a], sizes[a] = x.operands[1 + b], x.sizes[b]
    inner = make.dynamic_slice(x, source, starts, sizes)
    return c.become(x, make.reshape, x.shape, inner)


def _at_constant_offset(c: Context, x: Instruction) -> bool:
    operand = x.operand
    starts = []
    for d, s in enumerate(x.operands[1:]):
        value = scalar_of(s)
        if value is None or value < 0:
            return False
        starts.append(min(operand.sizes[d] - x.sizes[d], int(value)))
    limits = [s + n for s, n in zip(starts, x.sizes, strict=True)]
    return c.become(x, make.slice_of, operand, starts, limits)


def _combine_indices(
    index: Instruction,
    inner: Instruction,
    bound: int,
    at: Instruction,
) -> Instruction:
    """The outer index and the inner one, which does not go beyond its bounds."""
    low, high = make.scalar_like(inner, 0), make.scalar_like(inner, bound)
    clamped = make.add(inner, "clamp", inner.shape, [low, inner, high])
    return make.binary(at, "add", index, make.convert(inner, clamped, index.element_type))


def _nested(c: Context, x: Instruction) -> bool:
    """Read from the array itself. XLA bounds the inner index by what the outer slice leaves of the array."""
    inner = x.operand
    if inner.opcode != "dynamic-slice":
        return False
    base, *starts = inner.operands
    x.replace_operand(0, base)
    for d, start in enumerate(starts):
        bound = base.sizes[d] - x.sizes[d]
        x.replace_operand(1 + d, _combine_indices(x.operands[1 + d], start, bound, inner))
    c.changed = True
    return True


def _slice_of_iota(c: Context, x: Instruction) -> bool:
    counter, index = x.operand, x.second
    multiplier = None
    if counter.opcode == "multiply" and is_spread_scalar(counter.second):
        counter, multiplier = counter.operand, counter.second.operand
    integers = {x.element_type, index.element_type} <= {"s32", "u32"}
    if counter.opcode != "iota" or x.sizes != (1,) or not integers:
        return False
    low, high = make.scalar_like(index, 0), make.scalar_like(index, counter.sizes[0] - 1)
    result = make.add(x, "clamp", index.shape, [low, index, high])
    result = make.convert(x, result, x.element_type)
    if multiplier is not None:
        result = make.binary(x, "multiply", result, multiplier)
    return c.become(x, make.reshape, x.shape, result)


def _start_at_zero(c: Context, x: Instruction, *arrays: Instruction) -> bool:
    """Read or write whole dimensions from zero on. `arrays` are the operands before the starts."""
    starts = x.operands[len(arrays) :]
    sizes = zip(arrays[-1].sizes, x.sizes, starts, strict=True)
    moved = [a == b and not (start.is_constant and is_all(start, 0)) for a, b, start in sizes]
    if not any(moved):
        return False
    zero = make.scalar_like(starts[0], 0)
    new = [zero if m else s for m, s in zip(moved, starts, strict=True)]
    return c.become(x, make.copy_of, [*arrays, *new])


def handle_dynamic_update_slice(c: Context, x: Instruction) -> bool:
    base, update, *starts = x.operands
    if is_spread_scalar(base) and _replace_by_pad(c, x):
        return True
    if c.same_shape(x.shape, update.shape):
        return c.replace(x, update)
    if _start_at_zero(c, x, base, update):
        return True
    if update.element_count == 0:
        return c.replace(x, base)
    if update.opcode != "dynamic-update-slice":
        return False
    read = update.operand
    if read.opcode != "dynamic-slice" or read.operand is not base or read.operands[1:] != starts:
        return False
    part = update.second
    x.replace_operand(1, part)
    for k in range(2, x.operand_count):
        bound = update.sizes[k - 2] - part.sizes[k - 2]
        x.replace_operand(k, _combine_indices(x.operands[k], update.operands[k], bound, update))
    c.changed = True
    return True


def _replace_by_pad(c: Context, x: Instruction) -> bool:
    """An update at a known place of an array of one value is a pad."""
    base, update, *starts = x.operands
    if any(not scalar_constant(s) for s in starts) or len(starts) != base.rank:
        return False
    padding = []
    for d, s in enumerate(starts):
        value = scalar_of(s)
        if value is None:
            return False
        room = base.sizes[d] - update.sizes[d]
        low = min(room, max(0, int(value)))
        padding.append(PaddingDimension(low, room - low))
    shape = array(base.element_type, base.sizes)
    return c.become(x, make.pad, shape, update, base.operand, PaddingConfig(padding))


_BINARY = ELEMENTWISE_BINARY - {"compare", "mulhi", "stochastic-convert"}


def handle_pad(c: Context, pad: Instruction) -> bool:
    operand, value = pad.operands
    config: PaddingConfig = pad.attributes["padding"]
    if operand.element_count == 0:
        return c.broadcast(pad, value)
    sizes = operand.sizes
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
    if not whole.is_broadcast or whole.user_count > 1 or len(padded) == len(config):
        return False
    if not {*padded}.issuperset(whole.dimensions):
        return False
    inner, outer = (array(pad.element_type, [x.sizes[d] for d in padded]) for x in (whole, pad))
    small = make.broadcast(whole, inner, whole.operand, [padded.index(d) for d in whole.dimensions])
    new = make.pad(pad, outer, small, pad.second, PaddingConfig(config[d] for d in padded))
    return c.broadcast(pad, new, padded)


def _negative(c: Context, pad: Instruction, config: PaddingConfig) -> bool:
    """A pad that adds, then a slice that takes away."""
    operand = pad.operand
    more = (PaddingDimension(max(0, p.low), max(0, p.high), p.interior) for p in config)
    grown = PaddingConfig(more)
    sizes = [
        n + p.low + p.high + max(0, n - 1) * p.interior for n, p in zip(operand.sizes, grown, strict=True)
    ]
    bigger = make.pad(pad, array(pad.element_type, sizes), operand, pad.second, grown)
    starts = [max(0, -p.low) for p in config]
    limits = [n + min(0, p.high) for n, p in zip(sizes, config, strict=True)]
    return c.become(pad, make.slice_of, bigger, starts, limits)


def _reverse(at: Instruction, operand: Instruction, dimensions: list[int]) -> Instruction:
    return make.add(at, "reverse", operand.shape, [operand], dimensions=dimensions)


def handle_reverse(c: Context, x: Instruction) -> bool:
    (inner,) = x.operands
    dimensions = list(x.dimensions)
    if all(x.sizes[d] == 1 for d in dimensions):
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
    elif inner.is_reshape:
        moved = ones_moved(inner.operand.shape, inner.shape)
        if moved is None or moved[0]:
            return False
        source = inner.operand
        remaining = [d - sum(i < d for i in moved[1]) for d in dimensions if inner.sizes[d] != 1]
        return c.become(x, make.reshape, inner.shape, _reverse(source, source, remaining))
    return False


def handle_concatenate(c: Context, x: Instruction) -> bool:
    operands = x.operands
    (dimension,) = x.dimensions
    if len(operands) == 1:
        return c.replace_if_compatible(x, operands[0])
    full = [o for o in operands if o.element_count]
    if len(full) < len(operands):
        new = operands[0] if not full else full[0] if len(full) == 1 else make.copy_of(x, full)
        return c.replace_if_compatible(x, new)
    if c.options.layout_sensitive:
        return False
    flat = []
    for o in operands:
        flat += o.operands if o.is_concatenate and o.dimensions == (dimension,) else [o]
    if len(flat) != len(operands):
        return c.become(x, make.concatenate, flat, dimension)
    joined = _join_slices(operands, dimension)
    if len(joined) < len(operands):
        return c.replace_if_compatible(x, make.copy_of(x, joined))
    if len(operands) == 2:
        return _as_pad(c, x)
    if all(o is operands[0] for o in operands) and operands[0].sizes[dimension] == 1:
        small = make.reshape(operands[0], without(operands[0].shape, [dimension]), operands[0])
        rest = [d for d in range(x.rank) if d != dimension]
        return c.replace(x, make.broadcast(small, x.shape, small, rest))
    return False


def _join_slices(operands: Instructions, dimension: int) -> Instructions:
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
        while k < len(operands) and is_unstrided(operands[k]) and operands[k].operand is first.operand:
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
    size = value.sizes[dimension]
    at = PaddingDimension(size, 0) if low else PaddingDimension(0, size)
    config = [at if d == dimension else PaddingDimension(0, 0) for d in range(x.rank)]
    return c.become(x, make.pad, x.shape, remaining, value.operand, PaddingConfig(config))
