"""Nodes of a parsed text: modules, computations and instructions as written."""

from typing import Any

from lark import Token
from msgspec import Struct

from hlofuse.ir.literal import Literal
from hlofuse.ir.shape import Shape
from .handlers import Span


class AttributeNode(Struct):
    """`key=value`: the key's token, the typed value and its place."""

    key: Token
    value: Any
    start: int
    end: int

    @property
    def name(self) -> str:
        return self.key[:-1]


_CHECKED_ONLY = frozenset(
    (
        "KEY_ACCURACY KEY_DEBUG KEY_DOMAIN KEY_GROUPS KEY_ORIGIN KEY_RECOVERY KEY_SHARDING KEY_SPARSITY"
        " KEY_SPARSITY_CONFIG KEY_STATISTICS"
    ).split()
)
"""Attributes that stay text: their spelling is checked, not whether their parts fit together."""


def plain_value(node: AttributeNode, text: str) -> Any:
    """The value without tokens and places."""
    value = node.value
    if node.name == "literal":
        literals = [Literal(shape, text[span.start : span.end]) for shape, span in value]
        return literals[0] if len(literals) == 1 else tuple(literals)
    if node.key.type in _CHECKED_ONLY:
        return text[node.start : node.end]
    if node.key.type in ("KEY_COMPUTATIONS", "KEY_CONTROL"):
        return tuple(v.strip("%:") if isinstance(v, Token) else text[node.start : node.end] for v in value)
    if node.key.type == "KEY_COMPUTATION":
        return value.strip("%:") if isinstance(value, Token) else text[node.start : node.end]
    return str(value) if isinstance(value, Token) else value


class CallNode(Struct):
    opcode: Token
    operands: "list[OperandNode]"
    payload: Span | None  # The text between the parentheses of a constant or parameter
    end: int
    depth: int = 1


class OperandNode(Struct):
    """A name, an instruction or only a shape; `start` is its place."""

    shape: Shape | None
    name: Token | None
    indices: list[Token]
    call: CallNode | None
    start: int


class InstructionNode(Struct):
    root: Token | None
    name: Token | None
    shape: Shape | None
    call: CallNode
    attributes: list[AttributeNode]
    start: int
    end: int


class ComputationNode(Struct):
    entry: Token | None
    name: Token
    result: Shape | None
    result_start: int
    instructions: list[InstructionNode]
    attributes: list[AttributeNode]


class ModuleNode(Struct):
    """A whole text; `name` is None without a header."""

    name: Token | None
    attributes: list[AttributeNode]
    tables: list[dict[int, Any]]
    computations: list[ComputationNode] = []
    single: InstructionNode | None = None
