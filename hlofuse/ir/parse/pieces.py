"""Single pieces of the text: shapes and attribute lists, by fast patterns."""

from __future__ import annotations

import re

from hlofuse.ir.shape import ARRAY_TYPES, UNBOUNDED, Layout, Shape


def nested(opening: str, closing: str, leaf: str, depth: int) -> str:
    """A pattern for brackets nested at most `depth` deep around `leaf`."""
    pattern = rf"{opening}{leaf}*+{closing}"
    for _ in range(depth):
        pattern = rf"{opening}(?:{leaf}|{pattern})*+{closing}"
    return pattern


STRING = r'"(?:[^"\\]++|\\.)*+"'
BRACES = nested(r"\{", r"\}", r'(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")', 8)
_VALUE = rf"""(?:{BRACES}|{STRING}|\[[^\]]*\](?:<=\[[\d,]*\](?:T\([\d,]*\))?)?(?:\s*{BRACES})?|mesh\[[^\]]*\](?:\s*{BRACES})?|[^\s,{{}}"\[\]()]++(?:\([^()]*\))?|\((?:[^()]++|\([^()]*\))*\)[^,]*)"""
_ATTRIBUTE = re.compile(rf"\s*,\s*([A-Za-z_][\w.\-]*+)=({_VALUE})", re.DOTALL)
_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([\d,<=?]*)\](?:\{([\d,]*)(?::([^{}]*))?\})?")


def split_attributes(text: str) -> dict[str, str]:
    """`, a=1, b={2}` as a mapping, values as written."""
    out: dict[str, str] = {}
    pos = 0
    while pos < len(text) and (m := _ATTRIBUTE.match(text, pos)):
        out[m[1]] = m[2]
        pos = m.end()
    if text[pos:].strip():
        raise ValueError(f"not an attribute: {text[pos:pos + 60]!r}")
    return out


def parse_shape(text: str) -> Shape:
    """A shape's text as a Shape."""
    m = _ARRAY.fullmatch(text)
    if m:
        if m[1] not in ARRAY_TYPES and m[1] not in ("token", "opaque"):
            raise ValueError(f"unknown element type {m[1]}")
        dims: list[int] = []
        dynamic: list[int] = []
        for i, d in enumerate(m[2].split(",") if m[2] else ()):
            if d == "?":
                dims.append(UNBOUNDED)
                dynamic.append(i)
            elif d.startswith("<="):
                dims.append(int(d[2:]))
                dynamic.append(i)
            else:
                dims.append(int(d))
        layout = None
        if m[3] is not None:
            layout = Layout(tuple(map(int, m[3].split(","))) if m[3] else (), m[4] or "")
        return Shape(m[1], tuple(dims), layout, (), tuple(dynamic))
    if text.startswith("b(") and text.endswith(")"):
        return Shape("buffer", tuple_shapes=(parse_shape(text[2:-1]),))
    if text.startswith("(") and text.endswith(")"):
        return Shape.tuple_of([parse_shape(t) for t in split_top_level(text[1:-1])])
    raise ValueError(f"not a shape: {text[:80]!r}")


def split_top_level(text: str) -> list[str]:
    """Split at commas outside any brackets; comments are dropped."""
    text = re.sub(r"/\*.*?\*/", "", text)
    out: list[str] = []
    depth = start = 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and not depth:
            out.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        out.append(text[start:].strip())
    return out
