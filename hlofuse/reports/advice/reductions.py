"""Recipes about reductions and what follows them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.situation import Situation


def _sums_and_scales(s: Situation) -> Iterable[Finding]:
    """A sum that is multiplied by a constant, or to which one is added, in another kernel."""
    for r in s.refusals("PF009"):
        for producer, consumer in s.edges(r):
            if _is_sum(producer) and len(producer.users) == 1 and _constant_operand(consumer) is not None:
                yield Finding(producer.name, "PF009")


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


REDUCTIONS = (
    Recipe(
        "bias-in-the-summands",
        "Add the bias to what is summed, a part to each, not to the sum",
        _sums_and_biases,
        _bias_into_summands,
    ),
    Recipe(
        "scale-the-summands",
        "Scale what is summed and start from the constant, not the sum",
        _sums_and_scales,
        _scale_summands,
    ),
)
