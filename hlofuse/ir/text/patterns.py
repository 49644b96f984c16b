"""Patterns of the fast path: each matches part of what the grammar matches, with the same meaning. All
repetition is possessive or over disjoint alternatives, so matching never backtracks for long."""

import re
from collections.abc import Callable
from functools import cache
from math import prod

from hlofuse.ir.shape import ARRAY_TYPES, Dims, Layout, Shape
from .signatures import ANY_CASE, EXACT


def nested_pattern(opening: str, closing: str, leaf: str, depth: int) -> str:
    """A pattern for brackets nested at most `depth` deep around `leaf`."""
    pattern = rf"{opening}(?:{leaf})*+{closing}"
    for _ in range(depth):
        pattern = rf"{opening}(?:{leaf}|{pattern})*+{closing}"
    return pattern


NAME = r"[A-Za-z_][\w.\-]*+"
# Escapes as XLA writes them; others are the grammar's to judge.
STRING = r'"[^"\\\n\0]*+(?:\\(?:[\\\'"nrt]|[0-3][0-7]{2})[^"\\\n\0]*+)*+"'
INTS = r"\{(?:\d{1,18}+(?:,\d{1,18}+)*+)?\}"
JSON = nested_pattern(r"\{", r"\}", rf'[^{{}}"\n\0]++|{STRING}', 8)
_USUAL_TYPES = tuple("f32 bf16 s32 pred u32 f16 u8 s8 f64 s64".split())  # tried first
PRIMITIVE = "(?:" + "|".join((*_USUAL_TYPES, *sorted(ARRAY_TYPES.difference(_USUAL_TYPES)))) + ")"
_TILES = r"(?:T(?:\(\d{1,9}+(?:,\d{1,9}+)*+\))++)?"
_PROPERTIES = rf"{_TILES}(?:E\(\d{{1,3}}+\))?(?:S\(\d{{1,3}}+\))?(?<=\))"
LAYOUT = rf"\{{((?:\d{{1,2}}+(?:,\d{{1,2}}+)*+)?)(?::({_PROPERTIES}))?\}}"
ARRAY = rf"({PRIMITIVE})\[((?:\d{{1,18}}+(?:,\d{{1,18}}+)*+)?)\](?:{LAYOUT})?"

# Attribute values, by name.

_NUMBER = r"\d{1,9}+"
_RANGE = r"\[\d{1,18}+:\d{1,18}+(?::\d{1,18}+)?\]"
_PAD = rf"-?{_NUMBER}_-?{_NUMBER}"
_PER_DIMENSION = rf"{_NUMBER}(?:x{_NUMBER})*+"
_WINDOW = (
    rf"\{{size={_PER_DIMENSION}(?: stride={_PER_DIMENSION})?(?: pad={_PAD}(?:x{_PAD})*+)?"
    rf"(?: lhs_dilate={_PER_DIMENSION})?(?: rhs_dilate={_PER_DIMENSION})?"
    r"(?: rhs_reversal=[01](?:x[01])*+)?\}"
)
BOOLEAN = "true|false"
NUMBER = r"-?\d{1,9}+"
COMPUTATION = rf"%?{NAME}"
COMPUTATIONS = rf"\{{%?{NAME}(?:, ?%?{NAME})*+\}}"
_OF_KIND = {
    BOOLEAN: """
        is_scheduled alias_passthrough_params is_stable largest constrain_layout use_global_device_ids
        has_dynamic_root is_host_transfer is_composite custom_call_has_side_effect is_reverse is_associative
        indices_are_sorted unique_indices left_side lower unit_diagonal
    """,
    NUMBER: """
        replica_count num_partitions iota_dimension k channel_id index feature_group_count batch_group_count
        feature_index delta exponent_bits mantissa_bits index_vector_dim num_carries inferred_dimension
        cross_program_prefetch_index
    """,
    INTS: """
        dimensions fft_length dynamic_slice_sizes lhs_contracting_dims rhs_contracting_dims lhs_batch_dims
        rhs_batch_dims lhs_ragged_dims rhs_group_dims offset_dims collapsed_slice_dims start_index_map
        operand_batching_dims start_indices_batching_dims update_window_dims inserted_window_dims
        scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims slice_sizes
    """,
    COMPUTATION: "to_apply calls condition body true_computation false_computation select scatter",
    COMPUTATIONS: "branch_computations called_computations control-predecessors",
    STRING: "execution_thread async_execution_thread infeed_config outfeed_config custom_call_target",
}
_ALIASED = rf"{INTS}: \({_NUMBER}, {INTS}\)"
VALUES: dict[str, str] = {
    **{name: pattern for pattern, names in _OF_KIND.items() for name in names.split()},
    **{name: "|".join(allowed) for name, allowed in (EXACT | ANY_CASE).items()},
    "api_version": "|".join(ANY_CASE["api_version"]).upper(),
    "epsilon": r"\d{1,9}+(?:\.\d{0,20}+)?(?:e[+\-]\d\d)?",
    "slice": rf"\{{(?:{_RANGE}(?:, {_RANGE})*+)?\}}",
    "padding": rf"{_PAD}(?:_{_NUMBER})?(?:x{_PAD}(?:_{_NUMBER})?)*+",
    "window": _WINDOW,
    "dim_labels": r"[0-9bf]{2,8}_[0-9io]{2,8}->[0-9bf]{2,8}",
    "operand_precision": r"\{(?:default|highest|high)(?:,(?:default|highest|high))*+\}",
    "output_to_operand_aliasing": rf"\{{{_ALIASED}(?:, {_ALIASED})*+\}}",
    "replica_groups": rf"\{{(?:{INTS}(?:,{INTS})*+)?\}}|\[{_NUMBER},{_NUMBER}\]<="
    rf"\[{_NUMBER}(?:\]|(?:,{_NUMBER})++\]T\({_NUMBER}(?:,{_NUMBER})++\))",
    "source_target_pairs": rf"\{{\{{{_NUMBER},{_NUMBER}\}}(?:,\{{{_NUMBER},{_NUMBER}\}})*+\}}",
    "operand_layout_constraints": r"\{[^{}\n\"]*+(?:\{[^{}\n\"]*+\}[^{}\n\"]*+)*+\}",
}


@cache
def common_form(attribute: str) -> re.Pattern[str] | None:
    """The pattern of the values of an attribute; None where only the grammar reads them."""
    value = VALUES.get(attribute)
    return None if value is None else re.compile(value, re.ASCII)


_SHARDING = r"\{(?:replicated|maximal device=\d{1,9}+)\}"
# The pair stands in it once: JSON's pattern is long, and compiling it takes a reader's first milliseconds.
_FRONTEND = rf"\{{(?:{NAME}=(?:{STRING}|{JSON})(?:,(?!\}})|(?=\}})))++\}}"
_CONTROL = rf"\{{%?{NAME}(?:, %?{NAME})*+\}}"
_METADATA = (
    rf"\{{(?:op_type={STRING} ?)?(?:op_name={STRING} ?)?(?:source_file={STRING} ?)?"
    rf"(?:source_line=\d{{1,9}}+ ?)?"
    rf"(?:source_end_line=\d{{1,9}}+ ?)?(?:source_column=\d{{1,9}}+ ?)?(?:source_end_column=\d{{1,9}}+ ?)?"
    rf"(?:deduplicated_name={STRING} ?)?(?:scheduling_name={STRING} ?)?(?:stack_frame_id=\d{{1,9}}+)?\}}"
)

# The attributes of an instruction in the order XLA prints them: first its opcode's own (group 1, looked at
# one by one in `tails`), then those any instruction may have, each at most once.
_COMMON = "sharding|frontend_attributes|control-predecessors|metadata|backend_config"
_BRACES = nested_pattern(r"\{", r"\}", r'[^{}"\n\0]++', 3)
_VALUE = rf"(?:{_BRACES}|[^\s,{{}}\"\[]++|{STRING}|\[[\d,]*+\]<=\[[\d,]*+\](?:T\([\d,]*+\))?)"
OWN = re.compile(rf", ([a-z_]++)=({_VALUE})", re.ASCII)
COMMON_ATTRIBUTES = re.compile(
    rf"((?:, (?!{_COMMON})[a-z_]++={_VALUE})*+)"
    rf"(?:, sharding={_SHARDING})?+(?:, frontend_attributes={_FRONTEND})?+"
    rf"(?:, control-predecessors={_CONTROL})?+"
    rf"(?:, metadata=(?:\{{op_name=\"[^\"\\\n\0]*+\"(?: stack_frame_id=\d{{1,9}}+)?\}}|{_METADATA}))?+"
    rf"(?:, backend_config=(?:{JSON}|{STRING}))?+",
    re.ASCII,
)
SHARDING = re.compile(r', sharding=\{(?:[^{}"\n]++|\{[^{}"\n]*+\})*+\}')
CALLED_NAME = re.compile(rf"%?({NAME})", re.ASCII)
PARENTHESES = nested_pattern(r"\(", r"\)", r'[^()\n"]++', 6)
# Loose: what it finds is read, and judged, by `shapes`.
_SHAPE = rf"(?:[a-z][^\s\"]*+|{PARENTHESES})"
_LAID_OUT = r'\{[^{}()\n"]*+(?:\([^{}()\n"]*+\)[^{}()\n"]*+)*+\}'
# Most braces are layouts: they come first. Shapes of operands that are tuples have them inside parentheses.
_NESTED = "|".join(
    (
        _LAID_OUT,
        nested_pattern(r"\{", r"\}", r'[^{}()\n"]++', 6),
        nested_pattern(r"\(", r"\)", rf'[^(){{}}\n"]++|{_LAID_OUT}', 6),
    )
)


def instruction_pattern(opcode: str, end: str = "\n") -> re.Pattern[str]:
    """The pattern of an instruction: ROOT, name, shape, opcode, text in parentheses, attributes."""
    return re.compile(
        rf"^ *+(ROOT )?%?({NAME}) = ({_SHAPE}) ({opcode})"
        rf"\(([^(){{}}\"\n]*+(?:(?:{_NESTED})[^(){{}}\"\n]*+)*+)\)"
        rf"(|, [^\n]*+){end}",
        re.ASCII | re.MULTILINE,
    )


INSTRUCTION = instruction_pattern(r"[a-z][a-z0-9\-]*+")
_PLAIN_SHAPE = rf"(?:[a-z][a-z0-9]*+\[[\d,<=?]*+\](?:\{{[^{{}}\n]*+\}})?|{PARENTHESES})"
OPERAND = re.compile(
    rf"(?:/\*index=\d++\*/)?(?:({_PLAIN_SHAPE}) )?%?({NAME})((?:#\d{{1,9}}+)*+)(?:, (?!$)|$)", re.ASCII
)

# Group 5 is set where a parameter's shape is more than a plain array.
_PARAMETER = rf"%?{NAME}: (?:{PRIMITIVE}\[(?:\d{{1,18}}+(?:,\d{{1,18}}+)*+)?\](?![{{])|({_PLAIN_SHAPE}))"
_PARAMETERS = rf"\((?:(?:/\*index=\d++\*/)?{_PARAMETER}(?:, (?=[%/A-Za-z_])|(?=\))))*+\)"
HEAD = re.compile(rf"(ENTRY )?(%?)({NAME}) (?:({_PARAMETERS}) -> ({_SHAPE}) )?\{{\n", re.ASCII)
PARAMETER_SHAPE = re.compile(rf"{NAME}: ({_PLAIN_SHAPE})", re.ASCII)
_COMMENTS = r"(?:[ \t\n]++|//[^\r\n\0]*+|/\*(?:[^*\0]++|\*(?!/))*+\*/)*+"
END = re.compile(rf"\}}(?:, execution_thread=\"([\w.\-]*+)\")?( // [^\r\n\0]*+)?{_COMMENTS}", re.ASCII)

# Header attributes in the order XLA prints them; group 3 is the entry's layout, checked as shapes.
_INDEX = r"\{(?:\d{1,9}+(?:, ?\d{1,9}+)*+)?\}"
_ALIAS = rf"{_INDEX}: \(\d{{1,9}}+, {_INDEX}(?:, (?:may|must)-alias)?\)"
_DONOR = rf"\(\d{{1,9}}+, {_INDEX}\)"
_BOOLS = r"\{(?:true|false)(?:,(?:true|false))*+\}"
COMMENTS = re.compile(_COMMENTS)
COMMENT_LINES = re.compile(r"(?:[ \t]*+(?://[^\r\n\0]*+)?\n)++")
MODULE = re.compile(
    rf"HloModule ({NAME})((?:, is_scheduled=(?:true|false))?+"
    rf"(?:, input_output_alias=\{{ {_ALIAS}(?:, {_ALIAS})*+ \}})?+"
    rf"(?:, buffer_donor=\{{ {_DONOR}(?:, {_DONOR})*+ \}})?+"
    r"(?:, alias_passthrough_params=true)?+"
    r"(?:, entry_computation_layout=\{([^{}\n]*+(?:\{[^{}\n]*+\}[^{}\n]*+)*+)\})?+"
    rf"(?:, allow_spmd_sharding_propagation_to_parameters={_BOOLS})?+"
    rf"(?:, allow_spmd_sharding_propagation_to_output={_BOOLS})?+"
    r"(?:, replica_count=\d{1,9}+)?+(?:, num_partitions=\d{1,9}+)?+"
    rf"(?:, frontend_attributes={_FRONTEND})?+)\n{_COMMENTS}",
    re.ASCII,
)
_NUMBERED = rf"(?:\d{{1,9}}+ {STRING}\n)*+"
_LOCATIONS = (
    r"(?:\d{1,9}+ \{file_name_id=\d{1,9}+ function_name_id=\d{1,9}+ line=\d{1,9}+ end_line=\d{1,9}+"
    r" column=\d{1,9}+ end_column=\d{1,9}+\}\n)*+"
)
_STACK_FRAMES = r"(?:\d{1,9}+ \{file_location_id=\d{1,9}+ parent_frame_id=\d{1,9}+\}\n)*+"
_BLANK = r"[ \t\n]*+"
TABLES = re.compile(
    rf"FileNames\n({_NUMBERED}){_BLANK}FunctionNames\n({_NUMBERED}){_BLANK}"
    rf"FileLocations\n({_LOCATIONS}){_BLANK}StackFrames\n({_STACK_FRAMES}){_BLANK}",
    re.ASCII,
)
NUMBERED_STRING = re.compile(rf"(\d++) ({STRING})", re.ASCII)
RECORD = re.compile(r"(\d++) \{([^}]*+)\}", re.ASCII)


class FastPathMiss(Exception):
    """The fast path has no pattern for the text, right or wrong."""


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


def numbers(text: str) -> Dims:
    return tuple(map(int, text.split(","))) if text else ()


def _array(
    element_type: str,
    dimensions: str,
    order: str | None,
    properties: str | None,
) -> Shape | None:
    sizes = numbers(dimensions)
    if order is None:
        return Shape(element_type, sizes)
    if not order and properties is None:
        return None  # `{}` is no layout
    minor_to_major = numbers(order)
    if sorted(minor_to_major) != list(range(len(sizes))) or prod(sizes) > _LARGEST:
        return None
    return Shape(element_type, sizes, Layout(minor_to_major, properties or ""))


def split_tuple(text: str) -> list[str] | None:
    """The elements of `(a, /*index=5*/b)`; None for another form."""
    if text[-1:] != ")":
        return None
    parts = []
    pos, end = 1, len(text) - 1
    while pos < end:
        element = _ELEMENT.match(text, pos, end)
        if element is None:
            return None
        parts.append(element[1])
        pos = element.end()
    return parts
