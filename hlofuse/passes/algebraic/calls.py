"""Operations that call computations, and tuples."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make

# Maps, sorts and conditionals.


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


def handle_sort(c: Context, sort: Instruction) -> None:
    first = sort.operands[0]
    if first.shape.element_count == 0 or first.shape.dimensions[sort.dimensions[0]] <= 1:
        several = len(sort.operands) > 1
        c.replace(sort, make.tuple_of(sort, sort.operands) if several else first)


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
        copied_attributes={n: v for n, v in attributes.items() if n in ("sharding", "frontend_attributes")},
    )
    c.replace(conditional, new)


# Elements of tuples, and barriers around them.


def handle_get_tuple_element(c: Context, x: Instruction) -> None:
    source = x.operands[0]
    if source.opcode == "tuple":
        c.replace_if_compatible(x, source.operands[x.tuple_index])


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
    remaining = sorted(used)
    if len(remaining) == len(barrier.shape.tuple_shapes):
        return
    parts = [elements[k] if elements else make.get_tuple_element(barrier, operand, k) for k in remaining]
    new = make.tuple_of(operand, parts)
    barrier.replace_operand(0, new)
    barrier.shape = new.shape
    for user in users:
        set_tuple_index(user, remaining.index(user.tuple_index))
    c.changed = True
