"""`what-if --without-pass`: what each pass earns, and what XLA says of that."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

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
