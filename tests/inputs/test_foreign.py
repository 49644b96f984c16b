"""StableHLO and HLO protos where a dump is expected."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from hlofuse.inputs import load
from hlofuse.inputs.many import load_text
from hlofuse.inputs.wire_format import BYTECODE, MLIR, PROTO, foreign_form, module_proto, unique_ids_for
from hlofuse.ir.errors import HlofuseError
from ..running import Run

needs_jaxlib = pytest.mark.skipif(
    importlib.util.find_spec("jaxlib") is None, reason="needs jaxlib (Python 3.12 or newer)"
)
STABLEHLO = """
#loc = loc("f")
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<8xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
"""
HLO = """HloModule jit_f

ENTRY main {
  p = f32[8]{0} parameter(0)
  e = f32[8]{0} exponential(p)
  ROOT a = f32[8]{0} add(e, p)
}
"""


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


INSTRUCTION = field(1, b"p") + field(2, b"parameter")
MODULE = field(1, b"jit_f") + field(2, b"main") + field(3, field(1, b"main") + field(2, INSTRUCTION))


def test_an_hlo_proto_and_a_snapshot_hold_the_module() -> None:
    assert module_proto(MODULE) == MODULE
    assert module_proto(field(1, MODULE)) == MODULE
    assert module_proto(field(1, field(1, MODULE)) + field(2, b"argument")) == MODULE
    for other in (b"", field(1, b"jit_f"), field(1, field(1, field(1, field(1, MODULE)))), MODULE[:-3]):
        with pytest.raises((ValueError, IndexError)):
            module_proto(other)


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (STABLEHLO.encode(), MLIR),
        (b"module {\n}\n", MLIR),
        (b"// no module around it\nfunc.func @main() {\n}\n", MLIR),
        (b"// made by hand\nmodule @f {\n}\n", MLIR),
        (b"builtin.module @f {}", MLIR),
        (b"module attributes {a.b} {\n}\n", MLIR),
        (b'!t = tuple<f32>\nsdy.mesh @mesh = <["x"=2]>\nmodule @f {\n}\n', MLIR),
        (b"ML\xefR\rStableHLO_v1.16.3\0", BYTECODE),
        (MODULE, PROTO),
        (HLO.encode(), None),
        (b"\n" + HLO.encode(), None),
        (b"\n\x05jit_f\x00\x01", None),
        (b"", None),
    ],
)
def test_the_form_is_told_by_the_bytes(data: bytes, form: str | None) -> None:
    assert foreign_form(data) == form


def test_without_jaxlib_the_extra_is_named(
    hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    (tmp_path / "f.mlir").write_text(STABLEHLO)
    result = hlofuse("stats", tmp_path / "f.mlir")
    assert result.status == 2
    assert "f.mlir is StableHLO text, which needs jaxlib to be read" in result.err
    assert result.err.endswith("from a checkout of hlofuse, or run hlofuse capture FILE --python PYTHON\n")


@needs_jaxlib
def test_stablehlo_is_lowered(hlofuse: Run, tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(STABLEHLO)
    module = load(tmp_path / "f.mlir")
    assert module.name == "jit_f"
    assert [i.opcode for i in module.entry] == ["parameter", "exponential", "add"]
    (tmp_path / "f.gz").write_bytes(gzip.compress(STABLEHLO.encode()))
    assert len([*load(tmp_path / "f.gz").entry]) == 3
    assert hlofuse("stats", "-", stdin=STABLEHLO.encode()).status == 0
    sharded = STABLEHLO.replace("8xf32>)", '8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})', 1)
    assert load_text(sharded).attributes.raw("num_partitions") == "4"


UPDATED = """func.func @updated(%x: tensor<4x8xf32>, %i: tensor<i32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.slice %x [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = stablehlo.dynamic_update_slice %x, %0, %i, %i
    : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %2, %1 : tensor<8x4xf32>, tensor<4x8xf32>
}
"""


@needs_jaxlib
def test_results_are_laid_out_as_jax_compiles_them(hlofuse: Run, tmp_path: Path) -> None:
    """XLA:CPU 0.11.1 has a kernel that copies the transposed result, five in all."""
    (tmp_path / "f.mlir").write_text(UPDATED)
    result = hlofuse("kernels", tmp_path / "f.mlir", "--xla", "0.11.1", "--format", "json")
    assert json.loads(result.out)["totals"]["kernels"] == 5


@needs_jaxlib
@pytest.mark.parametrize(
    "text",
    [
        STABLEHLO.replace("@main", "@forward"),
        STABLEHLO.replace("public @main", 'private @"f.1"'),
        STABLEHLO.replace("= 1 : i32", "= 1 : i32, plan.b = [#plan.c<x = <1>>, #plan.d], tt.e = #tt<f, g>"),
        STABLEHLO.replace("%arg0: tensor<8xf32>)", "%arg0: tensor<8xf32> {tt.y = #tt.z<tensor<1xi8>>})"),
        STABLEHLO + '#loc1 = loc(callsite(#loc at "f(x)"(#loc',
    ],
)
def test_stablehlo_that_jaxlib_alone_refuses(text: str) -> None:
    assert [i.opcode for i in load_text(text).entry] == ["parameter", "exponential", "add"]


@needs_jaxlib
def test_a_proto_brings_its_ids(tmp_path: Path) -> None:
    import jaxlib._hlo

    proto = jaxlib._hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto()
    file = tmp_path / "f.hlo.pb"
    file.write_bytes(proto)
    module = load(file)
    assert [i.name for i in module.entry] == ["p", "e", "a"]
    ids = unique_ids_for(module)
    assert ids is not None
    assert set(ids.computations["main"].by_name) == {"p", "e", "a"}


@needs_jaxlib
@pytest.mark.parametrize("ending", ["hlo.pb", "hlo.pb.gz"])
def test_a_directory_of_protos_alone_is_read(tmp_path: Path, ending: str) -> None:
    import jaxlib._hlo

    proto = jaxlib._hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto()
    data = gzip.compress(proto) if ending.endswith("gz") else proto
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        (tmp_path / f"module_0001.jit_f.{stage}.{ending}").write_bytes(data)
    module = load(tmp_path)
    assert [i.name for i in module.entry] == ["p", "e", "a"]
    ids = unique_ids_for(module)
    assert ids is not None
    assert set(ids.computations["main"].by_name) == {"p", "e", "a"}


@needs_jaxlib
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (STABLEHLO.replace("exponential", "exponentiel"), "that jaxlib cannot read: line 5: custom op"),
        ("module { func.func", "only the header is in the text; give the whole"),
        ("module {\n  func.func @main() {\n    %0 = tf.graph {\n    }\n  }\n", "MLIR with operations of tf;"),
        ("it says\n\n  %3 = mhlo.add %1, %2 : tensor<2xf32>\n", "has single lines of MLIR"),
        ("an instruction is taking > 1s:\n\n  reduce-window.16 (displaying\n", "has no HLO"),
    ],
)
def test_what_jaxlib_refuses_is_said(tmp_path: Path, broken: str, message: str) -> None:
    (tmp_path / "f.mlir").write_text(broken)
    with pytest.raises(HlofuseError, match=message):
        load(tmp_path / "f.mlir")
