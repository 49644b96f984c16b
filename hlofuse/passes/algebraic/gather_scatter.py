"""Gathers and scatters."""

from hlofuse.ir import Instruction
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, numbers_of, others
from .context import Context, is_of_parameters


def handle_gather(c: Context, gather: Instruction) -> bool:
    operand = gather.operand
    if operand.element_count == 0:
        return c.become(gather, make.scalar_like, 0)
    if operand.shape.is_effective_scalar:
        scalar = operand
        if operand.sizes:
            scalar = make.reshape(operand, array(operand.element_type), operand)
        return c.replace(gather, make.broadcast(scalar, gather.shape, scalar))
    return False


def handle_scatter(c: Context, scatter: Instruction) -> bool:
    count = scatter.operand_count // 2
    bases, updates = scatter.operands[:count], scatter.operands[count + 1 :]
    if all(u.element_count == 0 for u in updates) and count == 1:
        c.replace_if_compatible(scatter, bases[0])
    return False


_SUMMED_NUMBERS = (
    "index_vector_dim",
    "scatter_dims_to_operand_dims",
    "inserted_window_dims",
    "update_window_dims",
    "scatter_indices_batching_dims",
    "input_batching_dims",
)


def sum_of_scatters(c: Context, add: Instruction) -> bool:
    """A sum with the result of a scatter that adds, made one scatter into the sum (end of `HandleAdd`)."""
    lhs, rhs = add.operands
    left, right = _adds_into(lhs), _adds_into(rhs)
    if left and right:
        return _sum_of_two(c, add, lhs, rhs)
    if not left and not right:
        return False
    scatter, other = (rhs, lhs) if right else (lhs, rhs)
    base = scatter.operand
    operands = (other, base) if right else (base, other)
    scatter.replace_operand(0, make.binary(add, "add", *operands))
    return c.replace(add, scatter)


def _adds_into(x: Instruction) -> bool:
    if x.opcode != "scatter" or x.operand_count != 3 or x.user_count != 1:
        return False
    if x.user.operands.count(x) != 1:
        return False
    return is_of_parameters(x.to_apply, "add")


def _sum_of_two(
    c: Context,
    add: Instruction,
    lhs: Instruction,
    rhs: Instruction,
) -> bool:
    """One scatter of both updates where those join, else one into the result of the other."""
    place = _where_to_join(lhs, rhs)
    updates = [s.operands[2] for s in (lhs, rhs)]
    if place is None or sum(u.element_count for u in updates) >= lhs.element_count:
        return False
    base = make.binary(add, "add", lhs.operand, rhs.operand)
    if not _join(lhs, rhs):
        rhs.replace_operand(0, base)
        lhs.replace_operand(0, rhs)
        return c.replace(add, lhs)
    indices = make.concatenate(add, [lhs.second, rhs.second], place[0])
    both = lhs.clone([base, indices, make.concatenate(add, updates, place[1])], name="scatter")
    return c.replace(add, add.parent.add_instruction(both))


def _where_to_join(lhs: Instruction, rhs: Instruction) -> tuple[int, int] | None:
    """The one dimension of indices in which the two differ, else the first, and that of the updates."""
    a, b = lhs.second.shape, rhs.second.shape
    if a.rank != b.rank:
        return None
    window = numbers_of(lhs, "update_window_dims")
    batching = numbers_of(lhs, "scatter_indices_batching_dims")
    free = others(lhs.operands[2].rank, window)
    first: tuple[int, int] | None = None
    unequal: tuple[int, int] | None = None
    for d in reversed(range(a.rank)):
        if d == int(lhs.attributes["index_vector_dim"]):
            continue
        pair = (d, free.pop())
        same = a.dimensions[d] == b.dimensions[d]
        if d in batching:
            if not same:
                return None
        elif same:
            first = pair
        elif unequal is not None:
            return None
        else:
            unequal = pair
    return unequal or first


def _join(lhs: Instruction, rhs: Instruction) -> bool:
    """Neither says more of its indices, and both are numbered alike."""
    if any(s.raw(n) == "true" for s in (lhs, rhs) for n in ("unique_indices", "indices_are_sorted")):
        return False
    if any(lhs.attributes.get(name) != rhs.attributes.get(name) for name in _SUMMED_NUMBERS):
        return False
    window = numbers_of(lhs, "update_window_dims")
    a, b = lhs.operands, rhs.operands
    return a[1].element_type == b[1].element_type and all(a[2].sizes[d] == b[2].sizes[d] for d in window)
