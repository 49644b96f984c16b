"""Handlers for shapes (with the depth of tuples), layouts, and tables inside attributes; for attribute
values, from the parts of a rule to the typed value (`hlofuse.ir.attributes`); for modules, computations
and instructions. Literals stay text."""

from typing import Any

from lark import Token

from hlofuse.ir.attributes.metadata import DonorEntry, InputAlias, OpMetadata, OutputAlias
from hlofuse.ir.attributes.window import (
    ConvolutionDimensionNumbers,
    PaddingConfig,
    SliceRange,
    SliceRanges,
    Window,
    window_of,
)
from hlofuse.ir.record import Json
from hlofuse.ir.shape import UNBOUNDED, Dims, Layout, Shape
from hlofuse.ir.text.errors import Rejected, counted_dimensions
from hlofuse.ir.text.text import signed, unquote
from .nodes import (
    HANDLERS,
    AttributeNode,
    CallNode,
    ComputationNode,
    InstructionNode,
    ModuleNode,
    OperandNode,
    Parts,
    Span,
    fits_int32,
    handler,
    place,
    spanning,
    values,
)

_LARGEST_FLOAT = 3.4028234663852886e38


@spanning("attribute", "integer_attribute")
def _attribute(parts: Parts) -> AttributeNode:
    key, part = parts
    if isinstance(part, Span):
        value = part.value
        if key.type == "KEY_FLOAT" and abs(value) > _LARGEST_FLOAT:
            raise Rejected(part.start, f"{value} is out of range for a float")
        return AttributeNode(key, value[0] if key.type in ("KEY_SHAPE",) else value, part.start, part.end)
    convert = _TOKEN_VALUES.get(part.type)
    value = fits_int32(part) if key.type == "KEY_INT32" else convert(part) if convert else str(part)
    return AttributeNode(key, value, part.start_pos, part.end_pos)


@spanning("unknown_attribute")
def _unknown(parts: Parts) -> AttributeNode:
    return AttributeNode(parts[0], None, parts[0].end_pos, parts[0].end_pos)


def _dim_labels(token: Token) -> ConvolutionDimensionNumbers:
    lhs, rest = token.split("_")
    rhs, output = rest.split("->")
    counts = []
    for labels, letters in ((lhs, "bf"), (rhs, "io"), (output, "bf")):
        named = labels.replace("?", "")
        if len(set(named)) != len(named):
            raise Rejected(token, f"a dimension is named twice in {labels}")
        count = sum(c not in letters for c in named)
        if any(c not in letters and (not c.isdigit() or int(c) >= count) for c in named):
            raise Rejected(
                token, f"expected the letters {letters} and the digits 0 to {count - 1} in {labels}"
            )
        counts.append(count)
    if len(set(counts)) != 1:
        raise Rejected(token, "input, kernel and output must have as many spatial dimensions as each other")
    return ConvolutionDimensionNumbers(lhs, rhs, output)


_TOKEN_VALUES: dict[str, Any] = {
    "INT": signed,
    "STRING": unquote,
    "DIM_LABELS": _dim_labels,
    "PAD": PaddingConfig.of_text,  # 1_2_3 has no negative interior: the pattern sees to that
    "SPARSITY": lambda t: list(filter(None, t.split("_"))),
    "NAME": lambda t: t.strip("%:"),
}


@handler("integers")
def _integers(parts: Parts) -> list[int]:
    if len(parts) == 1:
        return [signed(parts[0])]
    parts[0].append(signed(parts[2]))
    return parts[0]  # type: ignore[no-any-return]


def _is_mark(part: Any) -> bool:
    return isinstance(part, Token) and part.type in ("LBRACE", "RBRACE", "COMMA")


@spanning("typed_literal")
def _typed_literal(parts: Parts) -> list[tuple[Any, Span]]:
    if isinstance(parts[0], Token):
        return [leaf for p in parts if isinstance(p, Span) for leaf in p.value]
    return [(parts[0].value, parts[1])]


def _fields(parts: Parts, where: str) -> Json:
    fields = Json()
    for part in parts:
        if isinstance(part, Span):
            key, value = part.value
            if key in fields:
                raise Rejected(part.start, f"{key}= is given twice in the {where}")
            fields[key] = value
    return fields


@spanning("window")
def _window(parts: Parts) -> Window:
    fields = _fields(parts, "window")  # XLA takes an empty list for one not given yet; no text writes one
    rank = len(fields.get("size", ()))
    for key, value in fields.items():
        if len(value) != rank:
            raise Rejected(parts[0], f"{key}= must have as many parts as size=: {rank}, not {len(value)}")
    return window_of(fields)


@handler("window_field")
def _window_field(parts: Parts) -> tuple[str, list[Any]]:
    key, value = parts
    if value.type == "PAD":
        pads = [tuple(map(int, d.split("_"))) for d in value.split("x")]
        if any(len(p) != 2 for p in pads):
            raise Rejected(value, "a window's padding is low_high for each dimension")
        return key[:-1], pads
    return key[:-1], [signed(n) for n in value.split("x")]


@handler("frontend_attribute")
def _frontend_attribute(parts: Parts) -> tuple[str, str]:
    key, value = parts
    return key[:-1], unquote(value) if value.type == "STRING" else str(value)


@spanning("metadata")
def _metadata(parts: Parts) -> OpMetadata:
    return OpMetadata(**_fields(parts, "metadata"))


@handler("metadata_field")
def _metadata_field(parts: Parts) -> tuple[str, Any]:
    key, value = parts
    if isinstance(value, Token):
        return key[:-1], unquote(value) if value.type == "STRING" else fits_int32(value)
    if key == "profile_type=" and any(not 0 <= v <= 3 for v in value):
        raise Rejected(key, "a profile type is 0, 1, 2 or 3")
    return key[:-1], value


# Rules of one expression.
HANDLERS.update(
    {
        "boolean": lambda parts: bool(parts[0].type == "TRUE"),
        "number": lambda parts: float(parts[0].split("(")[0]),
        "integer_list": lambda parts: tuple(parts[1]) if len(parts) == 3 else (),
        **dict.fromkeys(
            ("integer_lists", "booleans", "words"),
            lambda parts: tuple(str(p) if isinstance(p, Token) else p for p in parts if not _is_mark(p)),
        ),
        "names": lambda parts: tuple(p for p in parts[1:-1] if not _is_mark(p)),
        # The token of a name, or the instructions of a computation written in place.
        "called": lambda parts: parts[0],
        "called_list": lambda parts: [p for p in parts[1:-1] if not _is_mark(p)],
        "shape_list": lambda parts: tuple(s for s, _ in values(parts)),
        "ranges": lambda parts: SliceRanges(values(parts)),
        "range": lambda parts: SliceRange(*(signed(p) for p in parts if p.type == "INT")),
        "frontend_attributes": lambda parts: dict(values(parts)),
        **dict.fromkeys(("any_key", "reduction"), lambda parts: str(parts[0])),
        **dict.fromkeys(("statistics", "sparsity_config"), lambda parts: None),
        "metadata_list": lambda parts: tuple(values(parts)),
    }
)


@handler("module_text")
def _module(parts: Parts) -> ModuleNode:
    _, name, attributes, *rest = parts
    tables = rest.pop(0) if rest and not isinstance(rest[0], ComputationNode) else []
    return ModuleNode(name, attributes, tables, rest)


@spanning("single_text")
def _single(parts: Parts) -> ModuleNode:
    if len(parts) == 1:
        return ModuleNode(None, [], [], single=parts[0].value)
    shape, call, attributes = parts
    end = max(call.end, attributes.end)
    node = InstructionNode(None, None, shape.value[0], call.value, attributes.value, shape.start, end)
    return ModuleNode(None, [], [], single=node)


handler("strings", "records", "record_fields", "operands")(values)
_RECORDS = (
    frozenset("file_name_id function_name_id line end_line column end_column".split()),
    frozenset(("file_location_id", "parent_frame_id")),
)


@spanning("record")
def _record(parts: Parts) -> tuple[int, dict[str, int]]:
    number, _, fields, _ = parts
    out = dict(fields.value)
    if len(out) != len(fields.value):
        raise Rejected(fields.start, "a field is given twice")
    if out.keys() not in _RECORDS:
        wanted = min(_RECORDS, key=lambda r: len(r ^ out.keys()))
        missing = sorted(wanted - out.keys())
        raise Rejected(
            fields.start,
            f"missing {missing[0]}=" if missing else f"unknown field {min(out.keys() - wanted)}=",
        )
    return signed(number), out


@spanning("entry_computation")
def _entry(parts: Parts) -> ComputationNode:
    node = _plain(parts[1:])
    node.entry = parts[0]
    return node  # type: ignore[no-any-return]


@spanning("plain_computation")
def _plain(parts: Parts) -> ComputationNode:
    name, *signature, body, attributes = parts
    result, start = signature[0].value if signature else (None, -1)
    return ComputationNode(None, name.value, result, start, body.value, attributes.value)


@spanning("signature")
def _signature(parts: Parts) -> tuple[Shape, int]:
    return parts[2].value[0], parts[2].start


@spanning("instruction")
def _instruction(parts: Parts) -> InstructionNode:
    root = parts.pop(0) if isinstance(parts[0], Token) else None
    name, _, *shape, call, attributes = parts
    return InstructionNode(
        root,
        name.value,
        shape[0].value[0] if shape else None,
        call.value,
        attributes.value,
        place(root or name),
        max(call.end, attributes.end),
    )


@spanning("call")
def _call(parts: Parts) -> CallNode:
    word, operands = parts
    depth = 1 + max((o.call.depth for o in operands.value if o.call is not None), default=0)
    return CallNode(word.value, operands.value, None, operands.end, depth)


@spanning("constant_call", "parameter_call")
def _payload_call(parts: Parts) -> CallNode:
    opcode, opening, payload, closing = parts
    value = signed(payload) if isinstance(payload, Token) else payload.value
    return CallNode(opcode, [], Span(value, opening.end_pos, closing.start_pos), closing.end_pos)


@spanning("named_operand")
def _named_operand(parts: Parts) -> OperandNode:
    shape = parts.pop(0).value[0] if isinstance(parts[0].value, tuple) else None
    name = parts[0].value
    indices = [p for p in parts[1:] if p.type == "INT"]
    return OperandNode(shape, name, indices, None, place(parts[0]))


@spanning("nested_operand")
def _nested_operand(parts: Parts) -> OperandNode:
    shape = parts[0].value[0] if len(parts) > 1 else None
    return OperandNode(shape, None, [], parts[-1].value, place(parts[0]))


@spanning("shape_operand")
def _shape_operand(parts: Parts) -> OperandNode:
    return OperandNode(parts[0].value[0], None, [], None, parts[0].start)


@handler("literal", "scalar", "braced", "parenthesized")
def _nothing(parts: Parts) -> None:
    """A literal stays text; it is checked against its shape by `literals.check_literal`."""


# Rules of one expression.
HANDLERS.update(
    {
        "headless_text": lambda parts: ModuleNode(None, [], [], parts),
        "tables": lambda parts: [dict(p) for p in parts[1::2]],
        "numbered_string": lambda parts: (signed(parts[0]), unquote(parts[1]) if len(parts) > 1 else ""),
        "record_field": lambda parts: (parts[0][:-1], fits_int32(parts[1])),
        "body": lambda parts: parts[1:-1],
        **dict.fromkeys(("name", "word"), lambda parts: parts[0]),
        "attributes": lambda parts: parts[1::2],
    }
)

# Deeper tuples than any program has; far below what would trouble the recursive printing of a shape.
MAX_SHAPE_DEPTH = 100


@spanning("tuple")
def _tuple(parts: Parts) -> tuple[Shape, int]:
    inner = [p.value for p in parts if isinstance(p, Span)]
    depth = 1 + max((d for _, d in inner), default=0)
    if depth > MAX_SHAPE_DEPTH:
        raise Rejected(place(parts[0]), f"tuples nested more than {MAX_SHAPE_DEPTH} deep")
    return Shape.tuple_of([s for s, _ in inner]), depth


@spanning("buffer")
def _buffer(parts: Parts) -> tuple[Shape, int]:
    shape = parts[2].value[0]
    if shape.is_tuple or shape.element_type in ("token", "opaque", "buffer"):
        raise Rejected(parts[2].start, "a buffer holds an array, for example b(f32[8])")
    return Shape("buffer", tuple_shapes=(shape,)), 2


@spanning("array")
def _array(parts: Parts) -> Shape:
    primitive = parts[0]
    sizes, dynamic = parts[1].value
    if sizes and primitive in ("token", "opaque"):
        raise Rejected(parts[1].start, f"{primitive} has no dimensions")
    layout = parts[2].value if len(parts) > 2 else None
    if layout is not None and len(layout.minor_to_major) != len(sizes):
        ordered = counted_dimensions(len(layout.minor_to_major))
        raise Rejected(parts[2].start, f"the layout orders {ordered} but the shape has {len(sizes)}")
    return Shape(str(primitive), sizes, layout, (), dynamic)


@handler("dimensions")
def _dimensions(parts: Parts) -> tuple[Dims, Dims]:
    items = [p for p in parts if isinstance(p, tuple)]
    return tuple(i[0] for i in items), tuple(n for n, i in enumerate(items) if i[1])


@handler("dimension")
def _dimension(parts: Parts) -> tuple[int, bool]:
    token = parts[-1]
    if token.type == "QMARK":
        return UNBOUNDED, True
    size = signed(token)
    if size < 0:
        raise Rejected(token, "a dimension cannot be negative; unknown sizes are written ?")
    return size, len(parts) == 2


@handler("layout")
def _layout(parts: Parts) -> Layout:
    order = ()
    suffix = ""
    for part in parts[1:-1]:
        if isinstance(part, str):
            suffix = part
        else:
            order = tuple(part)
    return Layout(order, suffix)


# Kinds of property in the order they must come; layout_integer is recognized by its letter.
_ORDER = {kind: k for k, kind in enumerate("D T L # * E S SC P M".split())}


@handler("layout_properties")
def _layout_properties(parts: Parts) -> str:
    last = -1
    texts = list[str]()
    for letter, where, text in parts[1:]:
        if letter == "P" and not any(t.startswith("D(") and set(t) & {"C", "H"} for t in texts):
            raise Rejected(where, "only a sparse array has a physical shape, such as f32[8]{0:D(C)P(...)}")
        if _ORDER[letter] <= last:
            raise Rejected(where, f"{letter} comes too late in the layout: the order is D T L # * E S SC P M")
        last = _ORDER[letter]
        texts.append(text)
    return "".join(texts)


@handler("levels", "type_property", "physical_shape", "layout_integer")
def _layout_property(parts: Parts) -> tuple[str, int, str]:
    """Letter, place, and text of the property, closed where it was cut short."""
    letter = parts[0]
    where: int = letter.start_pos
    properties = [p for p in parts[1:] if not (isinstance(p, Token) and p.type in ("LPAR", "RPAR", "COMMA"))]
    inner = "".join(str(p[0]) if isinstance(p, tuple) else str(p) for p in properties)
    return str(letter), where, f"{letter}({inner})" if inner or letter == "D" else ""


@handler("tiles", "splits")
def _layout_list(parts: Parts) -> tuple[str, int, str]:
    items = "".join(f"({p})" for p in parts[1:])
    return str(parts[0]), parts[0].start_pos, parts[0] + items if items else ""


@handler("tile", "open_tile", "split", "open_split")
def _parenthesized(parts: Parts) -> str:
    texts = [",".join(map(str, p)) if isinstance(p, list) else str(p) for p in parts]
    return "".join(t for t in texts if t not in ("(", ")")).rstrip(",")


def _number_and_index(parts: Parts) -> tuple[int, Dims]:
    number = next((signed(p) for p in parts if isinstance(p, Token) and p.type == "INT"), 0)
    return number, next(p for p in reversed(parts) if isinstance(p, tuple))


@handler("input_alias")
def _input_alias(parts: Parts) -> InputAlias:
    last = parts[-2]
    kind = "may-alias"
    if isinstance(last, Token):
        kind = last.strip("%:")
        if kind not in ("may-alias", "must-alias"):
            raise Rejected(last, "expected may-alias or must-alias")
    return InputAlias(parts[0], *_number_and_index(parts[1:]), kind)


@handler("entry_layout")
def _entry_layout(parts: Parts) -> tuple[tuple[Any, ...], Any]:
    shapes = [s for s, _ in values(parts)]
    return tuple(shapes[:-1]), shapes[-1]


# Rules of one expression.
HANDLERS.update(
    {
        "shape": lambda parts: (parts[0], 1),
        **dict.fromkeys(
            ("level_list", "tile_sizes", "level", "tile_size"), lambda parts: "".join(map(str, parts))
        ),
        "shape_index": lambda parts: tuple(parts[1]) if len(parts) > 2 else (),
        **dict.fromkeys(("input_aliases", "donors", "output_aliases"), lambda parts: tuple(values(parts))),
        "donor": lambda parts: DonorEntry(*_number_and_index(parts)),
        "output_alias": lambda parts: OutputAlias(parts[0], *_number_and_index(parts[1:])),
    }
)
