"""Transposes and copies."""

from hlofuse.analysis.elementwise import is_elementwise, transpose_is_bitcast
from hlofuse.cost.gpu.shapes import inverse, reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.literals import values_of, word_of
from hlofuse.passes.common.shapes import is_sorted, ones_moved, permute, without_ones
from .context import Context, iota_size, is_spread_scalar, remove_chain
from .dot import swapped
from .reshape import as_bitcast, bitcasting_operand, simplify_transpose_of_broadcast


def handle_transpose(c: Context, transpose: Instruction) -> bool:
    (operand,) = transpose.operands
    permutation = transpose.dimensions
    if is_sorted(permutation):
        return c.replace(transpose, operand)
    if operand.opcode == "transpose":
        through = permute(operand.dimensions, permutation)
        return c.become(transpose, make.transpose, operand.operand, through, transpose.shape)
    if remove_chain(c, transpose) or _transpose_of_dot(c, transpose):
        return True
    if _moves_only_ones(transpose):
        return c.become(transpose, make.reshape, transpose.shape, operand)
    if c.options.layout_sensitive and transpose_is_bitcast(transpose):
        return as_bitcast(c, transpose)
    return simplify_transpose_of_broadcast(c, transpose, permutation)


def _moves_only_ones(transpose: Instruction) -> bool:
    """`OnlyPermutesDegenerateDims`."""
    sizes = transpose.shape.dimensions
    rest = [p for p, size in zip(transpose.dimensions, sizes, strict=True) if size != 1]
    return len(rest) < len(sizes) and is_sorted(rest)


def _transpose_of_dot(c: Context, transpose: Instruction) -> bool:
    dot = transpose.operand
    if dot.opcode != "dot" or len(dot.users) != 1:
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
        outer_left = lhs.shape.rank - len(left) - batch
        outer_right = rhs.shape.rank - len(right) - batch
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
        if not left or len(left) + batch + 1 != lhs.shape.rank:
            return False
        if not right or len(right) + batch + 1 != rhs.shape.rank:
            return False
        expected = list(range(dot.shape.rank))
        expected[-1], expected[-2] = expected[-2], expected[-1]
        if permutation != expected:
            return False
        order = list(range(batch))
    return c.replace(transpose, swapped(dot, transpose.shape, order))


def handle_copy(c: Context, copy: Instruction) -> bool:
    operand = copy.operand
    if not copy.shape.is_array:
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
    is_moved = operand.opcode == "reshape" and len(operand.users) == 1
    if is_moved and reshape_is_bitcast(operand.shape, copy.shape):
        return c.replace(copy, make.copy_of(operand, [operand.operand], copy.shape))
    return False


def handle_broadcast(c: Context, broadcast: Instruction) -> bool:
    (operand,) = broadcast.operands
    shape, dimensions = broadcast.shape, list(broadcast.dimensions)
    if shape.element_count == operand.shape.element_count:
        if is_sorted(dimensions):
            return c.become(broadcast, make.reshape, shape, operand)
        if shape.rank == operand.shape.rank:
            new = make.transpose(broadcast, operand, inverse(broadcast.dimensions), shape)
            return c.replace(broadcast, new)
    if operand.opcode == "reshape":
        moved = ones_moved(operand.operand.shape, operand.shape)
        if moved is not None and not moved[0]:
            left = [d for k, d in enumerate(dimensions) if k not in moved[1]]
            return c.broadcast(broadcast, operand.operand, left)
    if _sink(c, broadcast):
        c.changed = True
        return True
    if not operand.shape.dimensions:
        return _rebroadcast_scalar(c, broadcast)
    if operand.opcode == "iota":
        new = make.iota(broadcast, shape, dimensions[int(operand.attributes["iota_dimension"])])
        return c.replace(broadcast, new)
    if operand.opcode == "broadcast":
        through = [dimensions[d] for d in operand.dimensions]
        return c.broadcast(broadcast, operand.operand, through)
    if c.options.layout_sensitive:
        return False
    if 1 in operand.shape.dimensions:
        small = make.reshaped(operand, without_ones(operand.shape))
        remaining = [d for d, size in zip(dimensions, operand.shape.dimensions, strict=True) if size != 1]
        return c.broadcast(broadcast, small, remaining)
    return False


def _sink(c: Context, broadcast: Instruction) -> bool:
    """Users of such broadcasts alone work on small values (`TryToSinkBroadcastAfterElementwiseOps`)."""
    if not broadcast.shape.dimensions:
        return False
    operand = broadcast.operand

    def is_similar(x: Instruction) -> bool:
        return (
            x.opcode == "broadcast"
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


def _rebroadcast_scalar(c: Context, broadcast: Instruction) -> bool:
    """Replace users that only permute or pick its elements by broadcasts."""
    for user in broadcast.users:
        if not user.users and not user.is_root:
            continue
        permutes = user.opcode in ("reshape", "reverse", "transpose")
        permutes |= user.opcode == "sort" and not user.shape.is_tuple
        picks = user.opcode in ("slice", "dynamic-slice") and user.operand is broadcast
        if permutes or (picks and user.operands.count(broadcast) == 1):
            c.changed = True
            user.replace_all_uses_with(make.broadcast(user, user.shape, broadcast.operand))
            return False
    return False


def handle_iota(c: Context, iota: Instruction) -> bool:
    return iota_size(iota) <= 1 and c.become(iota, make.scalar_like, 0)


def handle_constant(c: Context, constant: Instruction) -> bool:
    if constant.shape.element_count <= 1:
        return False
    values = values_of(constant)
    if values is None:
        return False
    literals_ = {word_of(constant.element_type, v) for v in values}
    if len(literals_) == 1 and None not in literals_:
        scalar = make.scalar(constant, constant.element_type, values[0])
        return c.broadcast(constant, scalar)
    if constant.shape.rank != 1 or constant.element_type == "pred":
        return False
    if all(v == k for k, v in enumerate(values)):
        return c.become(constant, make.iota, constant.shape, 0)
    stride = values[1]
    whole = isinstance(stride, int) and values[0] == 0 and stride != 0
    if whole and all(v == k * stride for k, v in enumerate(values)):
        step = make.scalar_like(constant, stride)
        counted = make.iota(constant, constant.shape, 0)
        return c.binary(constant, "multiply", counted, step)
    return False
