"""`what-if --without-pass`: what each pass earns, and what XLA says of that."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from hlofuse.compilation import Compilation, ReplayConfig, replay_config
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.pipelines.targets import Stage
from ..running import Run

MODULE = """HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[64,64] broadcast(zero), dimensions={}
  same = f32[64,64] add(x, zeros)
  e = f32[64,64] exponential(same)
  n = f32[64,64] negate(e)
  t = f32[64,64] transpose(n), dimensions={1,0}
  ROOT r = f32[64,64] transpose(t), dimensions={1,0}
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.hlo"
    path.write_text(MODULE)
    return path


def test_every_pass_that_changes_the_module(hlofuse: Run, module: Path) -> None:
    options = ("--target", "cpu", "--stage", "before-optimizations", "--without-pass", "all")
    found = hlofuse("what-if", module, *options, "--format", "json")
    assert found.status == 0
    document = json.loads(found.out)
    assert (document["schema"], document["about"]) == ("hlofuse.what-if/3", "passes")
    saved = {p["label"]: p["tried"]["kernels_saved"] for p in document["passes"]}
    assert saved.pop("fusion") == -1
    assert {"algsimp", "layout-assignment"} <= set(saved)
    assert set(saved.values()) == {0}
    text = hlofuse("what-if", module, *options).out
    assert "The module without each pass" in text
    assert text.index("fusion ") < text.index("algsimp ")


def test_named_passes(hlofuse: Run, module: Path, samples: Path) -> None:
    command = ("what-if", module, "--target", "cpu", "--stage", "before-optimizations")
    found = hlofuse(*command, "--without-pass", "fusion", "--without-pass", "cse", "--format", "json")
    assert [p["label"] for p in json.loads(found.out)["passes"]] == ["fusion", "cse"]
    refused = hlofuse("what-if", samples / "cpu/softmax", "--without-pass", "all", "--also", module)
    assert (refused.status, refused.out) == (2, "")
    gpu = hlofuse(
        "what-if", samples / "gpu/softmax", "--device", "h100_sxm", "--without-pass", "all", "--confirm"
    )
    assert "--confirm compiles with XLA:CPU; the module is for target gpu" in gpu.err


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)")
def test_xla_confirms(hlofuse: Run, module: Path) -> None:
    command = ("what-if", module, "--target", "cpu", "--stage", "before-optimizations", "--confirm")
    found = hlofuse(*command, "--without-pass", "fusion", "--format", "json")
    (row,) = json.loads(found.out)["passes"]
    assert (row["title"], row["tried"]["kernels_saved"]) == ("+1", -1)
    assert "XLA's kernels" in hlofuse(*command, "--without-pass", "fusion").out


def test_a_trial_without_a_later_pass_has_the_passes_before_fusion_that_ran() -> None:
    # Algebraic simplification runs before fusion; copy_fusion and multi_output_fusion run from there on.
    unoptimized = parse_module(MODULE)

    def config(*flags: str) -> ReplayConfig:
        return replay_config("gpu", "h100_sxm", xla_flags=flags)

    earlier = Compilation.of(unoptimized, Stage.BEFORE, config())
    passes = earlier.span(Stage.INPUT)

    def reuses(config: ReplayConfig, module: Module = unoptimized) -> bool:
        found = Compilation.of(module, Stage.BEFORE, config, earlier)
        own = Compilation.of(module, Stage.BEFORE, config)
        assert print_module(found.final) == print_module(own.final)
        return found.span(Stage.INPUT) is passes

    assert reuses(config())
    assert reuses(config("--xla_disable_hlo_passes=copy_fusion,multi_output_fusion"))
    assert reuses(config("--xla_gpu_unsupported_enable_triton_multi_output_fusion=true"))
    assert not reuses(config("--xla_disable_hlo_passes=copy_fusion,algsimp"))
    assert not reuses(config("--xla_gpu_enable_triton_gemm=false"))
    assert not reuses(replay_config("gpu", "a100_sxm_80"))
    assert not reuses(config(), parse_module(MODULE))
