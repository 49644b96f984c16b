"""The handlers in the form that lark calls."""

from collections.abc import Callable
from typing import Any

from lark import Token

from hlofuse.ir.text.tree import shapes, values  # noqa: F401  # they register
from hlofuse.ir.text.tree.handlers import HANDLERS, Handler, Span, place


def _end(part: Any) -> int:
    end: int | None = part.end_pos if isinstance(part, Token) else part.end
    return end or 0


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
    def __init__(self) -> None:
        for rule, function in HANDLERS.items():
            setattr(self, rule, _callback(function))

    def __getattr__(self, rule: str) -> Callable[[list[Any]], Any]:
        if rule.startswith("_") or not rule.islower():
            raise AttributeError(rule)
        # A rule without a handler is the list of its parts.
        return _callback(list)
