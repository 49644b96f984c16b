"""Reshapes and bitcasts."""

from collections.abc import Sequence
from itertools import pairwise

from hlofuse.analysis.elementwise import ELEMENTWISE_UNARY
from hlofuse.cost.gpu.shapes import inverse, reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import (
    array,
    common_factors,
    is_sorted,
    ones_moved,
    transpose_for_bitcast,
    unmodified_by_reshape,
)
from .context import Context, remove_chain


def simplify_transpose_of_broadcast(c: Context, transpose: Instruction, permutation: Sequence[int]) -> bool:
    """A transpose of a broadcast is a broadcast (`SimplifyTransposeOfBroadcast`): where the dimensions stay
    in their order, and with layouts lie in memory as they do in the operand."""
    broadcast = transpose.operand
    if broadcast.opcode != "broadcast" or not is_sorted(broadcast.dimensions):
        return False
    place = inverse(tuple(permutation))
    dimensions = [place[d] for d in broadcast.dimensions]
    small = broadcast.operand
    if not is_sorted(dimensions):
        return False
    if c.options.layout_sensitive:
        remaining = [d for d in transpose.shape.minor_to_major if d in dimensions]
        if _rank(small.shape.minor_to_major) != _rank(remaining):
            return False
    return c.broadcast(transpose, small, dimensions)


def _rank(numbers: Sequence[int]) -> list[int]:
    return sorted(range(len(numbers)), key=numbers.__getitem__)


def handle_bitcast(c: Context, bitcast: Instruction) -> bool:
    if bitcast.control_predecessors:
        return False
    if c.release.bitcasts_pass_unary and _move_before_unary(c, bitcast):
        return True
    if bitcast.operand.opcode == "bitcast":
        handle_bitcast(c, bitcast.operand)
    inner = bitcast.operand
    if inner.opcode == "bitcast":
        new = make.add(bitcast, "bitcast", bitcast.shape, inner.operands)
        if not c.replace(bitcast, new):
            return False
        bitcast = new
    source = bitcast.operand
    if source.element_type != bitcast.element_type:
        return False
    if c.replace_if_compatible(bitcast, source):
        bitcast = source
    if bitcast.opcode not in ("bitcast", "reshape", "transpose"):
        return False
    if remove_chain(c, bitcast):
        return True
    if bitcast.opcode == "bitcast" and bitcast.operand.opcode == "broadcast":
        permutation = transpose_for_bitcast(bitcast.operand.shape, bitcast.shape)
        if permutation is not None:
            return simplify_transpose_of_broadcast(c, bitcast, permutation)
    return False


def as_bitcast(c: Context, old: Instruction, operand: Instruction | None = None) -> bool:
    """`old` becomes a bitcast of `operand`, its own where none is given (`ReplaceWithBitcast`)."""
    return c.become(old, make.add, "bitcast", old.shape, [operand or old.operand])


def bitcasting_operand(c: Context, x: Instruction) -> Instruction | None:
    """The source of a chain that is a bitcast (`BitcastingOperandOfReshapeOrCopyChain`)."""
    if not c.options.layout_sensitive:
        return None
    operand = x.operand
    while True:
        if not operand.shape.is_array or not x.shape.is_array:
            return None
        if reshape_is_bitcast(operand.shape, x.shape):
            return operand
        if operand.opcode not in ("reshape", "copy"):
            return None
        operand = operand.operand


def bitcast_convert_is_bitcast(x: Instruction) -> bool:
    """Same shape, or the last dimension is most minor where one is split or joined."""
    source, result = x.operand.shape, x.shape
    if source.key_ignoring_element_type == result.key_ignoring_element_type:
        return True
    longer = source if source.rank > result.rank else result
    return longer.rank > 0 and longer.minor_to_major[0] == longer.rank - 1 and longer.bit_width % 8 == 0


def _move_before_unary(c: Context, bitcast: Instruction) -> bool:
    unary = bitcast.operand
    if unary.opcode not in ELEMENTWISE_UNARY or len(unary.operands) != 1 or len(unary.users) != 1:
        return False
    inner = unary.operand
    if inner.opcode != "bitcast":
        return False
    source = inner.operand
    if len({i.element_type for i in (bitcast, unary, inner, source)}) > 1:
        return False
    new = make.copy_of(unary, [source], source.shape)
    return as_bitcast(c, bitcast, new)


def handle_bitcast_convert(c: Context, x: Instruction) -> bool:
    operand = x.operand
    if operand.opcode == "bitcast-convert":
        return c.become(x, make.add, "bitcast-convert", x.shape, [operand.operand])
    if operand.opcode == "concatenate":
        result = x.element_type
        inner = [o.operand for o in operand.operands if o.opcode == "bitcast-convert"]
        if len(inner) == len(operand.operands) and all(i.element_type == result for i in inner):
            return c.replace(x, make.concatenate(inner[0], inner, operand.dimensions[0]))
    becomes_bitcast = c.options.bitcast_convert_as_bitcast and c.release.bitcast_converts_become_bitcasts
    if c.options.layout_sensitive and becomes_bitcast and bitcast_convert_is_bitcast(x):
        return as_bitcast(c, x)
    return c.replace_if_compatible(x, operand)


def handle_reshape(c: Context, reshape: Instruction) -> bool:
    (operand,) = reshape.operands
    shape = reshape.shape
    if shape.element_count == 0:
        return c.become(reshape, make.constant, shape, [])
    if c.same_shape(shape, operand.shape):
        return c.replace(reshape, operand)
    if operand.opcode == "reshape":
        return c.become(reshape, make.reshape, shape, operand.operand)
    if remove_chain(c, reshape):
        return True
    sensitive = c.options.layout_sensitive
    hoists = c.options.hoist_transpose_of_reshape and c.release.hoists_transposes
    if not sensitive and hoists and _hoist_transpose(c, reshape):
        return True
    if operand.opcode == "broadcast":
        dimensions = unmodified_by_reshape(operand.shape, shape, operand.dimensions)
        if dimensions is not None:
            return c.broadcast(reshape, operand.operand, dimensions)
    if operand.opcode == "iota" and _reshape_of_iota(c, reshape):
        return True
    if not sensitive and _move_before_update(c, reshape):
        return True
    source = bitcasting_operand(c, reshape)
    return source is not None and as_bitcast(c, reshape, source)


def _reshape_of_iota(c: Context, reshape: Instruction) -> bool:
    """The counter along one dimension, spread over several: a sum of scaled counters."""
    iota = reshape.operand
    dimension = int(iota.attributes["iota_dimension"])
    sizes = reshape.shape.dimensions
    cuts = common_factors(iota.shape.dimensions, sizes)
    start = next(
        (k for k, (a, b) in enumerate(cuts) if a == dimension and b < len(sizes) and sizes[b] > 1), None
    )
    if start is None or not any(a == dimension + 1 for a, _ in cuts):
        return False
    result: Instruction | None = None
    multiplier = 1
    for d in range(cuts[start + 1][1] - 1, cuts[start][1] - 1, -1):
        counter = make.iota(iota, reshape.shape, d)
        if result is None:
            result = counter
        else:
            factor = make.scalar_like(reshape, multiplier)
            scaled = make.binary(reshape, "multiply", counter, factor)
            result = make.binary(reshape, "add", result, scaled)
        multiplier *= sizes[d]
    assert result is not None
    return c.replace(reshape, result)


def _move_before_update(c: Context, reshape: Instruction) -> bool:
    """reshape(dynamic-update-slice(x, y, …)) that moves only 1s is an update of reshape(x)."""
    update = reshape.operand
    if update.opcode != "dynamic-update-slice" or len(update.users) != 1:
        return False
    moved = ones_moved(update.shape, reshape.shape)
    shardings = [x.raw("sharding") for x in (update, update.operand)]
    if moved is None or any(shardings):
        return False
    deleted, inserted = moved
    part = update.operands[1]
    base = make.reshape(reshape, reshape.shape, update.operand)
    zero = make.scalar_like(update.operands[2], 0)
    sizes = list[int]()
    starts = []
    for k in range(part.shape.rank + 1):
        if k in deleted:
            continue
        while len(sizes) in inserted:
            sizes.append(1)
            starts.append(zero)
        if k < part.shape.rank:
            sizes.append(part.shape.dimensions[k])
            starts.append(update.operands[2 + k])
    new_part = make.reshape(reshape, array(part.element_type, sizes), part)
    return c.replace(reshape, make.copy_of(update, [base, new_part, *starts], reshape.shape))


def _hoist_transpose(c: Context, reshape: Instruction) -> bool:
    """reshape(transpose(reshape(x))) that joins whole runs is transpose(reshape(x))."""
    transpose = reshape.operand
    if transpose.opcode != "transpose" or transpose.operand.opcode != "reshape":
        return False
    cuts = common_factors(reshape.shape.dimensions, transpose.shape.dimensions)
    permutation = transpose.dimensions
    runs = []
    for (a, b), (a_end, b_end) in pairwise(cuts):
        run = permutation[b:b_end]
        if a_end - a != 1 or not run or list(run) != list(range(run[0], run[0] + len(run))):
            return False
        runs.append((run[0], reshape.shape.dimensions[a], a))
    runs.sort()
    order = [0] * len(runs)
    for k, (_, _, place) in enumerate(runs):
        order[place] = k
    small = array(reshape.element_type, [size for _, size, _ in runs])
    inner = make.reshape(reshape, small, transpose.operand.operand)
    return c.become(reshape, make.transpose, inner, order, reshape.shape)
