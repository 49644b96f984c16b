"""The first and last lines of modules within a longer text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hlofuse.ir.text.patterns import NAME, PARAMETERS_OF_HEAD, nested_pattern
from hlofuse.ir.text.shapes import split_tuple

_GAP = 200
"""The limit of other threads' lines between two lines of a logged module."""
_LONGEST = 1000
"""The limit of a line prefix, in characters."""

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
    """The lines of one module without log prefixes; other lines between them are blank."""

    name: str
    first: int
    """The number of its first line in the text, from 0."""
    lines: list[str]
    heads: list[int] = field(default_factory=list)
    """Indices in `lines` of the first lines of computations."""
    has_entry: bool = False
    is_open: bool = False
    differs: bool = False

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
    """The parts between `// -----` with computations, for texts whose modules have no header."""
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
    """A pattern for the prefix of each line, numbers generalized; None if only the first has one."""
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


# A dump that was cut short, closed where it ends, so that what is there can be read.


_BRACES = nested_pattern(r"\{", r"\}", r'[^{}"\n]++', 3)
_ABOUT_RESULT = re.compile(rf", (?:entry_computation_layout|input_output_alias)={_BRACES}")
_ENTRY_LAYOUT = re.compile(rf", entry_computation_layout=({_BRACES})")
_PROGRAM_SHAPE = re.compile(r" (\(.*) \{\s*(?://.*)?$")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_INSTRUCTION = re.compile(rf"\s*(ROOT )?%?({NAME}) = .*\)", re.ASCII)
_PARAMETER = re.compile(r" parameter\((\d{1,9})\)", re.ASCII)
_SIGNATURE = re.compile(rf"(\s*(?:ENTRY )?(%?){NAME} )\(.*\{{\s*", re.ASCII)


def completions(lines: list[str], head: int) -> Iterator[tuple[list[str], int]]:
    """Completions of a module whose last computation, from line `head`, has no end.

    Each comes with the number of its original lines: first all complete lines, then one fewer each time. The
    last complete instruction is the root. Missing parameters are taken from the signature.
    """
    end = len(lines)
    while end > head + 1 and not _is_complete(lines[end - 1]):
        end -= 1
    for last in (end, end - 1):
        while last > head + 1 and not _INSTRUCTION.match(lines[last - 1]):
            last -= 1
        if last <= head + 1:
            yield drop_result_attributes(lines[:head]), head
            return
        yield _close_computation(lines, head, last), last


def drop_result_attributes(lines: list[str]) -> list[str]:
    """The module without header attributes about the result, which is missing."""
    return [_ABOUT_RESULT.sub("", lines[0]), *lines[1:]]


def lacks_entry(header: str, last: str) -> bool:
    """True if the last computation, given its first line, does not match the entry's layout."""
    layout, signature = _ENTRY_LAYOUT.search(header), _PROGRAM_SHAPE.search(last)
    if layout is None or signature is None:
        return False
    names_off = re.sub(rf"{NAME}: ", "", signature[1])
    entry, found = (re.sub(r"\{[^{}]*\}|/\*.*?\*/|\s", "", s) for s in (layout[1][1:-1], names_off))
    return entry != found


def _is_complete(line: str) -> bool:
    """True for an instruction that continues to the end of its line."""
    plain = _STRING.sub("", line)
    return (
        _INSTRUCTION.match(line) is not None
        and '"' not in plain
        and all(plain.count(a) == plain.count(b) for a, b in ("()", "{}", "[]"))
        and re.search(r"[=,]\s*$|, ?[a-z_\-]*$", plain) is None
    )


def _close_computation(lines: list[str], head: int, last: int) -> list[str]:
    body = lines[head + 1 : last]
    matches = [m for m in map(_INSTRUCTION.match, body) if m is not None]
    if any(m[1] for m in matches):
        return [*lines[:last], "}"]
    names = {m[2] for m in matches}
    there = {int(n) for line in body for n in _PARAMETER.findall(line)}
    signature = _SIGNATURE.fullmatch(lines[head])
    expected = PARAMETERS_OF_HEAD.findall(lines[head]) if signature is not None else []
    layout = _ENTRY_LAYOUT.search(lines[0]) if lines[head].lstrip().startswith("ENTRY") else None
    shapes = split_tuple(layout[1][1:-1].rpartition("->")[0]) if layout is not None else None
    if shapes is not None and len(shapes) in (len(expected), len(shapes) if not expected else -1):
        expected = [
            (expected[n][0] if expected else f"missing_parameter.{n}", s) for n, s in enumerate(shapes)
        ]
    missing = [n for n in range(max(len(expected), max(there, default=-1) + 1)) if n not in there]
    if missing and missing[-1] >= len(expected):  # nothing says what they are: the others are renumbered
        place = {n: k for k, n in enumerate(sorted(there))}
        body = [_PARAMETER.sub(lambda m: f" parameter({place[int(m[1])]})", line) for line in body]
        missing = []
    percent = signature[2] if signature is not None else ""
    added = []
    for n in missing:
        name, shape = expected[n]
        added.append(f"  {percent}{f'{name}.{n}' if name in names else name} = {shape} parameter({n})")
    root = re.sub(r"^\s*", "  ROOT ", body[-1])
    opened = signature[1] + "{" if signature is not None else lines[head]
    return [*drop_result_attributes(lines[:head]), opened, *body[:-1], root, *added, "}"]
