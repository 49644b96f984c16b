"""What a pattern consists of, once its text is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Dim = int | str | None
"""A size, the name of one, or anything (`?`)."""


@dataclass(frozen=True, slots=True)
class ShapePattern:
    """`f32[8,64]`, `T[...,S,D]`, `f32[?]{1,0}` or a tuple of such."""

    element: str | None = None
    """An element type, the name of one, or anything."""
    leading: tuple[Dim, ...] = ()
    """Dimensions before `...`, or all of them where there is none."""
    trailing: tuple[Dim, ...] | None = None
    """Dimensions after `...`; None without it."""
    layout: tuple[int, ...] | None = None
    """Minor to major; None for any."""
    parts: tuple[ShapePattern, ...] | None = None
    """The elements of a tuple; None for an array."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A parameter: any value, which becomes an operand of the kernel."""

    number: int
    shape: ShapePattern | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """`a = b`: the operation `a` is missing and `b` stands in its place."""

    other: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An instruction; what is not written about it may be anything."""

    opcode: str
    operands: tuple[str, ...]
    shape: ShapePattern | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Texts as written, without blanks and `%`."""
    constant: str | None = None
    """The value of a constant; None for any."""


Definition = Hole | Alias | Operation


@dataclass(frozen=True, slots=True)
class Graph:
    """One computation: each name with its definitions, any of which may be found."""

    root: str
    definitions: Mapping[str, tuple[Definition, ...]]

    @property
    def holes(self) -> dict[str, int]:
        """The holes and their numbers, in order of numbers."""
        found = {name: d.number for name, ds in self.definitions.items() for d in ds if isinstance(d, Hole)}
        return dict(sorted(found.items(), key=lambda item: item[1]))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A whole text: the computation to be found, and those its instructions call."""

    graph: Graph
    called: Mapping[str, Graph] = field(default_factory=dict)
