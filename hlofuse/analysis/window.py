"""The dimensions of a window, for whoever counts with them."""

from __future__ import annotations

from hlofuse.ir.attributes.parsers import parse_value
from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.errors import HlofuseError


def window_dimensions(text: str | None) -> tuple[WindowDimension, ...]:
    """`{size=3x3 pad=1_1x1_1 stride=2x2}` as dimensions; empty for no window, or one that is not readable."""
    if text is None:
        return ()
    try:
        window = parse_value("window", text)
    except HlofuseError:
        return ()
    assert isinstance(window, Window)
    return window.dimensions
