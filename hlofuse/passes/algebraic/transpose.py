"""Reshapes and bitcasts, transposes and copies."""

from collections.abc import Sequence
from itertools import pairwise

from hlofuse.analysis.elementwise import ELEMENTWISE_UNARY, is_elementwise, transpose_is_bitcast
from hlofuse.cost.gpu.shapes import inverse, reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.index_vectors import is_simplified_scatter
from hlofuse.passes.common.literals import values_of, word_of
from hlofuse.passes.common.shapes import (
    array,
    common_factors,
    is_sorted,
    numbers_of,
    ones_moved,
    permute,
    transpose_for_bitcast,
    unmodified_by_reshape,
    without_ones,
)
from .context import Context, iota_size, is_spread_scalar, remove_chain
from .dot import swapped


def simplify_transpose_of_broadcast(c: Context, transpose: Instruction, permutation: Sequence[int]) -> bool:
    """A transpose of a broadcast is a broadcast (`SimplifyTransposeOfBroadcast`): where the dimensions stay
    in their order, and with layouts lie in memory as they do in the operand."""
    broadcast = transpose.operand
    if not broadcast.is_broadcast or not is_sorted(broadcast.dimensions):
        return False
    place = inverse(tuple(permutation))
    dimensions = [place[d] for d in broadcast.dimensions]
    small = broadcast.operand
    if not is_sorted(dimensions):
        return False
    if c.options.layout_sensitive:
        remaining = [d for d in transpose.minor_to_major if d in dimensions]
        if _rank(small.minor_to_major) != _rank(remaining):
            return False
    return c.broadcast(transpose, small, dimensions)


def _rank(numbers: Sequence[int]) -> list[int]:
    return sorted(range(len(numbers)), key=numbers.__getitem__)


def handle_bitcast(c: Context, bitcast: Instruction) -> bool:
    if bitcast.control_predecessors:
        return False
    if c.release.bitcasts_pass_unary and _move_before_unary(c, bitcast):
        return True
    if bitcast.operand.is_bitcast:
        handle_bitcast(c, bitcast.operand)
    inner = bitcast.operand
    if inner.is_bitcast:
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
    if bitcast.is_bitcast and bitcast.operand.is_broadcast:
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
        if not operand.is_array or not x.is_array:
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
    if unary.opcode not in ELEMENTWISE_UNARY or unary.operand_count != 1 or unary.user_count != 1:
        return False
    inner = unary.operand
    if not inner.is_bitcast:
        return False
    source = inner.operand
    if len({i.element_type for i in (bitcast, unary, inner, source)}) > 1:
        return False
    return as_bitcast(c, bitcast, make.copy_of(unary, [source], source.shape))


def handle_bitcast_convert(c: Context, x: Instruction) -> bool:
    operand = x.operand
    if operand.opcode == "bitcast-convert":
        return c.become(x, make.add, "bitcast-convert", x.shape, [operand.operand])
    if operand.is_concatenate:
        result = x.element_type
        inner = [o.operand for o in operand.operands if o.opcode == "bitcast-convert"]
        if len(inner) == operand.operand_count and all(i.element_type == result for i in inner):
            return c.replace(x, make.concatenate(inner[0], inner, operand.dimension))
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
    if operand.is_reshape:
        return c.become(reshape, make.reshape, shape, operand.operand)
    if remove_chain(c, reshape):
        return True
    sensitive = c.options.layout_sensitive
    hoists = c.options.hoist_transpose_of_reshape and c.release.hoists_transposes
    if not sensitive and hoists and _hoist_transpose(c, reshape):
        return True
    if operand.is_broadcast:
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
    sizes = reshape.sizes
    cuts = common_factors(iota.sizes, sizes)
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
    if update.opcode != "dynamic-update-slice" or update.user_count != 1:
        return False
    moved = ones_moved(update.shape, reshape.shape)
    shardings = [x.raw("sharding") for x in (update, update.operand)]
    if moved is None or any(shardings):
        return False
    deleted, inserted = moved
    part = update.second
    base = make.reshape(reshape, reshape.shape, update.operand)
    zero = make.scalar_like(update.operands[2], 0)
    sizes = list[int]()
    starts = []
    for k in range(part.rank + 1):
        if k in deleted:
            continue
        while len(sizes) in inserted:
            sizes.append(1)
            starts.append(zero)
        if k < part.rank:
            sizes.append(part.sizes[k])
            starts.append(update.operands[2 + k])
    new_part = make.reshape(reshape, array(part.element_type, sizes), part)
    return c.replace(reshape, make.copy_of(update, [base, new_part, *starts], reshape.shape))


def _hoist_transpose(c: Context, reshape: Instruction) -> bool:
    """reshape(transpose(reshape(x))) that joins whole runs is transpose(reshape(x))."""
    transpose = reshape.operand
    if not transpose.is_transpose or not transpose.operand.is_reshape:
        return False
    cuts = common_factors(reshape.sizes, transpose.sizes)
    permutation = transpose.dimensions
    runs = []
    for (a, b), (a_end, b_end) in pairwise(cuts):
        run = permutation[b:b_end]
        if a_end - a != 1 or not run or list(run) != list(range(run[0], run[0] + len(run))):
            return False
        runs.append((run[0], reshape.sizes[a], a))
    runs.sort()
    order = [0] * len(runs)
    for k, (_, _, place) in enumerate(runs):
        order[place] = k
    small = array(reshape.element_type, [size for _, size, _ in runs])
    inner = make.reshape(reshape, small, transpose.operand.operand)
    return c.become(reshape, make.transpose, inner, order, reshape.shape)


def handle_transpose(c: Context, transpose: Instruction) -> bool:
    (operand,) = transpose.operands
    permutation = transpose.dimensions
    folds = c.options.fold_transpose_into_scatter and c.release.transposes_enter_scatters
    if folds and _fold_into_scatter(c, transpose):
        return True
    if is_sorted(permutation):
        return c.replace(transpose, operand)
    if operand.is_transpose:
        through = permute(operand.dimensions, permutation)
        return c.become(transpose, make.transpose, operand.operand, through, transpose.shape)
    if remove_chain(c, transpose) or _transpose_of_dot(c, transpose):
        return True
    if _moves_only_ones(transpose):
        return c.become(transpose, make.reshape, transpose.shape, operand)
    if c.options.layout_sensitive and transpose_is_bitcast(transpose):
        return as_bitcast(c, transpose)
    return simplify_transpose_of_broadcast(c, transpose, permutation)


def _fold_into_scatter(c: Context, transpose: Instruction) -> bool:
    """A scatter into the array as transposed (`TryFoldTransposeIntoScatter`)."""
    scatter, order = transpose.operand, transpose.dimensions
    if scatter.opcode != "scatter" or scatter.user_count != 1 or scatter.operand_count != 3:
        return False
    if not is_simplified_scatter(scatter) or numbers_of(scatter, "input_batching_dims"):
        return False
    base, indices, updates = scatter.operands
    places = inverse(tuple(order))
    operands = [
        make.transpose(transpose, base, order, transpose.shape),
        indices,
        make.transpose(transpose, updates, [0, *(d + 1 for d in order)]),
    ]
    targets = [places[d] for d in numbers_of(scatter, "scatter_dims_to_operand_dims")]
    return c.become(
        transpose,
        make.add,
        "scatter",
        transpose.shape,
        operands,
        called=scatter.to_apply,
        copied_attributes=scatter.attributes.raw_items,
        scatter_dims_to_operand_dims=targets,
    )


def _moves_only_ones(transpose: Instruction) -> bool:
    """`OnlyPermutesDegenerateDims`."""
    sizes = transpose.sizes
    rest = [p for p, size in zip(transpose.dimensions, sizes, strict=True) if size != 1]
    return len(rest) < len(sizes) and is_sorted(rest)


def _transpose_of_dot(c: Context, transpose: Instruction) -> bool:
    dot = transpose.operand
    if not dot.is_dot or dot.user_count != 1:
        return False
    lhs, rhs = dot.operands
    dims = DotDimensions.of(dot)
    lhs_batch, rhs_batch = list(dims.lhs_batch), list(dims.rhs_batch)
    left, right = dims.lhs_contracting, dims.rhs_contracting
    permutation = list(transpose.dimensions)
    batch = len(lhs_batch)
    if c.options.supports_non_canonical_dots:
        if any(p >= batch for p in permutation[:batch]):
            return False
        outer_left = lhs.rank - len(left) - batch
        outer_right = rhs.rank - len(right) - batch
        after = [
            *range(batch + outer_left, batch + outer_left + outer_right),
            *range(batch, batch + outer_left),
        ]
        if permutation[batch:] != after:
            return False
        order = permutation[:batch]
    else:
        if lhs_batch != rhs_batch or sorted(lhs_batch) != list(range(batch)):
            return False
        if not left or len(left) + batch + 1 != lhs.rank:
            return False
        if not right or len(right) + batch + 1 != rhs.rank:
            return False
        expected = list(range(dot.rank))
        expected[-1], expected[-2] = expected[-2], expected[-1]
        if permutation != expected:
            return False
        order = list(range(batch))
    return c.replace(transpose, swapped(dot, transpose.shape, order))


def handle_copy(c: Context, copy: Instruction) -> bool:
    operand = copy.operand
    if not copy.is_array:
        return False
    if operand.opcode == "copy":
        source = operand.operand
        same = source.shape.key == copy.shape.key
        return c.replace(copy, source if same else make.add(copy, "copy", copy.shape, [source]))
    module = c.computation.module
    is_result = module is not None and module.entry.root is copy
    if not (is_result and "sharding" in copy.attributes) and c.replace_if_compatible(copy, operand):
        return True
    layouts = (copy.shape.layout, operand.shape.layout)
    stays_in_memory = len({layout.suffix for layout in layouts if layout is not None}) <= 1
    if stays_in_memory and (source_of_bitcast := bitcasting_operand(c, copy)) is not None:
        return as_bitcast(c, copy, source_of_bitcast)
    is_moved = operand.is_reshape and operand.user_count == 1
    if is_moved and reshape_is_bitcast(operand.shape, copy.shape):
        return c.replace(copy, make.copy_of(operand, [operand.operand], copy.shape))
    return False


def handle_broadcast(c: Context, broadcast: Instruction) -> bool:
    (operand,) = broadcast.operands
    shape, dimensions = broadcast.shape, list(broadcast.dimensions)
    if shape.element_count == operand.element_count:
        if is_sorted(dimensions):
            return c.become(broadcast, make.reshape, shape, operand)
        if shape.rank == operand.rank:
            new = make.transpose(broadcast, operand, inverse(broadcast.dimensions), shape)
            return c.replace(broadcast, new)
    if operand.is_reshape:
        moved = ones_moved(operand.operand.shape, operand.shape)
        if moved is not None and not moved[0]:
            left = [d for k, d in enumerate(dimensions) if k not in moved[1]]
            return c.broadcast(broadcast, operand.operand, left)
    if _sink(c, broadcast):
        c.changed = True
        return True
    if not operand.sizes:
        return _rebroadcast_scalar(c, broadcast)
    if operand.opcode == "iota":
        new = make.iota(broadcast, shape, dimensions[int(operand.attributes["iota_dimension"])])
        return c.replace(broadcast, new)
    if operand.is_broadcast:
        through = [dimensions[d] for d in operand.dimensions]
        return c.broadcast(broadcast, operand.operand, through)
    if c.options.layout_sensitive:
        return False
    if 1 in operand.sizes:
        small = make.reshaped(operand, without_ones(operand.shape))
        remaining = [d for d, size in zip(dimensions, operand.sizes, strict=True) if size != 1]
        return c.broadcast(broadcast, small, remaining)
    return False


def _rebroadcast_scalar(c: Context, broadcast: Instruction) -> bool:
    """Replace users that only permute or pick its elements by broadcasts."""
    for user in broadcast.users:
        if not user.users and not user.is_root:
            continue
        permutes = user.opcode in ("reshape", "reverse", "transpose")
        permutes |= user.opcode == "sort" and not user.is_tuple
        picks = user.opcode in ("slice", "dynamic-slice") and user.operand is broadcast
        if permutes or (picks and user.operands.count(broadcast) == 1):
            c.changed = True
            user.replace_all_uses_with(make.broadcast(user, user.shape, broadcast.operand))
            return False
    return False


def _sink(c: Context, broadcast: Instruction) -> bool:
    """Users of such broadcasts alone work on small values (`TryToSinkBroadcastAfterElementwiseOps`)."""
    if not broadcast.sizes:
        return False
    operand = broadcast.operand

    def is_similar(x: Instruction) -> bool:
        return (
            x.is_broadcast
            and x.operand.shape.key == operand.shape.key
            and x.dimensions == broadcast.dimensions
        )

    sunk = False
    for user in list(broadcast.users):
        if (not user.users and not user.is_root) or user.opcode in ("copy", "fusion"):
            continue
        if {o.opcode for o in user.operands} != {"broadcast"} or not is_elementwise(user):
            continue
        if not all(is_spread_scalar(o) or is_similar(o) for o in user.operands):
            continue
        operands = []
        for o in user.operands:
            inner = o.operand
            if is_spread_scalar(o):
                inner = make.broadcast(o, operand.shape.with_element_type(o.element_type), inner)
            operands.append(inner)
        small = make.copy_of(user, operands, operand.shape.with_element_type(user.element_type))
        wide = make.broadcast(broadcast, user.shape, small, broadcast.dimensions)
        user.replace_all_uses_with(wide)
        sunk = True
    return sunk


def handle_iota(c: Context, iota: Instruction) -> bool:
    return iota_size(iota) <= 1 and c.become(iota, make.scalar_like, 0)


def handle_constant(c: Context, constant: Instruction) -> bool:
    if constant.element_count <= 1:
        return False
    values = values_of(constant)
    if values is None:
        return False
    literals_ = {word_of(constant.element_type, v) for v in values}
    if len(literals_) == 1 and None not in literals_:
        scalar = make.scalar(constant, constant.element_type, values[0])
        return c.broadcast(constant, scalar)
    if constant.rank != 1 or constant.element_type == "pred":
        return False
    if all(v == k for k, v in enumerate(values)):
        return c.become(constant, make.iota, constant.shape, 0)
    stride = values[1]
    whole = isinstance(stride, int) and values[0] == 0 and stride != 0
    if whole and all(v == k * stride for k, v in enumerate(values)):
        step = make.scalar_like(constant, stride)
        return c.binary(constant, "multiply", make.iota(constant, constant.shape, 0), step)
    return False
