"""Explanations: the data, and how it looks on samples (golden files a person can read)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.inputs import load
from hlofuse.ir import parse_module
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.model import Explanation
from ..running import Golden, Run

SMALL = (
    "softmax",
    "gpt2_block",
    *(f"../cartpole/cpu/{n}" for n in ("precomputed_noise", "scan", "baseline")),
)


def explained(text: str) -> Explanation:
    return explain(compile(parse_module(text)))


def explained_sample(samples: Path, name: str) -> Explanation:
    return explain(compile(load(samples / "cpu" / name)))


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("name", ["softmax", "gpt2_block", "../cartpole/cpu/scan"])
def test_text(
    hlofuse: Run, golden: Golden, samples: Path,
    monkeypatch: pytest.MonkeyPatch, name: str, columns: int,
) -> None:  # fmt: skip
    monkeypatch.chdir(samples / "cpu")
    result = hlofuse("explain", f"{name}/before.hlo", "--details", "--limit", 6, columns=columns)
    assert (result.status, result.err) == (0, "")
    golden(f"explain/{name.replace('../cartpole/cpu/', 'cartpole_')}.{columns}.txt", result.out)
    assert all(len(line) <= columns for line in result.out.split("\n"))


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("name", ["softmax", "gpt2_block", "../cartpole/cpu/scan"])
def test_the_first_screen(
    hlofuse: Run, golden: Golden, samples: Path,
    monkeypatch: pytest.MonkeyPatch, name: str, columns: int,
) -> None:  # fmt: skip
    monkeypatch.chdir(samples / "cpu")
    result = hlofuse("explain", f"{name}/before.hlo", columns=columns)
    lines = result.out.splitlines()
    assert (result.status, result.err) == (0, "")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= columns
    golden(f"explain/{name.replace('../cartpole/cpu/', 'cartpole_')}.screen.{columns}.txt", result.out)


def test_markdown_and_json(
    hlofuse: Run, golden: Golden, samples: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(samples / "cpu")
    for form, ending in (("markdown", "md"), ("json", "json")):
        result = hlofuse("explain", "softmax/before.hlo", "--format", form)
        golden(f"explain/softmax.{ending}", result.out)
    assert json.loads(result.out)["schema"] == "hlofuse.explain/3"


@pytest.mark.parametrize("name", SMALL)
def test_what_fusions_save_adds_up(samples: Path, name: str) -> None:
    """Bytes saved by fusions, and by wrapping, are the difference of the totals."""
    e = explained_sample(samples, name)
    saved = sum(g.bytes_saved for p in e.passes for g in p.fused)
    total = e.before.cost.bytes_accessed - e.after.cost.bytes_accessed
    rewritten = sum(len(p.rewrites) for p in e.passes)
    # Shares of copied operations are whole bytes; a wrapped scatter is counted with its whole result.
    assert saved == pytest.approx(total, rel=0.01) or rewritten


@pytest.mark.parametrize("name", SMALL)
def test_refusals_are_edges_of_the_result(samples: Path, name: str) -> None:
    found = compile(load(samples / "cpu" / name))
    after = {i.name: i for i in found.after.instructions()}
    for story in explain(found).passes:
        for r in story.refused:
            if r.consumer is not None:
                assert r.consumer in after
        pairs = [(r.producer.name, r.consumer) for r in story.refused if r.between_kernels]
        assert len(pairs) == len(set(pairs))


TWO_USERS = """HloModule m

ENTRY %main (p: f32[8], q: f32[8]) -> (f32[8], f32[8]) {
  %p = f32[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %e = f32[8]{0} exponential(%p)
  %a = f32[8]{0} add(%e, %q)
  %b = f32[8]{0} multiply(%e, %q)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %b)
}
"""


def test_an_expensive_producer_with_two_users() -> None:
    e = explained(TWO_USERS)
    assert e.before.kernels == 3
    assert {o.rule.code for o in e.blocking_rules} == {"IF004"}
    assert [(r.producer.name, r.bytes_between) for r in e.blocking_rules[0].refusals] == [
        ("e", 32),
        ("e", 32),
    ]
    assert e.blocking_rules[0].edges == 2


def test_a_module_with_nothing_to_fuse(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n"
    )
    result = hlofuse("explain", path, "--details")
    assert result.status == 0
    assert "0 kernels → 1" in result.out
    assert "1 copy: 64 B moved" in result.out  # a result may not be an argument
    assert "No rule of these passes separates two kernels" in result.out


def test_decisions_are_not_told_from_another_stage(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    path = samples / "cpu" / "softmax" / "after.hlo"
    result = hlofuse("why", path, "ynn_fusion")
    assert (result.status, result.out) == (2, "")
    assert "is a fused module" in result.err
    assert f"That dump is next to it: {path.with_name('before.hlo')}" in result.err
    alone = tmp_path / "after.hlo"
    alone.write_bytes(path.read_bytes())
    assert "--xla_dump_hlo_pass_re=.*" in hlofuse("why", alone, "ynn_fusion").err
    assert hlofuse("why", path, "ynn_fusion", "--assume-input").status == 0


def test_a_what_if_run_says_so(hlofuse: Run, samples: Path) -> None:
    path = samples / "cpu" / "softmax" / "before.hlo"
    result = hlofuse("explain", path, "--disable", "CPU007", "--details")
    assert "Changed: without CPU007" in result.out
