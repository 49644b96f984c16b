"""HLO text inside other text: logs, Markdown, saved graphs, string literals, several modules, cut dumps. A
text that is only a module is recognized by its first and last line, and is not changed."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from hlofuse.format import printable
from hlofuse.ir import HlofuseError, HloParseError, Record, packaged
from hlofuse.ir.text.errors import Rejected, locate
from hlofuse.ir.text.patterns import NAME
from .dump_directory import far_largest, listed_by_size
from .module_lines import LOGGED, ModuleLines, lacks_entry, module_lines, sections
from .part import Part, read_part, with_attributes_joined
from .suggest import did_you_mean

_COMMENTS = r"(?:[ \t\n]++|//[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_COMMENT_LINES = re.compile(_COMMENTS)
_START = re.compile(rf"{_COMMENTS}HloModule ")
_HEADER = re.compile(rf"HloModule ({NAME})(?:,[^\n]*+)?[ \t]*+(?=\n|\Z)", re.ASCII)
_ATTRIBUTES = re.compile(
    rf"HloModule {NAME}, (?:is_scheduled|entry_computation_layout|input_output_alias)=.*", re.ASCII
)
_QUOTE = re.compile(r"""([bBuU]?['"])(?:\\n|\s)*+$""")
_SECTIONS = re.compile(r"\n(?:// -----|\s*(?:```|~~~))")
_STRING = r"""(['"])((?:(?!\1)[^\\\n]|\\.)*+)\1"""
_LITERAL = re.compile(rf"\s*[bBuU]?{_STRING}")
_LITERALS = re.compile(r"""(?:\s*[bBuU]?(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"))++""")
_TOKEN = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))|[^\\]++", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": ""}


class OtherFormatError(HlofuseError):
    """The text is of a format that people take for HLO."""


class Excerpt(Record):
    text: str
    source: str
    note: str | None = None  # Location of the module and its truncation; None for a text that is only that
    literal: int | None = None
    """The offset of the module's string literal; None if its lines have the line numbers of the source."""
    part: Part | None = None  # What there is of a module whose entry is not whole; None for others
    header: str = ""  # The line that begins with HloModule; empty for a text that is not looked into

    def locate(self, error: HloParseError) -> HloParseError:
        if self.literal is not None:
            offset = _offset_in_literal(self.source, self.literal, error.line, error.column)
        elif self.note is None:
            return error
        else:
            start = _offset(self.source, error.line - 1)
            line = self.source[start:].partition("\n")[0]
            offset = start + error.column - 1
            if line.endswith(error.source_line):
                offset += len(line) - len(error.source_line)
        return locate(self.source, Rejected(offset, error.message), error.filename)


def find_module(text: str, name: str, module: str | None = None) -> Excerpt:
    """The module in `text`, called `name` in messages: the only one, the far largest, or the one called
    `module` (by its name or number). Raises `HlofuseError` where there is none, or no choice."""
    start = _START.match(text)
    if start is not None and _is_module_only(text, start.end()):
        only = _HEADER.match(text, start.end() - len("HloModule "))
        if module is not None and (
            only is None or module not in (only[1], only[1].removeprefix("jit_"), "1")
        ):
            raise HlofuseError(_SINGLE)
        return Excerpt(text, text)
    modules = _modules(text)
    if not modules:
        other = other_format(text) if start is None else None
        if other is not None:
            raise OtherFormatError(f"{printable(name)} is {other}")
        if module is not None:
            raise HlofuseError(_SINGLE)
        return Excerpt(text, text)
    chosen = _pick(modules, name, module)
    return _excerpt(text, name, modules, chosen, start is not None)


def header_in(text: str) -> str:
    """The first line with a header that has attributes, from HloModule on; empty without one."""
    header = _ATTRIBUTES.search(text)
    return header[0] if header is not None else ""


_SINGLE = "--module needs a dump directory or a file with several modules; this input is a single module"


def _is_module_only(text: str, begin: int) -> bool:
    """True for a text from a header to a closing brace, without another header."""
    if text.find("HloModule ", begin) >= 0:
        return False
    end = len(text)
    while True:
        before = text.rfind("\n", 0, end)
        line = text[before + 1 : end].strip()
        if line and not line.startswith("//"):
            break
        if before < begin:
            return False
        end = before
    if not line.startswith("}"):
        return False
    return text.rfind("\nENTRY ", begin) >= 0


def _modules(text: str) -> list[ModuleLines]:
    found = []
    lines = with_attributes_joined(text.split("\n")) if "HloModule " in text else []
    pos = row = start = counted = 0  # the line that pos is in, where it begins, and how far was looked
    while (pos := text.find("HloModule ", pos)) >= 0:
        row += text.count("\n", counted, pos)
        start = max(text.rfind("\n", counted, pos) + 1, start)
        counted = pos
        quote = _QUOTE.search(text, max(start, pos - 64), pos)
        literal = _LITERALS.match(text, quote.start()) if quote is not None else None
        header = _HEADER.match(text, pos)
        one = None
        if literal is not None and "\\n" in literal[0]:
            inner = "".join(part for part, _ in _parts(literal[0])).lstrip("\n").split("\n")
            column = max(inner[0].find("HloModule "), 0)
            header = _HEADER.match(inner[0], column)
            one = module_lines(inner, header[1], 0, column) if header is not None else None
            if one is not None:
                one.literal, one.first = literal.start(), row
            pos = literal.end()
        elif header is not None:
            pos = header.end()
            if "//" not in lines[row][: header.start() - start]:
                one = module_lines(lines, header[1], row, header.start() - start)
            if one is not None:
                pos += sum(map(len, lines[row + 1 : one.last + 1])) + one.last - row
        else:
            pos = literal.end() if literal is not None else pos + 1
        if one is not None:
            found.append(one)
    return found or (sections(text.split("\n")) if _SECTIONS.search(text) else [])


def _pick(modules: Sequence[ModuleLines], name: str, module: str | None) -> ModuleLines:
    if module is None:
        chosen = far_largest(modules, lambda m: m.size)
        if chosen is not None:
            return chosen
        problem = f"{len(modules)} modules; select one with --module"
    else:
        matching = [m for m in modules if m.name in (module, f"jit_{module}")]
        if not matching and module.isascii() and module.isdigit():
            matching = [m for n, m in enumerate(modules, 1) if n == int(module[:18])]
        if len(matching) == 1:
            return matching[0]
        problem = f"no module {printable(module)}{did_you_mean(module, [m.name for m in modules])}"
        if matching:
            problem = f"{len(matching)} modules {printable(module)}; select one by its number"
    width = max(len(printable(m.name)) for m in modules)
    texts = (f"{n:>3}  {printable(m.name):<{width}}  {_lines(m):<16}" for n, m in enumerate(modules, 1))
    listing = listed_by_size(zip(texts, [m.size for m in modules], strict=True))
    raise HlofuseError(f"{printable(name)} has {problem}:\n{listing}")


def _lines(module: ModuleLines) -> str:
    return f"lines {module.first + 1}–{module.last + 1}"


def _excerpt(
    text: str, name: str, modules: Sequence[ModuleLines], chosen: ModuleLines, begins_here: bool
) -> Excerpt:
    literal = chosen.literal
    rest = _COMMENT_LINES.match(text, _offset(text, chosen.last + 1))
    has_more = rest is not None and rest.end() < len(text)
    padding = "" if literal is not None else "\n" * chosen.first
    whole = begins_here and len(modules) == 1
    where = "found in "
    if len(modules) > 1:
        where = f"module {modules.index(chosen) + 1} of {len(modules)}, in "
    if literal is not None:
        where += f"a string literal in line {chosen.first + 1}"
    else:
        around = _surroundings(text, chosen)
        where += _lines(chosen) + (f" of {around}" if around else "")
    lines, cut = chosen.lines, ""
    part = read_part(lines, chosen.first, chosen.header) if lacks_entry(chosen) else None
    if part is not None:
        part.name = name
    elif chosen.is_open:
        lines = lines[: chosen.heads[-1]]
        cut = f"truncated after line {chosen.first + len(lines)}"
    note = "; ".join(filter(None, (where if not whole or has_more else "", cut)))
    written = padding + "\n".join(lines) + "\n" if note else text
    return Excerpt(written, text, note or None, literal, part, chosen.header)


def _offset(text: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _surroundings(text: str, module: ModuleLines) -> str:
    """The kind of the enclosing text; empty if it has only comments."""
    start = _offset(text, module.first)
    before = text[:start].rstrip().rpartition("\n")[2]
    if before.startswith(("```", "~~~")):
        return "a Markdown file"
    if before.startswith("## BEGIN_GRAPH"):
        return "a PyTorch/XLA graph file"
    if LOGGED.match(before) or LOGGED.match(text, start):
        return "a log"
    return "a longer text" if before and not before.startswith("//") else ""


def _parts(literals: str) -> Iterator[tuple[str, int]]:
    for literal in _LITERAL.finditer(literals):
        begin, end = literal.span(2)
        for token in _TOKEN.finditer(literals, begin, end):
            byte, code, letter = token.groups()
            character = (
                chr(int(byte or code, 16))
                if byte or code
                else _LETTERS.get(letter, letter)
                if letter
                else token[0]
            )
            yield character, token.start()


def _offset_in_literal(source: str, literal: int, line: int, column: int) -> int:
    match = _LITERALS.match(source, literal)
    assert match is not None
    parts = list(_parts(match[0]))
    text = "".join(part for part, _ in parts)
    line += len(text) - len(text.lstrip("\n"))
    for part, offset in parts:
        for n, character in enumerate(part):
            if line <= 1 and column <= 1:
                return literal + offset + n
            if line <= 1:
                column -= 1
            elif character == "\n":
                line -= 1
    return match.end() - 1


@cache
def _formats() -> list[tuple[re.Pattern[str], str]]:
    found = packaged(__file__, "other_formats")
    return [(re.compile(f["begins"], re.MULTILINE), f["is"]) for f in found["format"]]


def other_format(text: str) -> str | None:
    """The format of files often confused with HLO dumps; None for others."""
    start = text[:65536].lstrip()
    if start.startswith(("HloModule", "ENTRY", "%")):
        return None
    return next((what for pattern, what in _formats() if pattern.match(start)), None)
