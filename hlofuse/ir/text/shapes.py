"""Shapes by their text: read once, shared by every instruction that has them."""

import re
from collections.abc import Callable
from math import prod

from hlofuse.ir.shape import Layout, Shape
from hlofuse.ir.text.patterns import ARRAY

_ARRAY = re.compile(ARRAY, re.ASCII)
_TOKEN = "token[]"
_ELEMENT = re.compile(
    r"(?:/\*index=\d++\*/)?([a-z]\w*+\[[\d,]*+\](?:\{[^{}]*+\})?|\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\))"
    r"(?:, ?(?!$)|$)",
    re.ASCII,
)
_LARGEST = 1 << 62


class ShapeCache(dict[str, Shape]):
    """Text to shape; `fallback` reads uncommon texts or raises."""

    def __init__(self, fallback: Callable[[str], Shape]) -> None:
        super().__init__()
        self._fallback = fallback

    def __missing__(self, text: str) -> Shape:
        shape = self[text] = self._plain(text) or self._fallback(text)
        return shape

    def _plain(self, text: str) -> Shape | None:
        if (array := _ARRAY.fullmatch(text)) is not None:
            return _array(*array.groups())
        if text.startswith("("):
            parts = split_tuple(text)
            return None if parts is None else Shape("tuple", tuple_shapes=tuple([self[p] for p in parts]))
        return Shape("token") if text == _TOKEN else None


def _array(element_type: str, dimensions: str, order: str | None, properties: str | None) -> Shape | None:
    sizes = tuple(map(int, dimensions.split(","))) if dimensions else ()
    if order is None:
        return Shape(element_type, sizes)
    if not order and properties is None:
        return None  # `{}` is no layout
    minor_to_major = tuple(map(int, order.split(","))) if order else ()
    if sorted(minor_to_major) != list(range(len(sizes))) or prod(sizes) > _LARGEST:
        return None
    return Shape(element_type, sizes, Layout(minor_to_major, properties or ""))


def split_tuple(text: str) -> list[str] | None:
    """The elements of `(a, /*index=5*/b)`; None for another form."""
    if text[-1:] != ")":
        return None
    parts: list[str] = []
    pos, end = 1, len(text) - 1
    while pos < end:
        element = _ELEMENT.match(text, pos, end)
        if element is None:
            return None
        parts.append(element[1])
        pos = element.end()
    return parts
