"""Constants as numbers: reading what a dump shows of them, rounding and writing as XLA does."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hlofuse.ir import COMPLEX_TYPES, INTEGER_TYPES, Instruction, Ints, Literal, Shape

if TYPE_CHECKING:
    import numpy.typing as npt

Value = bool | int | float | complex
Real = bool | int | float
Elements: TypeAlias = "npt.NDArray[Any]"
MOST_ELEMENTS = 1 << 16
_TOKEN = re.compile(r"\([^()]*\)|[^\s{},]+")
_PARTS = {"c64": "f32", "c128": "f64"}
# Digits that tell any two values apart, and those tried before (`RoundTripFpToString`, `xla/util.cc`).
_DIGITS = {
    "f16": (5, 5),
    "bf16": (4, 4),
    "f32": (6, 9),
    "f64": (15, 17),
}


def values_of(constant: Instruction) -> list[Value] | None:
    """The elements in row-major order; None where the dump leaves them out or they are not worked out."""
    shape, text = constant.shape, constant.payload or ""
    if not shape.is_array or shape.element_count > MOST_ELEMENTS:
        return None
    # Constants of many elements are long, and no two are equal.
    found = (_read if len(text) < 64 else _read.__wrapped__)(shape, text)
    return list(found) if found is not None else None


@lru_cache(maxsize=4096)
def _read(shape: Shape, text: str) -> Sequence[Value] | None:
    literal = Literal(shape, text)
    tokens = [] if literal.is_elided else _TOKEN.findall(literal.canonical_text)
    if literal.is_elided or len(tokens) != shape.element_count:
        return None
    try:
        found = rounded(shape.element_type, [_number(shape.element_type, word) for word in tokens])
    except ValueError:
        return None
    return None if found is None else found.tolist()


def scalar_of(constant: Instruction | None) -> Real | None:
    if constant is None or not constant.is_constant or not constant.shape.is_effective_scalar:
        return None
    if constant.element_type in COMPLEX_TYPES:
        return None
    values = values_of(constant)
    return values[0] if values else None  # type: ignore[return-value]


def integer_of(x: Instruction) -> int | None:
    value = scalar_of(x) if x.element_type in INTEGER_TYPES else None
    return int(value) if value is not None else None


def _number(element_type: str, word: str) -> Value:
    if element_type in _PARTS:
        real, _, imag = word.strip("()").partition(",")
        part = _PARTS[element_type]
        return complex(float(_number(part, real)), float(_number(part, imag)))  # type: ignore[arg-type]
    if element_type == "pred":
        return word not in ("false", "0")
    return float(word) if element_type in _DIGITS else int(word)


_WIDE = {**dict.fromkeys(_DIGITS, "f8"), **dict.fromkeys(INTEGER_TYPES, "i8"), "u64": "u8", "pred": "?"}
_NARROW = {
    "f16": "f2",
    "bf16": "f4",
    "f32": "f4",
    "c64": "c8",
}


def rounded(element_type: str, values: object) -> Elements | None:
    """Numbers as elements of this type, in NumPy's widest; None for others, and types not worked out here."""
    import numpy as np

    found = np.asarray(values, object if isinstance(values, list | tuple) else None)
    wide = "c16" if element_type in _PARTS else _WIDE.get(element_type)
    if wide is None or (found.dtype.kind == "c" and wide != "c16"):
        return None
    if element_type in INTEGER_TYPES:
        bits = int(element_type[1:])
        if found.dtype.kind in "fO" and not np.isfinite(found.astype(float)).all():
            return None
        if found.dtype == object:
            whole = [int(v) & ((1 << 64) - 1) for v in found.flat]
            found = np.asarray(whole, "u8").reshape(found.shape)
        found = found.astype(wide)
        if bits < 64:
            found = found & ((1 << bits) - 1)
            return found - (found >> (bits - 1) << bits) if element_type[0] == "s" else found
        return found
    with np.errstate(over="ignore", invalid="ignore"):
        found = found.astype(_NARROW.get(element_type, wide))
    if element_type == "bf16":
        word = found.view("u4").astype("u8")
        word = (word + 0x7FFF + ((word >> 16) & 1)) & 0xFFFF0000
        found = np.where(np.isfinite(found), word.astype("u4").view("f4"), found)
    return found.astype(wide)


def text_of(shape: Shape, values: Sequence[Value]) -> str | None:
    """The text between the parentheses of a constant; None for a value without a unique text."""
    tokens = [word_of(shape.element_type, v) for v in values]
    if shape.element_type == "pred" and shape.dimensions:
        tokens = [str(int(bool(v))) for v in values]
    if any(w is None for w in tokens):
        return None
    return _nest([w for w in tokens if w is not None], shape.dimensions)


def word_of(element_type: str, value: Value) -> str | None:
    """One element as XLA prints it."""
    if isinstance(value, complex):
        part = _PARTS[element_type]
        parts = [word_of(part, value.real), word_of(part, value.imag)]
        return f"({parts[0]}, {parts[1]})" if None not in parts else None
    if element_type == "pred":
        return "true" if value else "false"
    if element_type in INTEGER_TYPES:
        return str(int(value))
    digits = _DIGITS.get(element_type)
    if digits is None:
        return None
    if math.isnan(value):
        return "nan" if math.copysign(1, value) > 0 else None  # a negative NaN has no unique bits
    short = f"{float(value):.{digits[0]}g}"
    if digits[0] != digits[1] and rounded(element_type, float(short)) != value:
        short = f"{float(value):.{digits[1]}g}"
    return short


def _nest(tokens: list[str], dimensions: Ints) -> str:
    if not dimensions:
        return tokens[0]
    if dimensions[0] == 0:
        return "{}"
    size = len(tokens) // dimensions[0]
    rows = (tokens[k * size : (k + 1) * size] for k in range(dimensions[0]))
    return "{" + ", ".join(_nest(row, dimensions[1:]) for row in rows) + "}"


def bounds(element_type: str) -> tuple[Any, Any]:
    """The least and the greatest value (`LiteralUtil::MinValue`), infinite for floats; None for others."""
    if element_type in _DIGITS:
        return -math.inf, math.inf
    if element_type == "pred":
        return False, True
    if element_type not in INTEGER_TYPES:
        return None, None
    is_signed = element_type[0] == "s"
    end = 1 << (int(element_type[1:]) - is_signed)
    return -end * is_signed, end - 1
