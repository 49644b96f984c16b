"""Check that a literal fits its shape: nesting, counts, kinds and ranges of values (`ParseDenseLiteral`)."""

import math
import re
from collections.abc import Iterator
from functools import cache

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.literal import ELIDED
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES, Shape
from .errors import Rejected, counted_dimensions
from .text import signed

_TOKEN = re.compile(
    r"/\*(?:[^*]|\*(?!/))*\*/|//[^\r\n]*|([{}(),]|\.\.\.|-?nan\(0x[0-9a-fA-F]+\)|[^\s{}(),/]+)"
)

# Bits of a NaN's payload; a type without any takes only the plain nan.
_PAYLOAD_BITS = {
    "f64": 52,
    "f32": 23,
    "bf16": 7,
    "f16": 10,
    "c64": 23,
    "c128": 52,
    "f8e5m2": 2,
    "f8e4m3": 3,
    "f8e3m4": 4,
}
# Half a step above the largest value rounds to nothing finite; types left out take the largest value.
_TOO_LARGE = {
    "f16": 65520.0,
    "bf16": 3.3961775292304957e38,
    "f32": 3.4028235677973366e38,
    "f8e5m2": 61440.0,
    "f8e5m2fnuz": 61440.0,
    "f8e4m3": 248.0,
    "f8e4m3fnuz": 248.0,
    "f8e4m3fn": 464.0000001,  # halfway goes to the even 448
    "f8e4m3b11fnuz": 31.0,
    "f8e3m4": 15.75,
    "f8e8m0fnu": 2.55211775190704e38,
}


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self._tokens: Iterator[re.Match[str]] = (m for m in _TOKEN.finditer(text) if m[1])
        self._start = start
        self.end = start + len(text)
        self.word = ""
        self.where = start
        self.advance()

    def advance(self) -> None:
        match = next(self._tokens, None)
        self.word = match[1] if match else ""
        self.where = self._start + match.start() if match else self.end

    def take(self, word: str, what: str) -> None:
        if self.word != word:
            raise Rejected(
                self.where, f"expected {word} {what}, found {self.word or 'the end of the literal'}"
            )
        self.advance()


def check_literal(shape: Shape, text: str, start: int) -> None:
    """Raise `Rejected` unless `text`, at offset `start`, is a value of `shape`."""
    if shape.is_tuple and text.strip() == ELIDED:
        return  # as XLA prints constant tuples; its own parser refuses it
    reader = _Reader(text, start)
    _check(shape, reader)
    if reader.word:
        raise Rejected(reader.where, f"unexpected {reader.word} after a value of {shape.text_without_layout}")


def _check(shape: Shape, reader: _Reader) -> None:
    # Tuple shapes are never deeper than MAX_SHAPE_DEPTH.
    if shape.is_tuple:
        reader.take("(", "before the elements of a tuple")
        if reader.word != ")":
            for number, inner in enumerate(shape.tuple_shapes):
                if number and reader.word == ",":
                    reader.advance()
                _check(inner, reader)
        reader.take(")", f"after the {len(shape.tuple_shapes)} elements of the tuple")
    elif shape.is_array or shape.element_type == "buffer" or shape.element_type.startswith("f"):
        _check_array(shape.tuple_shapes[0] if shape.tuple_shapes else shape, reader)
    else:
        raise Rejected(reader.where, f"{shape.element_type} has no literals")


def _check_array(shape: Shape, reader: _Reader) -> None:
    dimensions = shape.dimensions
    rank = len(dimensions)
    total = math.prod(dimensions)
    seen = [0] * rank
    level = index = 0
    misplaced = -1
    while True:
        word, where = reader.word, reader.where
        if word == "{":
            level += 1
            if level > rank:
                raise Rejected(
                    where, f"too many braces: {shape.text_without_layout} has {counted_dimensions(rank)}"
                )
            if level > 1:
                seen[level - 2] += 1
                if seen[level - 2] > dimensions[level - 2]:
                    raise Rejected(
                        where, f"more than {dimensions[level - 2]} elements in dimension {level - 2}"
                    )
            reader.advance()
        elif word == "}":
            level -= 1
            if misplaced >= 0 and seen[level] != dimensions[level]:
                raise Rejected(
                    misplaced, f"expected '{{': {shape.text_without_layout} has {counted_dimensions(rank)}"
                )
            if level < 0 or seen[level] != dimensions[level]:
                count = seen[level] if level >= 0 else 0
                raise Rejected(
                    where,
                    f"expected {dimensions[level] if rank else 0} elements in dimension {max(level, 0)},"
                    f" found {count}",
                )
            seen[level] = 0
            reader.advance()
        elif word == "...":
            if level != 1:
                raise Rejected(where, "... stands directly in the outer braces: {...}")
            seen[0] = dimensions[0]
            reader.advance()
        elif word == ",":
            reader.advance()
        elif not word or word == ")":
            raise Rejected(where, f"the literal ends early: expected a value of {shape.text_without_layout}")
        else:
            if rank and level == rank:
                seen[rank - 1] += 1
                if seen[rank - 1] > dimensions[rank - 1]:
                    raise Rejected(
                        where, f"more than {dimensions[rank - 1]} elements in dimension {rank - 1}"
                    )
            elif rank and misplaced < 0:
                # XLA minds only when the braces around it do not add up.
                misplaced = where
            if word == "(":
                _check_complex(shape, reader, level == rank)
            else:
                _check_scalar(shape.element_type, word, where)
                reader.advance()
            if index >= total:
                raise Rejected(where, f"more than the {total} elements of {shape.text_without_layout}")
            index += 1
        if not level:
            return


def _check_complex(shape: Shape, reader: _Reader, innermost: bool) -> None:
    where = reader.where
    if shape.element_type not in COMPLEX_TYPES:
        raise Rejected(where, "( begins a complex number, but the elements are not complex")
    if not innermost:
        raise Rejected(
            where, f"expected {{: {shape.text_without_layout} has {counted_dimensions(len(shape.dimensions))}"
        )
    part = "f32" if shape.element_type == "c64" else "f64"
    reader.advance()
    _check_float(part, reader.word, reader.where)
    reader.advance()
    reader.take(",", "between the parts of a complex number")
    _check_float(part, reader.word, reader.where)
    reader.advance()
    reader.take(")", "after a complex number")


def _check_scalar(element_type: str, word: str, where: int) -> None:
    if word in ("true", "false"):
        if element_type != "pred":
            raise Rejected(where, f"{word} is no value of {element_type}")
    elif element_type in INTEGER_TYPES or element_type == "pred":
        if not word.lstrip("-").isdigit():
            raise Rejected(where, f"expected a whole number for {element_type}, found {word}")
        value = signed(word)
        if element_type == "pred":
            return
        low, high = _range(element_type)
        if not low:
            value %= 1 << 64
        if not low <= value <= high:
            raise Rejected(where, f"{word} is out of range for {element_type}: {low} to {high}")
    elif element_type in COMPLEX_TYPES:
        raise Rejected(where, f"expected a complex number (real, imaginary), found {word}")
    else:
        _check_float(element_type, word, where)


def _check_float(element_type: str, word: str, where: int) -> None:
    unsigned = word.lstrip("-")
    if unsigned.startswith("nan"):
        if "(" in word:
            payload = int(word[word.index("x") + 1 : -1], 16)
            bits = _PAYLOAD_BITS.get(element_type)
            if element_type in FLOATING_TYPES and payload >= 1 << (bits or 0):
                raise Rejected(where, f"the payload of {word} does not fit {element_type}")
        return
    if unsigned == "inf":
        return
    try:
        value = float(signed(word)) if unsigned.isdigit() else float(word)
    except ValueError:
        raise Rejected(
            where, f"expected a number for {element_type}, found {word or 'the end of the literal'}"
        ) from None
    if math.isinf(value):
        raise Rejected(where, f"{word} is out of range")
    limit = _TOO_LARGE.get(element_type)
    if (limit is not None and abs(value) >= limit) or (value < 0 and element_type == "f8e8m0fnu"):
        raise Rejected(where, f"{word} is out of range for {element_type}")


# Ordinary constants: text whose form and range are plain to see.

# Well inside the type's range: what comes near the limits is looked at by the grammar's own check.
_SINGLE = r"\d(?:\.\d{0,40}+)?e(?:-\d\d|\+[012]\d|\+3[0-7])|[12](?:\.\d{0,40}+)?e\+38"
_FLOATS = {
    "f64": r"\d(?:\.\d{0,40}+)?e[+\-][012]?\d\d|\d{1,30}+(?:\.\d{0,40}+)?",
    "f32": _SINGLE + r"|3\.40282347e\+38|\d{1,30}+(?:\.\d{0,40}+)?",
    "bf16": _SINGLE + r"|\d{1,30}+(?:\.\d{0,40}+)?",
    "f16": r"\d(?:\.\d{0,40}+)?e(?:-\d\d|\+0[0-3])|\d{1,4}+(?:\.\d{0,40}+)?",
}
_INTEGER = r"-?\d{1,20}+"


def is_plain(shape: Shape, text: str) -> bool:
    """True if `text` is certainly a value of `shape`: a scalar, `{…}` of numbers, or an elided array."""
    patterns = _patterns(shape.element_type)
    dimensions = shape.dimensions
    if patterns is None or shape.dynamic_dimensions or len(dimensions) > 1:
        return patterns is not None and text == "{...}" and not shape.dynamic_dimensions
    if not dimensions:
        matched = patterns[0].fullmatch(text) is not None
    else:
        if text == "{...}" or (text == "{}" and dimensions == (0,)):
            return True
        matched = text.count(",") == dimensions[0] - 1 and patterns[1].fullmatch(text) is not None
    if matched and shape.element_type in INTEGER_TYPES:
        low, high = _range(shape.element_type)
        return all(low <= int(word) <= high for word in text.strip("{}").split(","))
    return matched


@cache
def _patterns(element_type: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Patterns of a value and of a list of values; None for types left to the grammar."""
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
    half = 1 << bits - 1
    return (-half, half - 1) if element_type[0] == "s" else (0, 2 * half - 1)


def implied_element(computation: Computation, operand: Instruction, index: int, path: str) -> Instruction:
    """The get-tuple-element of a path (`x#1#0`), added with its `operand`."""
    shape = operand.shape.tuple_shapes[index]
    name, attributes = path.replace("#", "_"), Attributes(f", index={index}")
    return computation.append_parsed(Instruction(name, shape, "get-tuple-element", [operand], attributes))
