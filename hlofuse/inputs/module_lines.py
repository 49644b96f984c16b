"""The first and last lines of modules within a longer text."""

import re

from msgspec import Struct

from hlofuse.ir.text.patterns import NAME, nested_pattern

_GAP = 200  # the limit of other threads' lines between two lines of a logged module
_LONGEST = 1000  # the limit of a line prefix, in characters
_COMPUTATION = rf"\s*(?:ENTRY )?%?{NAME} "
HEAD = re.compile(rf"{_COMPUTATION}(?:\((?:\)|{NAME}: |/\*).* )?\{{\s*(?://.*)?", re.ASCII)
HEAD_BEGINS = re.compile(rf"{_COMPUTATION}\((?:\)|{NAME}: |/\*)[^{{}}]*(?:\{{[\d,]*\}}[^{{}}]*)*", re.ASCII)
_ONE_LINE = re.compile(rf"{_COMPUTATION}(?!= )[^{{]*\{{.+\}}\s*", re.ASCII)
CLOSE = re.compile(r"(\s*\}(?:, execution_thread=.*|\s*//.*)?)(?:\)?[\"'`]{1,3}.*|\s*)")
_BETWEEN = re.compile(
    r'\s*(?:|//.*|/\*.*\*/|(?:FileNames|FunctionNames|FileLocations|StackFrames)\s*|\d+ [{"].*)', re.ASCII
)
_SEPARATES = re.compile(r"// -----|\s*(?:```|~~~)")
_ENDS = re.compile(r"\s*(?:```|~~~|## END_GRAPH|HloModule )")
LOGGED = re.compile(r"[IWEFD]\d{4} (?! *=)|\[?\d{4}-\d\d-\d\d[ T]", re.ASCII)


class ModuleLines(Struct):
    """The lines of one module without log prefixes; other lines between them are blank."""

    name: str
    first: int  # The number of its first line in the text, from 0
    lines: list[str]
    heads: list[int] = []  # Indices in `lines` of the first lines of computations
    has_entry: bool = False
    literal: int | None = None  # Offset of its string literal in the text; None for one that stands in none
    is_open: bool = False
    differs: bool = False

    @property
    def size(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines)

    @property
    def header(self) -> str:
        """The line that begins with HloModule, and those that it goes on in."""
        return "".join(self.lines[: self.heads[0]])

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
        is_other = LOGGED.match(line) if prefix is None else match is None and line.strip()
        if is_other:
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
            close = CLOSE.fullmatch(line)
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
            in_head = HEAD.fullmatch(line) is None
            found.is_open = not in_head or HEAD_BEGINS.fullmatch(line) is not None
            if not found.is_open and _ONE_LINE.fullmatch(line) is None:
                break
            found.heads.append(len(out))
            found.has_entry |= line.lstrip().startswith("ENTRY ")
        out.append(line)
        length = len(out)
    del out[length:]
    return found if found.heads else None


def sections(lines: list[str]) -> list[ModuleLines]:
    """The parts between `// -----` with computations, and fenced ones with an entry; no headers needed."""
    found = []
    current = None
    fenced = False
    for number, line in enumerate(lines):
        if _SEPARATES.match(line) is not None:
            current, fenced = None, line[:2] != "//"
            continue
        if HEAD.fullmatch(line):
            entry = line.lstrip().startswith("ENTRY ")
            if current is None:
                current = ModuleLines("", number, [], has_entry=not fenced)
                found.append(current)
            current.heads.append(len(current.lines))
            current.has_entry |= entry
            if entry or not current.name:
                current.name = line.replace("ENTRY ", "").split()[0].strip("%")
        if current is not None:
            current.lines.append(line)
    found = [one for one in found if one.has_entry]
    return found if len(found) > 1 else []


def _depth(line: str) -> int:
    return line.count("{") - line.count("}")


def _prefix(lines: list[str], first: int, column: int) -> re.Pattern[str] | None:
    """A pattern for the prefix of each line, numbers generalized; None if only the first has one."""
    text = lines[first][:column]
    if not 0 < len(text) < _LONGEST:
        return None
    core = re.sub(r"(?:\\ )+", " +", re.escape(text.rstrip()))
    core = re.sub(r"\d+", r"\\d+", core)
    end = text[len(text.rstrip()) :]
    pattern = re.compile(rf"{core}(?:{end}|\s*$)" if core else end, re.ASCII)
    for line in lines[first + 1 : first + _GAP]:
        if line.strip():
            if pattern.match(line):
                return pattern
            if HEAD.fullmatch(line) or _BETWEEN.fullmatch(line):
                return None
    return None


_BRACES = nested_pattern(r"\{", r"\}", r'[^{}"\n]++', 3)
_ENTRY_LAYOUT = re.compile(rf", entry_computation_layout=({_BRACES})")
_SIGNATURE = re.compile(r" (\(.*) \{\s*(?://.*)?$")
_NUMBERED = re.compile(r"\s*%?[\w.\-]*\.\d+ ", re.ASCII)
_PARAMETER = re.compile(r" = (.*) parameter\((\d{1,9})\)", re.ASCII)
_ROOT = re.compile(r"\s*ROOT [^=\n]*= (.*?) [a-z][a-z0-9\-]*\(", re.ASCII)


def lacks_entry(module: ModuleLines) -> bool:
    """True if the end of the entry is not among the lines. Without the word ENTRY the last computation is the
    entry, as for XLA's parser, unless a printer wrote it: printers write the word."""
    last = module.lines[module.heads[-1] :]
    if module.has_entry:
        return module.is_open and last[0].lstrip().startswith("ENTRY ")
    if module.is_open:
        return True
    layout = _ENTRY_LAYOUT.search(module.header)
    signature = _SIGNATURE.search(last[0])
    if layout is None:
        return signature is not None or _NUMBERED.match(last[0]) is not None
    shapes = _shapes_of_body(last) if signature is None else re.sub(rf"{NAME}: ", "", signature[1])
    entry, found = (re.sub(r"\{[^{}]*\}|/\*.*?\*/|\s", "", s) for s in (layout[1][1:-1], shapes))
    return entry != found


def _shapes_of_body(lines: list[str]) -> str:
    """`(parameters)->result` of a computation that is written without."""
    parameters = sorted((int(n), shape) for line in lines for shape, n in _PARAMETER.findall(line))
    root = next((m[1] for m in map(_ROOT.match, reversed(lines)) if m is not None), "")
    return f"({','.join(shape for _, shape in parameters)})->{root}"
