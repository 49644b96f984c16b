"""Attributes of an instruction: `name=value` pairs, stored as written, typed on demand. Equal texts share one
immutable `Attributes` and its cached values; `updated` and `without` return new ones."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hlofuse.ir.text.grammar import parse_attributes
from hlofuse.ir.text.patterns import JSON, STRING
from .parsers import parse_value

_IOTA = r"\[[\d,]*+\]<=\[[\d,]*+\](?:T\([\d,]*+\))?"
_ATTRIBUTE = re.compile(
    rf", ([A-Za-z_][\w.\-]*+)=({STRING}|{JSON}|[^,{{}}\"\[\s]++|{_IOTA})(?=, [a-z]|\Z)", re.ASCII
)


def split_attributes(text: str) -> dict[str, str]:
    """`, a=1, b={2}` as a mapping, values as written."""
    pairs = _ATTRIBUTE.findall(text)
    attributes = dict(pairs)
    length = 3 * len(pairs)
    for name, value in pairs:
        length += len(name) + len(value)
    if length == len(text) and len(attributes) == len(pairs):
        return attributes
    return {name: raw for name, (raw, _) in parse_attributes(text).items()}


def written(value: Any) -> str:
    """The text of a value; lists of numbers are in braces."""
    is_list = type(value) in (list, tuple, range)
    return "{" + ",".join(map(str, value)) + "}" if is_list else str(value)


UNREAD = "\0"  # Marks a value that has not been read yet


class Attributes(Mapping[str, Any]):
    """The attributes of one instruction, in the order written. `attributes["dimensions"]` is the typed value
    (see `attribute_values`), `raw("dimensions")` the text as written. Others raise KeyError."""

    __slots__ = ("_raw", "_text", "_typed", "op_name")

    def __init__(self, text: str | None = None, raw: dict[str, str] | None = None) -> None:
        """From the text after the operands (`, kind=kLoop, calls=%c`) or from split pairs."""
        self._text = text
        self._raw = raw
        self._typed: dict[str, Any] | None = None
        self.op_name: str | None = UNREAD  # Read by `Instruction.op_name`, the most frequent access

    @property
    def raw_items(self) -> dict[str, str]:
        """Raw text by name, in order; not to be changed."""
        raw = self._raw
        if raw is None:
            raw = self._raw = split_attributes(self._text or "")
        return raw

    @property
    def text(self) -> str:
        """The attributes as they follow the operands, each with a leading `, `."""
        if self._text is None:
            self._text = "".join(f", {k}={v}" for k, v in self.raw_items.items())
        return self._text

    def raw(self, name: str, default: str | None = None) -> str | None:
        """The value's text as written."""
        raw = self._raw
        return (self.raw_items if raw is None else raw).get(name, default)

    def given(self, *names: str) -> dict[str, str]:
        """The attributes in `names` that are set, as raw text."""
        raw = self.raw_items
        return {name: raw[name] for name in names if name in raw}

    def __getitem__(self, name: str) -> Any:
        typed = self._typed
        if typed is not None and name in typed:
            return typed[name]
        value = parse_value(name, self.raw_items[name])
        if typed is None:
            typed = self._typed = {}
        typed[name] = value
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """The typed value, or `default` where the name is not set."""
        typed = self._typed
        if typed is not None and name in typed:
            return typed[name]
        raw = self._raw
        return self[name] if name in (self.raw_items if raw is None else raw) else default

    def read_op_name(self) -> str | None:
        """The framework's name of the operation, read from the metadata and cached in `op_name`."""
        metadata = self.get("metadata")
        self.op_name = metadata.op_name if metadata is not None else None
        return self.op_name

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw_items)

    def __len__(self) -> int:
        return len(self.raw_items)

    def __contains__(self, name: object) -> bool:
        raw = self._raw
        return name in (self.raw_items if raw is None else raw)

    def updated(self, **changes: object) -> "Attributes":
        """A copy with these values (see `written`) set, new ones last, and without those that are None."""
        raw = {**self.raw_items, **changes}
        return Attributes(raw={name: written(value) for name, value in raw.items() if value is not None})

    def without(self, *names: str) -> "Attributes":
        """A copy lacking these names."""
        return Attributes(raw={k: v for k, v in self.raw_items.items() if k not in names})

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Attributes) and self.raw_items == other.raw_items)

    def __repr__(self) -> str:
        return f"Attributes({self.text!r})"


NO_ATTRIBUTES = Attributes("", {})
