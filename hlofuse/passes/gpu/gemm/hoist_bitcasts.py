"""Takes bitcasts out of fusions of products (`xla/backends/gpu/transforms/hoist_fused_bitcasts.cc`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Computation, Instruction, Shape, computation_of, reach, replace, set_attribute
from hlofuse.passes.base import VisitPass
from hlofuse.passes.common.calls import filled
from hlofuse.passes.common.dots import DotDimensions, free_dimensions
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.shapes import common_factors, permute, with_layout

# Exchanging a bitcast with a broadcast or transpose (`xla/backends/gpu/transforms/bitcast_utils.cc`).
#
# Each answer is the new shape in between and the new `dimensions`; None where the bitcast mixes what the
# operation tells apart. Element types are the caller's business.


Exchange = tuple[Shape, tuple[int, ...]]


def in_memory(shape: Shape) -> tuple[int, ...]:
    return permute(shape.dimensions, shape.minor_to_major)


def bitcast_of_broadcast(broadcast: Instruction, result: Shape) -> Exchange | None:
    """bitcast(broadcast(x)) as broadcast(bitcast(x)): the inner shape and the broadcast's dimensions."""
    shape = broadcast.shape
    from_operand = frozenset(broadcast.dimensions)
    sizes = in_memory(shape)
    dims = list[int]()
    factors = common_factors(in_memory(result), sizes)
    for (start, first), (end, last) in pairwise(factors):
        which = {shape.minor_to_major[k] in from_operand for k in range(first, last) if sizes[k] != 1}
        if True not in which:
            continue
        if False in which:
            return None
        dims += result.minor_to_major[start:end]
    dims.sort()
    order = [dims.index(d) for d in result.minor_to_major if d in dims]
    inner = with_layout(shape.element_type, permute(result.dimensions, dims), order)
    return inner, tuple(dims)


def bitcast_of_transpose(transpose: Instruction, result: Shape) -> Exchange | None:
    """bitcast(transpose(x)) as transpose(bitcast(x))."""
    operand = transpose.operand.shape
    found = _through_transpose(transpose, result, transpose.shape, operand, transpose.dimensions)
    return (found[0], inverse(found[1])) if found is not None else None


def transpose_of_bitcast(transpose: Instruction, operand: Shape) -> Exchange | None:
    """transpose(bitcast(x)) as bitcast(transpose(x)), `operand` being the shape of x."""
    back = inverse(transpose.dimensions)
    return _through_transpose(transpose, operand, transpose.operand.shape, transpose.shape, back)


def _through_transpose(
    transpose: Instruction, result: Shape, outer: Shape, inner: Shape, dims: Sequence[int]
) -> Exchange | None:
    """`CalculateBitcastOfTransposeImpl`; the dimensions are the inverse permutation."""
    if transpose.shape.minor_to_major != transpose.operand.shape.minor_to_major:
        return None
    ranges = [(0, 0)] * inner.rank
    place = inverse(inner.minor_to_major)
    sizes = in_memory(result)
    factors = _merge_factors(common_factors(sizes, in_memory(outer)))
    for (start, first), (end, last) in pairwise(factors):
        product = math.prod(sizes[start:end])
        indices = []
        for k in range(first, last):
            d = outer.minor_to_major[k]
            index = place[dims[d]]
            if outer.dimensions[d] == 1 and product > 1:
                ranges[index] = (start, start)
                continue
            ranges[index] = (start, end)
            start = end
            indices.append(index)
        if indices and (indices[-1] - indices[0] >= len(indices) or indices != sorted(indices)):
            return None
    new_sizes, new_dims, at = [0] * result.rank, [0] * result.rank, 0
    for span in ranges:
        for k in range(*span):
            new, old = result.minor_to_major[at], result.minor_to_major[k]
            at += 1
            new_sizes[new] = result.dimensions[old]
            new_dims[new] = old
    return replace(result, dimensions=tuple(new_sizes)), tuple(new_dims)


def _merge_factors(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """`CommonFactorsMergingTrivialRanges`."""
    bounds = list(bounds)
    k = 0
    while k + 1 < len(bounds) and len(bounds) > 2:
        (a, b), (a_end, b_end) = bounds[k], bounds[k + 1]
        if a != a_end and b != b_end:
            k += 1
        elif k + 2 == len(bounds):
            del bounds[k]
        else:
            del bounds[k + 1]
    return bounds


_VIEWS = ("bitcast", "reshape")
_NESTED = (*_VIEWS, "parameter", "constant", "broadcast", "dot")


@dataclass(frozen=True)
class HoistFusedBitcasts(VisitPass):
    """`hoist-fused-bitcasts`: into those who call; a bitcast at the root is put there to be taken along.
    With `whole`, where none is left in what the generic emitter may have (`nest_gemm_fusion.cc`)."""

    name = "hoist-fused-bitcasts"
    opcodes = ("fusion",)
    whole: bool = False

    def handle(self, fusion: Instruction) -> bool:
        if "__cudnn$fusion" in (fusion.raw("backend_config") or ""):
            return False
        body = fusion.fused_computation
        if not self.whole:
            return _hoist(body, list(body.callers))
        if not any(i.opcode == "dot" and _has_rows_by_columns(i) for i in body):
            return False
        trial = filled(Computation(""), body)
        _hoist(trial, [])
        return not any(i.opcode in _VIEWS for i in trial) and _hoist(body, list(body.callers))


def _has_rows_by_columns(dot: Instruction) -> bool:
    """A product of rows and columns, with elementwise operations and broadcasts alone around it."""
    dims, (rows, columns) = DotDimensions.of(dot), free_dimensions(dot)
    left, right = dims.lhs_contracting, dims.rhs_contracting
    if any(len(side) != 1 for side in (rows, columns, left, right)):
        return False
    others = computation_of(dot).instructions
    return rows < left and columns > right and all(is_elementwise(i) or i.opcode in _NESTED for i in others)


def _hoist(body: Computation, callers: list[Instruction]) -> bool:
    dot = next((i for i in body if i.opcode == "dot"), None)
    if dot is None:
        return False
    changed = _insert_root_bitcast(dot, callers)
    for i in reversed(body.post_order()):
        if i.opcode in _VIEWS and i.computation is body:
            changed |= _hoist_upwards(i, callers)
    return changed


def _insert_root_bitcast(dot: Instruction, callers: list[Instruction]) -> bool:
    """`MaybeInsertRootBitcast`: one that cancels those above it, up to the dot."""
    body = dot.computation
    assert body is not None
    shape = _root_shape_without_bitcasts(dot)
    root = body.root
    if shape is None or root.shape.key == shape.key:
        return False
    body.root = derived(root, "bitcast", shape, [root])
    for caller in callers:
        back = derived(caller, "bitcast", caller.shape, [caller])
        caller.replace_all_uses_with(back)
        caller.shape = shape
    return True


def _root_shape_without_bitcasts(dot: Instruction) -> Shape | None:
    """`ComputeRootShapeAfterHoistingBitcasts`."""
    if dot.is_root:
        return dot.shape
    shapes = dict[Instruction, Shape]()

    def spread(users: list[Instruction], shape: Shape) -> bool:
        new = ((u, shape.with_element_type(u.operand.element_type)) for u in users)
        return all(shapes.setdefault(u, s).key == s.key for u, s in new)

    pending = list(dot.users)
    if not spread(pending, dot.shape):
        return None
    for i in pending:  # grows while it is walked
        operand = shapes[i]
        if i.opcode == "transpose":
            found = transpose_of_bitcast(i, operand)
            result = found[0] if found is not None else i.shape
        elif i.opcode in _VIEWS or is_elementwise(i):
            result = operand
        else:
            return None
        if i.is_root:
            return result.with_element_type(i.element_type)
        pending += (u for u in i.users if u not in shapes)
        if not spread(i.users, result):
            return None
    return None


def _hoist_upwards(bitcast: Instruction, callers: list[Instruction]) -> bool:
    """`HoistBitcastUpwardsToCallers`."""
    plan = _plan(bitcast)
    if plan is None:
        return False
    for i, shape, dimensions in plan:
        if i.opcode == "parameter":
            number = i.parameter_number
            for caller in callers:
                caller.replace_operand(number, derived(caller, "bitcast", shape, [caller.operands[number]]))
        elif dimensions is not None:
            set_attribute(i, "dimensions", dimensions)
        i.shape = shape
        if "sharding" in i.attributes:
            i.attributes = i.attributes.without("sharding")
    body: Computation | None = bitcast.computation
    assert body is not None
    bitcast.replace_all_uses_with(bitcast.operand)
    body.remove_instruction(bitcast)
    return True


_Step = tuple[Instruction, Shape, tuple[int, ...] | None]


def _plan(bitcast: Instruction) -> list[_Step] | None:
    """The new shapes of all that the bitcast reads, users before operands
    (`PlanHoistBitcastUpwardsToCallers`); None if something else reads any of it."""
    body = bitcast.computation
    assert body is not None
    producers = set(reach(bitcast.operands, lambda x: x.operands))
    if any(u is not bitcast and u not in producers for p in producers for u in p.users):
        return None
    if bitcast.element_type != bitcast.operand.element_type:
        return None
    shapes = dict[Instruction, Shape]()

    def spread(operands: list[Instruction], shape: Shape) -> bool:
        new = ((o, shape.with_element_type(o.element_type)) for o in operands)
        return all(shapes.setdefault(o, s).key == s.key for o, s in new)

    if not spread(bitcast.operands, bitcast.shape):
        return None
    plan = []
    for i in reversed(body.post_order()):
        shape = shapes.get(i)
        if shape is None or shape.key == i.shape.key:
            continue
        dimensions = None
        if i.opcode in ("parameter", "constant", *_VIEWS):
            pass
        elif i.opcode in ("broadcast", "transpose"):
            exchange = bitcast_of_broadcast if i.opcode == "broadcast" else bitcast_of_transpose
            found = exchange(i, shape)
            if found is None or not spread(i.operands, replace(found[0])):
                return None
            dimensions = found[1]
        elif not is_elementwise(i) or not spread(i.operands, shape):
            return None
        plan.append((i, shape, dimensions))
    return plan
