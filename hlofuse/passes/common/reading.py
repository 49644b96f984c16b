"""What an instruction's attributes say, as passes read it."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, SliceRanges, Window
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.literals import Value


def numbers_of(x: Instruction, name: str) -> tuple[int, ...]:
    """A list of numbers; none where the attribute is not there."""
    return tuple(x.attributes.get(name, ()))


def window_of(convolution: Instruction) -> Window:
    """The window of a convolution, or of a call that computes one; without dimensions where none is given."""
    found = convolution.attributes.get("window")
    return found if isinstance(found, Window) else Window()


def labels_of(convolution: Instruction) -> ConvolutionDimensionNumbers:
    """What the dimensions of a convolution, or of a call that computes one, stand for."""
    found = convolution.attributes["dim_labels"]
    assert isinstance(found, ConvolutionDimensionNumbers)
    return found


def ranges_of(slice_: Instruction) -> SliceRanges:
    """Start, limit and stride of each dimension."""
    ranges: SliceRanges = slice_.attributes["slice"]
    return ranges


Compute = Callable[[Value, Value], Value]


def reduced_windows(
    values: Sequence[Value],
    sizes: Sequence[int],
    window: Window,
    init: Value,
    result: Sequence[int],
    compute: Compute,
) -> list[Value]:
    """The windows of an array of these sizes, each summed up from `init`, in order
    (`HloEvaluator::HandleReduceWindow`)."""
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
        elements = (c // w.base_dilation for c in covered if c >= 0 and c % w.base_dilation == 0)
        found = [e * stride for e in elements if e < size]
        inside.append(found[::-1] if w.window_reversal else found)
    return map(sum, itertools.product(*inside))
