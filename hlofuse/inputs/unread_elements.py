"""Elements of tuples that nobody reads, which a text leaves out.

A front end takes every result of a call apart at once, read or not (`xla/hlo/translate/mhlo_to_hlo`). A text
says of an element where it is read only, as `name#1`. XLA's passes meet the others too: what nobody reads is
visited first (`HloComputation::Accept`), so that a call is inlined in another order."""

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hlofuse.inputs.unique_ids import ids_file_of
from hlofuse.inputs.wire_format import fields, module_proto, varint
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.text.literals import implied_element
from hlofuse.ir.unique_ids import ComputationIds, UniqueIds
from hlofuse.passes.common.literals import MOST_ELEMENTS, Value, text_of


def restore_unread_elements(module: Module, ids: UniqueIds | None) -> None:
    """Add to a module before optimizations the elements that `ids` tell of, without them all there must
    have been. Every element comes right behind what it is one of."""
    for computation in module.computations:
        ids_here = ids.computations.get(computation.name) if ids is not None else None
        order: list[Instruction] = []
        for i in list(computation):
            if i.opcode != "get-tuple-element":
                order.append(i)
                if i.shape.is_tuple:
                    order += _elements(i, ids_here)
        computation.reorder(order)
    if ids is None:
        _name_elements(module)


_NUMBERED = re.compile(r"(.+)\.(\d+)")


def _name_elements(module: Module) -> None:
    """The names that a front end gave elements: an operation's results have the numbers behind its own."""
    taken = {i.name for i in module.instructions()}
    for element in module.instructions():
        if element.opcode != "get-tuple-element":
            continue
        source, index = element.operands[0], element.tuple_index
        match = _NUMBERED.fullmatch(source.name)
        if match is None or not source.op_name or element.name != f"{source.name}_{index}":
            continue
        name = f"{match[1]}.{int(match[2]) + 1 + index}"
        if name not in taken:
            taken.add(name)
            element.name = module.instruction_names.unique(name)


def _elements(source: Instruction, ids_here: ComputationIds | None) -> list[Instruction]:
    """All of one instruction and those of its elements that are tuples themselves, added where they miss."""
    assert source.computation is not None
    read: dict[int, list[Instruction]] = {}
    for user in source.users:
        if user.opcode == "get-tuple-element":
            read.setdefault(user.tuple_index, []).append(user)
    found: list[Instruction] = []
    for index in sorted({*read, *_frontend_elements(source, ids_here, max(read, default=-1))}):
        if index not in read:
            new = implied_element(source, index, f"{source.name}#{index}")
            source.computation.append_parsed(new)
            read[index] = [new]
        for element in read[index]:
            found.append(element)
            if element.shape.is_tuple:
                found += _elements(element, ids_here)
    return found


def _frontend_elements(source: Instruction, ids_here: ComputationIds | None, last_read: int) -> Iterable[int]:
    """The elements that a front end made."""
    every = range(len(source.shape.tuple_shapes))
    if ids_here is not None:
        source_ids = ids_here.by_name.get(source.name)
        return [k for k in every if (source_ids, k) in ids_here.elements]
    if source.opcode == "tuple":
        return ()
    if source.opcode == "while":
        # Values from outside that a body reads are handed in behind the others, and never come out.
        return range(max([last_read, *_changed(dict(source.called)["body"])]) + 1)
    return every


def _changed(body: Computation) -> list[int]:
    """The elements that a loop does not hand on as they are."""
    if body.root.opcode != "tuple":
        return list(range(len(body.root.shape.tuple_shapes)))
    return [
        k
        for k, x in enumerate(body.root.operands)
        if x.opcode != "get-tuple-element" or x.operands[0].opcode != "parameter" or x.tuple_index != k
    ]


# Constants whose elements a text leaves out (`{...}`), from the proto beside it (`LiteralProto` in
# `xla/xla_data.proto`).

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
    path = ids_file_of(Path(module.filename)) if hidden and module.filename else None
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
            attributes = {
                n: v for n, v in fields(instruction) if n in (_NAME, _LITERAL) and isinstance(v, bytes)
            }
            name, literal = attributes.get(_NAME), attributes.get(_LITERAL)
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
