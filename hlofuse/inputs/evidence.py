"""A statement about an input and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["default", "text", "directory", "stamp", "asked"]
SOURCES: tuple[Source, ...] = ("default", "text", "directory", "stamp", "asked")
"""The weakest first."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement, such as the backend of a module."""

    value: str
    source: Source = "default"
    evidence: str = ""
    """What shows it, in words; for a default: why nothing does."""

    is_open: bool = False
    """True if the evidence leaves several values, of which `value` names all."""

    @property
    def strength(self) -> int:
        """Greater for stronger evidence."""
        return SOURCES.index(self.source)
