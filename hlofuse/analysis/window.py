"""The window of a convolution or reduce-window (`xla::Window`), read from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIELD = re.compile(r"(\w+)=([^\s}]+)")


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window (`xla::WindowDimension`)."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    """Written `lhs_dilate`: holes between elements of the input."""
    window_dilation: int = 1
    """Written `rhs_dilate`: holes between elements of the window."""


def window_dimensions(text: str | None) -> tuple[WindowDimension, ...]:
    """`{size=3x3 pad=1_1x1_1 stride=2x2}` as dimensions; empty for no window, or one that is not readable."""
    fields = dict(_FIELD.findall(text or ""))
    if "size" not in fields:
        return ()
    try:
        sizes = _integers(fields["size"])
        strides = _integers(fields.get("stride", ""))
        bases = _integers(fields.get("lhs_dilate", ""))
        windows = _integers(fields.get("rhs_dilate", ""))
        pads = [tuple(map(int, p.split("_"))) for p in fields["pad"].split("x")] if "pad" in fields else []
        return tuple(
            WindowDimension(
                size,
                strides[i] if strides else 1,
                pads[i][0] if pads else 0,
                pads[i][1] if pads else 0,
                bases[i] if bases else 1,
                windows[i] if windows else 1,
            )
            for i, size in enumerate(sizes)
        )
    except (ValueError, IndexError):
        return ()


def _integers(text: str) -> list[int]:
    return [int(x) for x in text.split("x")] if text else []
