"""`stats`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.inputs import load
from hlofuse.reports.stats import statistics
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
    assert found["schema"] == "hlofuse.stats/3"
    assert all(
        len(m["heaviest"]) == m["totals"]["kernels"] for m in found["modules"]
    )  # --limit is for people


def test_no_limit(hlofuse: Run, samples: Path) -> None:
    out = hlofuse("stats", samples / "cpu" / "gpt2_block", "--limit", 0).out
    assert "(--limit)" not in out
    assert out.count("programs.py") > 40


def test_figures_belong_together(samples: Path) -> None:
    for folder in sorted([*(samples / "cpu").glob("*/"), *(samples / "cartpole" / "cpu").glob("*/")]):
        module = load(folder)
        s = statistics(module, heaviest=None)
        assert s.instructions == sum(s.opcodes.values()) == len(list(module.instructions()))
        assert s.totals.kernels == sum(c.kernels for c in s.computations) == len(s.heaviest)
        assert len(s.computations) + s.fusion_bodies + s.applied_computations == len(module.computations)
        weights = [k.row.cost.bytes_accessed * k.row.runs for k in s.heaviest]
        assert weights == sorted(weights, reverse=True)


def test_what_a_loop_runs_often_weighs_more_and_layers_are_named(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        """HloModule m

body {
  b = f32[8] parameter(0)
  ROOT small = f32[8] negate(b), metadata={op_name="jit(f)/transpose(jvp(Net))/layer_1/neg"}
}

condition {
  c = f32[8] parameter(0)
  ROOT on = pred[] constant(true)
}

ENTRY main {
  p = f32[8] parameter(0)
  big = f32[16] concatenate(p, p), dimensions={0}
  ROOT loop = f32[8] while(p), condition=condition, body=body, backend_config={"known_trip_count":{"n":"9"}}
}
"""
    )
    out = hlofuse("stats", path).out
    rows = out[out.index("largest kernels") :].splitlines()[1:]
    assert rows[0].split() == "small, 9 times 64 B 8 Net/layer_1, backward".split()
    assert rows[1].startswith("big ")
    assert ["body", "while", "body", "9", "2", "1"] in [line.split()[:6] for line in out.splitlines()]


def test_custom_calls_are_named_as_unknown(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        '  ROOT %c = f32[8]{0} custom-call(%p), custom_call_target="f"\n}\n'
    )
    result = hlofuse("stats", path)
    assert "1 custom call not counted: XLA does not know their cost" in result.out
    assert "unknown" in result.out


@pytest.mark.parametrize("columns", [45, 60, 100])
def test_no_word_is_broken_where_it_fits(
    hlofuse: Run, samples: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.chdir(samples)
    path = Path("cartpole", "cpu", "scan", "before.hlo")
    out = hlofuse("stats", path, "--limit", 0, columns=columns).out
    found = statistics(load(path), heaviest=None)
    names = [c.name for c in found.computations] + [k.name for k in found.heaviest]
    headings = {"computation", "kernels", "bytes", *(["instructions", "FLOP"] if columns == 100 else [])}
    text = headings | {n for n in names if len(n) <= min(columns, 20)}
    assert text - set(out.replace(",", " ").split()) == set()
    assert max(map(len, out.splitlines())) <= columns
