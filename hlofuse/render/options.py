"""What a caller may ask of a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlofuse.ir import HlofuseError

VIEWS = ("before", "after", "both")
MAX_NODES = 250
"""Boxes a side: a person reads no more, and `dot` is quick up to there."""

HARD_LIMIT = 1_500
"""Boxes in one picture whatever is asked for: `dot` takes minutes beyond."""


@dataclass(frozen=True, slots=True)
class Options:
    """How much is drawn, and of what."""

    max_nodes: int = MAX_NODES
    focus: str | None = None
    radius: int = 2
    open: tuple[str, ...] = ()
    collapse: tuple[str, ...] = ()
    legend: bool = True
    final_names: Mapping[str, str] = field(default_factory=dict)
    """Of kernels of a module after fusion that a profiler shows under another name."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_nodes <= HARD_LIMIT:
            raise HlofuseError(f"max-nodes must lie between 1 and {HARD_LIMIT:,}, not {self.max_nodes:,}")
        if self.radius < 0:
            raise HlofuseError(f"radius must not be negative, but is {self.radius}")
