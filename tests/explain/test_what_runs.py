"""What is launched: no annotation, an asynchronous operation once, a command buffer's kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.analysis.kernels import kernels
from hlofuse.analysis.launches import launches
from hlofuse.compilation import compile
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.stage import stage_of
from hlofuse.ir import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.render.dot import category
from hlofuse.reports.fused.model import Fused, explain_fused
from hlofuse.reports.kernels import kernel_selection
from ..fixtures import companion_texts
from ..running import Run, lowered

GPU = ("--target", "gpu", "--device", "h100_sxm")

TEXTS = companion_texts(__file__)


@pytest.mark.parametrize("target", ["cpu", "gpu", "gpu-legacy"])
def test_annotations_of_shardings_are_no_kernels(target: str) -> None:
    module = parse_module(TEXTS["manual"])
    assert [k.name for k in kernels(module)] == ["wave.1", "sum.1"]
    device = None if target == "cpu" else load_device("h100_sxm")
    after = compile(module, target, device=device).after
    assert len(kernels(after)) == 2
    assert "all-reduce" in {k.opcode for k in kernels(after)}


CALLS = ("Sharding", "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "MoveToHost", "MoveToDevice")
TARGETS = (("cpu", None), ("gpu-legacy", "h100_sxm"), ("gpu", "mi350"), ("gpu", "h100_sxm"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("target", "device"), TARGETS)
def test_annotations_do_not_stand_between_kernels(call: str, target: str, device: str | None) -> None:
    text = (
        "HloModule m\n\nENTRY e {\n  a = f32[64]{0} parameter(0)\n  s = f32[64]{0} sine(a)\n"
        f'  c = f32[64]{{0}} custom-call(s), custom_call_target="{call}"\n'
        "  ROOT n = f32[64]{0} negate(c)\n}\n"
    )
    on = load_device(device) if device is not None else None
    ready = lowered(parse_module(text), target, on).module
    moved = (target, device, call) == ("gpu", "h100_sxm", "MoveToHost")
    # XLA refuses what reads a value on the host; a value that is on the device is not moved there.
    assert len(kernels(compile(ready, target, device=on).after)) == (2 if moved else 1)


NEGATED = TEXTS["negated"]
GROUPS = "channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}"
WRAPPED = f"""wrapped (q: f32[1024]) -> f32[1024] {{
  q = f32[1024]{{0}} parameter(0)
  ROOT exchanged = f32[1024]{{0}} all-to-all(q), {GROUPS}
}}
"""
PAIR = "((f32[1024]{0}), f32[1024]{0})"
UPDATED = f"""started = {PAIR} async-start(a), calls=wrapped
  going = {PAIR} async-update(started)
  done = f32[1024]{{0}} async-done(going)"""
SPELLINGS = {
    "short": (
        "",
        f"started = {PAIR} all-to-all-start(a), {GROUPS}\n  done = f32[1024]{{0}} all-to-all-done(started)",
        "started",
    ),
    "computation": (
        WRAPPED,
        f"started = {PAIR} async-start(a), calls=wrapped\n  done = f32[1024]{{0}} async-done(started)",
        "exchanged",
    ),
    "updated": (WRAPPED, UPDATED, "exchanged"),
}


def fused(text: str) -> Fused:
    module = parse_module(text)
    return explain_fused(module, "gpu", RELEASE, stage_of(module, "gpu"), load_device("h100_sxm"))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_collective_is_one_kernel_that_the_next_one_reads(spelling: str) -> None:
    before, started, name = SPELLINGS[spelling]
    text = NEGATED.replace("BEFORE", before).replace("STARTED", started)
    found = fused(text)
    assert sorted(k.name for k in found.kernels) == sorted([name, "out"])
    (boundary,) = found.boundaries
    assert (boundary.producer, boundary.consumer, boundary.bytes_between) == (name, "out", 4096)
    assert (boundary.rule, boundary.reason) == ("PF002", "the producer is not fusible")
    chosen = kernel_selection(parse_module(text), "gpu", RELEASE, device=load_device("h100_sxm")).kernels
    assert {c.name: c.run_by for c in chosen}[name] == "NCCL"
    for backend in ("gpu", "tpu"):
        kinds = {i.name: launch.kind for i, launch in launches(parse_module(text), backend)}
        assert kinds == {name: "collective", "out": "kernel"}


COPY = NEGATED.replace("BEFORE\n", "").replace(
    "STARTED",
    "started = (f32[1024]{0:S(1)}, f32[1024]{0}, u32[]) copy-start(a)\n"
    "  done = f32[1024]{0:S(1)} copy-done(started)",
)


def test_an_asynchronous_operation_looks_like_the_operation() -> None:
    for opcode in ("all-to-all-start", "all-to-all-done", "reduce-scatter-update", "all-reduce-start"):
        assert category(opcode) == "collective"
    assert category("dot-start") == category("dot")


def test_the_rows_of_kernels_add_up_to_the_total(hlofuse: Run, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(COPY)
    found = json.loads(hlofuse("stats", tmp_path / "m.hlo", "--format", "json").out)
    (module,) = found["modules"]
    rows = sum(k["cost"]["bytes_accessed"] for k in module["heaviest"])
    assert rows == module["totals"]["bytes"] == 24_604
    picture = hlofuse("render", tmp_path / "m.hlo", "-o", tmp_path / "m.dot")
    assert picture.status == 0
    assert "24.6 kB moved" in (tmp_path / "m.dot").read_text()


BUFFER = TEXTS["buffer"]
_BODY = BUFFER[BUFFER.index("command_buffer") : BUFFER.index("ENTRY")]
INLINED = BUFFER[: BUFFER.index("command_buffer")] + _BODY.replace("command_buffer", "ENTRY main")


def test_a_command_buffer_is_explained_as_if_its_kernels_stood_in_its_place() -> None:
    inside, inlined = fused(BUFFER), fused(INLINED)
    assert (inside.kernels, inside.boundaries) == (inlined.kernels, inlined.boundaries)
    assert [(b.producer, b.consumer, b.rule) for b in inside.boundaries] == [
        ("exchanged", "loop_exponential_fusion", "PF002"),
        ("loop_exponential_fusion", "loop_negate_fusion", None),
    ]
