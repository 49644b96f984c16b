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
    return part.start_pos if isinstance(part, Token) else part.start  # type: ignore[no-any-return]


def values(parts: list[Any]) -> list[Any]:
    """The parts that are no tokens."""
    return [p for p in parts if not isinstance(p, Token)]


def _callback(function: Handler) -> Callable[[list[Any]], Any]:
    wants_spans = getattr(function, "wants_spans", False)

    def call(parts: list[Any]) -> Span:
        if not parts:
            return Span(function([]), -1, -1)
        first, last = parts[0], parts[-1]
        start = first.start_pos if type(first) is Token else first.start
        end = last.end_pos if type(last) is Token else last.end
        if end < 0 or start < 0:  # an empty rule at an end
            places = [p for p in parts if type(p) is Token or p.start >= 0]
            if places:
                start = place(places[0])
                end = places[-1].end_pos if type(places[-1]) is Token else places[-1].end
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
