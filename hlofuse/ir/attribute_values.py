"""Typed values of attributes, by attribute name as XLA's own parser is type-directed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_INTEGERS = re.compile(r"\{\s*(?:-?\d+\s*(?:,\s*-?\d+\s*)*)?\}")


@dataclass(frozen=True, slots=True)
class OpMetadata:
    """Where an operation came from (`OpMetadata` in `xla/xla_data.proto`)."""

    op_type: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    stack_frame_id: int = 0


def parse_value(name: str, text: str) -> Any:
    """The value of attribute `name`; its own text where nothing better is known."""
    if name == "metadata":
        fields = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+?)(?=[\s}])', text))
        unquote = lambda v: v[1:-1].replace('\\"', '"').replace("\\\\", "\\") if v else None  # noqa: E731
        return OpMetadata(
            unquote(fields.get("op_type")),
            unquote(fields.get("op_name")),
            unquote(fields.get("source_file")),
            int(fields["source_line"]) if "source_line" in fields else None,
            int(fields.get("stack_frame_id", 0)),
        )
    if text in ("true", "false"):
        return text == "true"
    if _INTEGERS.fullmatch(text):
        return tuple(int(x) for x in re.findall(r"-?\d+", text))
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    return text.lstrip("%")
