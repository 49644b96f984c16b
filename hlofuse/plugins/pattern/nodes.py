"""What a pattern consists of, once its text is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hlofuse.ir.shape import ARRAY_TYPES, Shape
from hlofuse.ir.text.errors import Rejected

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


# Shapes of patterns: reading them, and holding them against a shape of the graph.


Sizes = Mapping[str, int | str]
"""Named sizes and element types, as they were found."""

_ARRAY = re.compile(r"([A-Za-z][\w]*|\?)\s*\[([^\]\n]*)\](\{[^}\n]*\})?")
_ANY_NAME = re.compile(r"[A-Z]\w*")
_TUPLE = re.compile(r"\(\s*(?=\(|(?:[A-Za-z]\w*|\?)\s*\[|\))")
_OTHERS = frozenset({"token", "opaque"})


class ShapeReader:
    """Reads shapes at positions of one text; `end` is where the last one ended."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0

    def read(self, at: int) -> ShapePattern | None:
        """The shape at this position; None if there is none, Rejected for a bad one."""
        m = _ARRAY.match(self.text, at)
        if m:
            self.end = m.end()
            return _array(m)
        if _TUPLE.match(self.text, at) is None:
            return None
        parts: list[ShapePattern] = []
        at = self._blank(at + 1)
        while self.text[at : at + 1] != ")":
            part = self.read(at)
            if part is None:
                raise Rejected(at, "expected a shape")
            parts.append(part)
            at = self._blank(self.end)
            if self.text[at : at + 1] == ",":
                at = self._blank(at + 1)
            elif self.text[at : at + 1] != ")":
                raise Rejected(at, "expected ',' or ')'")
        self.end = at + 1
        return ShapePattern("tuple", parts=tuple(parts))

    def _blank(self, at: int) -> int:
        while self.text[at : at + 1].isspace():
            at += 1
        return at


def _array(m: re.Match[str]) -> ShapePattern:
    element = None if m[1] == "?" else m[1]
    if element is not None and element not in ARRAY_TYPES | _OTHERS and not _ANY_NAME.fullmatch(element):
        raise Rejected(
            m.start(1), f"there is no element type {element}; a name for any type begins with a capital"
        )
    leading: list[Dim] = []
    trailing: list[Dim] | None = None
    place = m.start(2)
    for part in m[2].split(",") if m[2].strip() else ():
        word = part.strip()
        if word == "...":
            if trailing is not None:
                raise Rejected(place, "'...' may stand once in a shape")
            trailing = []
        else:
            (leading if trailing is None else trailing).append(_dim(word, place))
        place += len(part) + 1
    layout = None
    if m[3]:
        order = m[3][1:-1].partition(":")[0]
        try:
            layout = tuple(int(d) for d in order.split(",") if d.strip())
        except ValueError:
            raise Rejected(m.start(3), "expected a layout such as {1,0}") from None
    return ShapePattern(element, tuple(leading), None if trailing is None else tuple(trailing), layout)


def _dim(word: str, place: int) -> Dim:
    if word == "?":
        return None
    if word.isdigit():
        return int(word)
    if _ANY_NAME.fullmatch(word):
        return word
    raise Rejected(place, "expected a size, a name beginning with a capital, '?' or '...'")


def fit(pattern: ShapePattern | None, shape: Shape, sizes: Sizes) -> Sizes | None:
    """The named sizes with what this shape adds; None where it does not fit."""
    if pattern is None:
        return sizes
    named = dict(sizes)
    return named if _fits(pattern, shape, named) else None


def _fits(pattern: ShapePattern, shape: Shape, named: dict[str, int | str]) -> bool:
    """Adds to `named` what it finds."""
    if pattern.parts is not None:
        inner = shape.tuple_shapes
        return (
            shape.is_tuple
            and len(inner) == len(pattern.parts)
            and all(_fits(p, s, named) for p, s in zip(pattern.parts, inner, strict=True))
        )
    if shape.is_tuple or not _same_or_named(pattern.element, shape.element_type, named):
        return False
    if pattern.layout is not None and pattern.layout != shape.minor_to_major:
        return False
    dims, first, last = shape.dimensions, pattern.leading, pattern.trailing or ()
    wanted = len(first) + len(last)
    if len(dims) < wanted or (pattern.trailing is None and len(dims) != wanted):
        return False
    found = (*dims[: len(first)], *dims[len(dims) - len(last) :])
    return all(_same_or_named(p, d, named) for p, d in zip((*first, *last), found, strict=True))


def _same_or_named(pattern: Dim, found: int | str, named: dict[str, int | str]) -> bool:
    """Anything, this very size or type, or what the name stands for, from now on if it is new."""
    if pattern is None or pattern == found:
        return True
    is_name = isinstance(pattern, str) and pattern not in ARRAY_TYPES | _OTHERS
    return is_name and named.setdefault(str(pattern), found) == found
