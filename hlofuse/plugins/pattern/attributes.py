"""Attributes of a pattern held against those of an instruction."""

from __future__ import annotations

import json
import re
from typing import Any

from hlofuse.ir.graph import Instruction

_NUMBERS = re.compile(r"\{([-\d:,]*)\}")
_BLANK = re.compile(r"\s+|%")


def attribute_fits(name: str, wanted: str, instruction: Instruction) -> bool:
    """Equal texts, dimensions counted from either end; a backend config needs only hold what is written."""
    found = instruction.attributes.raw(name)
    if name == "backend_config":
        return _contains(_json(found), _json(wanted))
    numbers = _NUMBERS.fullmatch(wanted)
    if numbers:
        listed = _NUMBERS.fullmatch(_BLANK.sub("", found)) if found is not None else _NUMBERS.fullmatch("{}")
        if listed is not None:
            rank = _rank(name, instruction)
            return _dimensions(numbers[1], rank) == _dimensions(listed[1], rank)
    return found is not None and _BLANK.sub("", found) == wanted


def _rank(name: str, instruction: Instruction) -> int:
    """The rank that the dimensions of an attribute count in."""
    operands = instruction.operands
    if instruction.opcode == "broadcast" or not operands:
        return instruction.shape.rank
    return operands[1 if name.startswith("rhs_") and len(operands) > 1 else 0].shape.rank


def _dimensions(text: str, rank: int) -> list[int] | None:
    """`0,-1` and `:-1` as plain dimensions; None where there is no such dimension."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        try:
            if ":" in part:
                first, _, last = part.partition(":")
                ends = slice(int(first) if first else None, int(last) if last else None)
                found += range(rank)[ends]
            else:
                number = int(part)
                found.append(number + rank if number < 0 else number)
        except ValueError:
            return None
    return found


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            k in found and _contains(found[k], v) for k, v in wanted.items()
        )
    return bool(found == wanted)
