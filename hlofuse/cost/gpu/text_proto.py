"""Enough of protobuf's text format to read XLA's target configurations."""

import re
from typing import Any

_TOKEN = re.compile(
    r"""
    \s+ | \#[^\n]*
    | (?P<name>[A-Za-z_]\w*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>[-+\d.][\w.+-]*)
    | (?P<mark>[{}:<>])
    """,
    re.VERBOSE,
)


class TextProtoError(ValueError):
    """The text is not a text proto."""


def parse_text_proto(text: str) -> dict[str, Any]:
    """Fields by name; a repeated field becomes a list, a message a dict.

    Raises TextProtoError for text that is not in the format.
    """
    root: dict[str, Any] = {}
    stack = [root]
    name: str | None = None
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            line = text.count("\n", 0, position) + 1
            raise TextProtoError(f"line {line}: unexpected {text[position]!r}")
        position = token.end()
        mark = token["mark"]
        if mark in ("{", "<"):
            if name is None:
                raise TextProtoError("a message has no name")
            inner: dict[str, Any] = {}
            _put(stack[-1], name, inner)
            stack.append(inner)
            name = None
        elif mark in ("}", ">"):
            if len(stack) == 1:
                raise TextProtoError("extra closing brace")
            stack.pop()
        elif token["name"] is not None and name is None:
            name = token["name"]
        elif name is not None and (value := token["name"] or token["text"] or token["number"]):
            _put(stack[-1], name, _scalar(value))
            name = None
        elif token["text"] or token["number"]:
            raise TextProtoError(f"a value has no name: {token[0]}")
    if len(stack) > 1 or name is not None:
        raise TextProtoError("the text ends inside a message")
    return root


def _put(message: dict[str, Any], name: str, value: Any) -> None:
    if name not in message:
        message[name] = value
    elif isinstance(message[name], list):
        message[name].append(value)
    else:
        message[name] = [message[name], value]


def _scalar(text: str) -> Any:
    if text[0] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)
