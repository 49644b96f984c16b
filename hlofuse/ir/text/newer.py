"""Reads a text of a newer XLA: unknown parts are set aside, and put back once the rest is read. Each line is
parsed with text that the grammar reads in place of an unknown attribute, field, layout property, element type
or opcode. The module gets the line's own text again, so that it is printed as it was written. An instruction
of an unknown opcode becomes a custom call with a side effect, which no pass touches."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.attributes.parsers import (
    LAYOUT_PROPERTIES,
    LAYOUT_PROPERTY,
    METADATA_FIELDS,
    attributes_of,
    items_of,
    loose_shape,
    patterns,
    readable_metadata,
    readable_shapes,
)
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.opcodes import OPCODES, values
from hlofuse.ir.record import replace
from hlofuse.ir.shape import ARRAY_TYPES, OTHER_TYPES
from hlofuse.ir.unknown import OPAQUE, Unknown
from .errors import Rejected, locate, type_error
from .patterns import COMMON_ATTRIBUTES, JSON, OWN, STRING
from .signatures import COMMON, MODULE_ATTRIBUTES, signature

_SHORT, _LONG = 6, 12
"""Lengths of names: the end of a short one may differ from a known one's, a long one has two slips."""


def misspelt(name: str, vocabulary: Iterable[str]) -> str | None:
    """The known name that `name` is a slip of the pen away from; None where it is a name of its own. Short
    names of one family differ at their end: `erf` and `erfc`, `sine` and `sinh`."""
    slips = 2 if len(name) >= _LONG else 1
    numbered = name.rstrip("0123456789")
    found = []
    for other in vocabulary:
        if numbered == other:
            return None
        if abs(len(other) - len(name)) > slips or len(other) < 3:
            continue
        is_of_family = len(other) <= len(name) < _SHORT and name[:-1] in (other, other[:-1])
        if not is_of_family and (distance := _distance(name, other)) <= slips:
            found.append((distance, other[0] != name[0], other))
    return min(found)[2] if found else None


def _distance(a: str, b: str) -> int:
    """Letters to insert, remove, change or swap with the next one to turn `a` into `b`."""
    rows = [list(range(len(b) + 1))]
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and other == a[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def misspelt_type(name: str) -> str | None:
    """The message for another language's name of a type, and for a known one with two letters swapped."""
    message = type_error(0, name).message
    if re.match("float|u?int|i", name) or ("did you mean" in message and not re.search(r"\d", name)):
        return message
    for i in range(len(name) - 1):
        swapped = name[:i] + name[i + 1] + name[i] + name[i + 2 :]
        if swapped in ARRAY_TYPES and swapped != name:
            return f"unknown element type {name}; did you mean {swapped}?"
    return None


class _Masked:
    """A text of known parts, and the lines that were changed for it."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.written = dict[int, tuple[str, str]]()  # Changed lines by number: computation, line as written
        self.unknown = Unknown()
        self.has_signatures = False
        self._number = 0
        self._accepted = dict[tuple[str, str], bool]()
        computation = ""
        loose, _, head, _ = patterns()
        odd_shapes = self._has_odd_shapes(text)
        computations = set[str]()
        for number, line in enumerate(self.lines):
            self._number = number
            new = readable_shapes(line, self._note_shape) if odd_shapes else line
            if (match := loose.fullmatch(new)) is not None:
                new = self._instruction(new, match, new != line, computations)
            elif new.startswith("HloModule "):
                new = self._without(new, new.find(","), "header field", MODULE_ATTRIBUTES)
            elif new.startswith("},"):
                new = self._without(new, 1, "attribute", values("execution_thread"))
            elif new.endswith("{") and (opening := head.fullmatch(new)) is not None:
                computation = opening[1]
                computations.add(computation)
                if odd_shapes and "->" in new:  # it need not agree with types that stand for others
                    self.has_signatures = True
                    new = new[: opening.end(1)] + " {"
            if new != line:
                self.lines[number] = new
                self.written[number] = computation, line

    @staticmethod
    def _has_odd_shapes(text: str) -> bool:
        found = set(re.findall(r"([a-z][a-z0-9]*+)\[[\d<?\]]", text)) - ARRAY_TYPES - OTHER_TYPES
        layouts = set(re.findall(r"\]\{[\d,]*+:([^{}\n]*+)\}", text))
        letters = {m[1] for layout in layouts for m in LAYOUT_PROPERTY.finditer(layout) if m[1]}
        return bool(found) or not letters <= LAYOUT_PROPERTIES

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def _reject(self, column: int, message: str) -> None:
        own = (self.written.get(n, ("", line)) for n, line in enumerate(self.lines[: self._number]))
        before = sum(len(line) + 1 for _, line in own)
        raise Rejected(before + column, message)

    def _note(self, kind: str, name: str, column: int, vocabulary: Iterable[str], of: str) -> None:
        """Count an unknown name; raises `Rejected` for a misspelt one."""
        if (kind, name) not in self._accepted:
            if (meant := misspelt(name, vocabulary)) is not None:
                self._reject(column, f"{of} {name}; did you mean {meant}?")
            self._accepted[kind, name] = False
        self.unknown.add(kind, name)

    def _note_shape(self, kind: str, name: str, column: int) -> None:
        if kind == "element type" and (message := misspelt_type(name)) is not None:
            self._reject(column, message)
        self.unknown.add(kind, name)

    def _without(
        self,
        line: str,
        start: int,
        kind: str,
        vocabulary: frozenset[str],
    ) -> str:
        """The line without the attributes from `start` on that are not in the vocabulary."""
        items = items_of(line[start:], ",") if start >= 0 else None
        remaining = line[:start]
        for name, begin, _, end in items or ():
            if name in vocabulary:
                remaining += line[start + begin : start + end]
            else:
                of = "a module has no attribute" if kind == "header field" else "unknown attribute"
                self._note(kind, name, start + begin + 2, vocabulary, of)
        return remaining if items else line

    def _instruction(
        self,
        line: str,
        match: re.Match[str],
        odd: bool,
        computations: set[str],
    ) -> str:
        opcode, inner, text = match[4], match[5], match[6]
        if odd and opcode == "constant":
            inner = "0" if "[]" in match[3] else "{...}"
            line = line[: match.start(5)] + inner + line[match.end(5) :]
        takes = signature(opcode)
        if takes is not None:
            common = COMMON_ATTRIBUTES.fullmatch(text)
            if common is not None and all(name in takes.allowed for name, _ in OWN.findall(common[1])):
                return line
        items = items_of(text, ",")
        if items is None:
            return line
        if takes is None:
            self._note("opcode", opcode, match.start(4), OPCODES, "unknown opcode")
        allowed = COMMON if takes is None else takes.allowed
        remaining, called = "", list[str]()
        for name, begin, start, end in items:
            value = text[start:end]
            names = _computation_names(value, computations)
            if name in allowed:
                where = match.start(6) + start
                if name == "metadata":
                    value = readable_metadata(value, partial(self._note_field, where))
                remaining += f", {name}={value}"
            elif takes is None:
                called += names
            else:
                self._note(
                    "attribute", name, match.start(6) + begin + 2, allowed, f"{opcode} has no attribute"
                )
        if takes is not None:
            return f"{match[0][: match.start(5)]}{inner}){remaining}"
        own = f', custom_call_target="{opcode}"' + (
            f", called_computations={{{', '.join(called)}}}" if called else ""
        )
        return f"{line[: match.start(4)]}custom-call({inner}){own}{remaining}"

    def _note_field(self, start: int, name: str, place: int) -> None:
        self._note("metadata field", name, start + place, METADATA_FIELDS, "metadata has no part")

    def restore(self, module: Module) -> bool:
        """Put the text as written back into the module; False where an instruction is missing there."""
        loose = patterns()[0]
        wanted = {computation for computation, _ in self.written.values()}
        places = {c.name: {x.name: x for x in c} for c in module.computations if c.name in wanted}
        for number, (computation, line) in self.written.items():
            written, masked = loose.fullmatch(line), loose.fullmatch(self.lines[number])
            if written is None or masked is None:
                if line.startswith("HloModule "):
                    text = line[line.index(",") :].rstrip()
                    module.attributes = Attributes(text, attributes_of(text))
                for c in module.computations if line.startswith("},") else ():
                    if c.name == computation:
                        c.attributes_text = line[1:].rstrip()
                continue
            x = places.get(computation, {}).get(written[2])
            if x is None:
                return False
            if written[3] != masked[3]:
                x.shape = loose_shape(written[3])
            if x.is_constant:
                x.payload = written[5]
            raw = attributes_of(written[6])
            if written[4] != x.opcode:
                _make_opaque(x, written[4], raw)
            elif written[6] != masked[6]:
                x.attributes = Attributes(written[6], raw)
        if self.has_signatures:
            module.print_options = replace(module.print_options, signatures=True)
        return True


def _computation_names(value: str, computations: set[str]) -> list[str]:
    names = [name.strip() for name in value.strip("{}").split(",")]
    return names if all(name.removeprefix("%") in computations for name in names) else []


def _make_opaque(x: Instruction, opcode: str, raw: dict[str, str]) -> None:
    """Turn the custom call that stands for an unknown opcode into one that is printed as written."""
    by_name = {callee.name: callee for _, callee in x.called}
    x.called = [
        (name, by_name[n])
        for name, value in raw.items()
        for n in (part.strip().removeprefix("%") for part in value.strip("{}").split(","))
        if n in by_name
    ]
    x.payload = opcode
    own = {OPAQUE[0]: f'"{opcode}"', OPAQUE[1]: "true"} if raw.keys().isdisjoint(OPAQUE) else {}
    x.attributes = Attributes(raw=raw | own)


def read_newer(text: str, read: Callable[[str], Module], filename: str | None) -> Module | None:
    """The module of a text with parts that are not known; None where all are known, or not read so. `read`
    parses a text of known parts. HloParseError for that, and for names that are misspelt."""
    text = text.replace("\r\n", "\n")
    try:
        masked = _Masked(text)
    except Rejected as error:
        raise locate(text, error, filename) from None
    if not masked.written or not masked.unknown.names:
        return None
    try:
        module = read(masked.text)
    except HloParseError as error:
        raise _as_written(text, masked, error) from None
    try:
        if not masked.restore(module):
            return None
    except ValueError:
        return None
    module.unknown = masked.unknown
    return module


def _as_written(text: str, masked: _Masked, error: HloParseError) -> HloParseError:
    number = error.line - 1
    if number not in masked.written:
        return error
    line, changed = masked.written[number][1], masked.lines[number]
    column = error.column - 1
    same = next((k for k, (a, b) in enumerate(zip(line, changed, strict=False)) if a != b), len(changed))
    if column > same:
        column = max(same, column + len(line) - len(changed))
    start = sum(len(x) + 1 for x in text.split("\n")[:number])
    return locate(text, Rejected(start + min(column, len(line)), error.message), error.filename)


# Fields of backend_config, whose text is free as far as the grammar goes.
@cache
def _config_fields() -> frozenset[str]:
    """Fields of XLA's own configurations: of its protos in all releases, and as seen of XLA:TPU."""
    return frozenset(Path(__file__).with_name("config_fields.txt").read_text(encoding="utf-8").split())


_CONFIG = re.compile(rf", backend_config=({JSON})")
_CONFIG_FIELD = re.compile(rf'[{{,]\s*+"([A-Za-z_]\w*+)"\s*+:|{STRING}', re.ASCII)
_ANY_FIELD = re.compile(r'"([A-Za-z_]\w*+)" ?:', re.ASCII)


def unknown_config_fields(text: str) -> Iterator[tuple[int, str]]:
    """Offset and name of each field of a backend_config that is not known, if XLA's own has some."""
    vocabulary = _config_fields()
    if "backend_config={" not in text or vocabulary.issuperset(_ANY_FIELD.findall(text)):
        return
    for config in _CONFIG.finditer(text):
        found = [m for m in _CONFIG_FIELD.finditer(text, *config.span(1)) if m[1]]
        odd = [m for m in found if m[1] not in vocabulary]
        start = text.rfind("\n", 0, config.start()) + 1
        if odd and (len(odd) < len(found) or " custom-call(" not in text[start : config.start()]):
            yield from ((m.start(1), m[1]) for m in odd)


def check_config_fields(text: str, module: Module, filename: str | None, *, strict: bool) -> None:
    """Count fields of backend_config that are not known in `module.unknown`; with `strict` HloParseError."""
    for place, name in unknown_config_fields(text):
        if strict:
            meant = misspelt(name, _config_fields())
            hint = f"; did you mean {meant}?" if meant is not None else ""
            raise locate(text, Rejected(place, f"backend_config has no field {name}{hint}"), filename)
        module.unknown = module.unknown or Unknown()
        module.unknown.add("backend_config field", name)
