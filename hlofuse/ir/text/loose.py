"""Parts of lines that the grammar may not know: items of attributes and metadata, shapes of any type."""

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache

from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.shape import ARRAY_TYPES, OTHER_TYPES, UNBOUNDED, Layout, Shape
from hlofuse.ir.text.patterns import NAME, STRING, instruction_pattern, split_tuple

METADATA_FIELDS = frozenset(field.name for field in fields(OpMetadata))
LAYOUT_PROPERTIES = frozenset("D T L E S SC P M".split())
LAYOUT_PROPERTY = re.compile(r"([A-Z]++)(?:\([^()]*+\))*+|[#*]\([^()]*+\)", re.ASCII)


@cache
def patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of an instruction with any opcode, pieces of attributes, the head of a computation, types."""
    token = rf"{STRING}|[\[({{]|[\])}}]|(?:, ?| )({NAME})=|[^\"\[\](){{}}, \n]++|[, ]"
    head = rf"(?:ENTRY )?%?({NAME}) (?:\(.*\) -> .* )?\{{"
    kind = rf"{STRING}|(?<![\w.\-%=])([a-z][a-z0-9]*+)(\[[\d,<=?]*+\])(\{{[\d,]*+:[^{{}}\n]*+\}})?"
    loose = instruction_pattern(r"[A-Za-z_][\w.\-]*+", end="")
    return loose, re.compile(token, re.ASCII), re.compile(head, re.ASCII), re.compile(kind, re.ASCII)


def items_of(text: str, separator: str) -> list[tuple[str, int, int, int]] | None:
    """Name, start, start of the value and end of each `name=value` after a separator; None for other text."""
    found: list[tuple[str, int, int, int]] = []
    depth = pos = 0
    while pos < len(text):
        match = patterns()[1].match(text, pos)
        if match is None:
            return None
        if match[1] and not depth and match[0][0] == separator:
            if found:
                found[-1] = (*found[-1][:3], pos)
            found.append((match[1], pos, match.end(), len(text)))
        elif not found and match[0] != " ":
            return None
        elif len(match[0]) == 1 or not match[1]:
            depth += (match[0] in "[({") - (match[0] in "])}")
            if depth < 0:
                return None
        pos = match.end()
    return found if not depth else None


def attributes_of(text: str) -> dict[str, str]:
    """`, a=1, b=<2>` as raw text by name, whatever the values are."""
    return {name: text[start:end].rstrip() for name, _, start, end in items_of(text, ",") or ()}


def readable_metadata(text: str, note: Callable[[str, int], None] = lambda name, where: None) -> str:
    """Metadata `{…}` without the fields that are not known, each of which is reported with its offset."""
    items = items_of(" " + text[1:-1], " ")
    if items is None:
        return text
    remaining = []
    for name, start, _, end in items:
        if name in METADATA_FIELDS:
            remaining.append(text[start + 1 : end].rstrip(" ,"))
        else:
            note(name, start + 1)
    return "{" + " ".join(remaining) + "}" if len(remaining) < len(items) else text


def readable_shapes(text: str, note: Callable[[str, str, int], None] = lambda kind, name, where: None) -> str:
    """Text with f32 for element types that are not known, and layouts without such properties."""

    def readable(match: re.Match[str]) -> str:
        name, dimensions, layout = match.groups()
        if name is None:
            return match[0]
        if name not in ARRAY_TYPES and name not in OTHER_TYPES:
            note("element type", name, match.start())
            name = "f32"
        if layout is None:
            return name + dimensions
        order, _, properties = layout[1:-1].partition(":")
        remaining = []
        for found in LAYOUT_PROPERTY.finditer(properties):
            if found[1] is None or found[1] in LAYOUT_PROPERTIES:
                remaining.append(found[0])
            else:
                note("layout property", found[1], match.start(3) + len(order) + 2 + found.start())
        suffix = "".join(remaining)
        if len(suffix) == len(properties) or LAYOUT_PROPERTY.sub("", properties):
            return name + dimensions + layout
        return f"{name}{dimensions}{{{order}{':' * bool(suffix)}{suffix}}}"

    return patterns()[3].sub(readable, text)


def loose_shape(text: str) -> Shape:
    """A shape of any element type and layout properties; raises ValueError for other text."""
    if text.startswith("("):
        parts = split_tuple(text)
        if parts is None:
            raise ValueError(text)
        return Shape.tuple_of([loose_shape(part) for part in parts])
    match = patterns()[3].fullmatch(text)
    name, dimensions, layout = match.groups() if match is not None else (None, "", None)
    if name is None:
        plain = re.fullmatch(r"([a-z]\w*)(\[[\d,<=?]*\])\{([\d,]*)\}", text)
        if plain is None:
            raise ValueError(text)
        name, dimensions, layout = plain[1], plain[2], "{" + plain[3] + ":}"
    sizes = dimensions[1:-1].split(",") if len(dimensions) > 2 else []
    bounds = tuple(UNBOUNDED if s == "?" else int(s.removeprefix("<=")) for s in sizes)
    dynamic = tuple(i for i, s in enumerate(sizes) if not s.isdigit())
    if name not in ARRAY_TYPES and name in OTHER_TYPES:
        return Shape(name, bounds)
    if layout is None:
        return Shape(name, bounds, dynamic_dimensions=dynamic)
    order, _, suffix = layout[1:-1].partition(":")
    minor_to_major = tuple(map(int, order.split(","))) if order else ()
    return Shape(name, bounds, Layout(minor_to_major, suffix), (), dynamic)
