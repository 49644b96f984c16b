"""Elements as they lie in memory (`HandleBitcast`, `xla/hlo/evaluator/hlo_evaluator.cc`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from hlofuse.ir.shape import Shape
from hlofuse.passes.common.elementwise import CannotEvaluate
from hlofuse.passes.common.literals import Value


def reinterpreted(values: Sequence[Value], source: Shape, result: Shape) -> list[Value]:
    """The elements, in row-major order, of what lies where an array of the same element type does."""
    if source.element_type != result.element_type or source.element_count != result.element_count:
        raise CannotEvaluate
    out = list(values)
    for mine, other in zip(_places(source), _places(result), strict=True):
        out[other] = values[mine]
    return out


def places_along(sizes: Sequence[int], dimensions: Sequence[int]) -> Iterator[int]:
    """Of the elements along `dimensions` of an array, the last of them fastest, each one's number in
    row-major order, those of the other dimensions being 0."""
    steps = ((d, math.prod(sizes[d + 1 :])) for d in dimensions)
    ranges = [range(0, sizes[d] * step, step or 1) for d, step in steps]
    return map(sum, itertools.product(*ranges))


def _places(shape: Shape) -> Iterator[int]:
    """Of the elements in the order of memory, each one's number in row-major order."""
    return places_along(shape.dimensions, tuple(reversed(shape.minor_to_major)))
