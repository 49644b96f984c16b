"""Unique ids from the proto that XLA writes beside a text (`--xla_dump_hlo_as_proto`: `….hlo.pb`).

Reads the few fields needed off the wire (`HloProto`, `HloModuleProto`, `HloComputationProto`,
`HloInstructionProto` in `xla/service/hlo.proto`); everything else is skipped.
"""

from pathlib import Path

from hlofuse.inputs.wire_format import fields, module_proto, varint
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.ir.unique_ids import ComputationIds, Element, UniqueIds

_COMPUTATIONS = 3
_NAME, _INSTRUCTIONS = 1, 2
_OPCODE, _METADATA, _TUPLE_INDEX, _ID, _OPERANDS = 2, 7, 13, 35, 36
_LOCAL = (1 << 32) - 1


def unique_ids_for(module: Module, choice: str | None = None) -> UniqueIds | None:
    """The ids to replay a loaded module with: those in the file `choice`, else in a proto beside the text.

    A proto of another module that happens to lie there is passed over; one asked for is an error.
    """
    if choice is not None:
        ids = read_unique_ids(Path(choice))
        if not ids.fit(module):
            raise HlofuseError(f"{choice} holds another module than {module.name}")
        return ids
    ids_file = ids_file_of(Path(module.filename)) if module.filename and module.filename[0] != "<" else None
    if ids_file is None:
        return None
    try:
        ids = read_unique_ids(ids_file)
    except HlofuseError:
        return None
    return ids if ids.fit(module) else None


def ids_file_of(path: Path) -> Path | None:
    """The proto that belongs to a dump: `x.hlo.pb` beside `x.hlo` or `x.txt`, or itself; None without."""
    if path.suffix == ".pb" and path.is_file():
        return path
    name = path.name.removesuffix(".gz")
    stem = name.removesuffix(".hlo").removesuffix(".txt")
    for candidate in (f"{name}.pb", f"{stem}.hlo.pb"):
        ids_file = path.with_name(candidate)
        if ids_file.is_file():
            return ids_file
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
    for number, value in fields(module_proto(data)):
        if number == _COMPUTATIONS and isinstance(value, bytes):
            name, computation = _computation(value)
            ids.computations[name] = computation
    return ids


def _computation(data: bytes) -> tuple[str, ComputationIds]:
    name = ""
    ids = ComputationIds()
    for number, value in fields(data):
        if number == _NAME and isinstance(value, bytes):
            name = value.decode()
        elif number == _INSTRUCTIONS and isinstance(value, bytes):
            _instruction(value, ids)
    return name, ids


def _instruction(data: bytes, ids: ComputationIds) -> None:
    name = opcode = ""
    index = unique = operand = 0
    has_metadata = False
    for number, value in fields(data):
        if isinstance(value, bytes):
            if number == _NAME:
                name = value.decode()
            elif number == _OPCODE:
                opcode = value.decode()
            elif number == _METADATA:
                has_metadata = bool(value)
            elif number == _OPERANDS and value:
                operand = varint(value, 0)[0]
        elif number == _ID:
            unique = value
        elif number == _TUPLE_INDEX:
            index = value
        elif number == _OPERANDS and not operand:
            operand = value
    ids.by_name[name] = unique & _LOCAL
    if opcode == "get-tuple-element":
        ids.elements.setdefault((operand & _LOCAL, index), Element(name, has_metadata))
