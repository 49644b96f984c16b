"""Recipes about reductions, and about what several kernels or readers share."""

from collections.abc import Iterable, Iterator
from functools import partial
from math import prod

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.ir import Instruction
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import others, with_dimensions
from .contracting import over, sizes_of, spread_factor
from .matching import (
    combines_by,
    is_column_reduction,
    is_total,
    only_reader,
    readers,
    same_twice,
    source,
    value_of,
    where,
)
from .recipe import Finding, Recipe, Situation
from .written import replace


def _scaled_later(s: Situation) -> Iterable[Finding]:
    """Sums that are multiplied by a constant in another kernel."""
    for r in s.refusals("PF009"):
        sources = ([not source(o).is_constant for o in x.operands] for x in s.inside(r.consumer))
        if any(sum(own) > 1 for own in sources):  # else nothing else has to stay in the kernel
            continue
        for total, user in s.edges(r):
            is_scaled = user.opcode == "multiply" and _constant_operand(user) is not None
            if is_scaled and _is_sum(total) and total.user_count == 1:
                yield Finding(total.name, "PF009")


def _is_sum(x: Instruction) -> bool:
    return x.is_reduce and x.operand_count == 2 and combines_by(x, "add")


def _constant_operand(x: Instruction) -> Instruction | None:
    """The scalar constant by which a product scales, or which a sum adds, broadcast or not."""
    if x.opcode not in ("multiply", "add"):
        return None
    found = (s for s in map(source, x.operands) if s.is_constant and scalar_of(s) is not None)
    return next(found, None)


def _fold_constant(found: Instruction) -> bool:
    total = found
    while (user := only_reader(total)) is not None:
        constant = _constant_operand(user)
        if constant is None:
            break
        summands, start = total.operands
        if user.opcode == "multiply":
            scale = make.broadcast(total, summands.shape, constant)
            summands = make.binary(total, "multiply", summands, scale)
        new = make.copy_of(total, (summands, make.binary(total, user.opcode, start, constant)))
        user.replace_all_uses_with(make.reshaped(new, user.shape) if new.shape != user.shape else new)
        total = new
    return total is not found


@where("reduce", only="gpu")
def _tall_sums(x: Instruction) -> bool:
    rows = prod(x.operand.sizes[d] for d in x.dimensions)
    return _is_sum(x) and is_column_reduction(x) and rows >= 1024 and prod(x.sizes) <= 8192


def _split_in_two(total: Instruction) -> bool:
    if not _is_sum(total) or total.dimensions != (0,):
        return False
    array, start = total.operands
    rows, *others = array.sizes
    if rows % 64 or not start.is_constant or scalar_of(start) != 0:
        return False
    blocks = make.bitcast(array, with_dimensions(array.shape, [64, rows // 64, *others]))
    add = total.to_apply
    total.replace_all_uses_with(
        make.reduce(total, make.reduce(total, blocks, start, [1], add), start, [0], add)
    )
    return True


_MEAN = ("multiply", ("reduce",))


@where("subtract", ("multiply", ("reduce", ("multiply",))), ("multiply", _MEAN), only="gpu")
def _row_variances(x: Instruction) -> bool:
    """Places of mean(x²) − mean(x)² along the rows."""
    scaled, square = map(value_of, x.operands)
    mean = next((value_of(o) for o in scaled.operands if value_of(o).is_reduce), None)
    return same_twice(square) and mean is not None and not is_column_reduction(mean)


def _square_deviations(x: Instruction) -> bool:
    if x.opcode != "subtract":
        return False
    scaled, square = map(value_of, x.operands)
    mean = value_of(square.operand)
    total = next(o for o in scaled.operands if value_of(o).is_reduce)
    array = value_of(value_of(total).operand).operand
    remaining = others(array.rank, total.dimensions)
    if not total.is_reduce or mean.shape != total.shape:
        return False
    deviation = make.binary(x, "subtract", array, make.broadcast(x, array.shape, mean, remaining))
    squares = make.binary(x, "multiply", deviation, deviation)
    new = make.copy_of(total, (squares, total.second))
    x.replace_all_uses_with(make.copy_of(scaled, [new if o is total else o for o in scaled.operands]))
    return True


def sum_squares(x: Instruction) -> bool:
    """Σ(x − m)² along columns becomes Σx² − m (2 Σx − n m), where Σx is computed as well."""
    squares, start = x.operand, x.operands[-1]
    is_square = squares.opcode == "multiply" and same_twice(squares)
    is_column_total = is_total(x) and is_column_reduction(x)
    if not (is_square and is_column_total and squares.operand.opcode == "subtract"):
        return False
    array, mean = squares.operand.operand, spread_factor(squares.operand.second)
    total = next((u for u in array.users if is_total(u) and u.dimensions == x.dimensions), None)
    rest = others(array.rank, x.dimensions)
    size = array.element_count // max(x.element_count, 1)
    is_exact = scalar_of(make.scalar(x, x.element_type, size)) == size
    if total is None or not {*mean[1]} <= {*rest} or not is_exact:
        return False
    mid = over(x, mean, rest, sizes_of((total, rest)))
    count = make.scalar_like(mid, size)
    binary = partial(make.binary, x)
    both = binary("subtract", binary("add", total, total), binary("multiply", mid, count))
    new = make.copy_of(x, [binary("multiply", array, array), start])
    return replace(x, binary("subtract", new, binary("multiply", mid, both)))


_AROUND = "Take row variances around the mean: jnp.var"
REDUCTIONS = (
    Recipe("scale-the-summands", "Scale what is summed, not the sum", _scaled_later, _fold_constant),
    Recipe("sum-once", "Scale and add the terms of the loss, then sum once"),
    Recipe("column-variance-in-one-pass", "Sum x and x² in one pass"),
    Recipe("row-variance-around-the-mean", _AROUND, _row_variances, _square_deviations),
    Recipe("pick-the-label", "Pick the label's log probability by index"),
    Recipe("split-a-column-sum", "Sum blocks of rows, then their sums", _tall_sums, _split_in_two),
)


def _normalizes(x: Instruction) -> bool:
    """True for a statistic of rows that the same program spreads over the rows again."""
    if not x.sizes or not any(i.opcode in ("broadcast", "add", "fusion") for i in readers(x)):
        return False
    value = value_of(x)
    while value.opcode in ("multiply", "add", "rsqrt", "sqrt", "convert"):
        value = value_of(value.operand)
    return value.is_reduce and not x.is_parameter and not is_column_reduction(value)


def _statistics(s: Situation) -> Iterator[Finding]:
    """Results that the program uses to normalize, together."""
    root = s.module.entry.root
    results = dict.fromkeys(root.operands) if root.opcode == "tuple" else ()
    found = [r.name for r in results if _normalizes(without_bitcasts(r))]
    if found:
        yield Finding(found[0], parts=tuple(found[1:]))


def _drop_results(*results: Instruction) -> bool:
    entry = results[0].parent
    root = entry.root
    remaining = [o for o in root.operands if o not in results]
    if not remaining:
        return False
    entry.root = make.tuple_of(root, remaining) if len(remaining) > 1 else remaining[0]
    return True


_LOGGED = "Do not return the mean or variance with what they normalize"
SHARING = (Recipe("drop-logged-statistics", _LOGGED, _statistics, _drop_results),)
