"""Constants whose elements a text leaves out (`{...}`), from the proto beside it (`LiteralProto` in
`xla/xla_data.proto`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from hlofuse.inputs.unique_ids import ids_beside
from hlofuse.inputs.wire_format import fields, module_proto, varint
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common.literals import MOST_ELEMENTS, Value, text_of

_COMPUTATIONS, _INSTRUCTIONS = 3, 2
_NAME, _LITERAL = 1, 8
_VARINTS = {"pred": 2, "s32": 4, "s64": 5, "u32": 6, "u64": 7}
_FIXED = {
    "f32": (8, "f"),
    "f64": (9, "d"),
    "f16": (11, "e"),
    "bf16": (13, "H"),
    "c64": (12, "f"),
    "c128": (18, "d"),
    "s16": (17, "h"),
    "u16": (16, "H"),
    "s8": (15, "b"),
    "u8": (3, "B"),
}


def restore_literals(module: Module) -> None:
    """Write the elements of a loaded module's constants where only its proto has them; what is of another
    type, too large or laid out otherwise stays as it is."""
    hidden = {
        i.name: i
        for i in module.instructions()
        if i.opcode == "constant" and i.literal.is_elided and _is_plain(i)
    }
    path = ids_beside(Path(module.filename)) if hidden and module.filename else None
    if path is None:
        return
    try:
        for name, data in _literals(path.read_bytes()):
            if name in hidden:
                _restore(hidden[name], data)
    except (IndexError, ValueError, OSError, struct.error):
        return


def _is_plain(constant: Instruction) -> bool:
    shape = constant.shape
    if not shape.is_array or shape.element_count > MOST_ELEMENTS:
        return False
    return tuple(shape.minor_to_major or ()) in ((), tuple(reversed(range(shape.rank))))


def _literals(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names of constants, each with its LiteralProto."""
    for computation in _messages(module_proto(data), _COMPUTATIONS):
        for instruction in _messages(computation, _INSTRUCTIONS):
            said = {n: v for n, v in fields(instruction) if n in (_NAME, _LITERAL) and isinstance(v, bytes)}
            name, literal = said.get(_NAME), said.get(_LITERAL)
            if name is not None and literal is not None:
                yield name.decode(), literal


def _messages(data: bytes, number: int) -> Iterator[bytes]:
    for found, value in fields(data):
        if found == number and isinstance(value, bytes):
            yield value


def _restore(constant: Instruction, data: bytes) -> None:
    values = _values(constant.shape.element_type, data)
    if len(values) != constant.shape.element_count:
        return
    text = text_of(constant.shape, values)
    if text is not None:
        constant.payload = text


def _values(element_type: str, data: bytes) -> Sequence[Value]:
    if element_type in _VARINTS:
        return [_signed(element_type, v) for v in _varints(data, _VARINTS[element_type])]
    if element_type not in _FIXED:
        return []
    number, letter = _FIXED[element_type]
    packed = b"".join(_messages(data, number))
    found = [v for (v,) in struct.iter_unpack("<" + letter, packed)]
    if element_type == "bf16":
        return list(struct.unpack(f"<{len(found)}f", b"".join([struct.pack("<I", v << 16) for v in found])))
    if element_type in ("c64", "c128"):
        return [complex(a, b) for a, b in zip(found[::2], found[1::2], strict=True)]
    return found


def _varints(data: bytes, number: int) -> Iterator[int]:
    for packed in _messages(data, number):
        at = 0
        while at < len(packed):
            value, at = varint(packed, at)
            yield value


def _signed(element_type: str, value: int) -> Value:
    if element_type == "pred":
        return bool(value)
    return value - (1 << 64) if element_type[0] == "s" and value >> 63 else value
