"""Errors of the reader: the place in the text, and the expected form in plain words."""

import difflib
import re
from collections.abc import Iterable, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.errors import HloParseError, any_of
from hlofuse.ir.opcodes import OPCODES
from hlofuse.ir.shape import ARRAY_TYPES
from hlofuse.ir.texts import texts
from .signatures import all_attributes, signature

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedToken


Place: TypeAlias = "int | Token"


class Rejected(Exception):
    """An error at an offset or a token of the text; becomes an `HloParseError` where the text is known."""

    def __init__(self, place: "Place", message: str) -> None:
        self.position = place if isinstance(place, int) else place.start_pos or 0
        self.message = message
        super().__init__(message)


def locate(text: str, error: Rejected, filename: str | None) -> HloParseError:
    """The error with its line and column; past the end, the place after the last character."""
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
    """`; did you mean X?` when a known word is close to `word`, otherwise empty."""
    close = difflib.get_close_matches(word, list(names), 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


_OPCODE = re.compile(r"[^=\n]*= *(?:\(.*?\)|[^ (]+) +([a-z][a-z0-9\-]*)\(")
_TYPE_LIKE = re.compile(r"(?:[suf]|bf|c|i|u?int|float|pred|bool|token|opaque|double|half|bfloat)[0-9a-z]*")
_UNKNOWN_WITH_WORD = re.compile(r", *([A-Za-z_][\w.\-]*)=[A-Za-z_][\w.\-]*+\s*+\Z", re.ASCII)
_LOOKED_BACK = 500
_EXPECTED = Path(__file__).with_name("expected.toml")


def expectation(expected: Set[str]) -> str:
    for tokens, phrase in texts(_EXPECTED)["expected"].items():
        if expected >= set(tokens.split()):
            return phrase
    marks = list(
        dict.fromkeys(repr(text) for token, text in texts(_EXPECTED)["mark"].items() if token in expected)
    )
    if not marks:
        return "the end of the text" if "$END" in expected else " or ".join(sorted(expected)[:6])
    return any_of(marks)


def _found_text(token: "Token") -> str:
    if token.type == "$END":
        return "the end of the text"
    shown = token if len(token) <= 40 else token[:37] + "..."
    return "".join(c if c.isprintable() else " " for c in shown)


def type_error(position: Place, word: str) -> Rejected:
    """The error about an unknown element type, with the one that may be meant."""
    width = re.fullmatch(r"(float|uint|int|i)([0-9]+)", word)
    if word in texts(_EXPECTED)["type"]:
        hint = f"; did you mean {texts(_EXPECTED)['type'][word]}?"
    elif width:
        letter = {"float": "f", "uint": "u"}.get(width[1], "s")
        hint = f"; did you mean {letter}{width[2]}?"
    else:
        hint = suggestion(word, ARRAY_TYPES)
    return Rejected(position, f"unknown element type {word}{hint}")


def unexpected_token(error: "UnexpectedToken", text: str) -> Rejected:
    """The message for an unexpected token, naming the probable mistake."""
    from lark import Token

    token: Token = error.token
    parser: Any = error.interactive_parser
    # What can really follow here; the parser's table alone is not that exact.
    expected = set(parser.accepts()) if parser is not None else set(error.expected)
    before = [v for v in getattr(error.state, "value_stack", ())[-2:] if isinstance(v, Token)]
    last = before[-1] if before else None
    kind = token.type
    at_end = kind == "$END"
    position = len(text.rstrip()) if at_end or token.start_pos is None else token.start_pos
    following = "" if at_end else text[position + len(token) : position + len(token) + 1]
    found = _found_text(token)

    if kind == "IDENT" and "PRIMITIVE" in expected and following == "[" and _TYPE_LIKE.fullmatch(token):
        return type_error(position, token)
    if kind == "LSQB" and last is not None and last.type == "IDENT":
        return type_error(last, last)
    if last is not None and last.type.startswith("KEY"):
        if "COMMA" in expected and "INT" not in expected:
            opcode = _OPCODE.match(text, text.rfind("\n", 0, position) + 1, position)
            if opcode is not None and signature(opcode[1]) is None:
                return opcode_error(opcode.start(1), opcode[1])
            hint = suggestion(last[:-1], all_attributes())
            return Rejected(last, f"unknown attribute {last[:-1]}{hint}")
        wanted = texts(_EXPECTED)["value"].get(last.type) or expectation(expected)
        return Rejected(position, f"{last[:-1]} needs a value: expected {wanted}, found {found}")
    word = _UNKNOWN_WITH_WORD.search(text, max(0, position - _LOOKED_BACK), position)
    if word is not None and word[1] not in all_attributes():
        # The word after a key that is not known was read as the name of what follows.
        hint = suggestion(word[1], all_attributes())
        return Rejected(word.start(1), f"unknown attribute {word[1]}{hint}")
    if kind.startswith("KEY"):
        line_start = text[text.rfind("\n", 0, position) + 1 : position].split("//")[0].strip()
        if "PRIMITIVE" in expected and "RPAR" in expected:
            return Rejected(position, f"missing ')': close the operands before the attribute {token[:-1]}")
        if line_start in ("", "ROOT", "{") and ("NAME" in expected or "IDENT" in expected):
            return Rejected(position + len(token) - 1, f"expected a space between {token[:-1]} and =")
        if "KEY_METADATA_STRING" in expected:
            hint = suggestion(token[:-1], OpMetadata.__struct_fields__)
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
    """Another format that the text resembles, to append to a message; empty if it might be HLO."""
    for pattern, what in _FOREIGN:
        if pattern.match(text):
            return f" (this looks like {what}; hlofuse reads HLO text, as written by --xla_dump_hlo_as_text)"
    return ""


def opcode_error(position: Place, opcode: str) -> Rejected:
    return Rejected(position, f"unknown opcode {opcode}{suggestion(opcode, OPCODES)}")
