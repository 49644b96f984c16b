"""What the grammar's rules become: a value and the stretch of text it came from.

Each rule has a handler, a plain function from the list of its parts (tokens, and the values of inner
rules) to its value. lark calls them as it reduces, so no tree of the whole text is ever built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token

Handler = Callable[[list[Any]], Any]

HANDLERS: dict[str, Handler] = {}
"""Rule (or alias) to handler; filled by the modules that define them."""


class Span:
    """A rule's value with its place in the text."""

    __slots__ = ("end", "start", "value")

    def __init__(self, value: Any, start: int, end: int) -> None:
        self.value = value
        self.start = start
        self.end = end


def handler(*rules: str) -> Callable[[Handler], Handler]:
    """Make a function the handler of the named rules."""

    def register(function: Handler) -> Handler:
        for rule in rules:
            HANDLERS[rule] = function
        return function

    return register


def spanning(*rules: str) -> Callable[[Handler], Handler]:
    """As `handler`, for functions that want their parts as `Span` objects, with their places."""

    def register(function: Handler) -> Handler:
        function.wants_spans = True  # type: ignore[attr-defined]
        return handler(*rules)(function)

    return register


def place(part: Any) -> int:
    """Where a token or span begins."""
    start: int | None = part.start_pos if isinstance(part, Token) else part.start
    return start or 0


def _end(part: Any) -> int:
    end: int | None = part.end_pos if isinstance(part, Token) else part.end
    return end or 0


def values(parts: list[Any]) -> list[Any]:
    """The parts that are no tokens."""
    return [p for p in parts if not isinstance(p, Token)]


def _callback(function: Handler) -> Callable[[list[Any]], Any]:
    wants_spans = getattr(function, "wants_spans", False)

    def call(parts: list[Any]) -> Span:
        if not parts:
            return Span(function([]), -1, -1)
        start, end = place(parts[0]), _end(parts[-1])
        if end < 0 or start < 0:  # an empty rule at an end
            filled = [p for p in parts if place(p) >= 0]
            start, end = (place(filled[0]), _end(filled[-1])) if filled else (-1, -1)
        if not wants_spans:
            parts = [p.value if type(p) is Span else p for p in parts]
        return Span(function(parts), start, end)

    return call


class Callbacks:
    """The object lark asks for a callback by the name of a rule or token."""

    def __init__(self) -> None:
        import hlofuse.ir.parse.tree_devices
        import hlofuse.ir.parse.tree_records
        import hlofuse.ir.parse.tree_structure
        import hlofuse.ir.parse.tree_values  # noqa: F401  # they register their handlers

        for rule, function in HANDLERS.items():
            setattr(self, rule, _callback(function))

    def __getattr__(self, rule: str) -> Callable[[list[Any]], Any]:
        if rule.startswith("_") or not rule.islower():
            raise AttributeError(rule)
        # A rule nobody handles is the list of its parts.
        return _callback(list)
