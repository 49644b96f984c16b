"""Why a fusion cannot be tiled, in XLA's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PREFIX = "Fusion can not be tiled with SymbolicTileAnalysis: "
STATUS_PREFIX = "TiledRunTimeDataOrError return status: "
"""Stands before what XLA reports as an error rather than as a decision."""


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A refusal of `PriorityFusionQueue::CanFuseTriton`; the text is put together when asked for."""

    parts: tuple[object, ...]

    @property
    def text(self) -> str:
        """XLA's reason."""
        return "".join(map(str, self.parts))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Operation:
    """In a template: here comes the text of the operation with this number in the fusion."""

    number: int


class NotTiled(Exception):
    """Ends an analysis. `parts` are texts, things that print themselves, and `Operation`s.

    The parts name operations by number, so that they hold for every fusion of the same structure.
    """

    def __init__(self, *parts: object, is_status: bool = False) -> None:
        super().__init__("not tiled")
        self.parts: Sequence[object] = (STATUS_PREFIX, *parts) if is_status else parts
