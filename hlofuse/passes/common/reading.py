"""What an instruction's attributes say, as passes read it."""

from __future__ import annotations

from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, SliceRanges, Window
from hlofuse.ir.graph import Instruction


def numbers_of(x: Instruction, name: str) -> tuple[int, ...]:
    """A list of numbers; none where the attribute is not there."""
    return tuple(x.attributes.get(name, ()))


def window_of(convolution: Instruction) -> Window:
    """The window of a convolution, or of a call that computes one; without dimensions where none is told."""
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
