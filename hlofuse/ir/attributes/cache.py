"""All attributes of an instruction typed at once, sharing what instructions have in common.

Most texts are an opcode's own attributes, seen many times, and metadata, often seen once. The
former are remembered, the latter read by one pattern.
"""

from __future__ import annotations

import re
from typing import Any

from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.attributes.parsers import parse_value
from hlofuse.ir.text.attribute_split import split_attributes
from hlofuse.ir.text.patterns import JSON

_START = ', metadata={op_name="'
_REST = re.compile(rf'([^"\\]*+)"(?: stack_frame_id=([0-9]{{1,9}}))?\}}(?:, backend_config=({JSON}))?')
_CALL = re.compile(r", (?:kind=(k[A-Za-z]++), calls|to_apply)=%?([\w.\-]++)", re.ASCII)
# Bounds what a long-lived process keeps; a module has a few hundred different ones.
_LIMIT = 20_000
_remembered: dict[str, dict[str, Any]] = {}


def typed_attributes(text: str) -> dict[str, Any]:
    """Name to typed value, in order, from `, name=value, …`."""
    own, start, rest = text.rpartition(_START)
    match = _REST.fullmatch(rest) if start else None
    if match is None:
        return dict(_own(text))
    op_name, frame, config = match.groups()
    typed: dict[str, Any]
    if not own:
        typed = {}
    elif (call := _CALL.fullmatch(own)) is not None:
        kind, name = call.groups()
        typed = {"to_apply": name} if kind is None else {"kind": kind, "calls": name}
    else:
        typed = _own(own).copy()
    typed["metadata"] = OpMetadata.of(
        {"op_name": op_name, "stack_frame_id": int(frame)} if frame else {"op_name": op_name}
    )
    if config is not None:
        typed["backend_config"] = config
    return typed


def forget() -> None:
    """Drop what is remembered, for those who measure."""
    _remembered.clear()


def _own(text: str) -> dict[str, Any]:
    typed = _remembered.get(text)
    if typed is None:
        typed = {name: parse_value(name, value) for name, value in split_attributes(text).items()}
        if len(_remembered) >= _LIMIT:
            _remembered.clear()
        _remembered[text] = typed
    return typed
