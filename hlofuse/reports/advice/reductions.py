"""Recipes about reductions and what follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import with_dimensions
from hlofuse.reports.advice.pattern import is_column_reduction, places, same_twice, value_of
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.situation import Situation


def _sums_before(opcode: str) -> Callable[[Situation], Iterable[Finding]]:
    """Sums that are multiplied by a constant, or to which one is added, in another kernel."""

    def find(s: Situation) -> Iterable[Finding]:
        for r in s.refusals("PF009"):
            for total, user in s.edges(r):
                is_scaled = user.opcode == opcode and _constant_operand(user) is not None
                if is_scaled and _is_sum(total) and len(total.users) == 1:
                    yield Finding(total.name, "PF009")

    return find


def _sums_and_biases(s: Situation) -> Iterable[Finding]:
    """A sum to which something of its own shape is added in another kernel."""
    for r in s.refusals("PF009"):
        for total, user in s.edges(r):
            if _is_sum(total) and _bias_of(user, total) is not None:
                yield Finding(total.name, "PF009")


def _bias_of(user: Instruction, total: Instruction) -> Instruction | None:
    """What is added to a sum that nothing else reads, as an array of floating point numbers."""
    only = user.opcode == "add" and len(total.users) == 1 and total in user.operands
    if (
        not only
        or _constant_operand(user) is not None
        or not total.shape.element_type.startswith(("f", "bf"))
    ):
        return None
    return user.operands[1 - user.operands.index(total)]


def _is_sum(x: Instruction) -> bool:
    return x.opcode == "reduce" and len(x.operands) == 2 and x.called_computations[0].root.opcode == "add"


def _constant_operand(x: Instruction) -> Instruction | None:
    """The scalar constant by which a product scales, or which a sum adds, broadcast or not."""
    if x.opcode not in ("multiply", "add"):
        return None
    for operand in x.operands:
        source = operand.operands[0] if operand.opcode == "broadcast" else operand
        if source.opcode == "constant" and scalar_of(source) is not None:
            return source
    return None


def _scale_summands(module: Module, finding: Finding) -> bool:
    total = module.find(finding.at)
    if total is None:
        return False
    while len(total.users) == 1:
        user = next(iter(total.users))
        if user.opcode == "bitcast" and len(user.users) == 1:
            user = next(iter(user.users))
        constant = _constant_operand(user)
        if constant is None:
            break
        summands, start = total.operands
        if user.opcode == "multiply":
            summands = make.binary(
                total, "multiply", summands, make.broadcast(total, summands.shape, constant, ())
            )
            start = make.binary(total, "multiply", start, constant)
        else:
            start = make.binary(total, "add", start, constant)
        new = make.add(
            total,
            "reduce",
            total.shape,
            (summands, start),
            called=list(total.called),
            dimensions=total.attributes.raw("dimensions"),
        )
        user.replace_all_uses_with(make.reshaped(new, user.shape) if new.shape != user.shape else new)
        total = new
    return total.name != finding.at


def _bias_into_summands(module: Module, finding: Finding) -> bool:
    total = module.find(finding.at)
    user = next(iter(total.users), None) if total is not None else None
    bias = _bias_of(user, total) if user is not None and total is not None else None
    if total is None or user is None or bias is None or bias.shape != total.shape:
        return False
    summands, start = total.operands
    reduced = total.dimensions
    count = prod(summands.shape.dimensions[d] for d in reduced)
    part = make.scalar(total, total.shape.element_type, 1 / count)
    part = make.binary(total, "multiply", bias, make.broadcast(total, bias.shape, part, ()))
    part = make.broadcast(
        total, summands.shape, part, [d for d in range(len(summands.shape.dimensions)) if d not in reduced]
    )
    summands = make.binary(total, "add", summands, part)
    user.replace_all_uses_with(make.copy_of(total, (summands, start)))
    return True


def _summed(x: Instruction) -> Instruction | None:
    """The array that a sum, scaled by constants or not, adds up."""
    x = value_of(x)
    while x.opcode == "multiply" and _constant_operand(x) is not None:
        x = value_of(next(o for o in x.operands if o is not _constant_operand(x)))
    if not _is_sum(x):
        return None
    while _is_sum(x):
        x = value_of(x.operands[0])
    return x


def _sums_of_one_shape(x: Instruction) -> bool:
    a, b = map(_summed, x.operands)
    return not x.shape.dimensions and a is not None and b is not None and a.shape == b.shape


def _sums_of_differences(x: Instruction) -> bool:
    """True for sums of arrays whose sizes differ by one here and there."""
    arrays = [_summed(o) for o in x.operands]
    if x.shape.dimensions or None in arrays:
        return False
    a, b = (array.shape.dimensions for array in arrays if array is not None)
    return a != b and len(a) == len(b) and all(abs(m - n) <= 1 for m, n in zip(a, b, strict=True))


def _is_tall(x: Instruction) -> bool:
    """True for the sum of long columns with few results."""
    rows = prod(x.operands[0].shape.dimensions[d] for d in x.dimensions)
    return _is_sum(x) and is_column_reduction(x) and rows >= 1024 and prod(x.shape.dimensions) <= 8192


def _split_in_two(module: Module, finding: Finding) -> bool:
    total = module.find(finding.at)
    if total is None or not _is_tall(total) or total.dimensions != (0,):
        return False
    array, start = total.operands
    rows, *others = array.shape.dimensions
    if rows % 64 or start.opcode != "constant" or scalar_of(start) != 0:
        return False
    blocks = make.bitcast(array, with_dimensions(array.shape, [64, rows // 64, *others]))
    add = total.called_computations[0]
    total.replace_all_uses_with(
        make.reduce(total, make.reduce(total, blocks, start, [1], add), start, [0], add)
    )
    return True


def _many_column_sums(s: Situation) -> Iterable[Finding]:
    """Column sums of many arrays of one shape: a kernel has shared memory for a few."""
    seen: dict[object, list[Instruction]] = {}
    for x in s.instructions:
        if x.opcode == "reduce" and is_column_reduction(x):
            seen.setdefault((x.operands[0].shape, x.dimensions), []).append(x)
    return [Finding(xs[0].name, parts=tuple(x.name for x in xs[1:])) for xs in seen.values() if len(xs) > 8]


def _is_row_variance(x: Instruction) -> bool:
    """True for mean(x²) − mean(x)² along the rows."""
    scaled, square = map(value_of, x.operands)
    mean = next((value_of(o) for o in scaled.operands if value_of(o).opcode == "reduce"), None)
    return same_twice(square) and mean is not None and not is_column_reduction(mean)


def _of_columns(x: Instruction) -> bool:
    """True for a division by a sum of columns."""
    return is_column_reduction(value_of(value_of(x.operands[1]).operands[0]))


REDUCTIONS = (
    Recipe(
        "scale-the-summands",
        "Scale what is summed, not the sum",
        _sums_before("multiply"),
        _scale_summands,
    ),
    Recipe(
        "start-from-the-constant",
        "Start the sum from the constant instead of adding it",
        _sums_before("add"),
        _scale_summands,
    ),
    Recipe(
        "bias-in-the-summands",
        "Add the bias to what is summed, a part to each, not to the sum",
        _sums_and_biases,
        _bias_into_summands,
    ),
    Recipe(
        "sum-once",
        "Scale and add the terms of the loss, then sum once",
        places("add(multiply|reduce, multiply|reduce)", _sums_of_one_shape),
    ),
    Recipe(
        "pad-the-differences",
        "Pad the differences to one shape, add them and sum once",
        places("add(multiply|reduce, multiply|reduce)", _sums_of_differences),
    ),
    Recipe(
        "column-variance-in-one-pass",
        "Take the sums of x and of x² side by side for a variance of columns",
        places(
            "reduce(multiply(subtract(_, broadcast(multiply(reduce))), subtract))",
            lambda x: is_column_reduction(x) and same_twice(value_of(x.operands[0])),
        ),
    ),
    Recipe(
        "row-variance-around-the-mean",
        "Take the variance of a row around its mean, as jnp.var does",
        places("subtract(multiply(reduce), multiply(multiply(reduce)))", _is_row_variance, backends="gpu"),
    ),
    Recipe(
        "softmax-along-the-last-axis",
        "Take the softmax along the last axis",
        places("divide(exponential, broadcast(reduce(exponential)))", _of_columns, backends="gpu"),
    ),
    Recipe(
        "pick-the-label",
        "Pick the label's log probability with take_along_axis",
        places("reduce(select(compare(broadcast, iota), _, broadcast))"),
    ),
    Recipe(
        "bounded-logsumexp",
        "Leave out the maximum of logsumexp if the logits are bounded",
        places("add(log, select(is-finite))"),
    ),
    Recipe(
        "split-a-column-sum",
        "Sum blocks of rows first, then the blocks' sums",
        places("reduce", _is_tall, backends="gpu"),
        _split_in_two,
    ),
    Recipe(
        "one-column-sum-of-many",
        "Compute these column sums as one array with a leading axis",
        _many_column_sums,
    ),
)
