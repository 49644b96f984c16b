"""Values and text spans of the grammar's rules. Each rule has a handler, a plain function from the list of
its parts (tokens, and the values of inner rules) to its value. lark calls them as it reduces: no tree."""

from collections.abc import Callable
from typing import Any

from lark import Token
from msgspec import Struct

from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.text import signed

Handler = Callable[[list[Any]], Any]
HANDLERS: dict[str, Handler] = {}  # Handlers by rule (or alias), registered by the modules that define them


class Span(Struct):
    value: Any
    start: int
    end: int


def handler(*rules: str) -> Callable[[Handler], Handler]:
    """A decorator that registers a handler of the named rules."""

    def register(function: Handler) -> Handler:
        for rule in rules:
            HANDLERS[rule] = function
        return function

    return register


def spanning(*rules: str) -> Callable[[Handler], Handler]:
    """`handler` for functions that take their parts as `Span` objects, with places."""

    def register(function: Handler) -> Handler:
        function.wants_spans = True  # type: ignore[attr-defined]
        return handler(*rules)(function)

    return register


def place(part: Any) -> int:
    start: int | None = part.start_pos if isinstance(part, Token) else part.start
    return start or 0


def values(parts: list[Any]) -> list[Any]:
    return [p for p in parts if not isinstance(p, Token)]


def fits_int32(token: Token) -> int:
    """The token's integer; raises where it exceeds 32 bits, as XLA does."""
    value = signed(token)
    if not -(1 << 31) <= value < 1 << 31:
        raise Rejected(token, f"{value} does not fit into 32 bits")
    return value
