"""Handlers for the tables inside attributes: aliasing, layouts of the entry, origins, domains."""

from __future__ import annotations

from typing import Any

from lark import Token

from hlofuse.ir.attributes.metadata import DonorEntry, InputAlias, OutputAlias
from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.text import signed, unquote
from hlofuse.ir.text.tree.handlers import Span, handler, place, spanning, values

# ------------------------------------------------------------------ aliasing


@handler("shape_index")
def _shape_index(parts: list[Any]) -> tuple[int, ...]:
    return tuple(parts[1]) if len(parts) > 2 else ()


@handler("input_aliases", "donors", "output_aliases")
def _aliases(parts: list[Any]) -> tuple[Any, ...]:
    return tuple(values(parts))


def _number_and_index(parts: list[Any]) -> tuple[int, tuple[int, ...]]:
    number = next((signed(p) for p in parts if isinstance(p, Token) and p.type == "INT"), 0)
    return number, next(p for p in reversed(parts) if isinstance(p, tuple))


@handler("input_alias")
def _input_alias(parts: list[Any]) -> InputAlias:
    last = parts[-2]
    kind = "may-alias"
    if isinstance(last, Token):
        kind = last.strip("%:")
        if kind not in ("may-alias", "must-alias"):
            raise Rejected(last.start_pos or 0, "expected may-alias or must-alias")
    return InputAlias(parts[0], *_number_and_index(parts[1:]), kind)


@handler("donor")
def _donor(parts: list[Any]) -> DonorEntry:
    return DonorEntry(*_number_and_index(parts))


@handler("output_alias")
def _output_alias(parts: list[Any]) -> OutputAlias:
    return OutputAlias(parts[0], *_number_and_index(parts[1:]))


@handler("entry_layout")
def _entry_layout(parts: list[Any]) -> tuple[tuple[Any, ...], Any]:
    """Shapes of the parameters, shape of the result."""
    shapes = [s for s, _ in values(parts)]
    return tuple(shapes[:-1]), shapes[-1]


# ------------------------------------------------------------------ origins, domains


@handler("original_array")
def _original_array(parts: list[Any]) -> tuple[str, tuple[int, ...]]:
    if len(parts) == 2:
        return "", ()
    return unquote(parts[1]), parts[2] if len(parts) > 3 else ()


@spanning("origin")
def _origin(parts: list[Any]) -> str | tuple[tuple[tuple[int, ...], str, tuple[int, ...]], ...]:
    """`synthetic_call`, or the arrays: leaf of the tuple, instruction, its leaf."""
    if len(parts) > 2 and isinstance(parts[1], Token) and parts[1].type == "LSQB":
        return "synthetic_call"
    index: list[int] = []
    out = []
    for part in parts[1:-1]:
        if isinstance(part, Span):
            out.append((tuple(index), *part.value))
        elif part == "(":
            index.append(0)
        elif not index:
            raise Rejected(part.start_pos, f"{part} outside any parentheses")
        elif part == ")":
            index.pop()
        else:
            index[-1] += 1
    return tuple(out)


@handler("recovery_table", "debug_table")
def _table(parts: list[Any]) -> tuple[Any, ...]:
    return tuple(values(parts))


@handler("recovery_entry")
def _recovery_entry(parts: list[Any]) -> tuple[Any, Any, str | None]:
    return parts[0], parts[2], unquote(parts[4]) if len(parts) > 3 else None


@handler("debug_entry")
def _debug_entry(parts: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    return parts[0], tuple(values(parts[1:]))


@handler("debug_fields")
def _debug_fields(parts: list[Any]) -> dict[str, Any]:
    return dict(values(parts))


@handler("debug_field")
def _debug_field(parts: list[Any]) -> tuple[str, Any]:
    key, value = parts
    if key == "log_mode=" and value.strip("%:") not in ("default", "fusion_debugger"):
        raise Rejected(value.start_pos, "expected the mode default or fusion_debugger")
    if isinstance(value, Token):
        value = signed(value) if value.type == "INT" else value.strip("%:")
    return key[:-1], value


@spanning("domain")
def _domain(parts: list[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Span):
            key, value = part.value
            if key in fields:
                raise Rejected(part.start, f"{key}= is given twice in the domain")
            fields[key] = value
    for key in ("kind", "entry", "exit"):
        if key not in fields:
            raise Rejected(place(parts[0]), f"the domain needs {key}=")
    if fields["kind"] != "sharding":
        raise Rejected(place(parts[0]), f"unsupported domain kind: {fields['kind']}")
    return fields


@handler("domain_field")
def _domain_field(parts: list[Any]) -> tuple[str, Any]:
    key, value = parts
    return key[:-1], unquote(value) if isinstance(value, Token) else value
