"""The elements of a matrix product (`HandleDot`, `xla/hlo/evaluator/hlo_evaluator_typed_visitor.h`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.elementwise import CannotEvaluate
from hlofuse.passes.common.literals import Value, rounded
from hlofuse.passes.common.memory_order import places_along

_MOST_PRODUCTS = 1 << 20
"""XLA works out more; it would take long here."""


def contracted(dot: Instruction, lhs: Sequence[Value], rhs: Sequence[Value]) -> list[Value]:
    """Products added up one after the other; XLA calls a library that may round the last digit otherwise."""
    element_type = dot.shape.element_type
    if element_type in COMPLEX_TYPES or any(o.shape.element_type != element_type for o in dot.operands):
        raise CannotEvaluate
    summed_as = "f32" if element_type in ("bf16", "f16") else element_type
    dimensions = DotDimensions.of(dot)
    (batches, lhs_free, depths), (rhs_batches, rhs_free, rhs_depths) = (
        _offsets(dot, dimensions, operand) for operand in range(2)
    )
    if len(batches) * len(lhs_free) * len(rhs_free) * len(depths) > _MOST_PRODUCTS:
        raise CannotEvaluate
    summed = list(zip(depths, rhs_depths, strict=True))
    out: list[Value] = []
    for (x, y), a, b in itertools.product(zip(batches, rhs_batches, strict=True), lhs_free, rhs_free):
        total: Value = 0
        for c, d in summed:
            product = _known(rounded(summed_as, lhs[x + a + c] * rhs[y + b + d]))
            total = _known(rounded(summed_as, total + product))
        out.append(_known(rounded(element_type, total)))
    return out


def _offsets(dot: Instruction, dimensions: DotDimensions, operand: int) -> list[list[int]]:
    """Where its batches, rows and summed elements are, each from the first one on."""
    sizes = dot.operands[operand].shape.dimensions
    groups = (
        dimensions.batch(operand),
        dimensions.free(operand, len(sizes)),
        dimensions.contracting(operand),
    )
    return [list(places_along(sizes, group)) for group in groups]


def _known(value: Value | None) -> Value:
    """Which NaN an operation makes is up to the machine."""
    if value is None or value != value:
        raise CannotEvaluate
    return value
