"""XLA flags that change fusion are followed wherever they come from: the dump, a capture, the call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlofuse.compilation import replay_config
from hlofuse.pipelines.flags import disabled_passes
from hlofuse.pipelines.targets import target_by_flags
from ..running import Run

NO_PRIORITY = "--xla_gpu_enable_priority_fusion=false"
CHAIN = """HloModule m, entry_computation_layout={(f32[64]{0})->f32[64]{0}}

ENTRY %e (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  %b = f32[64]{0} bitcast(%p)
  %n = f32[64]{0} negate(%b)
  ROOT %t = f32[64]{0} tanh(%n)
}
"""


def explained(hlofuse: Run, path: Path, *more: object) -> dict[str, Any]:
    found = hlofuse("explain", path, "--stage", "fusion-input", *more, "--format", "json")
    assert found.status == 0, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def passes(document: dict[str, Any]) -> list[str]:
    return [p["name"] for p in document["passes"]]


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "before.hlo"
    path.write_text(CHAIN)
    return path


def test_without_priority_fusion_0_4_35_has_the_four_strategies(hlofuse: Run, chain: Path) -> None:
    gpu = ("--target", "gpu", "--device", "v100", "--xla", "0.4.35")
    by_flag = explained(hlofuse, chain, *gpu, f"--xla-flags={NO_PRIORITY}")
    legacy = explained(hlofuse, chain, "--target", "gpu-legacy", "--device", "v100")
    assert passes(by_flag) == passes(legacy)
    assert "fusion_merger" in passes(by_flag)
    assert (by_flag["after"], by_flag["notes"]) == (legacy["after"], [])
    with_it = explained(hlofuse, chain, *gpu, "--xla-flags=--xla_gpu_enable_priority_fusion=true")
    assert "priority-fusion" in passes(with_it)
    assert with_it["notes"] == []


def test_other_releases_do_not_follow_it_and_say_so(hlofuse: Run, chain: Path) -> None:
    gpu = ("--target", "gpu", "--device", "v100", "--xla", "0.8.3", f"--xla-flags={NO_PRIORITY}")
    found = explained(hlofuse, chain, *gpu)
    assert "priority-fusion" in passes(found)
    assert found["notes"] == [f"Flags whose effect is not modelled: {NO_PRIORITY}"]
    assert target_by_flags("gpu", "0.4.35", (NO_PRIORITY,)) == "gpu-legacy"
    assert target_by_flags("cpu", "0.4.35", (NO_PRIORITY,)) == "cpu"


@pytest.mark.parametrize("source", ["debug_options", "stamp", "call"])
def test_a_disabled_pass_is_not_replayed(source: str, hlofuse: Run, chain: Path) -> None:
    """XLA 0.7 without the pass leaves the module as it is; so do explain and verify."""
    (chain.parent / "after.hlo").write_text(CHAIN)
    more: tuple[str, ...] = ("--xla", "0.7")
    assert hlofuse("verify", chain.parent, *more).status == 1
    disabled = "--xla_disable_hlo_passes=fusion,fusion-wrapper"
    if source == "debug_options":
        text = 'xla_disable_hlo_passes: "fusion"\nxla_disable_hlo_passes: "fusion-wrapper"\n'
        (chain.parent / "debug_options").write_text(text)
    elif source == "stamp":
        stamp = {"schema": "hlofuse.stamp/1", "jaxlib": "0.7.2", "flags": disabled}
        (chain.parent / "hlofuse.json").write_text(json.dumps(stamp))
        more = ()
    else:
        more = (*more, f"--xla-flags={disabled}")
    assert passes(explained(hlofuse, chain, *more)) == []
    assert hlofuse("verify", chain.parent, *more).status == 0


@pytest.mark.parametrize(
    ("release", "value", "is_on"),
    [("0.8.3", None, True), ("0.8.3", "false", False), ("0.10.2", None, False), ("0.10.2", "true", True)],
)
def test_multi_output_fusions_of_triton_are_switched_by_flag(
    release: str, value: str | None, is_on: bool
) -> None:
    flag = f"--xla_gpu_unsupported_enable_triton_multi_output_fusion={value}"
    config = replay_config("gpu", "h100_sxm", xla=release, xla_flags=(flag,) if value is not None else ())
    assert ("priority-fusion(triton_multi_output=true)" in config.passes) == is_on


# Two rows of bfloat16, rounded between two operations, and a product.
PRECISION = """HloModule m
ENTRY e {
  x = bf16[64,64]{1,0} parameter(0)
  y = bf16[64,64]{1,0} parameter(1)
  a = bf16[64,64]{1,0} add(x, y)
  b = bf16[64,64]{1,0} multiply(a, y)
  ROOT d = bf16[64,64]{1,0} dot(b, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("source", ["debug_options", "stamp"])
def test_a_flag_whose_effect_is_not_known_is_named(source: str, hlofuse: Run, tmp_path: Path) -> None:
    """Not what has no effect, stands at its default, is for another backend, or acted before the input."""
    path = tmp_path / "module_0001.jit_m.before_optimizations.txt"
    path.write_text(PRECISION)
    given = {
        "xla_gpu_exclude_nondeterministic_ops": "true",
        "xla_gpu_enable_triton_gemm": "true",
        "xla_gpu_unheard_of": "3",
        "xla_cpu_enable_fast_math": "true",
        "xla_dump_large_constants": "true",
    }
    if source == "debug_options":
        text = "".join(f"{name}: {value}\n" for name, value in given.items())
        (tmp_path / "module_0001.jit_m.debug_options").write_text(text)
    else:
        flags = " ".join(f"--{name}={value}" for name, value in given.items())
        stamp = {"schema": "hlofuse.stamp/1", "jaxlib": "0.11.1", "backend": "gpu", "flags": flags}
        (tmp_path / "hlofuse.json").write_text(json.dumps({**stamp, "device": "h100_sxm"}))
    gpu = ("--target", "gpu", "--device", "h100_sxm")
    note = "Flags whose effect is not modelled: "
    before = explained(hlofuse, path, *gpu, "--stage", "before-optimizations")["notes"]
    assert f"{note}--xla_gpu_exclude_nondeterministic_ops=true, --xla_gpu_unheard_of=3" in before
    at_fusion = explained(hlofuse, path, *gpu, "--stage", "fusion-input")["notes"]
    assert f"{note}--xla_gpu_unheard_of=3" in at_fusion


@pytest.mark.parametrize(
    ("flag", "left_out"),
    [
        ("--xla_allow_excess_precision", {"simplify-fp-conversions"}),
        ("--xla_gpu_enable_triton_gemm", {"triton-gemm-rewriter", "gemv-rewriter", "splitk-rewriter"}),
    ],
)
def test_a_switch_leaves_its_passes_out(flag: str, left_out: set[str]) -> None:
    assert left_out <= disabled_passes((f"{flag}=false", "--xla_disable_hlo_passes=fusion"))
    assert "fusion" in disabled_passes((f"{flag}=false", "--xla_disable_hlo_passes=fusion"))
    assert disabled_passes((f"{flag}=true",)) == frozenset()


def test_without_triton_a_product_is_a_library_call(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(PRECISION)
    gpu = ("--target", "gpu", "--device", "h100_sxm", "--stage", "before-optimizations")
    kinds = [
        [k["kind"] for k in explained(hlofuse, path, *gpu, "--xla-flags", flag)["kernels"]]
        for flag in ("--xla_gpu_enable_triton_gemm=true", "--xla_gpu_enable_triton_gemm=false")
    ]
    assert kinds[0] != kinds[1]
