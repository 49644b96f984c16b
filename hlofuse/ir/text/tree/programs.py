"""Handlers for modules, computations and instructions; literals stay text."""

from typing import Any

from lark import Token

from hlofuse.ir.shape import Shape
from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.text import signed, unquote
from hlofuse.ir.text.tree.handlers import HANDLERS, Span, fits_int32, handler, place, spanning, values
from hlofuse.ir.text.tree.nodes import (
    CallNode,
    ComputationNode,
    InstructionNode,
    ModuleNode,
    OperandNode,
)


@handler("module_text")
def _module(parts: list[Any]) -> ModuleNode:
    _, name, attributes, *rest = parts
    tables = rest.pop(0) if rest and not isinstance(rest[0], ComputationNode) else []
    return ModuleNode(name, attributes, tables, rest)


@spanning("single_text")
def _single(parts: list[Any]) -> ModuleNode:
    if len(parts) == 1:
        return ModuleNode(None, [], [], single=parts[0].value)
    shape, call, attributes = parts
    end = max(call.end, attributes.end)
    node = InstructionNode(None, None, shape.value[0], call.value, attributes.value, shape.start, end)
    return ModuleNode(None, [], [], single=node)


handler("strings", "records", "record_fields", "operands")(values)


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


@handler("literal", "scalar", "braced", "parenthesized")
def _nothing(parts: list[Any]) -> None:
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
