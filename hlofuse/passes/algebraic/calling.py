"""Maps, sorts and conditionals."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make


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
        kept={n: v for n, v in attributes.items() if n in ("sharding", "frontend_attributes")},
    )
    c.replace(conditional, new)
