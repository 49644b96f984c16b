"""Every module of a directory, by name, to pair two directories."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hlofuse.format import listing, plural, printable
from hlofuse.ir import AnyPath, HlofuseError, HloParseError, Module, parse_module, replace
from hlofuse.ir.shape_check import first_misfit, misfit_error
from hlofuse.ir.text.newer import check_config_fields
from hlofuse.ir.text.patterns import NAME
from .choose_target import choose_target, target_of_files
from .companions import Companions
from .dump_directory import (
    RANKED,
    DumpDirectory,
    case_bytes,
    corpus_cases,
    corpus_file,
    is_corpus_case,
    is_tpu_case,
    require_case,
)
from .excerpt import Excerpt, OtherFormatError, find_module, header_in
from .part import PartError, foreign_dialects, read_part, whole_text
from .profile import is_profile, read_profile
from .release import marks_of_bytes
from .suggest import did_you_mean
from .text import decode, input_name, read_bytes
from .wire_format import MLIR, PROTO, ForeignError, foreign_form, hlo_text

_LATEST = ("after_optimizations", "after", "before")  # the modules of a corpus folder, the last one first
_OF_A_DUMP = re.compile(r"(?:^|\.)module_")
_SUFFIXES = (".hlo", ".hlo.gz", ".txt", ".txt.gz")


class Many(Struct):
    files: dict[str, Path] = {}
    skipped: list[str] = []  # Modules without a dump, each with the reason
    are_final: bool = False  # The files are final modules; False for files without stages
    fused: set[Path] = set()  # Files that are those after fusion, the latest that there are

    def pick(self, name: str | None = None) -> Path:
        """The module of that name (`jit_f` or `f`), or the only one; `HlofuseError` for another name."""
        for candidate in (name, f"jit_{name}"):
            if candidate in self.files:
                return self.files[candidate]
        if name is None and len(self.files) == 1:
            return next(iter(self.files.values()))
        if name is None and self.files:
            raise HlofuseError(f"several modules; select one with --module: {listing(list(self.files), 12)}")
        problem = f"no module {printable(name)} at that stage{did_you_mean(name, self.files)}" if name else ""
        raise HlofuseError("\n".join(filter(None, (problem, *self.skipped[:10]))))


def modules_at(path: Path) -> Many:
    """The modules of a corpus, a dump directory, or a directory of text dumps, as they run. It is XLA's
    module after all passes, else the latest that is there. A directory of plain files has no stages: all
    files are used. Raises `HlofuseError` for one without modules."""
    found = Many(are_final=True)
    cases = [path] if is_corpus_case(path) else corpus_cases(path)
    if cases:
        for folder in cases:
            file = next(filter(None, (corpus_file(folder, stem) for stem in _LATEST)), None)
            if file is None:
                found.skipped.append(f"{printable(folder)} has no {_LATEST[0]}.hlo")
            else:
                found.files[folder.resolve().name] = file
                if file.name.startswith("after.hlo"):
                    found.fused.add(file)
        return found
    plain = {_stem(f): f for f in sorted(path.iterdir()) if f.is_file() and _stem(f)}
    if plain and not any(_OF_A_DUMP.search(f.name) for f in plain.values()):
        return Many(plain)
    directory = DumpDirectory(path)
    chosen = target_of_files(Companions(path))
    target = chosen.name if chosen is not None else "cpu"
    count, seen = Counter(m.name for m in directory.modules), Counter[str]()
    for module in directory.modules:
        try:
            before, passes = module.stages(target)
        except HlofuseError as e:
            # Of --xla_dump_to alone: the module before optimizations and after.
            whole = module.finished or module.whole.get("before_optimizations")
            if whole is None:
                found.skipped.append(e.first_line)
                continue
            before, passes = whole, []
        # Numbers of modules differ from run to run, their order less.
        seen[module.name] += 1
        label = module.name if count[module.name] == 1 else f"{module.name}#{seen[module.name]}"
        file = module.finished or (passes[-1][1] if passes else before)
        if passes and module.finished is None:
            found.fused.add(file)
        found.files[label] = file
    if not found.files:
        raise HlofuseError("\n".join([f"{printable(path)}: nothing to compare:", *found.skipped[:10]]))
    return found


def _stem(file: Path) -> str:
    for suffix in _SUFFIXES:
        if file.name.endswith(suffix):
            return file.name.removesuffix(suffix)
    return ""


def load(
    path: AnyPath,
    module: str | None = None,
    *,
    target: str | None = None,
    limit: int | None = None,
    strict: bool = False,
) -> Module:
    """Read a module from a text dump (also gzipped), `-`, a dump directory or a corpus folder.

    A module inside a log, a Markdown page, a saved graph or a string literal is found; `module.text_note` has
    its place, and whether the text is truncated.

    StableHLO (text or bytecode) and HLO protos are lowered to HLO text by jaxlib, if installed. So is the
    optimized module in a profile, by default the slowest.

    A directory gives the module at the input of the fusion passes of `target`, by default that of the dumps'
    names; `module` picks by name, also from a file with several modules. `limit` bounds the bytes of text
    read (default: 1 GiB or HLOFUSE_MAX_INPUT_BYTES). Parts of a text that the grammar does not know, perhaps
    of a newer XLA, are listed in `module.unknown`; with `strict` they are errors.

    Raises `HlofuseError` (`HloParseError` for a place in the text) with a message for the user."""
    file = Path(path)
    if is_profile(str(path)):
        return _load_from_profile(str(path), module)
    there = Companions(path, module)
    note = ""
    if there.is_directory:
        file, note = _find_input(file, module, target or choose_target(there).name)
        module = None
    name = "<stdin>" if str(path) == "-" else str(file)
    found = _module_in(read_bytes(file, limit), name, input_name(path), module, strict)
    found.text_note = found.text_note or note or None
    found.findings["companions"] = Companions(name, given=there.path)
    return found


def load_text(text: str, module: str | None = None, *, strict: bool = False) -> Module:
    """Read a module from text, as `load` reads it from standard input."""
    return _module_in(text.encode(), "<stdin>", "the text", module, strict)


def dump_text(path: AnyPath) -> str:
    """The HLO text of a dump, also of a proto; raises `HlofuseError` for what is not readable."""
    text, _ = _text_of(read_bytes(path), input_name(path))
    return find_module(text, input_name(path)).text


def _text_of(data: bytes, called_as: str) -> tuple[str, str | None]:
    """The text, and the form of data that jaxlib made it of; None where it was text."""
    form = foreign_form(data)
    return (hlo_text(data, form, called_as) if form else decode(data, called_as, as_module=False)), form


def _module_in(
    data: bytes,
    name: str,
    called_as: str,
    module: str | None,
    strict: bool,
) -> Module:
    try:
        text, form = _text_of(data, called_as)
        parsed = _parsed(find_module(text, called_as, module), name, strict)
        parsed.lowered_from = form if form != PROTO else None
        if form:
            parsed.findings["release_marks"] = marks_of_bytes(data, form)
    except _UNREADABLE as error:
        if strict or foreign_form(data) not in (None, MLIR):
            raise
        copy = decode(data, called_as, as_module=False)
        parsed = _parsed_as_copied(copy, name, called_as, module, error)
    parsed.filename = name
    return parsed


_UNREADABLE = (HloParseError, OtherFormatError, ForeignError, PartError)


def _parsed_as_copied(
    text: str, name: str, called_as: str, module: str | None, problem: HlofuseError
) -> Module:
    """The module in a text that is not read as it stands; `PartError` for a part of one, else `problem`."""
    copy = plain(text)
    found = Excerpt(copy, copy)
    try:
        found = find_module(copy, called_as, module)
        return _parsed(found, name)
    except _UNREADABLE as error:
        if isinstance(error, PartError):
            raise
        problem = error if copy != text else problem
    readable, count = without_unreadable_metadata(found.text)
    attempts = [(readable, f"metadata of {plural(count, 'instruction')} left out")] if count else []
    header = found.header or (header_in(found.text) if found.text.lstrip().startswith("HloModule ") else "")
    part = read_part(found.text.split("\n"), header=header)
    if part.is_empty:
        part = read_part([], header=header_in(copy))
    whole = whole_text(part, header)
    if whole is not None and not found.header:
        note = f"found in a longer text{'' if header else ' without HloModule'}"
        attempts.append((without_unreadable_metadata(whole)[0], note))
    for attempt, note in attempts:
        with suppress(HlofuseError):
            return _parsed(replace(found, text=attempt, note=note), name)
    if not part.is_empty and whole is None:
        if isinstance(problem, OtherFormatError) and not any(p.computation.name for p in part.fragments):
            raise problem  # single lines that a message quotes
        part.name = called_as
        raise PartError(part)
    mlir = mlir_in(copy) if part.is_empty else None
    if mlir is None or mlir == text:
        if part.is_empty and isinstance(problem, HloParseError) and not _HLO.search(copy):
            found_in = foreign_dialects(copy, frozenset())
            lines = f"single lines of MLIR ({listing(found_in, 3)})" if found_in else "no HLO"
            raise HlofuseError(f"{printable(called_as)} has {lines}; give a module from its header on")
        raise problem
    return _module_in(mlir.encode(), name, called_as, None, strict=True)


def _load_from_profile(path: str, name: str | None) -> Module:
    profile = read_profile(path)
    chosen = profile.pick(name)
    label = f"{chosen.label} in {path}"
    if chosen.proto is None:
        raise HlofuseError(
            f"{printable(label)} has times and no HLO: explain its dump, with --profile {printable(path)}"
        )
    text = hlo_text(chosen.proto(), PROTO, label, f"explain DUMP --profile {printable(path)}")
    found = _parsed(find_module(text, label), path)
    found.filename = path
    found.findings["profile"] = profile, chosen
    return found


_SHARDED = re.compile(r"\bsharding=\{+devices=\[(\d{1,9}(?:,\d{1,9})*)\]")
_NEURONS = "API_VERSION_UNSPECIFIED"  # Neuron's default `api_version`, which XLA's parser refuses


def _parsed(found: Excerpt, name: str, strict: bool = False) -> Module:
    """The module; `PartError` for a part of one, HloParseError also where its shapes do not fit."""
    if found.part is not None:
        raise PartError(found.part)
    try:
        module = parse_module(found.text, name, strict=strict)
        check_config_fields(found.text, module, name, strict=strict)
    except HloParseError as error:
        raise found.locate(error) from None
    divided = _SHARDED.findall(found.text) if module.attributes.raw("num_partitions") is None else ()
    if divided:  # front ends hand the number to XLA outside of the module
        devices = max(math.prod(map(int, tiles.split(","))) for tiles in divided)
        module.attributes = module.attributes.updated(num_partitions=str(devices))
    misfit = first_misfit(module)
    if misfit is not None:
        raise found.locate(misfit_error(found.text, *misfit, name))
    module.text_note = found.note
    if _NEURONS in found.text:
        for call in module.instructions():
            if call.raw("api_version") == _NEURONS:
                call.attributes = call.attributes.without("api_version")
    return module


def _find_input(folder: Path, module: str | None, target: str) -> tuple[Path, str]:
    """The pass's input in a dump directory, a corpus folder, or a folder of those, and a note on its host."""
    case = corpus_file(folder, "before")
    if case is not None:
        require_case(folder, module)
        later = ("after_optimizations", "after") if is_tpu_case(folder) else ()  # nothing of it is replayed
        return next(filter(None, (corpus_file(folder, name) for name in later)), case), ""
    cases = corpus_cases(folder)
    if not cases:
        directory = DumpDirectory(folder)
        file = directory.pick(module).best(target)
        host = f"{printable(file.parent.name)}, the first of {directory.hosts} folders with the same modules"
        return file, host if directory.hosts > 1 else ""
    return _find_input(picked_case(folder, cases, module), None, target)


def picked_case(folder: Path, cases: Sequence[Path], module: str | None) -> Path:
    """The case of that name, or the only one; raises `HlofuseError` with their names for an unknown one."""
    names = [c.name for c in sorted(cases, key=case_bytes, reverse=True)]
    if module is None and len(names) == 1:
        module = names[0]
    if module is None or module not in names:
        hint = did_you_mean(module, names) if module is not None else ""
        problem = f"no module {printable(module)}" if module is not None else "several modules"
        listed = listing(list(map(printable, names)), 12)
        hint = hint or f"; select one with --module: {listed}" + f"\n{RANKED}" * (len(names) > 1)
        raise HlofuseError(f"{printable(folder)} has {problem}{hint}")
    return folder / module


_COLOUR = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\x1b\][^\x07\n]*+\x07|\[\d{1,3}(?:;\d{1,3})*m")
_ESCAPE = re.compile(r"&(?:(lt|gt|amp|quot|apos|nbsp)|#(\d{1,6})|#[xX]([\da-fA-F]{1,5}));")
_TAG = re.compile(r"</?(?:span|code|pre|div|br|p|b|i|em|strong|a|td|tr|li)\b[^<>]*>")
_LOOK_ALIKES = str.maketrans(
    "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000\u201c\u201d\u201e\u2018\u2019",
    " " * 7 + '"' * 3 + "'" * 2,
    "\u200b\u200c\u2060\ufeff",
)
_LINE_NOTE = re.compile(r"(?m)(?<![ \t])[ \t]++(?:#[ \t]|//|<-|←)[^\"\n]{0,200}+$")
_LISTED_LINES = re.compile(r'\\n"(?:,[^\n]{0,300}\}\n\{"\w+":\s*|\s*,\s*)"')
_NOT_OF_A_DIFF = re.compile(r"(?m)^(?![+-]).* = ")
_OPEN_LITERAL = re.compile(r"""(?m)(['"])HloModule (?:\\.|(?!\1)[^\\\n])*$""")
_ON_ONE_LINE = re.compile(r"(?m)^.*(?:^|[} ])ENTRY [^\n]*\{ .*\bROOT .*\}.*$")
_HEAD_BEGINS = rf"(?:ENTRY )?%?{NAME} (?:\((?:\)|{NAME}: )|\{{)"
_BEGINS = rf"\s*(?:(?:ROOT )?%?{NAME} = [\w(]|{_HEAD_BEGINS}|\}}|$)"
_BREAKS = re.compile(
    rf"(?<!ENTRY)(?<!ROOT) (?=(?:ROOT )?%?{NAME} = [\w(]|{_HEAD_BEGINS}|\}}(?= {_HEAD_BEGINS}|[^\"{{}}]*$))"
)
_HLO = re.compile(r"HloModule [\w.\-]|ENTRY [%\w]| = (?:\(|[a-z]\w*\[)")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@.*")
_METADATA = re.compile(
    r", metadata=\{.*?\}?(?=, (?:backend_config|sharding|frontend_attributes)=|[ \t]*$)", re.MULTILINE
)
_READABLE = re.compile(
    r', metadata=\{\s*(?:\w+=(?:"(?:[^"\\\n]|\\.)*+"|\{[^{}\n]*+\}|\[[^\]\n]*+\]|[^\s"{}]++)[ ,]*+)*+\}'
)
_MLIR = re.compile(
    r"^(?P<prefix>[>| \t]*)(?:module(?: @[^\s(){}]+)?(?:(?: attributes \{.*\})? \{| attributes \{.*(?=\s*\Z))"
    r"|func\.func .*\{|\"builtin\.module\"\(.*\{)\s*$",
    re.MULTILINE,
)
_ALIAS = re.compile(r"[#!][\w.-]+ ?= ?\S|sdy\.mesh ")


def plain(text: str) -> str:
    """The text without colours, notes, HTML's escapes, look-alikes and a diff's old side, lines divided."""
    text = _LINE_NOTE.sub("", _COLOUR.sub("", text))
    if _ESCAPE.search(text):
        from html import unescape  # few texts have escapes

        text = _ESCAPE.sub(lambda m: unescape(m[0]), _TAG.sub("", text))
    text = text.translate(_LOOK_ALIKES)
    if "HloModule " in text:
        text = _LISTED_LINES.sub(r"\\n", text)  # of a notebook, or of a log as JSON
    if _OPEN_LITERAL.search(text):
        text = text.replace("\\n", "\n").replace('\\"', '"')
    text = _ON_ONE_LINE.sub(lambda m: _BREAKS.sub("\n", m[0]), text)
    width, count = max(Counter(map(len, text.split("\n"))).items())
    if count > 2:  # a terminal's, which broke the longer lines
        text = re.sub(rf"(?m)^(.{{{width}}})\n(?!{_BEGINS})", r"\1", text)
    is_diff = _NOT_OF_A_DIFF.search(text) is None
    return _new_side(text) if is_diff or _HUNK.search(text) else text


def _new_side(diff: str) -> str:
    """The lines after the change; between two hunks a line says that some are left out."""
    lines, in_hunk = [], _HUNK.search(diff) is None
    for line in diff.split("\n"):
        hunk = _HUNK.match(line)
        if hunk is not None:
            in_hunk = True
            lines.append("" if hunk[1] == "1" else "...")
        elif in_hunk and line[:1] in ("+", " "):
            lines.append(line[1:])
        else:
            lines.append("" if in_hunk and line[:1] in ("-", "\\") else line)
    return "\n".join(lines)


def without_unreadable_metadata(text: str) -> tuple[str, int]:
    """The text without metadata that no reader understands, and the number of instructions concerned."""
    readable = _METADATA.sub(lambda m: m[0] if _READABLE.fullmatch(m[0]) else "", text)
    return readable, text.count(", metadata={") - readable.count(", metadata={")


def mlir_in(text: str) -> str | None:
    """The MLIR module, or the function without one, in a longer text; None where there is none. Lines that
    name locations or attributes belong to it, before it and after its end; the other lines are empty."""
    start = _MLIR.search(text)
    if start is None:
        return None
    lines = [line.removeprefix(start["prefix"]) for line in text.split("\n")]
    first = end = text.count("\n", 0, start.start())
    depth = 0
    while end < len(lines):
        written = re.sub(r'"(?:[^"\\]|\\.)*"|//.*', "", lines[end])
        depth += written.count("{") - written.count("}")
        end += 1
        if depth <= 0:
            break
    inside = range(first, end)
    shown = (line if n in inside or _ALIAS.match(line) else "" for n, line in enumerate(lines))
    return "\n".join(shown) + "\n"
