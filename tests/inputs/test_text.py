"""Bytes to text: what is read, what is refused, and in which words."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from hlofuse.inputs import load, read_text
from hlofuse.ir.errors import HlofuseError

HLO = """HloModule m

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %n = f32[2]{0} negate(%p)
}
"""


def write(tmp_path: Path, data: bytes, name: str = "m.hlo") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def refusal(path: object, **kwargs: Any) -> str:
    with pytest.raises(HlofuseError) as e:
        read_text(str(path), **kwargs)
    return str(e.value)


def test_plain_gzipped_and_with_byte_order_mark(tmp_path: Path) -> None:
    assert read_text(write(tmp_path, HLO.encode())) == HLO
    assert read_text(write(tmp_path, gzip.compress(HLO.encode()))) == HLO  # told by its bytes, not its name
    assert read_text(write(tmp_path, b"\xef\xbb\xbf" + HLO.encode())) == HLO
    assert read_text(write(tmp_path, HLO.replace("\n", "\r\n").encode())) == HLO


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (HLO.encode(), gzip.compress(HLO.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        module = load("-")
        assert (module.name, module.filename) == ("m", "<stdin>")


def test_a_missing_file_is_named_with_its_likes(tmp_path: Path) -> None:
    write(tmp_path, b"x", "module.hlo")
    assert "modul.hlo does not exist; did you mean module.hlo?" in refusal(tmp_path / "modul.hlo")
    assert refusal(tmp_path / "deep.hlo").endswith("deep.hlo does not exist")  # .hlo alone is no likeness


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty once decompressed"),
        (b"\x0a\x05jit_f\x00\x01\x02" * 10, "is a binary file, not text; if it is an HLO proto"),
        (HLO.encode("utf-16"), "is text in UTF-16 (as PowerShell's > writes it): save it in UTF-8"),
        (b"HloModule m\xff\n", "is not text in UTF-8: byte 0xff in line 1 (offset 11)"),
        (gzip.compress(HLO.encode(), mtime=0)[:-12], "is not a whole gzip file"),
        (gzip.compress(HLO.encode(), mtime=0)[:30] + b"garbage", "is not a whole gzip file"),
        (b"module @jit_f {\n  func.func public @main() {}\n}", "is StableHLO (MLIR), not HLO text"),
        (b"[Sync]\nTensorsGraphInfo:\n\nIR {\n  %0 = f32[] aten::tanh()\n}\n", "XLA_SAVE_TENSORS_FMT=hlo"),
        (b"BufferAssignment:\nallocation 0", "buffer assignment"),
    ],
)
def test_what_is_no_dump(tmp_path: Path, data: bytes, text: str) -> None:
    assert text in refusal(write(tmp_path, data))


def test_a_file_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, HLO.encode())
    assert "has more than 20 bytes; set HLOFUSE_MAX_INPUT_BYTES" in refusal(path, limit=20)
    monkeypatch.setenv("HLOFUSE_MAX_INPUT_BYTES", "20")
    assert "has more than 20 bytes" in refusal(path)
    monkeypatch.setenv("HLOFUSE_MAX_INPUT_BYTES", "a lot")
    assert "must be a number of bytes" in refusal(path)


def test_a_compressed_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb") as file:
        for _ in range(200):
            file.write(b" " * (1 << 20))
    path = write(tmp_path, bomb.getvalue())
    assert path.stat().st_size < 1 << 20
    assert "has more than 10,000,000 bytes once decompressed" in refusal(path, limit=10_000_000)


def test_names_that_cannot_be_files() -> None:
    assert "not a file name" in refusal("a\0b")
    assert "cannot read" in refusal("x" * 5000)


def test_control_sequences_in_a_file_name_are_spelled_out(tmp_path: Path) -> None:
    assert "\\x1b[31m" in refusal(tmp_path / "\x1b[31mred.hlo")
