"""The dimensions of a convolution, for whoever counts with them."""

from __future__ import annotations

from hlofuse.ir.attributes.convolution import ConvolutionDimensionNumbers
from hlofuse.ir.attributes.parsers import parse_value
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction


def dimension_numbers(convolution: Instruction) -> ConvolutionDimensionNumbers | None:
    """Its `dim_labels`; None where they are missing or not readable."""
    text = convolution.attributes.raw("dim_labels")
    try:
        found = parse_value("dim_labels", text) if text is not None else None
    except HlofuseError:
        return None
    return found if isinstance(found, ConvolutionDimensionNumbers) else None
