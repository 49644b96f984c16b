"""Fusions of products that hold all around the product that can be tiled with it (`CreateDotFusionV2` of
`xla/backends/gpu/transforms/gemm_fusion.cc`). Bitcasts are taken out of them (`hoist_fused_bitcasts.cc`)."""

import math
from collections import deque
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir import Computation, Instruction, Module, Shape, post_order, reach, replace, set_attribute
from hlofuse.ir.fusing import append_producer, create_fusion, merge_fusion
from hlofuse.ir.removing import has_side_effect, remove_with_unused_operands, replace_instruction
from hlofuse.passes.base import VisitPass
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import filled
from hlofuse.passes.common.dots import DotDimensions, free_dimensions
from hlofuse.passes.common.literals import values_of
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.shapes import common_factors, permute, with_layout
from hlofuse.passes.dot.shape_tracker import NotTracked, ShapeTracker
from .propagation import added_parameters, is_worth_as_input, is_worth_as_output

_VIEWS = ("bitcast", "reshape")
_MOST_OPERANDS = 8
_TILE = 64
_LEAST_TILES = (16, 8)  # of the free dimensions of the left and the right operand
_ROW_BITS = 128  # that a row of what is transposed for the right side takes, or a multiple
_Path = tuple[ShapeTracker, int] | None
"""From a candidate to an operand of the dot, and the number of that operand."""
Exchange = tuple[Shape, tuple[int, ...]] | None
"""The shape in between and the new `dimensions` where a bitcast is exchanged with a broadcast or transpose
(`xla/backends/gpu/transforms/bitcast_utils.cc`); None where it mixes what the operation tells apart."""


def in_memory(shape: Shape) -> tuple[int, ...]:
    return permute(shape.dimensions, shape.minor_to_major)


def bitcast_of_broadcast(broadcast: Instruction, result: Shape) -> Exchange:
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


def bitcast_of_transpose(transpose: Instruction, result: Shape) -> Exchange:
    """bitcast(transpose(x)) as transpose(bitcast(x))."""
    operand = transpose.operand.shape
    found = _through_transpose(transpose, result, transpose.shape, operand, transpose.dimensions)
    return (found[0], inverse(found[1])) if found is not None else None


def transpose_of_bitcast(transpose: Instruction, operand: Shape) -> Exchange:
    """transpose(bitcast(x)) as bitcast(transpose(x)), `operand` being the shape of x."""
    back = inverse(transpose.dimensions)
    return _through_transpose(transpose, operand, transpose.operand.shape, transpose.shape, back)


def _through_transpose(
    transpose: Instruction, result: Shape, outer: Shape, inner: Shape, dims: Sequence[int]
) -> Exchange:
    """`CalculateBitcastOfTransposeImpl`; the dimensions are the inverse permutation."""
    if transpose.minor_to_major != transpose.operand.minor_to_major:
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


_NESTED = (*_VIEWS, "parameter", "constant", "broadcast", "dot")


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
        if not any(i.is_dot and _has_rows_by_columns(i) for i in body):
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
    others = dot.parent.instructions
    return rows < left and columns > right and all(is_elementwise(i) or i.opcode in _NESTED for i in others)


def _hoist(body: Computation, callers: list[Instruction]) -> bool:
    dot = next((i for i in body if i.is_dot), None)
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
        caller.replace_all_uses_with(derived(caller, "bitcast", caller.shape, [caller]))
        caller.shape = shape
    return True


def _root_shape_without_bitcasts(dot: Instruction) -> Shape | None:
    """`ComputeRootShapeAfterHoistingBitcasts`."""
    if dot.is_root:
        return dot.shape
    shapes = dict[Instruction, Shape]()
    pending = list(dot.users)
    if not _spread(shapes, pending, dot.shape):
        return None
    for i in pending:  # grows while it is walked
        operand = shapes[i]
        if i.is_transpose:
            found = transpose_of_bitcast(i, operand)
            result = found[0] if found is not None else i.shape
        elif i.opcode in _VIEWS or is_elementwise(i):
            result = operand
        else:
            return None
        if i.is_root:
            return result.with_element_type(i.element_type)
        pending += (u for u in i.users if u not in shapes)
        if not _spread(shapes, i.users, result):
            return None
    return None


def _spread(shapes: dict[Instruction, Shape], to: Sequence[Instruction], shape: Shape) -> bool:
    """Note the shape for each, but for element types; False where one has another."""
    new = ((x, shape.with_element_type(x.element_type)) for x in to)
    return all(shapes.setdefault(x, s).key == s.key for x, s in new)


def _hoist_upwards(bitcast: Instruction, callers: list[Instruction]) -> bool:
    """`HoistBitcastUpwardsToCallers`."""
    plan = _plan(bitcast)
    if plan is None:
        return False
    for i, shape, dimensions in plan:
        if i.is_parameter:
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
    """New shapes of all that it alone reads, users first, or None (`PlanHoistBitcastUpwardsToCallers`)."""
    body = bitcast.computation
    assert body is not None
    producers = set(reach(bitcast.operands, lambda x: x.operands))
    if any(u is not bitcast and u not in producers for p in producers for u in p.users):
        return None
    if bitcast.element_type != bitcast.operand.element_type:
        return None
    shapes = dict[Instruction, Shape]()
    if not _spread(shapes, bitcast.operands, bitcast.shape):
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
            exchange = bitcast_of_broadcast if i.is_broadcast else bitcast_of_transpose
            found = exchange(i, shape)
            if found is None or not _spread(shapes, i.operands, replace(found[0])):
                return None
            dimensions = found[1]
        elif not is_elementwise(i) or not _spread(shapes, i.operands, shape):
            return None
        plan.append((i, shape, dimensions))
    return plan


class TileableFusion:
    """A module of clones of all that a fusion may hold, where the fusion grows (`FusionSearchSpace`)."""

    def __init__(self, dot: Instruction, support: TritonSupport, tilings: TilingModel) -> None:
        self._tilings, self._original = tilings, dict[Instruction, Instruction]()
        self.output = dot

        def may_hold(x: Instruction) -> bool:
            barred = x.called or x.opcode in ("dot", "pad", "parameter") or has_side_effect(x)
            return x is dot or (not barred and support.instruction(x) is None)

        end = dot
        while end.user_count == 1 and may_hold(end.user):
            end = end.user
        space, clones = Computation("space"), dict[Instruction, Instruction]()
        for x in post_order([end], lambda x: x.operands if may_hold(x) else ()):
            if may_hold(x):
                clones[x] = space.append_parsed(x.clone([clones[o] for o in x.operands]))
            else:
                clones[x] = space.append_parameter(f"parameter_{len(space.parameters)}", x.shape)
            self._original[clones[x]] = x
        space.root = clones[end]
        module = Module("space")
        module.entry = module.add_computation(space)
        self._dot = clones[dot]

    def fuse(self) -> Instruction | None:
        """The fusion in the space (`CreateTileableFusion`); None where the dot cannot be tiled."""
        dot = self._dot
        if not self._tilings.can_tile(dot):
            return None
        queue = deque[tuple[Instruction, _Path]]()
        for number, operand in enumerate(dot.operands):
            queue.append((operand, (ShapeTracker.of(operand.sizes), number)))
        fusion = create_fusion(dot, "kCustom")
        replace_instruction(dot, fusion)
        self._grow(fusion, queue)
        while not fusion.is_root:
            reader = fusion.user
            user = self._sink(reader) if reader.opcode in _VIEWS else reader
            if user is None:
                continue
            original = self._original[user]
            worth = not _keeps_rows_for_reader(original) and is_worth_as_output(original)
            if not worth or not _may_follow(user, fusion) or not self._tilings.can_tile(fusion, user):
                break
            count, inner = fusion.operand_count, fusion
            fusion = create_fusion(user, "kCustom")
            replace_instruction(user, fusion)
            merge_fusion(fusion, inner)
            remove_with_unused_operands(inner)
            if fusion.operand_count > count:
                self._grow(fusion, deque((o, None) for o in fusion.operands))
            self.output = original
        self._clean_edges(fusion.fused_computation)
        return fusion

    def inputs(self, fusion: Instruction) -> list[Instruction]:
        """The operands of the fusion in the module of the dot."""
        parameters = fusion.fused_computation.parameters
        return [self._outer(o, p.shape) for o, p in zip(fusion.operands, parameters, strict=True)]

    def _outer(self, operand: Instruction, shape: Shape) -> Instruction:
        """`GetOrCreateOriginalInstruction`."""
        original = self._original.get(operand)
        if original is None:
            inner = self._outer(operand.operand, shape)
            self._original[operand] = make.added(inner, "bitcast", shape, [inner])
            return self._original[operand]
        if original.shape == shape:
            return original
        return make.added(original, "bitcast", shape, [original])

    def _grow(self, fusion: Instruction, queue: deque[tuple[Instruction, _Path]]) -> None:
        """`FuseOperandsBFS`."""
        while queue:
            candidate, path = queue.popleft()
            if candidate not in fusion.operands:
                continue
            if candidate.opcode in _VIEWS:
                candidate = self._hoist(candidate)
            original = self._original.get(candidate, candidate)
            if not _should_take(candidate, original, fusion, path) or candidate.is_parameter:
                continue
            if _divides_tiles(candidate, fusion, path) and self._tilings.can_tile(candidate, fusion):
                operands = list(candidate.operands)
                append_producer(fusion, candidate)
                queue.extend((o, _path_before(o, candidate, path)) for o in operands)

    def _hoist(self, view: Instruction) -> Instruction:
        """The replacement of a view that goes ahead of what it reads, or the view (`HoistBitcast`)."""
        source, shape = view.operand, view.shape
        put = partial(self._put, view, source)
        if shape.element_type != source.element_type:
            return view
        if source.is_parameter:
            return _narrowed(source, shape) or view
        if source.opcode in _VIEWS:
            return self._hoist(put(_view(source.operand, shape)))
        if source.is_constant:
            values = values_of(source) if source.shape.is_effective_scalar else None
            return put(make.constant(view, shape, values)) if values else view
        if source.opcode in ("broadcast", "transpose"):
            exchange = bitcast_of_broadcast if source.is_broadcast else bitcast_of_transpose
            found = exchange(source, shape)
            if found is None:
                return view
            inner = _view(source.operand, found[0])
            new = make.added(source, source.opcode, shape, [inner], dimensions=found[1])
            return put(new)
        if not is_elementwise(source):
            return view
        return put(_reshaped(source, [_view(o, shape) for o in source.operands], shape))

    def _put(self, old: Instruction, taken: Instruction, new: Instruction) -> Instruction:
        if taken in self._original:
            self._original[new] = self._original[taken]
        old.replace_all_uses_with(new)
        remove_with_unused_operands(old)
        return new

    def _sink(self, view: Instruction) -> Instruction | None:
        """The new reader of what the view reads, which it now follows; None past the root (`SinkBitcast`)."""
        source = view.operand
        if view.element_type != source.element_type:
            return view
        if view.is_root:
            view.parent.root = source
            remove_with_unused_operands(view)
            return None
        if view.user_count != 1:
            return view
        user = view.user
        if user.opcode in _VIEWS:
            return self._sink(self._put(user, user, _view(source, user.shape)))
        if user.is_transpose:
            found = transpose_of_bitcast(user, source.shape)
            if found is None:
                return view
            new = make.transposed(source, found[1], found[0].with_element_type(source.element_type))
        elif is_elementwise(user):
            operands = [source if o is view else _view(o, source.shape) for o in user.operands]
            new = _reshaped(user, operands, source.shape)
        else:
            return view
        self._original[new] = self._original[user]
        after = self._put(user, user, _view(new, user.shape))
        if after.is_root:
            after.parent.root = new
            remove_with_unused_operands(after)
        return new

    def _clean_edges(self, body: Computation) -> None:
        """`RemoveEdgeBitcasts`."""
        number = 0
        while number < len(body.parameters):
            views = [u for u in body.parameters[number].users if u.opcode in _VIEWS]
            number += all(self._hoist(u) is u for u in views)
        while body.root.opcode in _VIEWS and self._sink(body.root) is None:
            pass


def _may_follow(user: Instruction, fusion: Instruction) -> bool:
    """True for a user that joins no values, reads the product once, and else what exists or is spread."""
    if user.is_concatenate or user.operands.count(fusion) > 1:
        return False
    view = fusion.fused_root
    if user.is_transpose and view.opcode in _VIEWS and not _keeps_together(user, view):
        return False
    bare = [o.past("broadcast").through(*_VIEWS) for o in user.operands if o is not fusion]
    return all(o.opcode in ("parameter", "constant") for o in bare)


def _keeps_rows_for_reader(x: Instruction) -> bool:
    """True for a transposition of whole rows that its reader moves."""
    if not x.is_transpose or x.dimensions[-1] != x.rank - 1 or x.user_count != 1:
        return False
    reader = x.user
    while reader.opcode in _VIEWS and reader.user_count == 1:
        (reader,) = reader.users
    return is_elementwise(reader) or reader.is_concatenate


def _keeps_together(transpose: Instruction, view: Instruction) -> bool:
    """True if the parts of a dimension that the view divides stay next to one another."""
    before, after = view.operand.sizes, view.sizes
    for (_, start), (_, end) in pairwise(common_factors(before, after)):
        places = sorted(map(transpose.dimensions.index, range(start, end)))
        if any(b - a > 1 for a, b in pairwise(places)):
            return False
    return True


def _path_before(operand: Instruction, taken: Instruction, path: _Path) -> _Path:
    """The path from an operand of what the fusion has taken (`ComputeCandidateTracker`)."""
    if path is None:
        return None
    tracker, number = path
    if taken.opcode in ("transpose", *_VIEWS):
        if taken.sizes != tracker.source:
            return None
        tracker = deepcopy(tracker)
        if taken.is_transpose:
            tracker.transpose_first(taken.dimensions)
            return tracker, number
        back = tracker.inverted()
        back.reshape(operand.sizes)
        return back.inverted(), number
    if is_elementwise(taken):
        return path
    is_part = not tracker.steps() and taken.opcode in ("concatenate", "slice")
    return (ShapeTracker.of(operand.sizes), number) if is_part else None


def _should_take(
    candidate: Instruction,
    original: Instruction,
    fusion: Instruction,
    path: _Path,
) -> bool:
    """`ShouldFuseOperand`."""
    if fusion.operand_count + added_parameters(candidate) > _MOST_OPERANDS:
        return False
    if original.is_transpose:
        if path is None or (_is_left_to_source(original) and len(path[0].steps()) > 0):
            return False
        return _keeps_rows(candidate, fusion, *path)
    if original.is_concatenate:
        along = original.dimension
        whole = all(o.sizes[along] % _TILE == 0 for o in original.operands)
        return whole and path is not None and _is_free(along, fusion, *path)
    return _is_worth(original)


def _is_worth(original: Instruction) -> bool:
    """True if the fusion takes it for what it reads, transpositions and concatenates aside."""
    if is_elementwise(original) and original.operand_count == 2:
        spread = [o.operand.opcode for o in original.operands if o.is_broadcast]
        if "parameter" in spread or "constant" in spread:
            return True
    return is_worth_as_input(original)


def _is_left_to_source(transpose: Instruction) -> bool:
    """True for a transposition of whole rows that its operand can do, which the fusion does not take."""
    if transpose.dimensions[-1] != transpose.rank - 1:
        return False
    source = transpose
    while source is transpose or source.opcode in _VIEWS:
        source = source.operand
        if source.user_count > 1:
            return False
    return is_elementwise(source) and not _is_worth(source)


def _keeps_rows(
    transpose: Instruction,
    fusion: Instruction,
    tracker: ShapeTracker,
    number: int,
) -> bool:
    """`ShouldFuseTranspose`."""
    if not transpose.is_transpose or transpose.sizes != tracker.source:
        return False
    dims, source = DotDimensions.of(_dot_in(fusion)), transpose.operand.shape
    if number == 1 and source.dimensions[source.minor_to_major[0]] * source.bit_width % _ROW_BITS:
        return False
    tracker = deepcopy(tracker)
    tracker.transpose_first(transpose.dimensions)
    back = tracker.inverted()
    return _has_one_stride(back, dims.contracting(number)) and _are_adjacent(back, dims.batch(number))


def _divides_tiles(view: Instruction, fusion: Instruction, path: _Path) -> bool:
    """True if tiles of the dot's operand hold whole parts of the dimensions that a view divides."""
    if view.opcode not in _VIEWS or path is None:
        return True
    tracker, number = path
    sizes, dims = view.operand.sizes, DotDimensions.of(_dot_in(fusion))
    for (start, first), (end, _) in pairwise(common_factors(sizes, tracker.result)):
        if first in dims.batch(number):
            continue
        tile = _LEAST_TILES[number] if first in dims.free(number, len(tracker.result)) else 1 << 30
        for size in reversed(sizes[start + 1 : end]):
            if size % tile and tile % size:
                return False
            tile = max(tile // size, 1)
    return True


def _is_free(dimension: int, fusion: Instruction, tracker: ShapeTracker, number: int) -> bool:
    """True for what is neither contracted nor a batch."""
    free = DotDimensions.of(_dot_in(fusion)).free(number, len(tracker.result))
    where = tracker.mapped((dimension,))
    return where is not None and set(where) <= set(free)


def _dot_in(fusion: Instruction) -> Instruction:
    return next(x for x in fusion.fused_computation if x.is_dot)


def _are_adjacent(tracker: ShapeTracker, dimensions: tuple[int, ...]) -> bool:
    """True if nothing lies between what the dimensions come from."""
    found = tracker.mapped(dimensions)
    if not found:
        return found is not None
    return all(tracker.result[d] == 1 for d in range(min(found), max(found)) if d not in found)


def _has_one_stride(tracker: ShapeTracker, dimensions: tuple[int, ...]) -> bool:
    """`MapsToOneStride`."""
    if not _are_adjacent(tracker, dimensions):
        return False
    try:
        return all(kind != "transpose" for kind, _ in tracker.narrow(dimensions).steps())
    except NotTracked:
        return False


def _view(x: Instruction, shape: Shape) -> Instruction:
    return make.added(x, "bitcast", shape.with_element_type(x.element_type), [x])


def _reshaped(x: Instruction, operands: list[Instruction], shape: Shape) -> Instruction:
    new = x.clone(operands, shape=shape.with_element_type(x.element_type))
    return operands[0].parent.add_instruction(new)


def _narrowed(parameter: Instruction, shape: Shape) -> Instruction | None:
    """The parameter itself, of the shape in which all read it (`CanReplaceParameterShape`)."""
    if any(u.opcode not in _VIEWS or u.shape != shape for u in parameter.users):
        return None
    parameter.shape = shape
    for user in list(parameter.users):
        user.replace_all_uses_with(parameter)
        remove_with_unused_operands(user)
    return parameter
