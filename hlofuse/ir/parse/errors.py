"""Errors of the reader: where in the text, and what was expected in a person's words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

from hlofuse.ir.errors import HloParseError
from hlofuse.ir.opcodes import OPCODES
from hlofuse.ir.shape import ARRAY_TYPES

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


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` when something known is close to `word`, otherwise nothing."""
    close = difflib.get_close_matches(word, list(known), 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


# What the grammar was ready to take, most telling first: all of these tokens are welcome -> in words.
_EXPECTATIONS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(tokens.split()), words)
    for tokens, words in (
        ("HLOMODULE ENTRY", "HloModule, a computation or an instruction"),
        ("NAME ROOT RBRACE", "an instruction, for example x = f32[8] add(a, b), or } to end the computation"),
        ("NAME ROOT", "an instruction, for example x = f32[8] add(a, b)"),
        ("NAME ENTRY", "a computation: ENTRY or its name"),
        ("PRIMITIVE IDENT NAME", "an operand: the name of an instruction"),
        ("PRIMITIVE IDENT", "a shape and an opcode, for example f32[8,16]{1,0} add(a, b)"),
        ("IDENT RPAR PRIMITIVE", "an operand or )"),
        ("PRIMITIVE RPAR", "a shape, for example f32[8,16]{1,0}, or )"),
        ("PRIMITIVE", "a shape, for example f32[8,16]{1,0}"),
        ("KEY KEY_WINDOW", "an attribute, for example dimensions={0,1}"),
        ("KEY", 'a key and its value, for example name="value"'),
        ("KEY_DXD", "a part of a window: size=, stride=, pad=, lhs_dilate=, rhs_dilate= or rhs_reversal="),
        ("KEY_METADATA_STRING", 'a part of the metadata, for example op_name="dot"'),
        ("DIM_LABELS", "dimension labels, for example b01f_01io->b01f"),
        ("PAD", "padding, for example 0_0x1_1 (low_high, or low_high_interior)"),
        ("DXD", "sizes, for example 3x3"),
        ("JSON STRING", "a string in quotes or a JSON object in braces"),
        ("SPARSITY", "a sparsity descriptor, for example L.0@2:4"),
        ("LAYOUT_D LAYOUT_T", "a property of the layout, for example T(8,128) or S(1)"),
        ("TRUE FALSE INT", "a number, true or false"),
        ("TRUE FALSE", "true or false"),
        ("NAME LBRACE", "the name of a computation, or a computation in braces"),
        ("NAME", "a name"),
        ("STRING", "a string in quotes"),
        ("INT LEQ QMARK", "the size of a dimension: a number, <=number or ?"),
        ("DECIMAL INT", "a number"),
        ("INT", "a whole number"),
        ("IDENT", "a word"),
    )
)
_MARKS = {
    "LPAR": "(", "RPAR": ")", "LBRACE": "{", "RBRACE": "}", "LSQB": "[", "RSQB": "]", "COMMA": ",",
    "EQUAL": "=", "COLON": ":", "ARROW": "->", "LEQ": "<=", "HASH": "#", "STAR": "*",
    "$END": "the end of the text",
    "FILENAMES": "FileNames", "FUNCTIONNAMES": "FunctionNames", "FILELOCATIONS": "FileLocations",
    "STACKFRAMES": "StackFrames", "LAYOUT_OPEN": "{",
}  # fmt: skip
_TYPE_LIKE = re.compile(r"(?:[suf]|bf|c|pred|token|opaque)[0-9a-z]*")


def expectation(expected: Set[str]) -> str:
    """The tokens the grammar was ready to take, in words."""
    words = next((words for tokens, words in _EXPECTATIONS if tokens <= expected), None)
    marks = [text for token, text in _MARKS.items() if token in expected and token != "$END"]
    if words is not None:
        return words
    if not marks and "$END" in expected:
        return "the end of the text"
    if not marks:
        return " or ".join(sorted(_MARKS.get(t, t) for t in expected)[:6])
    return ", ".join(marks[:-1]) + (" or " if len(marks) > 1 else "") + marks[-1]


def _found(token: Token) -> str:
    if token.type == "$END":
        return "the end of the text"
    shown = token if len(token) <= 40 else token[:37] + "..."
    return "".join(c if c.isprintable() else " " for c in shown)


def unexpected(error: UnexpectedToken, text: str) -> Rejected:
    """A token the grammar has no place for, as a message that names the likely mistake."""
    from lark import Token

    token: Token = error.token
    expected = set(error.expected)
    state = error.state
    before = [v for v in getattr(state, "value_stack", ())[-3:] if isinstance(v, Token)]
    last = before[-1] if before else None
    at_end = token.type == "$END"
    position = len(text.rstrip()) if at_end or token.start_pos is None else token.start_pos
    following = "" if at_end else text[position + len(token) : position + len(token) + 1]
    kind = token.type

    if kind == "IDENT" and "PRIMITIVE" in expected and following == "[" and _TYPE_LIKE.fullmatch(token):
        return Rejected(position, f"unknown element type {token}{suggestion(token, ARRAY_TYPES)}")
    if kind == "LSQB" and last is not None and last.type == "IDENT":
        where = last.start_pos if last.start_pos is not None else position
        return Rejected(where, f"unknown element type {last}{suggestion(last, ARRAY_TYPES)}")
    if kind.startswith("KEY") and "NAME" in expected:
        return Rejected(position + len(token) - 1, f"expected a space between {token[:-1]} and =")
    if kind in ("IDENT", "NAME", "STRING", "INT") and "KEY_WINDOW" in expected:
        bare = token.strip('%:"')
        return Rejected(position, f"expected an attribute such as {bare}=..., found {_found(token)}")
    if last is not None and last.type.startswith("KEY"):
        wanted = f"expected {expectation(expected)}, found {_found(token)}"
        return Rejected(position, f"{last[:-1]} needs a value: {wanted}")
    if kind == "PRIMITIVE" and "NAME" in expected and "PRIMITIVE" not in expected:
        return Rejected(position, f"{token} is the name of an element type and cannot name anything else")
    if last is not None and kind == "PRIMITIVE" and last.type == "NAME":
        return Rejected(position, f"missing =: expected {expectation(expected)} after {last}")
    missing = ""
    if "RPAR" in expected and (
        at_end or kind in ("LBRACE", "RBRACE", "ROOT", "EQUAL") or kind.startswith("KEY")
    ):
        missing = "missing ): "
    elif "EQUAL" in expected and len(expected) == 1:
        missing = "missing =: "
    elif at_end and "RBRACE" in expected:
        missing = "missing }: "
    return Rejected(position, f"{missing}expected {expectation(expected)}, found {_found(token)}")


def opcode_error(position: int, opcode: str) -> Rejected:
    """An opcode nobody knows."""
    return Rejected(position, f"unknown opcode {opcode}{suggestion(opcode, OPCODES)}")
