"""Typed values of attributes; as in XLA's parser, the attribute's name decides the type. Patterns read the
common forms, the grammar any other; both give the same values. A pattern may raise `Uncommon`."""

import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

from hlofuse.ir.errors import HloParseError
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import ARRAY_TYPES, OTHER_TYPES, UNBOUNDED, Layout, Shape
from hlofuse.ir.text.grammar import parse_attribute
from hlofuse.ir.text.patterns import (
    BOOLEAN,
    COMPUTATION,
    COMPUTATIONS,
    INTS,
    JSON,
    NAME,
    NUMBER,
    STRING,
    VALUES,
    common_form,
    instruction_pattern,
    numbers,
    split_tuple,
)
from hlofuse.ir.text.signatures import all_attributes
from hlofuse.ir.text.text import unquote
from .metadata import OpMetadata, OutputAlias
from .window import (
    ConvolutionDimensionNumbers,
    PaddingConfig,
    SliceRange,
    SliceRanges,
    Window,
    window_of,
)

METADATA_FIELDS = frozenset(OpMetadata.__struct_fields__)
LAYOUT_PROPERTIES = values("D T L E S SC P M")
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
    """Name, start, start of the value and end of each `name=value` after a separator; None for other text.
    `device_ids=` is a part of the mesh before it."""
    found = list[tuple[str, int, int, int]]()
    depth = pos = 0
    while pos < len(text):
        match = patterns()[1].match(text, pos)
        if match is None:
            return None
        if match[1] not in (None, "", "device_ids") and not depth and match[0][0] == separator:
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
        if name not in ARRAY_TYPES and name not in OTHER_TYPES and name != "mesh":  # of a sharding
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
    match = _LOOSE_SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    name, dimensions, order, suffix = match.groups("")
    sizes = dimensions.split(",") if dimensions else []
    bounds = tuple(UNBOUNDED if s == "?" else int(s.removeprefix("<=")) for s in sizes)
    dynamic = tuple(i for i, s in enumerate(sizes) if not s.isdigit())
    layout = Layout(numbers(order), suffix) if match[3] is not None else None
    return Shape(name, bounds, layout, (), dynamic)


_LOOSE_SHAPE = re.compile(r"([a-z]\w*+)\[([\d,<=?]*+)\](?:\{([\d,]*+)(?::([^{}\n]*+))?\})?", re.ASCII)
_JAX_METADATA = re.compile(r'\{op_name="([^"\\]*+)"(?: stack_frame_id=([0-9]{1,9}))?\}')
_METADATA_FIELD = re.compile(rf"([a-z_]++)=({STRING}|[0-9]{{1,9}}+)", re.ASCII)
_FRONTEND_FIELD = rf"({NAME})=({STRING}|{JSON})"  # compiled where it is needed, which takes its time
_ALIAS = re.compile(r"\{([\d,]*+)\}: \((\d++), \{([\d,]*+)\}\)")


class Uncommon(Exception):
    """A form without a pattern."""


def metadata(text: str) -> OpMetadata:
    if (match := _JAX_METADATA.fullmatch(text)) is not None:
        op_name, number = match.groups()
        return OpMetadata(op_name=op_name, stack_frame_id=int(number or 0))
    fields = _fields(_METADATA_FIELD, text, " ")
    read = [(key, value) for key, value in fields.items() if key in METADATA_FIELDS]
    values: dict[str, Any] = {key: unquote(v) if v[0] == '"' else int(v) for key, v in read}
    return OpMetadata(**values)


def _fields(pattern: str | re.Pattern[str], text: str, separator: str) -> dict[str, str]:
    """Names and values of `{a=1 b=2}`; `Uncommon` for another text, and one with a name given twice."""
    pairs = re.findall(pattern, text)
    fields = dict(pairs)
    if len(fields) < len(pairs) or text != f"{{{separator.join(map('='.join, pairs))}}}":
        raise Uncommon
    return fields


def frontend_attributes(text: str) -> dict[str, str]:
    """Keys with strings or raw text in braces."""
    fields = _fields(_FRONTEND_FIELD, text, ",")
    return {key: unquote(value) if value[0] == '"' else value for key, value in fields.items()}


def config(text: str) -> str:
    """A backend config: raw JSON, or the content of a string."""
    if text.startswith("{"):
        return text
    if re.fullmatch(STRING, text) is None:
        raise Uncommon
    return unquote(text)


def window(text: str) -> Window:
    fields = dict[str, list[Any]]()
    for key, value in (field.split("=") for field in text[1:-1].split(" ")):
        parts = value.split("x")
        fields[key] = [tuple(map(int, p.split("_"))) if key == "pad" else int(p) for p in parts]
    try:
        return window_of(fields)
    except ValueError:
        raise Uncommon from None


def slice_ranges(text: str) -> SliceRanges:
    parts = text[2:-2].split("], [") if len(text) > 2 else []
    return SliceRanges(SliceRange(*map(int, part.split(":"))) for part in parts)


def output_aliases(text: str) -> tuple[OutputAlias, ...]:
    found = _ALIAS.findall(text)
    return tuple(OutputAlias(numbers(out), int(number), numbers(index)) for out, number, index in found)


__all__ = ["OpMetadata", "parse_value"]


def parse_value(name: str, text: str) -> Any:
    """The typed value of attribute `name`; the text itself for an unknown name. Lists of numbers are tuples,
    names of computations and enumerations are strings; see `hlofuse.ir.attributes` for the rest."""
    reader, form = _READERS.get(name), common_form(name)
    if reader is None and name not in all_attributes():
        return text
    if reader is None or (form is not None and form.fullmatch(text) is None):
        return _by_grammar(name, text)
    try:
        return reader(text)
    except Uncommon:
        return _by_grammar(name, text)


@lru_cache(maxsize=4096)
def _by_grammar(name: str, text: str) -> Any:
    try:
        return parse_attribute(name, text)
    except HloParseError:
        # The text of a newer XLA was accepted with the parts that are not known: those are left out.
        remaining = readable_shapes(readable_metadata(text) if name == "metadata" else text)
        if remaining == text:
            raise
        return parse_attribute(name, remaining)


_OF_FORM: dict[str, Callable[[str], Any]] = {
    BOOLEAN: lambda text: text == "true",
    NUMBER: int,
    INTS: lambda text: numbers(text[1:-1]),
    COMPUTATION: lambda text: text.removeprefix("%"),
    COMPUTATIONS: lambda text: tuple(n.strip().removeprefix("%") for n in text[1:-1].split(",")),
    STRING: unquote,
}
_READERS: dict[str, Callable[[str], Any]] = {
    **{name: _OF_FORM.get(form, str) for name, form in VALUES.items()},
    "epsilon": float,
    "slice": slice_ranges,
    "padding": PaddingConfig.of_text,
    "window": window,
    "dim_labels": lambda text: ConvolutionDimensionNumbers(*re.split("_|->", text)),
    "operand_precision": lambda text: tuple(text[1:-1].split(",")),
    "output_to_operand_aliasing": output_aliases,
    "source_target_pairs": lambda text: tuple(map(numbers, text[2:-2].split("},{"))),
    "operand_layout_constraints": partial(_by_grammar, "operand_layout_constraints"),
    "algorithm": str,
    "metadata": metadata,
    "backend_config": config,
    "frontend_attributes": frontend_attributes,
}
"""Readers of texts in the common form of an attribute; the grammar reads the others."""
