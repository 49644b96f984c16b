"""Recipes about reductions and what follows them."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.situation import Situation


def _sums_and_scales(s: Situation) -> Iterable[Finding]:
    """A sum that is multiplied by a constant, or to which one is added, in another kernel."""
    for r in s.refusals("PF009"):
        for producer, consumer in s.edges(r):
            if _is_sum(producer) and len(producer.users) == 1 and _constant_beside(consumer) is not None:
                yield Finding(producer.name, "PF009")


def _is_sum(x: Instruction) -> bool:
    return x.opcode == "reduce" and len(x.operands) == 2 and x.called_computations[0].root.opcode == "add"


def _constant_beside(x: Instruction) -> Instruction | None:
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
        constant = _constant_beside(user)
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


REDUCTIONS = (
    Recipe(
        "scale-the-summands",
        "Scale what is summed and start from the constant, not the sum",
        _sums_and_scales,
        _scale_summands,
    ),
)
