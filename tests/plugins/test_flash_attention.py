"""The example package, installed as a user would and used from the command line."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser

import hlofuse
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.plugins import ActiveRules
from hlofuse.rules.settings import Settings

from ..explorer.browser import Visit
from ..tools.module_checks import check_module
from .patterns import module_of

ROOT = Path(__file__).parents[2]
GPT2 = {
    "gpu": ("samples/gpu/gpt2_block", "--target", "gpu", "--device", "h100_sxm"),
    "cpu": ("samples/cpu/gpt2_block",),
}


@cache
def example() -> SimpleNamespace:
    """The example's module, in this process."""
    path = ROOT / "examples" / "flash-attention" / "hlofuse_flash_attention.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has the example installed."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(ROOT / "examples" / "flash-attention", folder / "source")
    site = folder / "site"
    flags = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *flags, "--target", str(site), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "COLUMNS": "100"}


def run(environment: dict[str, str], *text: str) -> str:
    command = [sys.executable, "-m", "hlofuse", *text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def explained(environment: dict[str, str], *text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(environment, "explain", *text, "--format", "json"))
    return found


@pytest.mark.parametrize("target", GPT2)
def test_attention_becomes_one_kernel(installed: dict[str, str], target: str) -> None:
    plain = explained(installed, *GPT2[target])
    found = explained(installed, *GPT2[target], "--rules", "flash-attention")
    assert (plain["what_if"], "difference" in plain) == ([], False)
    (change,) = found["what_if"]
    assert change == "with the rules of flash-attention (hlofuse-flash-attention 0.1.0)"
    difference = found["difference"]
    assert difference["changes"] == [change]
    assert (difference["xla"], difference["ours"]) == (plain["after"], found["after"])
    assert difference["fused"], "the products and the softmax share a kernel"
    assert found["after"]["kernels"] < plain["after"]["kernels"]
    moved = [e["after"]["cost"]["bytes_accessed"] for e in (plain, found)]
    assert moved[1] < moved[0]
    first = found["passes"][0]
    assert first["name"] == "custom-kernel-fusion-rewriter"
    (group,) = first["fused"]
    assert group["fusion"]["name"] == "flash_attention"
    assert {step["rule"] for step in group["steps"]} == {"FLASH001"}
    if target == "gpu":
        assert found["after"]["time_us"] < plain["after"]["time_us"]
        # XLA's model has no times of the two products, so they are left out of its sum and not of this one.
        assert plain["after"]["floors"] - found["after"]["floors"] == 2
        assert group["kernel"]["emitter"] == "custom kernel flash_attention"
        assert group["kernel"]["us"] > 0
    reported = json.loads(
        run(installed, "kernels", *GPT2[target], "--rules", "flash-attention", "--format", "json")
    )
    assert reported["difference"] == difference
    (kernel,) = (k for k in reported["kernels"] if k["name"] == "flash_attention")
    assert (kernel["run_by"], kernel["rule"]) == ("custom kernel flash_attention", "FLASH001")
    assert sum((k["us"] or 0) * k["runs"] for k in reported["kernels"]) == pytest.approx(
        found["after"]["time_us"] or 0, abs=0.01
    )


def test_the_reports_read_well(installed: dict[str, str]) -> None:
    out = run(installed, "explain", *GPT2["gpu"], "--details", "--rules", "flash-attention", "--limit", "3")
    assert out.splitlines()[2].startswith("Not XLA's behaviour: with the rules of flash-attention (")
    assert "custom kernel flash_attention" in out
    why = run(
        installed, "why", *GPT2["gpu"], "exp.1.0", "triton_softmax.8", "--rules", "flash-attention"
    ).splitlines()
    assert why[2].startswith("Not XLA's behaviour: with the rules of flash-attention (")
    assert "exp.1.0 was fused into triton_softmax.8: both are in flash_attention." in why
    sweep = ("--rules", "flash-attention", "--sweep", "launch_overhead_us=1,4")
    swept = run(installed, "what-if", *GPT2["gpu"], *sweep)
    assert "a sweep of launch_overhead_us, besides: with the rules of" in swept
    assert swept.count(" *  ") == 2, "both points have two kernels more in their time than XLA's row"
    assert "*: this time holds lower bounds for more or fewer kernels" in swept
    assert "FLASH001" in run(installed, "rule")


def test_the_module_written_is_one_that_reads_again(installed: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "after.hlo"
    run(installed, "replay", *GPT2["gpu"], "--rules", "flash-attention", "-o", str(out))
    text = out.read_text(encoding="utf-8")
    assert '"custom_fusion_config":{"name":"flash_attention"' in text
    stats = json.loads(run(installed, "stats", str(out), "--format", "json"))
    assert stats["modules"][0]["totals"]["kernels"] == 13


PLAIN = """
max { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b)
}
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b)
}
"""
BODY = """
q = f16[2,64,32] parameter(0)
k = f16[2,48,32] parameter(1)
v = f16[2,48,16] parameter(2)
s = f16[2,64,48] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
low = f32[] constant(-inf)
zero = f32[] constant(0)
t = f32[2,64,48] convert(s)
m = f32[2,64] reduce(t, low), dimensions={2}, to_apply=max
mb = f32[2,64,48] broadcast(m), dimensions={0,1}
d = f32[2,64,48] subtract(t, mb)
e = f32[2,64,48] exponential(d)
z = f32[2,64] reduce(e, zero), dimensions={2}, to_apply=sum
zb = f32[2,64,48] broadcast(z), dimensions={0,1}
p = f32[2,64,48] divide(e, zb)
h = f16[2,64,48] convert(p)
ROOT o = f16[2,64,16] dot(h, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
"""  # noqa: E501


def kernels_created(module: Module, target: str = "cpu", device: str | None = None) -> dict[str, Any]:
    settings = Settings(plugins=ActiveRules.of(*example().RULES))
    done = hlofuse.replay(module, target, device=device, settings=settings)
    check_module(done.after)
    return {name: kernel for name, (_, kernel) in done.custom_kernels.items()}


def test_attention_of_two_lengths_in_half_precision() -> None:
    (kernel,) = kernels_created(module_of(BODY, PLAIN)).values()
    assert kernel.sizes == {"T": "f16", "S": 64, "D": 32, "K": 48, "E": 16}
    assert list(kernel.operands) == ["q", "k", "v"]
    cost = example().cost(kernel, load_device("h100_sxm"))
    assert cost.matrix_flops == 2 * 2 * 64 * 48 * (32 + 16)
    assert cost.matrix_type == "f16"
    assert cost.bytes_read == kernel.bytes_read, "one group of queries reads keys and values once"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The backward pass of training reads the softmax: a kernel that never writes it cannot stand for it.
        ("ROOT o =", "ROOT r = (f16[2,64,16], f32[2,64,48]) tuple(o, p)\no ="),
        ("exponential(d)", "tanh(d)"),
        ("reduce(t, low), dimensions={2}", "reduce(t, zero), dimensions={2}"),
        ("to_apply=max", "to_apply=sum"),
        ("divide(e, zb)", "divide(zb, e)"),
    ],
)
def test_what_is_not_attention_is_left_alone(old: str, new: str) -> None:
    body = BODY.replace(old, new)
    assert body != BODY
    lines = body.strip().split("\n")
    lines.sort(key=lambda line: line.startswith("ROOT r"))
    assert kernels_created(module_of("\n".join(lines), PLAIN)) == {}


@pytest.mark.parametrize(("archive", "target"), [("gpu", "gpu"), ("gpu-legacy", "gpu-legacy")])
def test_it_is_found_as_every_device_has_it(archive: str, target: str) -> None:
    """Products as Triton fusions, as cuBLAS and as cuBLASLt calls, the softmax in fusions and not."""
    found = 0
    with tarfile.open(ROOT / "tests" / "data" / f"{archive}.tar.xz") as tar:
        for member in tar:
            device, *rest = member.name.split("/")
            if rest == ["attention", "before.hlo"]:
                file = tar.extractfile(member)
                assert file is not None
                module = parse_module(file.read().decode())
                assert list(kernels_created(module, target, device)) == ["flash_attention"], device
                found += 1
    assert found >= 2


@pytest.mark.parametrize("target", GPT2)
def test_the_page_has_the_rules_and_ends_as_the_module(
    installed: dict[str, str], browser: Browser, tmp_path: Path, target: str
) -> None:
    out = tmp_path / "page.html"
    run(installed, "explore", *GPT2[target], "--rules", "flash-attention", "-o", str(out))
    launched = json.loads(
        run(installed, "kernels", *GPT2[target], "--rules", "flash-attention", "--format", "json")
    )
    seen = Visit(browser, out, "#run=1")
    assert seen.kernels() == {k["input_name"] for k in launched["kernels"]}
    seen.page.fill("#search", "FLASH001")
    seen.page.keyboard.press("Enter")
    seen.page.click("#panel .row >> nth=0")
    assert "Rule FLASH001: Attention" in seen.details
    assert "it is not XLA's" in seen.page.inner_html("#details")
    assert seen.problems == []
    seen.page.context.close()
