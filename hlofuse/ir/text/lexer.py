"""Cuts HLO text into the tokens of `grammars/hlo.lark`, as XLA's lexer does (`hlo/parser/hlo_lexer.cc`). The
patterns come from the grammar; added are decisions by context and XLA's checks of single tokens."""

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer

from hlofuse.ir.text.tree.nodes import HANDLERS, Handler, Parts, Span, place
from .errors import Rejected
from .text import UNSIGNED_LIMIT, bad_escape
from .tree import values  # noqa: F401  # they register

_JSON_END = re.compile(r'[^{}"]*+(?:"(?:[^"\\]++|\\[^\n])*+"[^{}"]*+)*+')


class HloLexer(Lexer):
    """A lark lexer; one per grammar and stateless, so texts can be cut concurrently."""

    __future_interface__ = 2

    def __init__(self, lexer_conf: Any) -> None:
        terminals = {t.name: t for t in lexer_conf.terminals}
        ignored = "|".join(terminals[n].pattern.to_regexp() for n in lexer_conf.ignore)
        self._skip = re.compile(rf"(?:{ignored})*+")
        identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
        self._keywords = dict[str, str]()
        self._keys = dict[str, str]()
        punctuation = {}
        patterns = []
        for name, t in terminals.items():
            regexp = t.pattern.to_regexp()
            if name in lexer_conf.ignore:
                continue
            if name.startswith("KEY_"):
                self._keys |= dict.fromkeys(re.findall(r"[\w\-]+=", regexp.replace("\\", "")), name)
            elif t.pattern.type == "str" and identifier.fullmatch(t.pattern.value):
                self._keywords[t.pattern.value] = name
            elif t.pattern.type == "str":
                punctuation[t.pattern.value] = name
            elif t.priority:
                patterns.append((t.priority, name, regexp))
            else:  # a few names to choose from: LAYOUT_INT
                self._keywords |= dict.fromkeys(re.findall(r"\w+", regexp.replace("?:", "")), name)
        groups = [f"(?P<{name}>{regexp})" for _, name, regexp in sorted(patterns, reverse=True)]
        marks = "|".join(re.escape(p) for p in sorted(punctuation, key=len, reverse=True))
        groups.append(f"(?P<PUNCTUATION>{marks})")
        self._punctuation = punctuation
        self._token = re.compile("|".join(groups))
        # XLA looks one token ahead: an integer, not a number that merely starts like one.
        by_name = {name: regexp for _, name, regexp in patterns}
        numbers = "|".join(by_name[n] for n in ("DECIMAL", "DIM_LABELS", "DXD", "PAD"))
        self._opens_layout = re.compile(rf"\{{(?:{ignored})*+(?:(?!{numbers}){by_name['INT']}|:)")

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        text = lexer_state.text
        if isinstance(text, str):  # lark before 1.3
            return self.tokens(text, 0, len(text))
        return self.tokens(text.text, text.start, text.end)

    def tokens(self, text: str, pos: int, end: int) -> Iterator[Token]:
        skip = self._skip.match
        token_at = self._token.match
        keywords = self._keywords
        keys = self._keys
        punctuation = self._punctuation
        previous = ""
        frontend = 0  # 1 after frontend_attributes=, 2 inside its braces
        while True:
            pos = skip(text, pos, end).end()  # type: ignore[union-attr]  # matches the empty text too
            if pos == end:
                return
            match = token_at(text, pos, end)
            if match is None:
                raise _no_token(text, pos, end)
            kind = match.lastgroup
            value = match[0]
            if kind == "PUNCTUATION":
                kind = punctuation[value]
                if value == "{":
                    if previous == "RSQB" and self._opens_layout.match(text, pos, end):
                        kind = "LAYOUT_OPEN"
                    elif previous == "KEY_BACKEND_CONFIG" or (frontend == 2 and previous.startswith("KEY")):
                        value = _balanced_braces(text, pos, end)
                        kind = "JSON"
                    elif previous == "KEY_FRONTEND":
                        frontend = 2
                elif value == "}":
                    frontend = 0
            elif kind == "KEY":
                kind = keys.get(value, kind)
            elif kind == "IDENT":
                kind = keywords.get(value, kind)
            elif kind == "INT":
                if len(value) > 18 and not -UNSIGNED_LIMIT // 2 <= int(value[:40]) < UNSIGNED_LIMIT:
                    raise Rejected(pos, f"the integer {value[:40]} does not fit into 64 bits")
            elif kind == "STRING":
                if "\\" in value and (bad := bad_escape(value)) is not None:
                    raise Rejected(pos + bad, f"unknown escape {value[bad : bad + 2]} in a string")
            elif kind == "DECIMAL" and value[-1] == ")" and not _payload_fits(value):
                raise Rejected(pos, f"the payload of {value} does not fit a NaN")
            yield Token(kind or "", value, pos, None, None, None, None, pos + len(value))
            previous = kind or ""
            pos += len(value)


def _payload_fits(nan: str) -> bool:
    digits = nan[nan.index("x") + 1 : -1]
    return len(digits) <= 16 and 0 < int(digits, 16) < 1 << 52


def _balanced_braces(text: str, start: int, end: int) -> str:
    """The balanced `{…}` at `start`; braces inside strings do not count."""
    depth = 0
    pos = start
    while pos < end:
        char = text[pos]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if not depth:
                return text[start : pos + 1]
        else:
            raise Rejected(pos, "unterminated string")
        pos = _JSON_END.match(text, pos + 1, end).end()  # type: ignore[union-attr]  # always matches
    raise Rejected(start, "unterminated `{`: no matching `}` follows")


def _no_token(text: str, pos: int, end: int) -> Rejected:
    char = text[pos]
    if text.startswith("/*", pos, end):
        return Rejected(pos, "unterminated comment: no `*/` follows")
    if char in "\"'":
        return Rejected(pos, f"unterminated string: no closing {char} follows")
    if char == "%":
        return Rejected(pos, "expected a name after %, beginning with a letter or underscore")
    if char == "\0":
        return Rejected(pos, "a NUL character: is this a binary file?")
    if text.startswith(("nan(", "-nan("), pos, end):
        return Rejected(pos, "expected a NaN payload such as nan(0x8000)")
    if char == ";":
        return Rejected(pos, "unexpected character ';': instructions end without one")
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    return Rejected(
        pos, f"unexpected character {shown!r}" if char.isprintable() else f"unexpected character {shown}"
    )


def _end(part: Any) -> int:
    end: int | None = part.end_pos if isinstance(part, Token) else part.end
    return end or 0


def _callback(function: Handler) -> Handler:
    wants_spans = getattr(function, "wants_spans", False)

    def call(parts: Parts) -> Span:
        if not parts:
            return Span(function([]), -1, -1)
        start, end = place(parts[0]), _end(parts[-1])
        if end < 0 or start < 0:  # an empty rule at an end
            filled = [p for p in parts if place(p) >= 0]
            start, end = (place(filled[0]), _end(filled[-1])) if filled else (-1, -1)
        if not wants_spans:
            parts = [p.value if type(p) is Span else p for p in parts]
        return Span(function(parts), start, end)

    return call


class Callbacks:
    def __init__(self) -> None:
        for rule, function in HANDLERS.items():
            setattr(self, rule, _callback(function))

    def __getattr__(self, rule: str) -> Handler:
        if rule.startswith("_") or not rule.islower():
            raise AttributeError(rule)
        # A rule without a handler is the list of its parts.
        return _callback(list)
