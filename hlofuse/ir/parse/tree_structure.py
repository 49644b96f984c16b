"""Handlers for programs, computations, instructions, shapes and literals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lark import Token

from hlofuse.ir.literal import Literal
from hlofuse.ir.parse.errors import Rejected
from hlofuse.ir.parse.text import signed, unquote
from hlofuse.ir.parse.tree import Span, handler, place, spanning
from hlofuse.ir.shape import UNBOUNDED, Layout, Shape

# Deeper tuples than any program has; far below what would trouble the recursive printing of a shape.
MAX_SHAPE_DEPTH = 100


@dataclass(slots=True)
class AttributeNode:
    """`key=value`: the key's token, the typed value, and where the value stands."""

    key: Token
    value: Any
    start: int
    end: int

    @property
    def name(self) -> str:
        return self.key[:-1]


def plain_value(node: AttributeNode, text: str) -> Any:
    """The value as other parts of the program see it: no tokens, no places."""
    value = node.value
    if node.name == "literal":
        literals = [Literal(shape, text[span.start : span.end]) for shape, span in value]
        return literals[0] if len(literals) == 1 else tuple(literals)
    if node.key.type in ("KEY_COMPUTATIONS", "KEY_CONTROL"):
        return tuple(v.strip("%:") if isinstance(v, Token) else text[node.start : node.end] for v in value)
    if node.key.type == "KEY_COMPUTATION":
        return value.strip("%:") if isinstance(value, Token) else text[node.start : node.end]
    return str(value) if isinstance(value, Token) else value


@dataclass(slots=True)
class CallNode:
    """An opcode with what stands in its parentheses."""

    opcode: Token
    operands: list[OperandNode]
    payload: Span | None
    """Of a constant or parameter: what stands between the parentheses."""
    end: int
    depth: int = 1


@dataclass(slots=True)
class OperandNode:
    """A name, an instruction, or just a shape; `start` is where it begins."""

    shape: Shape | None
    name: Token | None
    indices: list[Token]
    call: CallNode | None
    start: int


@dataclass(slots=True)
class InstructionNode:
    """One instruction as written."""

    root: Token | None
    name: Token | None
    shape: Shape | None
    call: CallNode
    attributes: list[AttributeNode]
    start: int
    end: int


@dataclass(slots=True)
class ComputationNode:
    """One computation as written."""

    entry: Token | None
    name: Token
    result: Shape | None
    result_start: int
    instructions: list[InstructionNode]
    attributes: list[AttributeNode]


@dataclass(slots=True)
class ModuleNode:
    """A whole text; without `name` it had no header."""

    name: Token | None
    attributes: list[AttributeNode]
    tables: list[dict[int, Any]]
    computations: list[ComputationNode] = field(default_factory=list)
    single: InstructionNode | None = None


# ------------------------------------------------------------------ programs


@handler("module_text")
def _module(parts: list[Any]) -> ModuleNode:
    _, name, attributes, *rest = parts
    tables = rest.pop(0) if rest and not isinstance(rest[0], ComputationNode) else []
    return ModuleNode(name, attributes, tables, rest)


@handler("headless_text")
def _headless(parts: list[Any]) -> ModuleNode:
    return ModuleNode(None, [], [], parts)


@spanning("single_text")
def _single(parts: list[Any]) -> ModuleNode:
    if len(parts) == 1:
        return ModuleNode(None, [], [], single=parts[0].value)
    shape, call, attributes = parts
    end = max(call.end, attributes.end)
    node = InstructionNode(None, None, shape.value[0], call.value, attributes.value, shape.start, end)
    return ModuleNode(None, [], [], single=node)


@handler("tables")
def _tables(parts: list[Any]) -> list[dict[int, Any]]:
    return [dict(p) for p in parts[1::2]]


@handler("strings", "records", "record_fields")
def _without_commas(parts: list[Any]) -> list[Any]:
    return [p for p in parts if not isinstance(p, Token)]


@handler("numbered_string")
def _numbered_string(parts: list[Any]) -> tuple[int, str]:
    return signed(parts[0]), unquote(parts[1]) if len(parts) > 1 else ""


_RECORDS = (
    frozenset(("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")),
    frozenset(("file_location_id", "parent_frame_id")),
)


@spanning("record")
def _record(parts: list[Any]) -> tuple[int, dict[str, int]]:
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


@handler("record_field")
def _record_field(parts: list[Any]) -> tuple[str, int]:
    value = signed(parts[1])
    if not -(1 << 31) <= value < 1 << 31:
        raise Rejected(parts[1].start_pos, f"{value} does not fit into 32 bits")
    return parts[0][:-1], value


@spanning("entry_computation")
def _entry(parts: list[Any]) -> ComputationNode:
    node = _plain(parts[1:])
    node.entry = parts[0]
    return node  # type: ignore[no-any-return]


@spanning("plain_computation")
def _plain(parts: list[Any]) -> ComputationNode:
    name, *signature, body, attributes = parts
    result, start = signature[0].value if signature else (None, -1)
    return ComputationNode(None, name.value, result, start, body.value, attributes.value)


@spanning("signature")
def _signature(parts: list[Any]) -> tuple[Shape, int]:
    return parts[2].value[0], parts[2].start


@handler("body")
def _body(parts: list[Any]) -> list[InstructionNode]:
    return parts[1:-1]


# ------------------------------------------------------------------ instructions


@spanning("instruction")
def _instruction(parts: list[Any]) -> InstructionNode:
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
def _call(parts: list[Any]) -> CallNode:
    word, operands = parts
    depth = 1 + max((o.call.depth for o in operands.value if o.call is not None), default=0)
    return CallNode(word.value, operands.value, None, operands.end, depth)


@spanning("constant_call", "parameter_call")
def _payload_call(parts: list[Any]) -> CallNode:
    opcode, opening, payload, closing = parts
    value = signed(payload) if isinstance(payload, Token) else payload.value
    return CallNode(opcode, [], Span(value, opening.end_pos, closing.start_pos), closing.end_pos)


@handler("operands")
def _operands(parts: list[Any]) -> list[OperandNode]:
    return [p for p in parts if not isinstance(p, Token)]


@spanning("named_operand")
def _named_operand(parts: list[Any]) -> OperandNode:
    shape = parts.pop(0).value[0] if isinstance(parts[0].value, tuple) else None
    name = parts[0].value
    indices = [p for p in parts[1:] if p.type == "INT"]
    return OperandNode(shape, name, indices, None, place(parts[0]))


@spanning("nested_operand")
def _nested_operand(parts: list[Any]) -> OperandNode:
    shape = parts[0].value[0] if len(parts) > 1 else None
    return OperandNode(shape, None, [], parts[-1].value, place(parts[0]))


@spanning("shape_operand")
def _shape_operand(parts: list[Any]) -> OperandNode:
    return OperandNode(parts[0].value[0], None, [], None, parts[0].start)


@handler("name", "word")
def _first(parts: list[Any]) -> Any:
    return parts[0]


# ------------------------------------------------------------------ shapes: (Shape, depth)


@handler("shape")
def _shape(parts: list[Any]) -> tuple[Shape, int]:
    return parts[0], 1


@spanning("tuple")
def _tuple(parts: list[Any]) -> tuple[Shape, int]:
    inner = [p.value for p in parts if isinstance(p, Span)]
    depth = 1 + max((d for _, d in inner), default=0)
    if depth > MAX_SHAPE_DEPTH:
        raise Rejected(place(parts[0]), f"tuples nested more than {MAX_SHAPE_DEPTH} deep")
    return Shape.tuple_of([s for s, _ in inner]), depth


@spanning("buffer")
def _buffer(parts: list[Any]) -> tuple[Shape, int]:
    shape = parts[2].value[0]
    if shape.is_tuple or shape.element_type in ("token", "opaque", "buffer"):
        raise Rejected(parts[2].start, "a buffer holds an array, for example b(f32[8])")
    return Shape("buffer", tuple_shapes=(shape,)), 2


@spanning("array")
def _array(parts: list[Any]) -> Shape:
    primitive = parts[0]
    sizes, dynamic = parts[1].value
    if sizes and primitive in ("token", "opaque"):
        raise Rejected(parts[1].start, f"{primitive} has no dimensions")
    layout = parts[2].value if len(parts) > 2 else None
    if layout is not None and len(layout.minor_to_major) != len(sizes):
        raise Rejected(
            parts[2].start,
            f"the layout orders {len(layout.minor_to_major)} dimensions but the shape has {len(sizes)}",
        )
    return Shape(str(primitive), sizes, layout, (), dynamic)


@handler("dimensions")
def _dimensions(parts: list[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    items = [p for p in parts if isinstance(p, tuple)]
    return tuple(i[0] for i in items), tuple(n for n, i in enumerate(items) if i[1])


@handler("dimension")
def _dimension(parts: list[Any]) -> tuple[int, bool]:
    token = parts[-1]
    if token.type == "QMARK":
        return UNBOUNDED, True
    size = signed(token)
    if size < 0:
        raise Rejected(token.start_pos, "a dimension cannot be negative; unknown sizes are written ?")
    return size, len(parts) == 2


@handler("layout")
def _layout(parts: list[Any]) -> Layout:
    order: tuple[int, ...] = ()
    suffix = ""
    for part in parts[1:-1]:
        if isinstance(part, str):
            suffix = part
        else:
            order = tuple(part)
    return Layout(order, suffix)


# Kinds of property in the order they must come; layout_integer is told apart by its letter.
_ORDER = {"D": 0, "T": 1, "L": 2, "#": 3, "*": 4, "E": 5, "S": 6, "SC": 7, "P": 8, "M": 9}


@handler("layout_properties")
def _layout_properties(parts: list[Any]) -> str:
    last = -1
    texts: list[str] = []
    for letter, where, text in parts[1:]:
        if letter == "P" and not any(t.startswith("D(") and set(t) & {"C", "H"} for t in texts):
            raise Rejected(where, "only a sparse array has a physical shape, such as f32[8]{0:D(C)P(...)}")
        if _ORDER[letter] <= last:
            raise Rejected(where, f"{letter} comes too late in the layout: the order is D T L # * E S SC P M")
        last = _ORDER[letter]
        texts.append(text)
    return "".join(texts)


@handler("levels", "type_property", "physical_shape", "layout_integer")
def _layout_property(parts: list[Any]) -> tuple[str, int, str]:
    """Letter, place, and the text of what it says, closed where it was cut short."""
    letter = parts[0]
    where: int = letter.start_pos
    said = [p for p in parts[1:] if not (isinstance(p, Token) and p.type in ("LPAR", "RPAR", "COMMA"))]
    inner = "".join(str(p[0]) if isinstance(p, tuple) else str(p) for p in said)
    return str(letter), where, f"{letter}({inner})" if inner or letter == "D" else ""


@handler("tiles", "splits")
def _layout_list(parts: list[Any]) -> tuple[str, int, str]:
    items = "".join(f"({p})" for p in parts[1:])
    return str(parts[0]), parts[0].start_pos, parts[0] + items if items else ""


@handler("level_list", "tile_sizes")
def _comma_list(parts: list[Any]) -> str:
    return "".join(map(str, parts))


@handler("level", "tile_size")
def _joined(parts: list[Any]) -> str:
    return "".join(map(str, parts))


@handler("tile", "open_tile", "split", "open_split")
def _parenthesized(parts: list[Any]) -> str:
    """What stands between the parentheses, without a comma left over at the end."""
    texts = [",".join(map(str, p)) if isinstance(p, list) else str(p) for p in parts]
    return "".join(t for t in texts if t not in ("(", ")")).rstrip(",")


# ------------------------------------------------------------------ literals


@handler("literal", "scalar", "braced", "parenthesized")
def _nothing(parts: list[Any]) -> None:
    """A literal stays text; it is checked against its shape by `literals.check_literal`."""


@handler("attributes")
def _attributes(parts: list[Any]) -> list[AttributeNode]:
    return parts[1::2]
