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
    (tmp_path / "train.py").write_text("def step(): ...")
    assert "train.py:step is a function, not a dump; hlofuse capture" in refusal(tmp_path / "train.py:step")
    assert "other.py:step does not exist" in refusal(tmp_path / "other.py:step")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty once decompressed"),
        (b"\x0a\x05jit_f\x00\x01\x02" * 10, "is a binary file, not text, nor is it a whole HLO proto"),
        (HLO.encode("utf-16"), "is UTF-16 text (as PowerShell's > writes); save it as UTF-8"),
        (b"HloModule m\xff\n", "is not UTF-8 text: byte 0xff in line 1 (offset 11)"),
        (gzip.compress(HLO.encode(), mtime=0)[:-12], "not a complete gzip file"),
        (gzip.compress(HLO.encode(), mtime=0)[:30] + b"garbage", "not a complete gzip file"),
        (b"module @jit_f {\n  func.func public @main() {}\n}", "is StableHLO (MLIR), not HLO text"),
        (b"[Sync]\nTensorsGraphInfo:\n\nIR {\n  %0 = f32[] aten::tanh()\n}\n", "XLA_SAVE_TENSORS_FMT=hlo"),
        (b"Tensor: id=1\nIR {\n  %0 = f32[] aten::tanh()\n}\n", "XLA_SAVE_TENSORS_FMT=hlo"),
        (b"BufferAssignment:\nallocation 0", "buffer assignment"),
        (b"{ lambda ; a:f32[2]. let\n    b:f32[2] = neg a\n  in (b,) }\n", "a jaxpr, not HLO"),
        (b"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while\n", "hlofuse memory DUMP"),
        (b"BufferAssignment OOM Debugging.\nBufferAssignment stats:\n", "an out-of-memory message"),
        (b'"""Trains."""\n\nimport jax\n\nx = f(y)\n', "a Python program, not a dump; hlofuse capture"),
        (b"{ lambda a:f32[2]; b:f32[2]. let c:f32[2] = mul a b in (c,) }\n", "a jaxpr, not HLO"),
        (b"Q:\n```\n{\n    lambda ; a:f32[]. let\n", "a jaxpr, not HLO"),
        (b'"text": "{ lambda ; a:f32[4]. let\\n"\n', "a jaxpr, not HLO"),
        (b"W hlo_rematerialization.cc:2] Can't reduce memory use below 2GiB\n", "hlofuse memory DUMP"),
        (b"I hlo_pass_pipeline.cc:3]   HLO pass dce\n", "hlofuse timeline DUMP"),
        (b"Ran out of memory in memory space vmem.\n\n  XLA label: %f = f32[]\n", "an out-of-memory message"),
        (b"(pid=1) constant-folding is inherently a trade-off\n", "a slow compilation"),
        (b"Traceback\n" + b"  File x\n" * 2000 + b"RESOURCE_EXHAUSTED: Out\n", "hlofuse memory DUMP"),
        (b"digraph G {\nrankdir = TB;\n}\n", "a drawing for Graphviz"),
        (b'strict digraph "f" {\n}\n', "a drawing for Graphviz"),
        (b"<svg><title>%a = f32[2] negate(%b)</title></svg>", "a drawing, not HLO"),
        (b"<!doctype html>\n<script>\nimport x\n</script>", "a web page without a module"),
        (b"{'flops': 64.0, 'bytes accessed': 96.0}\n", "the result of cost_analysis()"),
        (b"[{'bytes accessed0{}': 32.0, 'flops': 64.0}]\n", "the result of cost_analysis()"),
        (b"CompiledMemoryStats(generated_code_size_in_bytes=0)\n", "the result of memory_analysis()"),
        (b"Memory Space: default (color=0)\nTotal bytes: 8 (8B)\n", "XLA's memory usage report"),
        (b"Total bytes used: 8 (8B)\nAllocations sorted by size:\n", "XLA's memory usage report"),
        (b"Big:\n  allocation 0: size 8, parameter 0\n", "XLA's buffer assignment"),
        (b"\nTotal bytes used: 8 (8B)\n\nUsed values:\n<0 x @0>\n", "XLA's list of buffer values"),
        (b"HloLiveRange (max 3):\n  InstructionSequence:\n", "live ranges"),
        (b"gpu_device_info {\n  threads_per_block_limit: 1024\n}\n", "XLA's description of a GPU"),
        (b'platform_name: "CUDA"\n', "XLA's description of a GPU"),
        (b'node {\n  name: "x"\n  op: "Placeholder"\n}\n', "a GraphDef of TensorFlow"),
        (b"\n\x10\n\x01x\x12\x0bPlaceholder\n\x09\n\x01y\x12\x04Relu", "a graph of TensorFlow"),
        (b"\x08\x01\x12\x02\n\x00", "a graph of TensorFlow"),
        (b"PK\x03\x04\x14\x00\x00\x00", "is an archive; unpack it"),
        (b"m.hlo".ljust(257, b"\0") + b"ustar\x0000", "is an archive; unpack it"),
        (gzip.compress(b"m.hlo".ljust(257, b"\0") + b"ustar\x0000", mtime=0), "is an archive; unpack it"),
        (b"xla_cpu_enable_fast_math: false\n", "the list of XLA's flags"),
        (b"//\n// Generated\n//\n\n.version 8.3\n.target sm_90\n", "machine code of kernels"),
    ],
)
def test_what_is_no_dump(tmp_path: Path, data: bytes, text: str) -> None:
    assert text in refusal(write(tmp_path, data))


@pytest.mark.parametrize("text", ["node", "graph", "xla_", "module", "let"])
def test_a_name_of_another_format_in_a_dump(tmp_path: Path, text: str) -> None:
    assert text in load(write(tmp_path, HLO.replace("%main", f"%{text}").encode())).entry.name
    entry = HLO.partition("\n\n")[2].replace("ENTRY %main (p: f32[2]) -> f32[2]", f"{text}1")
    assert load(write(tmp_path, entry.encode())).entry.name == f"{text}1"


def test_a_file_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, HLO.encode())
    monkeypatch.setenv("HLOFUSE_MAX_INPUT_BYTES", "20")
    assert "has more than 20 bytes; set HLOFUSE_MAX_INPUT_BYTES" in refusal(path)
    monkeypatch.setenv("HLOFUSE_MAX_INPUT_BYTES", "a lot")
    assert "must be a number of bytes" in refusal(path)


def test_a_compressed_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb") as file:
        for _ in range(200):
            file.write(b" " * (1 << 20))
    path = write(tmp_path, bomb.getvalue())
    assert path.stat().st_size < 1 << 20
    monkeypatch.setenv("HLOFUSE_MAX_INPUT_BYTES", "10000000")
    assert "has more than 10,000,000 bytes once decompressed" in refusal(path)


def test_names_that_cannot_be_files() -> None:
    assert "not a file name" in refusal("a\0b")
    assert "cannot read" in refusal("x" * 5000)


def test_control_sequences_in_a_file_name_are_spelled_out(tmp_path: Path) -> None:
    assert "\\x1b[31m" in refusal(tmp_path / "\x1b[31mred.hlo")
