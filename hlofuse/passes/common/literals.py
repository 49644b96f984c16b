"""Constants as numbers: reading what a dump shows of them, rounding and writing as XLA does."""

import math
import re
import struct
from collections.abc import Sequence
from functools import lru_cache

from hlofuse.ir import Instruction, Literal
from hlofuse.ir.shape import COMPLEX_TYPES, INTEGER_TYPES, Shape

Value = bool | int | float | complex
Real = bool | int | float
MOST_ELEMENTS = 1 << 16
_TOKEN = re.compile(r"\([^()]*\)|[^\s{},]+")
_PARTS = {"c64": "f32", "c128": "f64"}
# Digits that tell any two values apart, and those tried before (`RoundTripFpToString`, `xla/util.cc`).
_DIGITS = {"f16": (5, 5), "bf16": (4, 4), "f32": (6, 9), "f64": (15, 17)}
_WORKED_OUT = frozenset({*_DIGITS, *INTEGER_TYPES, *COMPLEX_TYPES, "pred"})


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
    if literal.is_elided or shape.element_type not in _WORKED_OUT:
        return None
    tokens = _TOKEN.findall(literal.canonical_text)
    if len(tokens) != shape.element_count:
        return None
    try:
        return [_number(shape.element_type, word) for word in tokens]
    except ValueError:
        return None


def scalar_of(constant: Instruction) -> Real | None:
    """The value of a constant of one real element."""
    if constant.opcode != "constant" or not constant.shape.is_effective_scalar:
        return None
    if constant.shape.element_type in COMPLEX_TYPES:
        return None
    values = values_of(constant)
    return values[0] if values else None  # type: ignore[return-value]


def integer_of(x: Instruction) -> int | None:
    value = scalar_of(x) if x.shape.element_type in INTEGER_TYPES else None
    return int(value) if value is not None else None


def _number(element_type: str, word: str) -> Value:
    if element_type in _PARTS:
        real, _, imag = word.strip("()").partition(",")
        part = _PARTS[element_type]
        return complex(float(_number(part, real)), float(_number(part, imag)))  # type: ignore[arg-type]
    if element_type == "pred":
        return {"true": True, "false": False, "1": True, "0": False}[word] if word in _PREDS else bool(word)
    if element_type not in _DIGITS:
        return int(word)
    value = rounded(element_type, float(word))
    assert value is not None
    return value


_PREDS = frozenset("true false 1 0".split())


def rounded(element_type: str, value: Value) -> Value | None:
    """`value` as an element of this type holds it; None for types that are not worked out here."""
    if element_type in _PARTS:
        parts = [rounded(_PARTS[element_type], v) for v in (complex(value).real, complex(value).imag)]
        return complex(*parts)  # type: ignore[arg-type]
    if isinstance(value, complex):
        return None
    if element_type == "pred":
        return bool(value)
    if element_type in INTEGER_TYPES:
        bits = int(element_type[1:])
        if isinstance(value, float):
            if not math.isfinite(value):
                return None
            value = math.trunc(value)
        number = int(value) & ((1 << bits) - 1)
        return number - (1 << bits) if element_type[0] == "s" and number >> (bits - 1) else number
    if element_type not in _DIGITS:
        return None
    number_ = float(value)
    if element_type == "f64" or not math.isfinite(number_):
        return number_
    try:
        if element_type == "f16":
            return float(struct.unpack("e", struct.pack("e", number_))[0])
        single = float(struct.unpack("f", struct.pack("f", number_))[0])
    except OverflowError:
        return math.copysign(math.inf, number_)
    if element_type == "f32":
        return single
    word = int(struct.unpack("I", struct.pack("f", single))[0])
    word += 0x7FFF + ((word >> 16) & 1)
    return float(struct.unpack("f", struct.pack("I", word & 0xFFFF0000))[0])


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


def _nest(tokens: list[str], dimensions: Sequence[int]) -> str:
    if not dimensions:
        return tokens[0]
    if dimensions[0] == 0:
        return "{}"
    size = len(tokens) // dimensions[0]
    parts = [_nest(tokens[k * size : (k + 1) * size], dimensions[1:]) for k in range(dimensions[0])]
    return "{" + ", ".join(parts) + "}"


def lowest(element_type: str) -> Real | None:
    """The least value (`LiteralUtil::MinValue`): -inf for floats."""
    if element_type in _DIGITS:
        return -math.inf
    if element_type in INTEGER_TYPES:
        return -(1 << (int(element_type[1:]) - 1)) if element_type[0] == "s" else 0
    return False if element_type == "pred" else None


def highest(element_type: str) -> Real | None:
    """The greatest value (`LiteralUtil::MaxValue`)."""
    if element_type in _DIGITS:
        return math.inf
    if element_type in INTEGER_TYPES:
        bits = int(element_type[1:])
        return (1 << (bits - 1)) - 1 if element_type[0] == "s" else (1 << bits) - 1
    return True if element_type == "pred" else None
