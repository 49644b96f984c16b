"""hlofuse: read XLA HLO dumps, replay XLA's fusion decisions, explain them.

The library's front door is lazy: importing `hlofuse` loads nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlofuse.capturer import capture as capture
    from hlofuse.differ import diff as diff
    from hlofuse.explainer.explain import explain as explain
    from hlofuse.explorer import explore as explore
    from hlofuse.inputs.load import load as load
    from hlofuse.pipelines.replay import replay as replay
    from hlofuse.renderer import render as render
    from hlofuse.whatifs import what_if as what_if

__version__ = "0.1.0"

_HOME: dict[str, str] = {
    "capture": "hlofuse.capturer",
    "load": "hlofuse.inputs",
    "replay": "hlofuse.pipelines",
    "explain": "hlofuse.explainer.explain",
    "explore": "hlofuse.explorer",
    "diff": "hlofuse.differ",
    "render": "hlofuse.renderer",
    "what_if": "hlofuse.whatifs",
}
__all__ = ["capture", "diff", "explain", "explore", "load", "render", "replay", "what_if"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        # Packages are named otherwise (explainer, …): importing one would hide the function.
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hlofuse' has no attribute {name!r}")
