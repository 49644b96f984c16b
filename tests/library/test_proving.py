"""Changes that XLA compiles: as many as asked, each once, and only what helps and keeps the values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hlofuse.capture import CaptureError
from hlofuse.ir import parse_module
from hlofuse.library import proving
from hlofuse.reports.whatif.model import Trial
from ..fixtures import unpacked
from ..running import Run

TPU = Path(__file__).parent.parent / "data" / "tpu.tar.xz"
PROGRAM = """HloModule rows
ENTRY e {
  labels = s32[512] parameter(0)
  table = f32[1000,256] parameter(1)
  spread = s32[512,1000] broadcast(labels), dimensions={0}
  numbers = s32[512,1000] iota(), iota_dimension=1
  test = pred[512,1000] compare(spread, numbers), direction=EQ
  onehot = f32[512,1000] convert(test)
  ROOT rows = f32[512,256] dot(onehot, table), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@dataclass
class Compiler:
    """In place of XLA: a module is replayed; pairs of programs have these verdicts: in general, in range."""

    values: tuple[str, str] = ("same", "same")
    refusal: str = ""
    compiled: list[tuple[str, str]] = field(default_factory=list)

    def capture(self, modules: Any, _to: Any, out: Path, **how: Any) -> Any:
        if self.refusal:
            raise CaptureError(self.refusal)
        (_, file), *_ = modules
        self.compiled.append((file.read_text(), how["flags"]))
        out.with_suffix(".hlo").write_text(file.read_text())
        return SimpleNamespace(errors={}, largest=SimpleNamespace(folder=out.with_suffix(".hlo")))

    def __call__(self, *_: object) -> Compiler:
        return self

    __enter__ = __call__

    def __exit__(self, *_: object) -> None: ...

    def judge(self, *_: object) -> Any:
        return SimpleNamespace(verdict=self.values[0], in_range=self.values == ("different", "same"))


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compiler:
    found = Compiler()
    monkeypatch.setenv("HLOFUSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(proving, "capture_modules", found.capture)
    monkeypatch.setattr(proving, "Judge", found)
    return found


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "rows.hlo").write_text(PROGRAM)
    return tmp_path / "rows.hlo"


def explained(hlofuse: Run, program: Path, *more: str) -> dict[str, Any]:
    result = hlofuse("explain", program, "--prove", *more, "--format", "json")
    assert result.status == 0, result.err
    return dict(json.loads(result.out))


def test_a_change_that_helps_is_first_with_its_proof(hlofuse: Run, program: Path, compiler: Compiler) -> None:
    first = explained(hlofuse, program)["suggestions"][0]
    assert (first["recipe"], first["proof"]) == ("take-not-onehot", ["compiled", "values"])
    assert first["gain"]["time_us"] > 0
    count = len(compiler.compiled)
    assert explained(hlofuse, program)["suggestions"][0] == first
    assert len(compiler.compiled) == count, "compiled again, although nothing changed"


@pytest.mark.parametrize("tries", [2, 3])
def test_no_more_is_compiled_than_asked(hlofuse: Run, program: Path, compiler: Compiler, tries: int) -> None:
    found = explained(hlofuse, program, "--tries", str(tries))
    assert len(compiler.compiled) <= tries
    assert found["verdict"]["compiled"] <= tries - 1


def test_a_gain_is_over_what_is_written_and_its_simpler_form(
    hlofuse: Run, program: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XLA may compile either better."""
    own = explained(hlofuse, program)["suggestions"][0]["gain"]["time_us"]
    large = PROGRAM.replace("512", "65536")
    monkeypatch.setattr(proving, "prepared", lambda _: parse_module(large))
    worse = explained(hlofuse, program)
    assert all(s["gain"]["time_us"] < worse["totals"]["time_us"] for s in worse["suggestions"])
    program.write_text(large)
    monkeypatch.setattr(proving, "prepared", lambda _: parse_module(PROGRAM))
    assert explained(hlofuse, program)["suggestions"][0]["gain"]["time_us"] == own


def test_other_values_are_not_offered(hlofuse: Run, program: Path, compiler: Compiler) -> None:
    compiler.values = ("different", "different")
    assert all(s.get("recipe") != "take-not-onehot" for s in explained(hlofuse, program)["suggestions"])
    compiler.values = ("different", "same")
    assert "in range" in explained(hlofuse, program)["suggestions"][0]["tried"]["how"]
    compiler.values = ("cannot tell", "same")
    assert explained(hlofuse, program)["suggestions"][0]["proof"] == ["compiled"]


@pytest.mark.parametrize(
    ("new", "old", "bytes_moved"),
    [
        ("f32[256,128]", "f32[32768]", 0),  # rows of a tile, which lie as the elements of a vector
        ("f32[32768]", "f32[256,128]", 0),
        ("f32[128,256]", "f32[32768]", 2 * 6 * 4 << 15),
        ("bf16[128,256]", "bf16[256,128]", 2 * 6 * 2 << 15),
        ("f32[8,128]", "f32[4,2,128]", 0),
        ("f32[8,1]", "f32[4,2]", 0),
        ("f32[1,1]", "f32[1]", 0),
    ],
)
def test_a_reshape_to_other_tiles_moves_its_bytes(new: str, old: str, bytes_moved: int) -> None:
    lines = f"  p = {old} parameter(0)\n  ROOT r = {new} reshape(p)"
    root = parse_module(f"HloModule m\nENTRY e {{\n{lines}\n}}\n").entry.root
    assert proving._hbm_equivalent(root, None) == bytes_moved


def test_a_tpu_lists_what_may_apply_and_says_what_compiling_needs(
    hlofuse: Run, tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked(TPU, tmp_path)
    case = tmp_path / "tpu" / "softmax"
    (case / "before_optimizations.hlo").write_text(PROGRAM)
    (case / "hlofuse.json").write_text(
        '{"schema": "hlofuse.stamp/1", "jaxlib": "0.11.1", "backend": "tpu", "device": "v5e", "flags": ""}'
    )
    shown = hlofuse("explain", case).out
    assert "--prove compiles changes with libtpu" in shown
    assert "Worth trying (not simulated): take-not-onehot\n" in shown
    # The kernel that holds the operation which changes is touched, and no other.
    final = case / "after.hlo"
    used = '"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"9000000"}]'
    config = f'}}, backend_config={{"estimated_cycles":"9000",{used}}}'
    final.write_text(final.read_text().replace(" stack_frame_id=5}", config))
    for name, touched in (("div", r" \(touches [\d.]+ µs, [1-9]\d?% of time\)"), ("log", "")):
        few = PROGRAM.replace("512", "64")  # of many rows the gather takes longer than the product
        named = few.replace("={0}\n}", f'={{0}}, metadata={{op_name="jit(softmax)/{name}"}}\n}}')
        (case / "before_optimizations.hlo").write_text(named)
        shown = hlofuse("explain", case, columns=200).out
        flag = r"--xla_tpu_scoped_vmem_limit_kib=65536 \(touches \d.*%[a-z ]*\)"
        assert re.search(rf"Worth trying \(not simulated\): {flag}, take-not-onehot{touched}$", shown, re.M)
    compiler.refusal = 'capture for tpu (v5e:2x2) needs libtpu; pip install ".[capture-tpu]" in its place'
    for columns in (80, 160):
        shown = hlofuse("explain", case, "--prove", columns=columns).out
        assert f"Not simulated: {compiler.refusal}" in " ".join(shown.split())
    # What XLA made better stays in the list where nothing says how long it takes.
    compiler.refusal = ""
    for bytes_saved, is_listed in ((8, True), (-8, False)):
        trial = Trial(None, "compiled by XLA", None, 0, 0, bytes_saved)
        monkeypatch.setattr(proving, "_trial", lambda *_, trial=trial: trial)
        shown = hlofuse("explain", case, "--prove").out
        assert ("take-not-onehot" in shown) == is_listed
