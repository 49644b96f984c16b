"""Reductions of windows of known values (`HloEvaluator::HandleReduceWindow`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from hlofuse.ir.attributes.window import Window
from hlofuse.passes.common.literals import Value

Compute = Callable[[Value, Value], Value]


def reduced_windows(
    values: Sequence[Value],
    sizes: Sequence[int],
    window: Window,
    init: Value,
    result: Sequence[int],
    compute: Compute,
) -> list[Value]:
    """The windows of an array of these sizes, each summed up from `init`, in order."""
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    out = []
    for index in itertools.product(*(range(n) for n in result)):
        total = init
        for place in _places(sizes, strides, window, index):
            total = compute(total, values[place])
        out.append(total)
    return out


def _places(
    sizes: Sequence[int], strides: Sequence[int], window: Window, index: Sequence[int]
) -> Iterator[int]:
    """Which elements a window covers; padding and gaps between elements are none."""
    inside = []
    for size, stride, w, k in zip(sizes, strides, window, index, strict=True):
        first = k * w.stride - w.padding_low
        covered = (first + n * w.window_dilation for n in range(w.size))
        found = [c // w.base_dilation * stride for c in covered if _is_element(c, w.base_dilation, size)]
        inside.append(found[::-1] if w.window_reversal else found)
    return map(sum, itertools.product(*inside))


def _is_element(place: int, dilation: int, size: int) -> bool:
    return place >= 0 and place % dilation == 0 and place // dilation < size
