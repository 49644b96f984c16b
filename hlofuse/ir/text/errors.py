"""Errors of the reader: where in the text, and what was expected in a person's words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Set
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.opcodes import OPCODES
from hlofuse.ir.shape import ARRAY_TYPES
from hlofuse.ir.text.signatures import all_attributes, signature

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedToken


class Rejected(Exception):
    """Something wrong at an offset of the text; becomes an `HloParseError` where the text is known."""

    def __init__(self, position: int, message: str) -> None:
        self.position = position
        self.message = message
        super().__init__(message)


def located(text: str, error: Rejected, filename: str | None) -> HloParseError:
    """The error with its line and column; past the end, the place behind the last character."""
    position = min(error.position, len(text.rstrip()))
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", start)
    return HloParseError(
        error.message,
        filename=filename,
        line=text.count("\n", 0, position) + 1,
        column=position - start + 1,
        source_line=text[start : end if end >= 0 else len(text)].rstrip("\r"),
    )


def counted_dimensions(count: int) -> str:
    """`1 dimension`, `2 dimensions`."""
    return f"{count} dimension{'' if count == 1 else 's'}"


def suggestion(word: str, names: Iterable[str]) -> str:
    """`; did you mean X?` when something known is close to `word`, otherwise nothing."""
    close = difflib.get_close_matches(word, list(names), 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


# What the grammar was ready to take, most telling first: all of these tokens are welcome -> in words.
_EXPECTATIONS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(tokens.split()), phrase)
    for tokens, phrase in (
        ("HLOMODULE ENTRY", "HloModule, ENTRY or an instruction"),
        (
            "NAME ROOT RBRACE COMMA",
            "an instruction, for example x = f32[8] add(a, b), or '}' to end the computation",
        ),
        (
            "NAME ROOT RBRACE",
            "an instruction, for example x = f32[8] add(a, b), or '}' to end the computation",
        ),
        ("NAME ROOT", "an instruction, for example x = f32[8] add(a, b)"),
        ("NAME ENTRY", "a computation, for example ENTRY main {"),
        ("PRIMITIVE IDENT NAME", "an operand: the name of an instruction"),
        ("PRIMITIVE IDENT", "a shape and an opcode, for example f32[8,16]{1,0} add(a, b)"),
        ("PRIMITIVE RPAR", "a shape, for example f32[8,16]{1,0}, or ')'"),
        ("PRIMITIVE", "a shape, for example f32[8,16]{1,0}"),
        ("KEY KEY_WINDOW", "an attribute, for example dimensions={0,1}"),
        ("KEY", 'a key and its value, for example name="value"'),
        ("KEY_DXD", "a part of a window: size=, stride=, pad=, lhs_dilate=, rhs_dilate= or rhs_reversal="),
        ("KEY_METADATA_STRING", 'a part of the metadata, for example op_name="dot"'),
        ("INT LEQ QMARK", "the size of a dimension: a number, <=number or ?"),
        ("TRUE FALSE INT", "a value"),
        ("NAME LBRACE", "a name, or a computation in braces"),
        ("CONSTANT IDENT PARAMETER NAME", "a name"),
        ("CONSTANT IDENT PARAMETER", "an opcode, for example add(a, b)"),
        ("LAYOUT_D LAYOUT_T", "a property of the layout, for example T(8,128) or S(1)"),
        ("RPAR COMMA HASH", "',' or ')'"),
        ("STRING", "a string in quotes"),
        ("DECIMAL INT", "a number"),
        ("INT", "a whole number"),
        ("IDENT", "a word"),
    )
)
# What stands after a key, by the key's kind in the grammar.
_VALUES = {
    "KEY_BOOL": "true or false",
    "KEY_BOOLS": "true, false or a list of them, for example {true,false}",
    "KEY_INT": "a whole number",
    "KEY_INT32": "a whole number",
    "KEY_FLOAT": "a number",
    "KEY_STRING": "a string in quotes",
    "KEY_INTS": "a list of numbers, for example {0,1}",
    "KEY_DIMENSIONS": "a list of numbers, for example {0,1}",
    "KEY_INTS_LIST": "a list of lists, for example {{0,1},{1,0}}",
    "KEY_SLICE_SIZES": "a list of numbers, for example {1,8}",
    "KEY_COMPUTATION": "the name of a computation",
    "KEY_COMPUTATIONS": "the names of computations, for example {a, b}",
    "KEY_ENUM": "a word",
    "KEY_KIND": "a word",
    "KEY_MODE": "a word",
    "KEY_WORDS": "a list of words, for example {highest,default}",
    "KEY_WINDOW": "a window, for example {size=3x3 pad=1_1x1_1}",
    "KEY_DIM_LABELS": "dimension labels, for example b01f_01io->b01f",
    "KEY_SHARDING": "a sharding, for example {replicated} or {devices=[2,2]<=[4]}",
    "KEY_FRONTEND": 'keys and strings, for example {name="value"}',
    "KEY_METADATA": 'metadata, for example {op_name="dot"}',
    "KEY_BACKEND_CONFIG": "a string in quotes or a JSON object",
    "KEY_CONTROL": "a list of instructions, for example {a, b}",
    "KEY_GROUPS": "groups of devices, for example {{0,1},{2,3}} or [2,2]<=[4]",
    "KEY_SLICE": "a range for each dimension, for example {[0:8], [0:16:2]}",
    "KEY_PADDING": "padding, for example 0_0x1_1 (low_high, or low_high_interior)",
    "KEY_PAD": "padding, for example 0_0x1_1",
    "KEY_DXD": "sizes, for example 3x3",
    "KEY_SPARSITY": "a sparsity descriptor, for example L.0@2:4",
}
_MARKS = {
    "RPAR": ")", "COMMA": ",", "RBRACE": "}", "RSQB": "]", "LPAR": "(", "LBRACE": "{", "LSQB": "[",
    "EQUAL": "=", "COLON": ":", "ARROW": "->", "LEQ": "<=",
    "FILENAMES": "FileNames", "FUNCTIONNAMES": "FunctionNames", "FILELOCATIONS": "FileLocations",
    "STACKFRAMES": "StackFrames", "LAYOUT_OPEN": "{",
}  # fmt: skip
_OPCODE = re.compile(r"[^=\n]*= *(?:\(.*?\)|[^ (]+) +([a-z][a-z0-9\-]*)\(")
_TYPE_LIKE = re.compile(r"(?:[suf]|bf|c|i|u?int|float|pred|bool|token|opaque|double|half|bfloat)[0-9a-z]*")
_OTHER_TYPE_NAMES = {
    "float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "bfloat16": "bf16", "bool": "pred",
    "i1": "pred", "int": "s32", "uint": "u32", "complex64": "c64", "complex128": "c128",
}  # fmt: skip


def expectation(expected: Set[str]) -> str:
    """The tokens the grammar was ready to take, in words."""
    for tokens, phrase in _EXPECTATIONS:
        if tokens <= expected:
            return phrase
    marks = list(dict.fromkeys(repr(text) for token, text in _MARKS.items() if token in expected))
    if not marks:
        return "the end of the text" if "$END" in expected else " or ".join(sorted(expected)[:6])
    return ", ".join(marks[:-1]) + (" or " if len(marks) > 1 else "") + marks[-1]


def _found(token: Token) -> str:
    if token.type == "$END":
        return "the end of the text"
    shown = token if len(token) <= 40 else token[:37] + "..."
    return "".join(c if c.isprintable() else " " for c in shown)


def _type_error(token: Token) -> Rejected:
    width = re.fullmatch(r"(float|uint|int|i)([0-9]+)", token)
    if token in _OTHER_TYPE_NAMES:
        hint = f"; did you mean {_OTHER_TYPE_NAMES[token]}?"
    elif width:
        letter = {"float": "f", "uint": "u"}.get(width[1], "s")
        hint = f"; did you mean {letter}{width[2]}?"
    else:
        hint = suggestion(token, ARRAY_TYPES)
    return Rejected(token.start_pos or 0, f"unknown element type {token}{hint}")


def unexpected(error: UnexpectedToken, text: str) -> Rejected:
    """A token the grammar has no place for, as a message that names the likely mistake."""
    from lark import Token

    token: Token = error.token
    parser: Any = error.interactive_parser
    # What can really follow here; the parser's table alone is not that exact.
    expected = set(parser.accepts()) if parser is not None else set(error.expected)
    before = [v for v in getattr(error.state, "value_stack", ())[-2:] if isinstance(v, Token)]
    last = before[-1] if before else None
    kind = "$END" if token.type == "$END" else token.type
    at_end = kind == "$END"
    position = len(text.rstrip()) if at_end or token.start_pos is None else token.start_pos
    following = "" if at_end else text[position + len(token) : position + len(token) + 1]
    found = _found(token)

    if kind == "IDENT" and "PRIMITIVE" in expected and following == "[" and _TYPE_LIKE.fullmatch(token):
        return _type_error(token)
    if kind == "LSQB" and last is not None and last.type == "IDENT":
        return _type_error(last)
    if last is not None and last.type.startswith("KEY"):
        if "COMMA" in expected and "INT" not in expected:
            opcode = _OPCODE.match(text, text.rfind("\n", 0, position) + 1, position)
            if opcode is not None and signature(opcode[1]) is None:
                return opcode_error(opcode.start(1), opcode[1])
            hint = suggestion(last[:-1], all_attributes())
            return Rejected(last.start_pos or 0, f"unknown attribute {last[:-1]}{hint}")
        wanted = _VALUES.get(last.type) or expectation(expected)
        return Rejected(position, f"{last[:-1]} needs a value: expected {wanted}, found {found}")
    if kind.startswith("KEY"):
        line_start = text[text.rfind("\n", 0, position) + 1 : position].split("//")[0].strip()
        if "PRIMITIVE" in expected and "RPAR" in expected:
            return Rejected(position, f"missing ')': close the operands before the attribute {token[:-1]}")
        if line_start in ("", "ROOT", "{") and ("NAME" in expected or "IDENT" in expected):
            return Rejected(position + len(token) - 1, f"expected a space between {token[:-1]} and =")
        if "KEY_METADATA_STRING" in expected:
            hint = suggestion(token[:-1], [field.name for field in fields(OpMetadata)])
            return Rejected(position, f"metadata has no part {token[:-1]}{hint}")
        if "COMMA" in expected:
            return Rejected(position, f"missing ',' before the attribute {token[:-1]}")
    if kind in ("IDENT", "NAME", "STRING", "INT") and "KEY_WINDOW" in expected:
        bare = token.strip('%:"')
        return Rejected(position, f"expected an attribute such as {bare}=..., found {found}")
    if kind == "PRIMITIVE" and "NAME" in expected and "PRIMITIVE" not in expected:
        return Rejected(position, f"{token} is the name of an element type and cannot name anything else")
    if kind == "LPAR" and expected <= {"LBRACE", "EQUAL"} and "EQUAL" in expected:
        return Rejected(position, "a text without the HloModule line begins with ENTRY or an instruction")
    if "ARROW" in expected and len(expected) == 1:
        return Rejected(position, f"missing result: expected -> and a shape, found {found}")
    missing = ""
    if "RPAR" in expected and (at_end or kind in ("LBRACE", "RBRACE", "ROOT", "EQUAL", "NAME")):
        missing = "missing ')': "
    elif "EQUAL" in expected and len(expected) == 1:
        missing = "missing '=': "
    elif at_end and "RBRACE" in expected:
        missing = "missing '}': "
    return Rejected(position, f"{missing}expected {expectation(expected)}, found {found}")


_FOREIGN = (
    (re.compile(r"\s*(?:#loc|#map|module\s*(?:@|attributes|\{)|builtin\.module|func\.func)"), "MLIR"),
    (re.compile(r"\s*\{\s*(?:\}|\")|\s*\[\s*(?:\]|\{|\")"), "JSON"),
    (re.compile(r"\s*hlo_module\s*\{|\s*hlo\s*\{"), "a proto in text form"),
    (re.compile(r"\s*<(?:!|\?|html|svg)"), "markup"),
)


def foreign(text: str) -> str:
    """What else the text looks like, as an addition to a message; nothing if it might be HLO."""
    for pattern, what in _FOREIGN:
        if pattern.match(text):
            return f" (this looks like {what}; hlofuse reads HLO text, as written by --xla_dump_hlo_as_text)"
    return ""


def opcode_error(position: int, opcode: str) -> Rejected:
    """An opcode nobody knows."""
    return Rejected(position, f"unknown opcode {opcode}{suggestion(opcode, OPCODES)}")
