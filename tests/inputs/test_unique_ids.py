"""Unique ids from a proto: read, applied, and refused where they are of something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.inputs import load
from hlofuse.inputs.wire_format import ids_file_of, read_unique_ids, unique_ids_for
from hlofuse.ir.errors import HlofuseError
from ..tools.wire import message, varint

TEXT = """HloModule m

ENTRY %main (x: (f32[4], f32[4])) -> f32[4] {
  %x = (f32[4]{0}, f32[4]{0}) parameter(0), metadata={op_name="x"}
  %abs = f32[4]{0} abs(%x#1)
  ROOT %add = f32[4]{0} add(%abs, %x#0)
}
"""
IDS = {"x": 0, "add": 1, "gte.0": 2, "gte.1": 3, "abs": 4}


def proto(name: str = "main", metadata: bytes | None = None) -> bytes:
    """An HloProto with the ids of the module above, in computation 7, and fields nobody asks for.

    The first element has `metadata`, if any.
    """
    body = message(1, name.encode())
    for instruction, number in IDS.items():
        one = message(1, instruction.encode()) + b"\x21" + bytes(8)
        if instruction.startswith("gte"):
            one += message(2, b"get-tuple-element") + message(36, varint(7 << 32))
            one += varint(13 << 3) + varint(int(instruction[-1]))
        if instruction == "gte.0" and metadata is not None:
            one += message(7, metadata)
        body += message(2, one + varint(35 << 3) + varint(7 << 32 | number))
    return message(1, message(1, b"m") + message(3, body))


def module_file(tmp_path: Path) -> Path:
    file = tmp_path / "before.hlo"
    file.write_text(TEXT)
    return file


def test_ids_and_names_are_given(tmp_path: Path) -> None:
    file = module_file(tmp_path)
    (tmp_path / "before.hlo.pb").write_bytes(proto())
    module = load(file)
    ids = unique_ids_for(module)
    assert ids is not None
    ids.apply(module)
    assert {x.name: x.id for x in module.entry} == IDS


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [(message(2, b"x"), {"gte.0": '{op_name="x"}'}), (b"", {}), (None, {})],
    ids=["its own", "empty", "none"],
)
def test_an_element_has_its_tuples_metadata_where_it_has_any(
    tmp_path: Path, metadata: bytes | None, expected: dict[str, str]
) -> None:
    file = module_file(tmp_path)
    (tmp_path / "before.hlo.pb").write_bytes(proto(metadata=metadata))
    module = load(file)
    ids = unique_ids_for(module)
    assert ids is not None
    ids.apply(module)
    ids.give_metadata(module)
    elements = [x for x in module.entry if x.opcode == "get-tuple-element"]
    given = {x.name: x.attributes.raw("metadata") for x in elements if "metadata" in x.attributes}
    assert given == expected


def test_another_modules_ids_are_passed_over_unless_asked_for(tmp_path: Path) -> None:
    file = module_file(tmp_path)
    companion = tmp_path / "before.hlo.pb"
    companion.write_bytes(proto("other"))
    assert unique_ids_for(load(file)) is None
    with pytest.raises(HlofuseError, match="is for another module than m"):
        unique_ids_for(load(file), str(companion))


NO_PROTO = "not an HLO proto"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b"HloModule m", NO_PROTO),
        (b"\x0a\xff\xff\xff\xff\x0f", NO_PROTO),
        (b"\x0a", NO_PROTO),
    ],
)
def test_what_is_no_proto_is_said_so(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "x.pb"
    file.write_bytes(data)
    with pytest.raises(HlofuseError, match=problem):
        read_unique_ids(file)


def test_where_the_proto_lies(tmp_path: Path) -> None:
    for text, companion in (("a.hlo", "a.hlo.pb"), ("b.txt", "b.hlo.pb"), ("c.hlo.gz", "c.hlo.pb")):
        (tmp_path / companion).write_bytes(b"")
        assert ids_file_of(tmp_path / text) == tmp_path / companion
    assert ids_file_of(tmp_path / "d.hlo") is None
