"""Texts with a part of a module: cut short, or copied without the rest."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from hlofuse.format import plural, printable
from hlofuse.ir import Attributes, Computation, HlofuseError, HloParseError, Instruction, Module, Shape
from hlofuse.ir.opcodes import OPCODES, values
from hlofuse.ir.text.grammar import parse_shape
from hlofuse.ir.text.patterns import JSON, NAME, PARENTHESES, STRING, ShapeCache, nested_pattern
from hlofuse.pipelines.identity import Fact
from hlofuse.pipelines.targets import Stage
from .backend import backend_of
from .module_lines import CLOSE, HEAD, HEAD_BEGINS
from .suggest import close_matches

_LINE = re.compile(
    rf"(?:^|(?<=[\s>|`\"'+:(]))(?:ROOT )?%?({NAME}) = "
    rf"([a-z]\w*+\[[^\]\n]*+\](?:\{{[^}}\n]*+\}})?|{PARENTHESES}) ([a-z][a-z0-9\-]*+)(\(.*)",
    re.ASCII,
)
_OPERANDS = re.compile(PARENTHESES)
_ATTRIBUTE = re.compile(
    rf", ([a-z_][\w\-]*+)=({STRING}|{JSON}|\[[^\]\n]*+\][^,\s]*+|[^,{{}}\"\[\s]++|.++)", re.ASCII
)
_CALLED = re.compile(
    rf"\b(?:calls|to_apply|condition|body|select|scatter|true_computation|false_computation)=%?({NAME})"
    rf"|\b(?:branch|called)_computations=\{{([^{{}}]*+)\}}",
    re.ASCII,
)
_LEFT_OUT = re.compile(r"[\s/#*\[(<%]*+(?:\.{2,}|…)[^=]*")
_PREFIX = re.compile(
    r"^(?:[IWEFD]\d{4} [\d:.]+ +\d+ [^\s\]]+\] ?|\[?\d{4}-\d\d-\d\d[ T][\d:.,]+(?:Z|[+\-]\d\d:?\d\d)?\]?:? ?"
    r"(?:[IWEF] )?(?:[^\s\]]+:\d+\] ?)?|(?:> ?)+|[+|] )",
    re.ASCII,
)
_CREATED_BY_FUSION = re.compile(
    r"(?:fused_computation|wrapped_[a-z_\d]+_computation)(?:\.\d+)*(?:\.clone(?:\.\d+)*)?", re.ASCII
)
_SYMBOL = r'(?:[\w.$\-]+|"[^"\n]*")'
_MLIR_MODULE = re.compile(rf'(?:module @|"builtin\.module"\(\) <\{{sym_name = )({_SYMBOL})')
_MLIR_FUNCTION = re.compile(
    r'\s*(?:func(?:\.func)? (public )?(?:private )?@|"func\.func"\(\) (?:<\{.*\bsym_name = )?)'
    rf"({_SYMBOL})?"
)
_MLIR_OPERATION = re.compile(
    r'\s*(?:(%[\w#]+)[\w:, %]* = )?(?!"?func\.ret)(?:"?(?:stablehlo|mhlo|chlo|func|arith)\.|(?=call @))(\w+)'
)
_DIALECT = re.compile(r'^[ \t]*%[^=\n]*= "?([a-z_]\w*)\.[a-z_]\w*(?=[ "({<])', re.MULTILINE)
_DIALECTS_OF_STABLEHLO = values("arith builtin chlo func mhlo sdy shape stablehlo tensor vhlo")
_ANGLES = nested_pattern("<", ">", r'[^<>"\n]++', 6)
_FOREIGN_VALUE = rf"#(?!(?:{'|'.join(sorted(_DIALECTS_OF_STABLEHLO))}|loc)\b)[\w.]+(?:{_ANGLES})?"
_FOREIGN_ATTRIBUTE = re.compile(
    rf"(, )?[\w.]+ = (?:{_FOREIGN_VALUE}|\[{_FOREIGN_VALUE}(?:, {_FOREIGN_VALUE})*\])(?(1)|(?:,\s*)?)"
)
_PLACE = nested_pattern(r"\(", r"\)", r'(?:[^()\n"]++|"[^"\n]*+")', 6)
_LOCATION = re.compile(rf" ?\bloc{_PLACE}|^#loc.*$", re.MULTILINE)
_FUNCTION = re.compile(rf"\bfunc\.func (?:public |(private ))?@({_SYMBOL})")
_STAGES = {
    Stage.BEFORE: "{}module before optimizations",
    Stage.INPUT: "{}module at the fusion input",
    Stage.FUSED: "fused {}module",
    Stage.SCHEDULED: "{}module after all passes",
}


class Fragment(Struct):
    """The instructions of one computation, or those that stand in none."""

    computation: Computation
    first: int  # The number of its first line in the text, from 0
    is_entry: bool = False
    is_whole: bool = False  # True if its end is in the text, and nothing in it is left out
    lines: list[str] = []


class Part(Struct):
    """A text without the whole of a module's entry: nothing that runs can be counted."""

    module: Module  # It has no entry, and no instruction has operands
    fragments: list[Fragment] = []
    cut: Instruction | None = None  # The last instruction, if the text ends in it
    left_out: bool = False
    absent: list[str] = []  # Names of called computations that are not in the text
    end: int = 0  # The number of its last line with an instruction, from 1
    name: str = ""  # The name of the input in messages
    is_stablehlo: bool = False

    @property
    def backend(self) -> Fact | None:
        """The backend, also by the instruction in which the text ends; None without evidence."""
        return backend_of(self.module)

    @property
    def stage(self) -> Stage | None:
        """The stage, if something in the text shows it."""
        if self.is_stablehlo:
            return Stage.BEFORE
        if self.module.is_scheduled:
            return Stage.SCHEDULED
        created = any(i.fusion_kind in ("kLoop", "kInput", "kOutput") for i in self.module.instructions())
        named = any(_CREATED_BY_FUSION.fullmatch(p.computation.name) for p in self.fragments)
        return Stage.FUSED if created or named else None

    @property
    def entry(self) -> Fragment | None:
        """The entry computation, of which some is in the text."""
        return next((p for p in self.fragments if p.is_entry), None)

    @property
    def is_empty(self) -> bool:
        return not self.module.name and not any(self.module.instructions())

    @property
    def problem(self) -> str:
        """Why the module is not whole, in words without a full stop."""
        entry = self.entry
        if not self.end:
            return "only the header is in the text"
        if entry is None and self.module.name:
            return f"the text ends before the module's entry, {self._place}"
        if entry is None:
            return "the module's entry is not in the text, or not the whole of it"
        if self.left_out:
            return "lines of it are left out"
        if not entry.is_whole:
            return f"the text ends inside the module's entry, {self._place}"
        if not self.absent:
            return "its lines do not make one module"
        more = f" and {len(self.absent) - 1} more" if len(self.absent) > 1 else ""
        return f"the text lacks {printable(self.absent[0])}{more}"

    @property
    def _place(self) -> str:
        return f"{'in' if self.cut is not None else 'after'} line {self.end}"

    @property
    def contents(self) -> str:
        """`2 computations of a fused GPU module`."""
        named = [p for p in self.fragments if p.computation.name]
        loose = sum(len(list(p.computation)) for p in self.fragments if not p.computation.name)
        found = [plural(len(named), "computation")] if named else []
        if loose:
            found.append(plural(loose, "instruction"))
        if not found:
            found.append("the header" if self.cut is None else "the beginning of an instruction")
        backend = self.backend
        shown = f"{backend.value.upper()} " if backend is not None else ""
        kind = _STAGES[self.stage].format(shown) if self.stage is not None else f"{shown}module"
        article = "an" if kind[0] in "aeio" else "a"
        return f"{' and '.join(found)} of {article} {kind}"


class PartError(HlofuseError):
    """The input is a part of a module; `explain`, `kernels` and `stats` say which."""

    def __init__(self, part: Part) -> None:
        super().__init__(f"{printable(part.name)} has {part.contents}: {part.problem}; give the whole module")
        self.part = part


def read_part(lines: Sequence[str], first: int = 0, header: str = "") -> Part:
    """The computations and instructions in `lines` from number `first`; `header`: HloModule line, if any."""
    name, _, attributes = header.removeprefix("HloModule ").partition(",")
    found = Part(Module(name.strip(), Attributes(raw=_attributes(f",{attributes}"))))
    shapes = ShapeCache(_lenient_shape)
    called = {}
    inside = None
    cut_in = Fragment(Computation(""), 0)
    for number, line in enumerate(with_attributes_joined(lines), first):
        written = _PREFIX.sub("", line, count=1)
        match = _LINE.search(written)
        if match is not None and match[3] in OPCODES:
            if inside is None and (not found.fragments or found.fragments[-1].computation.name):
                _add_fragment(found, "", number)
            fragment = found.fragments[-1]
            fragment.lines.append(written)
            instruction = _instruction(match, shapes)
            if found.cut is not None:  # the end of its line is not in the text
                cut_in.computation.append_unnumbered(found.cut)
                found.left_out = True
            found.end, found.cut, cut_in = number + 1, None, fragment
            if _is_complete(match[4]):
                fragment.computation.append_unnumbered(instruction)
                called.update(dict.fromkeys(_called(match[4])))
            else:
                found.cut = instruction
        elif HEAD.fullmatch(written) or HEAD_BEGINS.fullmatch(written):
            tokens = written.replace("ENTRY ", "").split()
            inside = _add_fragment(found, tokens[0].lstrip("%"), number)
            found.end = number + 1
            inside.is_entry = written.lstrip().startswith("ENTRY ")
            inside.lines.append(written)
        elif inside is not None and CLOSE.fullmatch(written):
            inside.is_whole = True
            inside.lines.append("}")
            inside = None
        elif _LEFT_OUT.fullmatch(written) and found.fragments:
            found.left_out = True
        elif inside is not None:
            inside.lines.append(written)
    there = [p.computation.name for p in found.fragments]
    meant = there if all(there[:1]) else ()  # a text cut at its start lacks computations
    found.absent = [name for name in called if name not in there and not close_matches(name, meant)]
    if found.cut is not None:
        last = Computation("")
        last.append_unnumbered(found.cut)
        found.module.computations.append(last)
    return found


def with_attributes_joined(lines: Sequence[str]) -> list[str]:
    """The lines; what an instruction's attributes span is one of them, and empty ones follow."""
    found = list(lines)
    for n, line in enumerate(lines):
        match = _LINE.search(line) if " = " in line and line.rstrip().endswith(("{", "[", ",")) else None
        end = n
        while match is not None and end + 1 < len(lines) and _LINE.search(lines[end + 1]) is None:
            end += 1
            match = _LINE.search(f"{match.string} {_PREFIX.sub('', lines[end]).strip()}")
            if match is not None and _is_complete(match[4]):
                found[n : end + 1] = [match.string, *[""] * (end - n)]
                break
    return found


def foreign_dialects(text: str, stablehlo: frozenset[str] = _DIALECTS_OF_STABLEHLO) -> list[str]:
    """The dialects of the operations in MLIR text, but for StableHLO's and those around it."""
    return sorted({*_DIALECT.findall(text)} - stablehlo)


def as_jaxlib_reads(text: str) -> str:
    """StableHLO text without locations where definitions of some are cut, without attributes of other
    dialects, and with its only function, or its only public one, as `main`."""
    defined = re.findall(r"(?m)^(#loc\d*) = .*\)\s*$", text)
    if not set(re.findall(r"#loc\d*\b", text)).issubset(defined):
        text = _LOCATION.sub("", text)
    text = _FOREIGN_ATTRIBUTE.sub("", text)
    functions = _FUNCTION.findall(text)
    public = [f for f in functions if not f[0]] or functions
    if len(public) == 1:
        text = re.sub(rf"(?:private )?@{re.escape(public[0][1])}(?![\w.$\-])", "@main", text)
    return text


def read_stablehlo_part(text: str) -> Part | None:
    """The functions and operations of StableHLO text that ends before its module; None for others."""
    plain = re.sub(STRING, "", text)
    if plain.count("{") <= plain.count("}"):
        return None
    name = next(iter(_MLIR_MODULE.findall(text)), "").strip('"')
    found = Part(Module(name, Attributes(raw={})), is_stablehlo=True)
    for number, line in enumerate(text.splitlines()):
        if (function := _MLIR_FUNCTION.match(line)) is not None:
            fragment = _add_fragment(found, (function[2] or "").strip('"'), number)
            fragment.is_entry = fragment.computation.name == "main" or bool(function[1])
            found.end = number + 1
        elif (operation := _MLIR_OPERATION.match(line)) is not None and found.fragments:
            name, opcode = operation.groups("")
            new = Instruction(name, Shape("opaque"), opcode, (), Attributes(raw={}))
            found.fragments[-1].computation.append_unnumbered(new)
            found.end = number + 1
    for fragment in found.fragments[:-1]:
        fragment.is_whole = True
    if found.fragments:
        found.absent.append(f"the end of {found.fragments[-1].computation.name}")
    return found if any(found.module.instructions()) or not foreign_dialects(text) else None


def _add_fragment(part: Part, name: str, first: int) -> Fragment:
    fragment = Fragment(Computation(name), first)
    part.fragments.append(fragment)
    part.module.computations.append(fragment.computation)
    return fragment


def _instruction(match: re.Match[str], shapes: ShapeCache) -> Instruction:
    name, shape, opcode, rest = match.groups()
    operands = _OPERANDS.match(rest)
    attributes = _attributes(rest[operands.end() :] if operands is not None else "")
    return Instruction(name, shapes[shape], opcode, (), Attributes(raw=attributes))


def _called(rest: str) -> Iterator[str]:
    for one, several in _CALLED.findall(rest):
        yield from filter(None, (name.strip(" %") for name in (one, *several.split(","))))


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a line, the last one perhaps cut."""
    return dict(_ATTRIBUTE.findall(text))


def _lenient_shape(text: str) -> Shape:
    try:
        return parse_shape(text)
    except HloParseError:
        return Shape("opaque")


def _is_complete(rest: str) -> bool:
    """True for the operands and attributes of an instruction that ends with its line."""
    plain = re.sub(STRING, "string", rest)
    return (
        '"' not in plain
        and all(plain.count(a) == plain.count(b) for a, b in ("()", "{}", "[]"))
        and re.search(r"[=,]\s*$|, ?[a-z_\-]*$", plain) is None
    )


def whole_text(part: Part, header: str = "") -> str | None:
    """The text of a module whose computations are all there, with a header; None for a part."""
    entry = part.entry
    if entry is None or not entry.is_whole or part.left_out or part.absent:
        return None
    loose = (line for p in part.fragments if not p.computation.name for line in p.lines)
    if any(line.lstrip().startswith("ROOT ") for line in loose):
        return None  # a computation ended before its root
    blocks = ["\n".join(p.lines) for p in part.fragments if p.computation.name and p.is_whole]
    return "\n\n".join((header or f"HloModule module_{entry.computation.name}", *blocks)) + "\n"
