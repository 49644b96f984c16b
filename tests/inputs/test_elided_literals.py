"""Constants that a text leaves out come from the proto beside it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from hlofuse import load
from hlofuse.inputs.ordered import restore_literals
from hlofuse.passes.common.literals import values_of
from ..tools.wire import message, varint

TEXT = "HloModule m\n\nENTRY e {{\n  ROOT c = {shape} constant({{...}})\n}}\n"


def dumped(folder: Path, shape: str, literal: bytes) -> Path:
    instruction = message(1, b"c") + message(2, b"constant") + message(8, literal)
    module = message(1, b"m") + message(3, message(1, b"e") + message(2, instruction))
    (folder / "m.hlo").write_text(TEXT.format(shape=shape), encoding="utf-8")
    (folder / "m.hlo.pb").write_bytes(message(1, module))
    return folder / "m.hlo"


@pytest.mark.parametrize(
    ("shape", "literal", "values"),
    [
        ("f32[2,6]{1,0}", message(8, struct.pack("<12f", *range(12))), list(range(12))),
        ("s32[11]{0}", message(4, b"".join(varint(n) for n in range(-5, 6))), list(range(-5, 6))),
        ("pred[12]{0}", message(2, bytes([0, 1] * 6)), [False, True] * 6),
        ("f16[11]{0}", message(11, struct.pack("<11e", *[0.5] * 11)), [0.5] * 11),
        ("bf16[11]{0}", message(13, struct.pack("<11H", *[0xC0A0] * 11)), [-5.0] * 11),
        ("c64[11]{0}", message(12, struct.pack("<22f", *[1, 2] * 11)), [1 + 2j] * 11),
    ],
)
def test_elements_are_those_of_the_proto(
    tmp_path: Path, shape: str, literal: bytes, values: list[complex]
) -> None:
    module = load(dumped(tmp_path, shape, literal))
    assert values_of(module.entry.root) is None
    restore_literals(module)
    assert values_of(module.entry.root) == values


@pytest.mark.parametrize(
    ("shape", "literal"),
    [
        ("f32[2,6]{0,1}", message(8, struct.pack("<12f", *range(12)))),  # laid out otherwise
        ("f32[13]{0}", message(8, struct.pack("<12f", *range(12)))),  # another array
        ("f8e4m3fn[12]{0}", message(20, bytes(12))),
    ],
)
def test_what_is_not_understood_stays_left_out(tmp_path: Path, shape: str, literal: bytes) -> None:
    module = load(dumped(tmp_path, shape, literal))
    restore_literals(module)
    assert module.entry.root.literal.is_elided
