"""Decodes protocol buffers without a schema, enough to find a module and its ids."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from mmap import mmap
from pathlib import Path
from typing import TypeAlias

from hlofuse.format import listing, printable
from hlofuse.ir import Dims, HlofuseError, Module, values, with_trait
from hlofuse.ir.unique_ids import ComputationIds, Element, UniqueIds
from .part import PartError, as_jaxlib_reads, foreign_dialects, read_stablehlo_part
from .text import read_bytes

_MODULE_OF_PROTO = 1
_COMPUTATIONS = 3
_NAME, _INSTRUCTIONS = 1, 2
_WRAPPINGS = 3  # hloSnapshot contains an HloProto, which contains the HloModuleProto: field 1 of each


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values, without fixed-width numbers; `ValueError` or `IndexError` for other data."""
    for number, value, end in spans(data, 0, len(data)):
        yield number, value if end < 0 else data[value:end]


def spans(data: bytes | mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """`fields` of a part of `data`: start and end of text, bytes or a message; a number and −1."""
    while at < end:
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
            yield tag >> 3, value, -1
        elif wire == 2:
            length, at = varint(data, at)
            if at + length > end:
                raise ValueError("it ends in the middle of a field")
            yield tag >> 3, at, at + length
            at += length
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        else:
            raise ValueError(f"a field of unknown kind {wire}")


def varint(data: bytes | mmap, at: int) -> tuple[int, int]:
    """The number at `at`, and the start of the next field."""
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value &= 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def module_proto(data: bytes, wrappings: int = _WRAPPINGS) -> bytes:
    """The HloModuleProto in `data`: itself, or that of an HloProto or HloSnapshot. Raises `ValueError` or
    `IndexError` for other data. Field 1 goes first: the buffer assignment of an HloProto can look like
    computations, the name of a module does not look like a module."""
    inner = next(messages(data, _MODULE_OF_PROTO), None)
    if inner is not None and wrappings > 1:
        with suppress(ValueError, IndexError):
            return module_proto(inner, wrappings - 1)
    if any(map(_is_computation, messages(data, _COMPUTATIONS))):
        return data
    raise ValueError("it has no computations")


def _is_computation(data: bytes) -> bool:
    with suppress(ValueError, IndexError):
        return {_NAME, _INSTRUCTIONS} <= {n for n, value in fields(data) if isinstance(value, bytes)}
    return False


Signature: TypeAlias = tuple[str, tuple[Dims, ...]]
"""Opcode and dimensions of the result's arrays: enough to detect a name of another operation."""
_OPCODE, _SHAPE = 2, 3
_DIMENSIONS, _TUPLE_SHAPES = 3, 4


def signatures(data: bytes) -> dict[str, Signature]:
    """The signature of each instruction of an HloProto; `ValueError` or `IndexError` for other data."""
    found = {}
    for instruction in instructions_of(data):
        own = dict(fields(instruction))
        if isinstance(shape := own.get(_SHAPE, b""), bytes):
            found[_text(own, _NAME)] = _text(own, _OPCODE), tuple(_arrays(shape))
    return found


def opcodes(data: bytes) -> Iterator[tuple[str, str]]:
    """Name and opcode of each instruction of an HloProto; `ValueError` or `IndexError` for other data."""
    return map(_name_and_opcode, instructions_of(data))


def _name_and_opcode(instruction: bytes) -> tuple[str, str]:
    first = dict(islice(fields(instruction), 2))  # the numbers of their fields are the lowest
    return _text(first, _NAME), _text(first, _OPCODE)


def _text(message: dict[int, int | bytes], number: int) -> str:
    return text_of(message.get(number))


def text_of(value: int | bytes | None) -> str:
    """The text of a field; empty for a number and where it is missing."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


_COMPUTATION_ID, _ENTRY, _SCHEDULE, _CALLED = 5, 6, 7, 38
_NOT_LAUNCHED = values("after-all bitcast constant get-tuple-element opt-barrier parameter tuple")
_RUN_OTHERS = with_trait("control-flow")
LaunchOrder: TypeAlias = dict[str, tuple[str, list[str]]]
"""Opcode and possible next launches, by launched instruction."""


def launch_order(data: bytes) -> LaunchOrder:
    """The launch order of a scheduled HloProto, or {}; raises `ValueError` or `IndexError` for other data."""
    instructions = {}
    for instruction in instructions_of(data):
        unique, called = (next(numbers(instruction, number), -1) for number in (_ID, _CALLED))
        instructions[unique] = *_name_and_opcode(instruction), called
    module = module_proto(data)
    sequences = {}
    for schedule in messages(module, _SCHEDULE):
        for pair in messages(schedule, 1):
            sequence = b"".join(messages(pair, 2))
            sequences[next(numbers(pair, 1), 0)] = list(numbers(sequence, 1))
    found: LaunchOrder = {}

    def follow(computation: int) -> tuple[str, str] | None:
        """The first and the last launch."""
        first = last = ""
        for unique in sequences.get(computation, ()):
            name, opcode, called = instructions[unique]
            ends: tuple[str, str] | None = (name, name)
            if opcode in _RUN_OTHERS and called in sequences:
                ends = follow(called)
                if ends is not None and opcode == "while":
                    found[ends[1]][1].append(ends[0])
            elif opcode in _NOT_LAUNCHED or opcode.endswith("-done"):
                ends = None
            else:
                found[name] = opcode, []
            if ends is not None:
                if last:
                    found[last][1].append(ends[0])
                first, last = first or ends[0], ends[1]
        return (first, last) if last else None

    ends = follow(next(numbers(module, _ENTRY), -1))
    if ends is not None:
        found[ends[1]][1].append(ends[0])
    return found


def entry_names(data: bytes) -> set[str]:
    """Instructions of an HloProto's entry computation; `ValueError` or `IndexError` for other data."""
    module = module_proto(data)
    entry = next(numbers(module, _ENTRY), -1)
    own = (c for c in messages(module, _COMPUTATIONS) if entry in numbers(c, _COMPUTATION_ID))
    return {_name_and_opcode(i)[0] for c in own for i in messages(c, _INSTRUCTIONS)}


def numbers(data: bytes, number: int) -> Iterator[int]:
    """The values of a repeated field of a message."""
    for found, value in fields(data):
        if found == number and isinstance(value, int):
            yield value
        elif found == number and isinstance(value, bytes):
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                yield one


def messages(data: bytes, number: int) -> Iterator[bytes]:
    """The values of a repeated field that holds messages, texts or bytes."""
    return (value for n, value in fields(data) if n == number and isinstance(value, bytes))


def instructions_of(data: bytes) -> Iterator[bytes]:
    """The instructions of an HloProto; `ValueError` or `IndexError` for other data."""
    for computation in messages(module_proto(data), _COMPUTATIONS):
        yield from messages(computation, _INSTRUCTIONS)


def _arrays(shape: bytes) -> Iterator[Dims]:
    parts = list(messages(shape, _TUPLE_SHAPES))
    for part in parts:
        yield from _arrays(part)
    if not parts:
        yield tuple(numbers(shape, _DIMENSIONS))


MLIR, BYTECODE, PROTO = "StableHLO text", "StableHLO bytecode", "an HLO proto"
_BYTECODE_MAGIC = b"ML\xefR"
_MLIR_START = re.compile(
    rb"\s*(?:(?://|[#!][\w.-]+ ?=|sdy\.mesh )[^\n]*\n\s*)*"
    rb"(?:(?:builtin\.)?module\b(?! (?!attributes \{)\w|,)|func\.func\b|\"builtin\.module\"\()"
)


def foreign_form(data: bytes) -> str | None:
    """MLIR, BYTECODE or PROTO; None for other data."""
    if data.startswith(_BYTECODE_MAGIC):
        return BYTECODE
    if _MLIR_START.match(data[:65536]):
        return MLIR
    with suppress(ValueError, IndexError):
        if data[:1] == b"\n" and module_proto(data):  # field 1: the name of a module, or a module
            return PROTO
    return None


class ForeignError(HlofuseError):
    """The jaxlib at hand refuses a program."""


def hlo_text(data: bytes, form: str, name: str, instead: str = "capture FILE --python PYTHON") -> str:
    """HLO text of a module in another form; `HlofuseError` without jaxlib, or where jaxlib refuses it."""
    try:
        import jaxlib._hlo
        import jaxlib._jax
    except ImportError:
        raise HlofuseError(
            f'{printable(name)} is {form}, which needs jaxlib to be read; pip install ".[capture]"'
            f" from a checkout of hlofuse, or run hlofuse {instead}"
        ) from None
    try:
        if form == PROTO:
            computation = jaxlib._hlo.XlaComputation(module_proto(data))
            return str(computation.get_hlo_module().to_string())
        computation = jaxlib._jax.mlir.mlir_module_to_xla_computation(data, False, False)
        options = jaxlib._hlo.HloPrintOptions()
        options.print_metadata = form != MLIR or b"loc(" in data  # else lines of this text
        header, end, rest = str(computation.get_hlo_module().to_string(options)).partition("\n")
        return _LAYOUT.sub(_row_major, header) + end + rest
    except Exception as error:
        text = data.decode("utf-8", "replace") if form == MLIR else ""
        part = read_stablehlo_part(text)
        if part is not None:
            part.name = name
            raise PartError(part) from None
        readable = as_jaxlib_reads(text)
        if readable != text:
            with suppress(ForeignError):
                return hlo_text(readable.encode(), form, name)
        message = f"is {form} that jaxlib cannot read: " + _PLACE.sub(r"line \1: ", str(error).strip())
        if foreign := foreign_dialects(text):
            message = f"is MLIR with operations of {listing(foreign, 4)}; hlofuse reads StableHLO alone"
        raise ForeignError(f"{printable(name)} {printable(message.partition(chr(10))[0][:300])}") from None


_PLACE = re.compile(r"(?:[A-Z]+: )?-:(\d+):\d+: (?:error: )?")
_LAYOUT = re.compile(r"(?<=\])\{([\d,]+)\}")


def _row_major(layout: re.Match[str]) -> str:
    """An array's layout in the entry as JAX compiles it; the conversion writes that of the root."""
    return f"{{{','.join(map(str, reversed(range(layout[1].count(',') + 1))))}}}"


_METADATA, _TUPLE_INDEX, _ID, _OPERANDS = 7, 13, 35, 36
_LOCAL = (1 << 32) - 1


def unique_ids_for(module: Module, choice: str | None = None) -> UniqueIds | None:
    """The ids for replaying a loaded module: those in the file `choice`, else in a proto next to the text. A
    proto of another module there is ignored; as `choice` it is an error."""
    if choice is not None:
        ids = read_unique_ids(Path(choice))
        if not ids.fit(module):
            raise HlofuseError(f"{choice} is for another module than {module.name}")
        return ids
    ids_file = ids_file_of(Path(module.filename)) if module.filename and module.filename[0] != "<" else None
    with suppress(HlofuseError):
        if ids_file is not None and (ids := read_unique_ids(ids_file)).fit(module):
            return ids
    return None


def ids_file_of(path: Path) -> Path | None:
    """The proto of a dump: `x.hlo.pb` next to `x.hlo` or `x.txt`, or itself; None without."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".pb") and not name.endswith(".xplane.pb") and path.is_file():
        return path
    stem = name.removesuffix(".hlo").removesuffix(".txt")
    candidates = (f"{name}.pb", f"{stem}.hlo.pb", f"{stem}.hlo.pb.gz")
    return next((p for c in candidates if (p := path.with_name(c)).is_file()), None)


def read_unique_ids(path: Path) -> UniqueIds:
    """The ids in a `.hlo.pb` file; raises `HlofuseError` for another file."""
    try:
        return ids_of_proto(read_bytes(path))
    except (IndexError, ValueError) as error:
        raise HlofuseError(f"{path}: not an HLO proto: {error}") from None


def ids_of_proto(data: bytes) -> UniqueIds:
    """The ids in an HloProto or HloModuleProto; raises `ValueError` or `IndexError` for other data."""
    ids = UniqueIds()
    for computation in messages(module_proto(data), _COMPUTATIONS):
        found = ids.computations[_text(dict(fields(computation)), _NAME)] = ComputationIds()
        for instruction in messages(computation, _INSTRUCTIONS):
            own = dict(fields(instruction))
            name = _text(own, _NAME)
            found.by_name[name] = int(own.get(_ID, 0)) & _LOCAL
            if _text(own, _OPCODE) == "get-tuple-element":
                operand = next(numbers(instruction, _OPERANDS), 0) & _LOCAL
                place = operand, int(own.get(_TUPLE_INDEX, 0))
                found.elements.setdefault(place, Element(name, bool(own.get(_METADATA))))
    return ids
