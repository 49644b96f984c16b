"""Maps, tuples, sorts, gathers, scatters, bitcast-converts, barriers and conditionals."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.instruction import Instruction
from hlofuse.simplifications.algebraic.bitcasts import as_bitcast, bitcast_convert_is_bitcast
from hlofuse.simplifications.algebraic.context import Context
from hlofuse.simplifications.common import make
from hlofuse.simplifications.common.shapes import array, with_type


def handle_map(c: Context, x: Instruction) -> None:
    root = x.called_computations[0].root
    if root.opcode == "parameter":
        c.replace_if_compatible(x, x.operands[root.parameter_number])
    elif root.opcode == "constant":
        if not root.shape.dimensions:
            value = make.add(x, "constant", root.shape, payload=root.payload)
            c.replace(x, make.broadcast(x, x.shape, value, ()) if x.shape.dimensions else value)
    elif root.opcode == "fusion" or any(o.opcode != "parameter" for o in root.operands):
        return
    elif is_elementwise(root):
        operands = [x.operands[o.parameter_number] for o in root.operands]
        new = make.add(x, root.opcode, x.shape, operands)
        new.attributes = root.attributes
        c.replace(x, new)


def handle_get_tuple_element(c: Context, x: Instruction) -> None:
    source = x.operands[0]
    if source.opcode == "tuple":
        c.replace_if_compatible(x, source.operands[x.tuple_index])


def handle_sort(c: Context, sort: Instruction) -> None:
    first = sort.operands[0]
    if first.shape.element_count == 0 or first.shape.dimensions[sort.dimensions[0]] <= 1:
        several = len(sort.operands) > 1
        c.replace(sort, make.tuple_of(sort, sort.operands) if several else first)


def handle_gather(c: Context, gather: Instruction) -> None:
    operand, indices = gather.operands
    if operand.shape.element_count == 0:
        c.replace(gather, make.scalar_like(gather, 0))
        return
    if operand.shape.is_effective_scalar:
        scalar = operand
        if operand.shape.dimensions:
            scalar = make.reshape(operand, array(operand.shape.element_type), operand)
        c.replace(gather, make.broadcast(scalar, gather.shape, scalar, ()))
        return
    said = gather.attributes
    if (
        operand.shape.rank == 1
        and operand.shape.dimensions[0] <= c.options.very_small_gather_size
        and said.get("index_vector_dim") == indices.shape.rank
        and len(said.get("collapsed_slice_dims", ())) == 1
    ):
        c.replace(gather, _by_selecting(gather))


def _by_selecting(gather: Instruction) -> Instruction:
    operand, indices = gather.operands

    def value(k: int) -> Instruction:
        one = make.slice_of(gather, operand, [k], [k + 1])
        scalar = make.reshape(gather, array(operand.shape.element_type), one)
        return make.broadcast(gather, gather.shape, scalar, ())

    result = value(0)
    for k in range(operand.shape.dimensions[0]):
        mask = make.compare(gather, "GE", indices, make.scalar_like(indices, k))
        mask.shape = with_type(gather.shape, "pred")
        result = make.add(gather, "select", gather.shape, [mask, value(k), result])
    return result


def handle_scatter(c: Context, scatter: Instruction) -> None:
    count = len(scatter.operands) // 2
    bases, updates = scatter.operands[:count], scatter.operands[count + 1 :]
    if all(u.shape.element_count == 0 for u in updates):
        if count == 1:
            c.replace_if_compatible(scatter, bases[0])
        return
    indices = scatter.operands[count]
    if (
        count == 1
        and indices.shape.element_count == 0
        and c.same_shape(scatter.shape, bases[0].shape)
        and c.same_shape(scatter.shape, updates[0].shape)
    ):
        function = scatter.called_computations[0]
        numbers = make.numbers(range(scatter.shape.rank))
        new = make.add(
            scatter,
            "map",
            scatter.shape,
            [bases[0], updates[0]],
            called=[("to_apply", function)],
            dimensions=numbers,
        )
        c.replace(scatter, new)


def handle_bitcast_convert(c: Context, x: Instruction) -> None:
    operand = x.operands[0]
    if operand.opcode == "bitcast-convert":
        c.replace(x, make.add(x, "bitcast-convert", x.shape, [operand.operands[0]]))
        return
    if operand.opcode == "concatenate":
        result = x.shape.element_type
        inner = [o.operands[0] for o in operand.operands if o.opcode == "bitcast-convert"]
        if len(inner) == len(operand.operands) and all(i.shape.element_type == result for i in inner):
            c.replace(x, make.concatenate(inner[0], inner, operand.dimensions[0]))
            return
    if c.options.layout_sensitive and c.options.bitcast_convert_as_bitcast and bitcast_convert_is_bitcast(x):
        as_bitcast(c, x)
        return
    c.replace_if_compatible(x, operand)


def handle_barrier(c: Context, barrier: Instruction) -> None:
    """Elements nobody reads behind the barrier do not go through it."""
    users = barrier.users
    if not barrier.shape.is_tuple or barrier.is_root or any(u.opcode != "get-tuple-element" for u in users):
        return
    used = {u.tuple_index for u in users}
    operand = barrier.operands[0]
    elements = operand.operands if operand.opcode == "tuple" else []
    for k, e in enumerate(elements):
        if len(e.users) > 1 or e.is_root or has_side_effect(e):
            used.add(k)
    kept = sorted(used)
    if len(kept) == len(barrier.shape.tuple_shapes):
        return
    parts = [elements[k] if elements else make.get_tuple_element(barrier, operand, k) for k in kept]
    new = make.tuple_of(operand, parts)
    barrier.replace_operand(0, new)
    barrier.shape = new.shape
    for user in users:
        set_tuple_index(user, kept.index(user.tuple_index))
    c.changed = True


def handle_conditional(c: Context, conditional: Instruction) -> None:
    predicate = conditional.operands[0]
    if not c.options.conditional_simplification or predicate.opcode != "convert":
        return
    if predicate.operands[0].shape.element_type != "pred" or len(conditional.called_computations) != 2:
        return
    zero, one = conditional.called_computations
    attributes = {n: v for n, v in conditional.attributes.raw_items.items() if n != "branch_computations"}
    new = make.add(
        conditional,
        "conditional",
        conditional.shape,
        [predicate.operands[0], conditional.operands[2], conditional.operands[1]],
        called=[("true_computation", one), ("false_computation", zero)],
        kept={n: v for n, v in attributes.items() if n in ("sharding", "frontend_attributes")},
    )
    c.replace(conditional, new)
