"""Splitting an attribute text into names and values."""

from __future__ import annotations

import re

from hlofuse.ir.text.grammar import parse_attributes
from hlofuse.ir.text.patterns import JSON, STRING

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
