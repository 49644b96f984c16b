"""Typed values of attributes; as in XLA's parser, the attribute's name decides the type. Patterns read the
common forms, the grammar any other; both give the same values. A pattern may raise `Uncommon`."""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from hlofuse.ir.errors import HloParseError
from hlofuse.ir.shape import ARRAY_TYPES, OTHER_TYPES, UNBOUNDED, Layout, Shape
from hlofuse.ir.text.grammar import parse_attribute
from hlofuse.ir.text.patterns import NAME, STRING, instruction_pattern, numbers, split_tuple
from hlofuse.ir.text.text import bad_escape, unquote
from .metadata import OpMetadata, OutputAlias
from .window import (
    ConvolutionDimensionNumbers,
    PaddingConfig,
    PaddingDimension,
    SliceRange,
    SliceRanges,
    Window,
    window_of,
)

METADATA_FIELDS = frozenset(OpMetadata.__struct_fields__)
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
    minor_to_major = numbers(order)
    return Shape(name, bounds, Layout(minor_to_major, suffix), (), dynamic)


_INTEGER = re.compile(r"-?[0-9]{1,18}")
_INTEGERS = re.compile(r"\{(?:-?[0-9]{1,18}(?:, ?-?[0-9]{1,18})*+)?\}")
_NAME = re.compile(r"%?[A-Za-z_][\w.\-]*+")
_NAMES = re.compile(r"\{%?[A-Za-z_][\w.\-]*+(?:, ?%?[A-Za-z_][\w.\-]*+)*+\}")
_PLAIN_STRING = re.compile(r'"[^"\\]*+"')
_METADATA = re.compile(r'\{(?:(?:[a-z_]++=(?:"(?:[^"\\]++|\\.)*+"|[0-9]{1,9}))(?: (?=[a-z])|(?=\})))*+\}')
_JAX_METADATA = re.compile(r'\{op_name="([^"\\]*+)"(?: stack_frame_id=([0-9]{1,9}))?\}')
_METADATA_NAMES = frozenset(
    "op_type op_name source_file source_line source_end_line source_column source_end_column"
    " deduplicated_name scheduling_name stack_frame_id".split()
)
_STRING = r'"(?:[^"\\\n]++|\\.)*+"'
_FRONTEND_FIELD = (
    rf'([A-Za-z_][\w.\-]*+)=({_STRING}|\{{(?:[^{{}}"\n]++|{_STRING}|\{{(?:[^{{}}"\n]++|{_STRING})*+\}})*+\}})'
)
_FRONTEND_PAIR = re.compile(_FRONTEND_FIELD, re.ASCII)
_FRONTEND = re.compile(rf"\{{{_FRONTEND_FIELD}(?:,{_FRONTEND_FIELD})*+\}}", re.ASCII)
_METADATA_FIELD = re.compile(r'([a-z_]++)=(?:"((?:[^"\\]++|\\.)*+)"|([0-9]++))')
_WINDOW_FIELD = re.compile(r"(size|stride|pad|lhs_dilate|rhs_dilate|rhs_reversal)=([0-9x_\-]++)")
_WINDOW = re.compile(
    rf"\{{(?:{_WINDOW_FIELD.pattern}(?: (?=[a-z])|(?=\}})))*+\}}".replace("(size", "(?:size")
)
_RANGE = re.compile(r"\[([0-9]++):([0-9]++)(?::([0-9]++))?\]")
_RANGES = re.compile(r"\{(?:\[[0-9]++:[0-9]++(?::[0-9]++)?\](?:, (?=\[)|(?=\})))*+\}")
_PADDING = re.compile(r"-?[0-9]++_-?[0-9]++(?:_[0-9]++)?(?:x-?[0-9]++_-?[0-9]++(?:_[0-9]++)?)*+")
_LABELS = re.compile(r"([0-9bf]{2,9})_([0-9io]{2,9})->([0-9bf]{2,9})")
_INDEX = r"\{([0-9]*+(?:, ?[0-9]++)*+)\}"
_ALIAS = re.compile(rf"{_INDEX}: \(([0-9]{{1,9}}), {_INDEX}\)")
_ALIASES = re.compile(rf"\{{ ?(?:{_ALIAS.pattern}(?:, (?=\{{)| ?(?=\}})))*+ ?\}}")


class Uncommon(Exception):
    """A form without a pattern."""


def uncommon(text: str) -> Any:
    raise Uncommon


def boolean(text: str) -> bool:
    if text == "true":
        return True
    if text == "false":
        return False
    raise Uncommon


def integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise Uncommon
    return int(text)


def integers(text: str) -> tuple[int, ...]:
    """A list of numbers: `{0,1}`."""
    if _INTEGERS.fullmatch(text) is None:
        raise Uncommon
    return numbers(text[1:-1])


def name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise Uncommon
    return text.removeprefix("%")


def names(text: str) -> tuple[str, ...]:
    """A list of names or words: `{%a, %b}`."""
    if _NAMES.fullmatch(text) is None:
        raise Uncommon
    return tuple(n.strip().removeprefix("%") for n in text[1:-1].split(","))


def string(text: str) -> str:
    """A string in double quotes without escapes."""
    if _PLAIN_STRING.fullmatch(text) is None:
        raise Uncommon
    return text[1:-1]


def config(text: str) -> str:
    """A backend config: raw JSON, or the content of a string."""
    return text if text.startswith("{") else string(text)


def metadata(text: str) -> OpMetadata:
    if (match := _JAX_METADATA.fullmatch(text)) is not None:
        op_name, number = match.groups()
        return OpMetadata(op_name=op_name, stack_frame_id=int(number or 0))
    if _METADATA.fullmatch(text) is None:
        raise Uncommon
    fields: dict[str, Any] = {}
    for key, quoted, number in _METADATA_FIELD.findall(text):
        if key in fields or ("\\" in quoted and bad_escape(quoted) is not None):
            raise Uncommon
        fields[key] = int(number) if number else unquote(f'"{quoted}"')
    if not fields.keys() <= _METADATA_NAMES:
        if not METADATA_FIELDS.isdisjoint(fields.keys() - _METADATA_NAMES):
            raise Uncommon
        fields = {key: value for key, value in fields.items() if key in _METADATA_NAMES}
    return OpMetadata(**fields)


def frontend_attributes(text: str) -> dict[str, str]:
    """Keys with strings or raw text in braces."""
    if _FRONTEND.fullmatch(text) is None:
        raise Uncommon
    pairs = _FRONTEND_PAIR.findall(text)
    if any(value[0] == '"' and "\\" in value and bad_escape(value[1:-1]) is not None for _, value in pairs):
        raise Uncommon
    return {key: unquote(value) if value[0] == '"' else value for key, value in pairs}


def window(text: str) -> Window:
    if _WINDOW.fullmatch(text) is None:
        raise Uncommon
    fields = dict[str, list[Any]]()
    try:
        for key, value in _WINDOW_FIELD.findall(text):
            parts = value.split("x")
            pads = [tuple(map(int, part.split("_"))) for part in parts] if key == "pad" else None
            fields[key] = pads or list(map(int, parts))
        return window_of(fields)
    except ValueError:
        raise Uncommon from None


def slice_ranges(text: str) -> SliceRanges:
    """`{[0:8], [0:16:2]}`."""
    if _RANGES.fullmatch(text) is None:
        raise Uncommon
    return SliceRanges(SliceRange(int(a), int(b), int(c or 1)) for a, b, c in _RANGE.findall(text))


def padding(text: str) -> PaddingConfig:
    """`0_0x1_1`."""
    if _PADDING.fullmatch(text) is None:
        raise Uncommon
    return PaddingConfig(PaddingDimension(*map(int, d.split("_"))) for d in text.split("x"))


def dim_labels(text: str) -> ConvolutionDimensionNumbers:
    """`b01f_01io->b01f`."""
    match = _LABELS.fullmatch(text)
    if match is None:
        raise Uncommon
    return ConvolutionDimensionNumbers(*match.groups())


def output_aliases(text: str) -> tuple[OutputAlias, ...]:
    """`{{0}: (1, {})}`."""
    if _ALIASES.fullmatch(text) is None:
        raise Uncommon
    found = _ALIAS.findall(text)
    return tuple(OutputAlias(numbers(out), int(number), numbers(index)) for out, number, index in found)


__all__ = ["OpMetadata", "parse_value"]


def parse_value(name: str, text: str) -> Any:
    """The typed value of attribute `name`; the text itself for an unknown name. Lists of numbers are tuples,
    names of computations and enumerations are strings; see `hlofuse.ir.attributes` for the rest."""
    reader = _READERS.get(name)
    if reader is None:
        return text
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


def _table() -> dict[str, Callable[[str], Any]]:
    by_reader: dict[Callable[[str], Any], str] = {
        boolean: """
            is_scheduled alias_passthrough_params is_stable largest constrain_layout use_global_device_ids
            has_dynamic_root is_host_transfer is_composite custom_call_has_side_effect is_reverse
            is_associative indices_are_sorted unique_indices left_side lower unit_diagonal
        """,
        integer: """
            replica_count num_partitions iota_dimension k channel_id index feature_group_count
            batch_group_count feature_index delta exponent_bits mantissa_bits index_vector_dim num_carries
            inferred_dimension cross_program_prefetch_index
        """,
        integers: """
            dimensions fft_length dynamic_slice_sizes lhs_contracting_dims rhs_contracting_dims lhs_batch_dims
            rhs_batch_dims lhs_ragged_dims rhs_group_dims offset_dims collapsed_slice_dims start_index_map
            operand_batching_dims start_indices_batching_dims update_window_dims inserted_window_dims
            scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims slice_sizes
        """,
        name: """
            to_apply calls condition body true_computation false_computation select scatter fft_type
            padding_type direction type order distribution algorithm schedule api_version transpose_a
            convolution_kind kind mode
        """,
        names: "branch_computations called_computations operand_precision control-predecessors",
        string: """
            execution_thread async_execution_thread infeed_config outfeed_config custom_call_target
        """,
        config: "backend_config",
        metadata: "metadata",
        window: "window",
        slice_ranges: "slice",
        padding: "padding",
        dim_labels: "dim_labels",
        frontend_attributes: "frontend_attributes",
        output_aliases: "output_to_operand_aliasing",
        uncommon: """
            allow_spmd_sharding_propagation_to_parameters allow_spmd_sharding_propagation_to_output epsilon
            statistics parameter_replication origin operand_layout_constraints literal outfeed_shape domain
            result_accuracy sparsity_config sparsity buffer_donor
            entry_computation_layout origin_recovery_table debug_attributes input_output_alias replica_groups
            source_target_pairs sharding
        """,
    }
    return {name: reader for reader, names in by_reader.items() for name in names.split()}


_READERS = _table()
