"""Reads a dump: the fast path where its patterns fit, the grammar for the rest."""

import re
from collections.abc import Collection
from functools import partial
from itertools import islice

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.attributes.metadata import StackFrames
from hlofuse.ir.graph import Computation, Module
from hlofuse.ir.native import no_collection
from hlofuse.ir.opcodes import PrintOptions
from hlofuse.ir.shape import ARRAY_TYPES, Shape
from .computation_reader import Body, GrammarFallback, ReadCache
from .newer import read_newer
from .patterns import (
    COMMENT_LINES,
    COMMENTS,
    END,
    HEAD,
    INSTRUCTION,
    MODULE,
    NUMBERED_STRING,
    PARAMETER_SHAPE,
    RECORD,
    TABLES,
    FastPathMiss,
    split_tuple,
)
from .text import unquote

STRETCH = 1 << 16  # Characters matched at once: enough for a cheap loop, few enough for flat memory

# What XLA renames when it takes a name over, or refuses: `x.01` becomes `x.1`, `__x` is its own.
_ALIASES = re.compile(r", input_output_alias=\{ ([^\n]*?) \}(?:, |\Z)")
_ALIASED = re.compile(r"\{([\d, ]*)\}: \(", re.ASCII)
_CLOSE = re.compile(r"\n\}")
_BRACE = re.compile(r"\{\s*\n")
_SUSPECT = re.compile(r"\.0\d*+$", re.MULTILINE | re.ASCII)  # begins with a literal: searched for fast
_NUMBERED = re.compile(r"\.\d++$", re.ASCII)
# Words that are names only after a %; and types, which are not even then.
_REFUSED = ARRAY_TYPES.union(
    "token opaque ROOT ENTRY HloModule FileNames FunctionNames FileLocations StackFrames true false inf nan"
    " replicated manual unreduced maximal unknown last_tile_dim_replicate shard_as shard_like".split()
)


def read_fast(text: str, fallback: GrammarFallback) -> Module:
    """The module in `text`; raises `FastPathMiss` where a pattern is missing."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            raise FastPathMiss
    if not text.endswith("\n"):
        text += "\n"
    pos = 0 if text.startswith("H") else COMMENTS.match(text).end()  # type: ignore[union-attr]  # always
    match = MODULE.match(text, pos)
    if match is None or match[1] in _REFUSED:
        raise FastPathMiss
    module = Module(match[1], Attributes(match[2]))
    cache = ReadCache(fallback)
    cache.has_control = "control-predecessors=" in text
    result = None if match[3] is None else _check_entry_layout(match[3], cache)
    pos = match.end()
    if (tables := TABLES.match(text, pos)) is not None:
        module.defer_stack_frames(partial(read_tables, *tables.groups()))
        pos = tables.end()
    names = set[str]()
    end = len(text)
    while pos < end:
        pos = _read_computation(text, pos, module, cache, names)
    if not module.computations:
        raise FastPathMiss
    if not hasattr(module, "entry"):
        module.entry = module.computations[-1]
    # The result has the elements in `input_output_alias={ {1}: (0, {}) }`.
    shape = result or module.entry.root.shape
    aliases = _ALIASES.search(match[2])
    for index in _ALIASED.findall(aliases[1]) if aliases is not None else ():
        if not shape.has_index(map(int, index.replace(",", " ").split())):
            raise FastPathMiss
    _check_names(names)
    _check_names(cache.computations)
    module.print_options = PrintOptions(
        percent=cache.has_percent,
        signatures=cache.has_signatures,
        operand_shapes=cache.has_operand_shapes,
        operand_numbers=5 if cache.has_operand_numbers else 0,
        compact_elements=cache.has_elements,
        names_after_braces=cache.has_names_after_braces,
    )
    module.instruction_names.reserve(names)
    module.computation_names.reserve(cache.computations)
    return module


def _check_entry_layout(text: str, cache: ReadCache) -> Shape:
    parameters, arrow, result = text.rpartition("->")
    if not arrow or not parameters.startswith("(") or split_tuple(parameters) is None:
        raise FastPathMiss
    cache.shapes[parameters]
    return cache.shapes[result]


def _read_computation(
    text: str,
    pos: int,
    module: Module,
    cache: ReadCache,
    names: set[str],
) -> int:
    if (head := HEAD.match(text, pos)) is not None:
        is_entry, percent, name, parameters, other_shape, result_text = head.groups()
        cache.has_signatures = parameters is not None
        result = None if result_text is None else cache.shapes[result_text]
        if other_shape is not None:
            for shape_text in PARAMETER_SHAPE.findall(parameters):
                cache.shapes[shape_text]
        start = head.end()
    else:
        brace = _BRACE.search(text, pos)
        if brace is None:
            raise FastPathMiss
        start = brace.end()
        is_entry, name, result = cache.fallback.heading(text, pos, start)
        result_text = None
        percent = text.startswith("%", start + 2)
    close = _CLOSE.search(text, start - 1)  # twice as fast as str.find
    if close is None or name in cache.computations:
        raise FastPathMiss
    end_of_body = close.start() + 1
    computation = Computation(name)
    computation.module = module
    cache.has_percent = bool(percent)
    body = Body(computation, cache)
    while start < end_of_body:
        end = (
            end_of_body
            if end_of_body - start <= STRETCH
            else text.find("\n", start + STRETCH, end_of_body) + 1 or end_of_body
        )
        _read_stretch(body, text, start, end)
        start = end
    body.finish()
    root_shape = computation.root.shape
    if (
        result is not None
        and result_text != root_shape.text_without_layout
        and result.key_ignoring_layout != root_shape.key_ignoring_layout
    ):
        raise FastPathMiss
    before = len(names)
    names.update([i.name for i in computation.instructions] if cache.has_elements else body.by_name)
    if len(names) != before + len(computation._slots):
        raise FastPathMiss  # XLA would change a name that comes twice
    match_end = END.match(text, end_of_body)
    if match_end is None:
        raise FastPathMiss
    if match_end[2]:
        cache.has_names_after_braces = True
    if match_end[1] is not None:
        computation.attributes_text = f', execution_thread="{match_end[1]}"'
    if is_entry:
        if hasattr(module, "entry"):
            raise FastPathMiss
        module.entry = computation
    cache.computations[name] = computation
    module.computations.append(computation)
    return match_end.end()


def _read_stretch(body: Body, text: str, start: int, end: int) -> None:
    """Read whole lines: at once if the pattern fits each of them, otherwise line by line."""
    slots = body.computation._slots
    first = len(slots)
    rows = INSTRUCTION.findall(text, start, end)
    taken = body.add_rows(rows) if len(rows) == text.count("\n", start, end) else 0
    if taken < len(rows) or not rows:
        # Read the lines after the first `taken`; the grammar reads regions that the pattern does not fit.
        pos = start
        for _ in range(taken):
            pos = text.index("\n", pos) + 1
        while pos < end:
            match = INSTRUCTION.match(text, pos, end)
            if match is not None and body.add_rows([match.groups("")]):  # type: ignore[list-item]
                pos = match.end()
                continue
            after = INSTRUCTION.search(text, match.end() if match else text.index("\n", pos) + 1, end)
            end_of_body = after.start() if after else end
            if COMMENT_LINES.fullmatch(text, pos, end_of_body) is None:
                body.cache.fallback.instructions(body, text, pos, end_of_body)
            pos = end_of_body
    if body.cache.has_control:
        body.add_control(first)


def _check_names(names: Collection[str]) -> None:
    """Raise `FastPathMiss` where XLA would refuse or change a name."""
    if not _REFUSED.isdisjoint(names):
        raise FastPathMiss
    waiting = iter(names)
    while chunk := "\n".join(islice(waiting, 1000)):
        joined = "\n" + chunk
        if "\n__" in joined:
            raise FastPathMiss
        for suspect in _SUSPECT.finditer(joined):
            # `x.0` is number 0 of x, and so is x (but x.1 is not: that is number 1 of x).
            root = joined[joined.rfind("\n", 0, suspect.start()) + 1 : suspect.start()]
            if suspect[0] != ".0" or (root in names and not _NUMBERED.search(root)):
                raise FastPathMiss


def read_tables(files: str, functions: str, locations: str, frames: str) -> StackFrames:
    return StackFrames(_strings(files), _strings(functions), _records(locations), _records(frames))


def _strings(text: str) -> dict[int, str]:
    return {int(number): unquote(string) for number, string in NUMBERED_STRING.findall(text)}


def _records(text: str) -> dict[int, dict[str, int]]:
    return {int(number): _fields(fields) for number, fields in RECORD.findall(text)}


def _fields(text: str) -> dict[str, int]:
    pairs = (field.split("=") for field in text.split())
    return {name: int(value) for name, value in pairs}


@no_collection()
def parse_module(text: str, filename: str | None = None, *, strict: bool = True) -> Module:
    """Read a dump; raises `HloParseError` for text that is not HLO (`ParseAndReturnUnverifiedModule`).
    Without `strict`, parts that the grammar does not know stay as written; `module.unknown` lists them."""
    try:
        module = read_fast(text, GrammarFallback())
    except FastPathMiss:
        newer = None if strict else read_newer(text, partial(parse_module, filename=filename), filename)
        if newer is not None:
            return newer
        # lark is slow to import, and an ordinary text does without.
        from .build import parse_by_grammar

        return parse_by_grammar(text, filename)
    module.filename = filename
    return module
