"""Unique ids from the proto that XLA writes beside a text (`--xla_dump_hlo_as_proto`: `….hlo.pb`).

Reads the few fields needed off the wire (`HloProto`, `HloModuleProto`, `HloComputationProto`,
`HloInstructionProto` in `xla/service/hlo.proto`); everything else is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.module import Module
from hlofuse.ir.unique_ids import ComputationIds, UniqueIds

_MODULE_OF_PROTO = 1
_COMPUTATIONS = 3
_NAME, _INSTRUCTIONS = 1, 2
_OPCODE, _TUPLE_INDEX, _ID, _OPERANDS = 2, 13, 35, 36
_LOCAL = (1 << 32) - 1


def unique_ids_for(module: Module, choice: str | None = None) -> UniqueIds | None:
    """The ids to replay a loaded module with: `choice` is a file or `none`.

    Without it what lies beside the text is taken.
    A proto of another module that happens to lie there is passed over; one asked for is an error.
    """
    if choice == "none":
        return None
    if choice is not None:
        ids = read_unique_ids(Path(choice))
        if not ids.fit(module):
            raise HlofuseError(f"{choice} holds another module than {module.name}")
        return ids
    beside = ids_beside(Path(module.filename)) if module.filename and module.filename[0] != "<" else None
    if beside is None:
        return None
    try:
        ids = read_unique_ids(beside)
    except HlofuseError:
        return None
    return ids if ids.fit(module) else None


def ids_beside(path: Path) -> Path | None:
    """The proto that belongs to a text dump: `x.hlo.pb` beside `x.hlo` or `x.txt`; None if there is none."""
    name = path.name.removesuffix(".gz")
    stem = name.removesuffix(".hlo").removesuffix(".txt")
    for candidate in (f"{name}.pb", f"{stem}.hlo.pb"):
        beside = path.with_name(candidate)
        if beside.is_file():
            return beside
    return None


def read_unique_ids(path: Path) -> UniqueIds:
    """The ids in a `.hlo.pb` file; HlofuseError if it is something else."""
    try:
        return ids_of_proto(path.read_bytes())
    except (IndexError, ValueError) as error:
        raise HlofuseError(f"{path} is no HLO proto: {error}") from None


def ids_of_proto(data: bytes) -> UniqueIds:
    """The ids in an HloProto, or in the HloModuleProto in it; ValueError or IndexError if it is neither."""
    ids = UniqueIds()
    inner: bytes | None = None
    for number, value in _fields(data):
        if number == _COMPUTATIONS and isinstance(value, bytes):
            name, computation = _computation(value)
            ids.computations[name] = computation
        elif number == _MODULE_OF_PROTO and isinstance(value, bytes) and inner is None:
            inner = value
    if not ids.computations and inner is not None:
        for number, value in _fields(inner):
            if number == _COMPUTATIONS and isinstance(value, bytes):
                name, computation = _computation(value)
                ids.computations[name] = computation
    if not ids.computations:
        raise ValueError("it holds no computations")
    return ids


def _computation(data: bytes) -> tuple[str, ComputationIds]:
    name = ""
    ids = ComputationIds()
    for number, value in _fields(data):
        if number == _NAME and isinstance(value, bytes):
            name = value.decode()
        elif number == _INSTRUCTIONS and isinstance(value, bytes):
            _instruction(value, ids)
    return name, ids


def _instruction(data: bytes, ids: ComputationIds) -> None:
    name = opcode = ""
    index = unique = operand = 0
    for number, value in _fields(data):
        if isinstance(value, bytes):
            if number == _NAME:
                name = value.decode()
            elif number == _OPCODE:
                opcode = value.decode()
            elif number == _OPERANDS and value:
                operand = _varint(value, 0)[0]
        elif number == _ID:
            unique = value
        elif number == _TUPLE_INDEX:
            index = value
        elif number == _OPERANDS and not operand:
            operand = value
    ids.by_name[name] = unique & _LOCAL
    if opcode == "get-tuple-element":
        ids.elements.setdefault((operand & _LOCAL, index), (unique & _LOCAL, name))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message; numbers of fixed width are passed over."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > end:
                raise ValueError("it ends in the middle of a field")
            yield tag >> 3, data[at : at + length]
            at += length
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        else:
            raise ValueError(f"a field of unknown kind {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
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
