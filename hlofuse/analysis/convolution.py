"""The dimensions of a convolution, for whoever counts with them."""

import math
import re

from hlofuse.ir.attributes.parsers import parse_value
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers, Window, WindowDimension
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction


def dimension_numbers(convolution: Instruction) -> ConvolutionDimensionNumbers | None:
    """Its `dim_labels`; None where they are missing or not readable."""
    text = convolution.raw("dim_labels")
    try:
        found = parse_value("dim_labels", text) if text is not None else None
    except HlofuseError:
        return None
    return found if isinstance(found, ConvolutionDimensionNumbers) else None


_UNALIGNED = 8  # An array of no more bytes may start anywhere (`minimum_alignment_for_allocation`)


def why_not_eigen(convolution: Instruction) -> str | None:
    """Why Eigen cannot compute it, or None (`CanUseEigenConvolution`, `cpu/ir_emission_utils.cc`)."""
    if (reason := why_never_eigen(convolution)) is not None:
        return reason
    for x in (*convolution.operands, convolution):
        if not x.shape.is_row_major:
            return f"a layout is not row-major: {x.shape}"
    return None


def why_never_eigen(convolution: Instruction) -> str | None:
    """Why Eigen cannot in any layout, or None (`PotentiallyImplementedAsEigenConvolution`)."""
    source, kernel = convolution.operand.shape, convolution.second.shape
    if not source.element_count or not kernel.element_count:
        return "the input or the kernel is empty"
    if any(s.byte_size <= _UNALIGNED for s in (source, kernel, convolution.shape)):
        return f"an array of at most {_UNALIGNED} bytes is not aligned to 16 bytes"
    if source.element_type not in ("f16", "f32"):
        return f"the element type is {source.element_type}, not f16 or f32"
    if re.search(r"rhs_reversal=[\dx]*1", convolution.raw("window") or ""):
        return "the window is reversed"
    numbers = dimension_numbers(convolution)
    if numbers is None:
        return "unknown dimension labels"
    spatial = "".join(str(k) for k in range(len(numbers.lhs) - 2))
    if not 1 <= len(spatial) <= 3:
        return f"there are {len(spatial)} spatial dimensions, not 1 to 3"
    wanted = ConvolutionDimensionNumbers(f"b{spatial}f", f"{spatial}io", f"b{spatial}f")
    if numbers != wanted:
        return f"the dimensions are {numbers}, not {wanted}"
    return None


def window_dimensions(instruction: Instruction) -> tuple[WindowDimension, ...]:
    """`{size=3x3 pad=1_1x1_1 stride=2x2}` as dimensions; empty for no window, or one that is not readable."""
    text = instruction.raw("window")
    if text is None:
        return ()
    try:
        window = parse_value("window", text)
    except HlofuseError:
        return ()
    assert isinstance(window, Window)
    return window


def window_size(instruction: Instruction) -> int:
    """The elements of its window; 1 without one."""
    return math.prod(d.size for d in window_dimensions(instruction))
