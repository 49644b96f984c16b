"""Ordinary constants: text whose form and range are plain to see."""

from __future__ import annotations

import re
from functools import cache

from hlofuse.ir.shape import INTEGER_TYPES, Shape

# Well inside the type's range: what comes near the limits is looked at by the grammar's own check.
_FLOATS = {
    "f64": r"\d(?:\.\d{0,40}+)?e[+\-][012]?\d\d|\d{1,30}+(?:\.\d{0,40}+)?",
    "f32": r"\d(?:\.\d{0,40}+)?e(?:-\d\d|\+[012]\d|\+3[0-7])|3\.40282347e\+38|\d{1,30}+(?:\.\d{0,40}+)?",
    "bf16": r"\d(?:\.\d{0,40}+)?e(?:-\d\d|\+[012]\d|\+3[0-7])|\d{1,30}+(?:\.\d{0,40}+)?",
    "f16": r"\d(?:\.\d{0,40}+)?e(?:-\d\d|\+0[0-3])|\d{1,4}+(?:\.\d{0,40}+)?",
}
_INTEGER = r"-?\d{1,20}+"


def is_ordinary(shape: Shape, text: str) -> bool:
    """True when `text` is a value of `shape` beyond doubt: a scalar, `{…}` of numbers, or an elided array."""
    patterns = _patterns(shape.element_type)
    dimensions = shape.dimensions
    if patterns is None or shape.dynamic_dimensions or len(dimensions) > 1:
        return patterns is not None and text == "{...}" and not shape.dynamic_dimensions
    if not dimensions:
        matched = patterns[0].fullmatch(text) is not None
    else:
        if text == "{...}":
            return True
        matched = text.count(",") == dimensions[0] - 1 and patterns[1].fullmatch(text) is not None
    if matched and shape.element_type in INTEGER_TYPES:
        low, high = _range(shape.element_type)
        return all(low <= int(word) <= high for word in text.strip("{}").split(","))
    return matched


@cache
def _patterns(element_type: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Of one value and of a list of them; None for types that are left to the grammar."""
    if element_type in _FLOATS:
        value = rf"(?>-?(?:{_FLOATS[element_type]}|inf)|nan)(?![\w.])"
    elif element_type == "pred":
        value = "(?>true|false)"
    elif element_type in INTEGER_TYPES and element_type[1:] in ("8", "16", "32", "64"):
        value = _INTEGER
    else:
        return None
    return re.compile(value, re.ASCII), re.compile(rf"\{{{value}(?:, ?{value})*+\}}", re.ASCII)


def _range(element_type: str) -> tuple[int, int]:
    bits = int(element_type[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if element_type[0] == "s" else (0, (1 << bits) - 1)
