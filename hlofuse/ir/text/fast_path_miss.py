"""How the fast path says that a piece of text is the grammar's to read, and asks it to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hlofuse.ir.shape import Shape
    from hlofuse.ir.text.computation_reader import Body


class Declined(Exception):
    """The text is out of the ordinary; it may be right or wrong."""


class Unusual(Protocol):
    """Reads single pieces by the grammar; raises `Declined` where a piece does not stand by itself."""

    def shape(self, text: str) -> Shape:
        """A shape in an unusual notation."""

    def common_attributes(self, text: str) -> None:
        """Check attributes that any instruction may have: `, sharding={…}, origin={…}`."""

    def instructions(self, body: Body, text: str, start: int, end: int) -> None:
        """Add the instructions in `text[start:end]` to the body."""

    def heading(self, text: str, start: int, end: int) -> tuple[bool, str, Shape | None]:
        """ENTRY, name and result of a computation whose text up to its brace is `text[start:end]`."""
