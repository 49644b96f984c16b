"""Nodes of a parsed text, and the handlers that build them: modules, computations and instructions as
written. Each rule of the grammar has a handler, a plain function from the list of its parts (tokens, and
the values of inner rules) to its value. lark calls them as it reduces: no tree."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from lark import Token
from msgspec import Struct

from hlofuse.ir.literal import Literal
from hlofuse.ir.shape import Shape
from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.text import signed

Parts: TypeAlias = list[Any]  # The values of the parts of a rule
Handler = Callable[[Parts], Any]
HANDLERS: dict[str, Handler] = {}  # Handlers by rule (or alias), registered by the modules that define them


class Span(Struct):
    value: Any
    start: int
    end: int


def handler(*rules: str, wants_spans: bool = False) -> Callable[[Handler], Handler]:
    """A decorator that registers a handler of the named rules; with spans its parts have places."""

    def register(function: Handler) -> Handler:
        function.wants_spans = wants_spans  # type: ignore[attr-defined]
        HANDLERS.update(dict.fromkeys(rules, function))
        return function

    return register


spanning = partial(handler, wants_spans=True)


def place(part: Any) -> int:
    start: int | None = part.start_pos if isinstance(part, Token) else part.start
    return start or 0


def values(parts: Parts) -> Parts:
    return [p for p in parts if not isinstance(p, Token)]


def fits_int32(token: Token) -> int:
    """The token's integer; raises where it exceeds 32 bits, as XLA does."""
    value = signed(token)
    if not -(1 << 31) <= value < 1 << 31:
        raise Rejected(token, f"{value} does not fit into 32 bits")
    return value


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
