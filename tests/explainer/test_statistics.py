"""`stats`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.explainer import statistics
from hlofuse.inputs import load

from ..running import Golden, Run


def test_text_markdown_json(
    hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(samples / "cpu")
    inputs = ["softmax/after.hlo", "../cartpole/cpu/scan/before.hlo"]
    for form, ending in (("text", "txt"), ("markdown", "md")):
        result = hlofuse("stats", *inputs, "--limit", 5, "--format", form)
        assert (result.status, result.err) == (0, "")
        golden(f"stats/two.{ending}", result.out)
    result = hlofuse("stats", "softmax/after.hlo", "softmax/before.hlo", "--limit", 1, "--format", "json")
    golden("stats/two.json", result.out)
    found = json.loads(result.out)
    assert found["schema"] == "hlofuse.stats/1"
    assert all(len(m["heaviest"]) == m["kernels"] for m in found["modules"])  # --limit is for people


def test_no_limit(hlofuse: Run, samples: Path) -> None:
    out = hlofuse("stats", samples / "cpu" / "gpt2_block", "--limit", 0).out
    assert "(--limit)" not in out
    assert out.count("programs.py") > 40


def test_figures_belong_together(samples: Path) -> None:
    for folder in sorted([*(samples / "cpu").iterdir(), *(samples / "cartpole" / "cpu").iterdir()]):
        module = load(folder)
        s = statistics(module, heaviest=None)
        assert s.instructions == sum(s.opcodes.values()) == len(list(module.instructions()))
        assert s.kernels == sum(c.kernels for c in s.computations) == len(s.heaviest)
        assert len(s.computations) + s.fusion_bodies + s.applied_computations == len(module.computations)
        assert [k.cost.bytes_accessed for k in s.heaviest] == sorted(
            (k.cost.bytes_accessed for k in s.heaviest), reverse=True
        )


def test_custom_calls_are_named_as_unknown(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        '  ROOT %c = f32[8]{0} custom-call(%p), custom_call_target="f"\n}\n'
    )
    result = hlofuse("stats", path)
    assert "1 custom call not counted: XLA does not know their cost" in result.out
    assert "unknown" in result.out
