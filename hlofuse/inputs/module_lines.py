"""Where the lines of a module begin and end in a text that holds more than that."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hlofuse.ir.text.patterns import NAME

_GAP = 200
"""Lines of other threads that may stand between two lines of a logged module."""
_LONGEST = 1000
"""Characters before the first line of a module that may be repeated before the others."""

_COMPUTATION = rf"\s*(?:ENTRY )?%?{NAME} "
_HEAD = re.compile(rf"{_COMPUTATION}(?:\((?:\)|{NAME}: |/\*).* )?\{{\s*(?://.*)?", re.ASCII)
_HEAD_BEGINS = re.compile(rf"{_COMPUTATION}\((?:\)|{NAME}: |/\*)[^{{}}]*(?:\{{[\d,]*\}}[^{{}}]*)*", re.ASCII)
_ONE_LINE = re.compile(rf"{_COMPUTATION}(?!= )[^{{]*\{{.+\}}\s*", re.ASCII)
_CLOSE = re.compile(r"(\s*\}(?:, execution_thread=.*|\s*//.*)?)(?:\)?[\"'`]{1,3}.*|\s*)")
_BETWEEN = re.compile(
    r'\s*(?:|//.*|/\*.*\*/|(?:FileNames|FunctionNames|FileLocations|StackFrames)\s*|\d+ [{"].*)', re.ASCII
)
_ENDS = re.compile(r"\s*(?:```|~~~|## END_GRAPH|HloModule )")
LOGGED = re.compile(r"[IWEFD]\d{4} (?! *=)|\[?\d{4}-\d\d-\d\d[ T]", re.ASCII)


@dataclass(slots=True)
class ModuleLines:
    """The lines of one module, without what a log writes before each; blank where others stood between."""

    name: str
    first: int
    """Where its first line stands among all lines; from 0."""
    lines: list[str]
    heads: list[int] = field(default_factory=list)
    """The lines in which its computations begin, as places in `lines`."""
    has_entry: bool = False
    is_open: bool = False
    """True if the last computation has no end."""
    differs: bool = False
    """True if the lines are not those of the text."""

    @property
    def size(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines)

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def module_lines(lines: list[str], name: str, first: int, column: int) -> ModuleLines | None:
    """The module whose header begins at a line and column; None where no computation follows."""
    prefix = _prefix(lines, first, column)
    found = ModuleLines(name, first, [lines[first][column:]], differs=column > 0)
    out = found.lines
    length, gap, in_head = 1, 0, False
    depth = _depth(out[0])  # a header written by hand may go on for some lines
    for number in range(first + 1, len(lines)):
        line = lines[number]
        match = prefix.match(line) if prefix is not None else None
        if (prefix is not None and match is None and line.strip()) or (prefix is None and LOGGED.match(line)):
            gap += 1
            if gap > _GAP:
                break
            out.append("")
            found.differs = True
            continue
        gap = 0
        if match is not None:
            line = line[match.end() :]
        if depth > 0 and len(out) < _GAP:
            depth += _depth(line)
        elif found.is_open:
            close = _CLOSE.fullmatch(line)
            if in_head:
                in_head = not line.rstrip().endswith("{")
            elif close is not None:
                found.is_open = False
                line = close[1]
            elif _ENDS.match(line):
                break
        elif _BETWEEN.fullmatch(line):
            out.append(line)
            continue
        elif _ENDS.match(line):
            break
        else:
            in_head = _HEAD.fullmatch(line) is None
            found.is_open = not in_head or _HEAD_BEGINS.fullmatch(line) is not None
            if not found.is_open and _ONE_LINE.fullmatch(line) is None:
                break
            found.heads.append(len(out))
            found.has_entry |= line.lstrip().startswith("ENTRY ")
        out.append(line)
        length = len(out)
    del out[length:]
    return found if found.heads else None


def sections(lines: list[str]) -> list[ModuleLines]:
    """The parts between `// -----` that have computations, for texts whose modules have no header."""
    found: list[ModuleLines] = []
    current: ModuleLines | None = None
    for number, line in enumerate(lines):
        if line.startswith("// -----"):
            current = None
            continue
        if _HEAD.fullmatch(line):
            entry = line.lstrip().startswith("ENTRY ")
            if current is None:
                current = ModuleLines("", number, [], has_entry=True)
                found.append(current)
            current.heads.append(len(current.lines))
            if entry or not current.name:
                current.name = line.replace("ENTRY ", "").split()[0].strip("%")
        if current is not None:
            current.lines.append(line)
    return found if len(found) > 1 else []


def _depth(line: str) -> int:
    return line.count("{") - line.count("}")


def _prefix(lines: list[str], first: int, column: int) -> re.Pattern[str] | None:
    """What stands before each line, as before the first up to its numbers; None if only before the first."""
    text = lines[first][:column]
    if not 0 < len(text) < _LONGEST:
        return None
    core = re.sub(r"\d+", r"\\d+", re.sub(r"(?:\\ )+", " +", re.escape(text.rstrip())))
    end = text[len(text.rstrip()) :]
    pattern = re.compile(rf"{core}(?:{end}|\s*$)" if core else end, re.ASCII)
    for line in lines[first + 1 : first + _GAP]:
        if line.strip():
            if pattern.match(line):
                return pattern
            if _HEAD.fullmatch(line) or _BETWEEN.fullmatch(line):
                return None
    return None
