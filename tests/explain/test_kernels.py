"""`kernels`: who runs what, in each format, from each moment of a compilation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs import load
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.releases import release_of
from hlofuse.reports.kernels import Choice, kernel_selection
from hlofuse.rules.catalogue import catalogue
from ..fixtures import companion_texts
from ..running import Golden, Run

TEXTS = companion_texts(__file__)

GPU = ("--target", "gpu", "--device", "h100_sxm")
CARD = ("--target", "gpu", "--device", "rtx2080ti")


@pytest.mark.parametrize("columns", [80, 140])
def test_text(hlofuse: Run, golden: Golden, samples: Path, columns: int) -> None:
    for name, options in (("gpt2_block", GPU), ("../cartpole/gpu/baseline", CARD)):
        result = hlofuse("kernels", samples / "gpu" / name, *options, columns=columns)
        assert (result.status, result.err) == (0, "")
        golden(f"kernels/gpu_{name.replace('../cartpole/gpu/', 'cartpole_')}.{columns}.txt", result.out)
    result = hlofuse("kernels", samples / "cpu" / "gpt2_block", "--limit", 8, columns=columns)
    golden(f"kernels/cpu_gpt2_block.{columns}.txt", result.out)


def test_a_kernel_has_one_line(hlofuse: Run, samples: Path) -> None:
    found = [
        json.loads(hlofuse(command, samples / "gpu" / "gpt2_block", "--format", "json").out)["kernels"]
        for command in ("explain", "kernels")
    ]
    lines = [{k["name"]: (k["source"] or "").partition(" ")[0] for k in kernels} for kernels in found]
    assert lines[0] == lines[1]


def test_json_and_markdown(
    hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(samples)
    golden("kernels/gpu_softmax.md", hlofuse("kernels", "gpu/softmax", *GPU, "--format", "markdown").out)
    result = hlofuse("kernels", "gpu/softmax", *GPU, "--limit", 1, "--format", "json")
    golden("kernels/gpu_softmax.json", result.out)
    found = json.loads(result.out)
    assert found["schema"] == "hlofuse.kernels/3"
    assert sum(r["kernels"] for r in found["runners"]) == len(found["kernels"])  # --limit is for people
    assert {k["rule"] for k in found["kernels"]} == set(found["rules"])


def test_a_fused_module_is_taken_as_it_is(hlofuse: Run, samples: Path) -> None:
    for folder, options in (("cpu", ()), ("gpu", GPU)):
        case = samples / folder / "gpt2_block"
        before, after = (
            json.loads(hlofuse("kernels", case / f"{moment}.hlo", *options, "--format", "json").out)
            for moment in ("before", "after")
        )
        assert (before["replayed"], after["replayed"]) == (True, False)
        first, second = (
            sorted((k["run_by"], k["shape"], k["blocks"]) for k in r["kernels"]) for r in (before, after)
        )
        assert first == second


def test_in_the_order_of_the_module(hlofuse: Run, samples: Path) -> None:
    case = samples / "gpu" / "softmax"
    found = json.loads(hlofuse("kernels", case, *GPU, "--format", "json").out)
    out = hlofuse("kernels", case, *GPU, "--sort", "module").out
    places = [out.index(f"\n{k['name']} ") for k in found["kernels"]]
    assert places == sorted(places)


def test_every_rule_says_who_runs_the_kernel() -> None:
    for code, rule in catalogue().items():
        assert bool(rule.runs) == code.startswith(("EM", "EC")), code


def test_wrong_input_is_told(hlofuse: Run, samples: Path, deviceless: Path) -> None:
    result = hlofuse("kernels", deviceless)
    assert result.status == 2
    assert "target gpu (triton_softmax" in result.err
    assert "needs --device" in result.err
    result = hlofuse("kernels", deviceless, "--target", "gpu")
    assert result.status == 2
    assert "needs --device" in result.err
    result = hlofuse("kernels", samples / "cpu" / "softmax", "--disable", "EM040")
    assert result.status == 2
    assert "names the implementation of a kernel" in result.err


PRODUCT_OF_A_VECTOR = TEXTS["product_of_a_vector"]


def fused_on_gpu(text: str, device: str = "h100_sxm") -> tuple[Choice, ...]:
    after = compile(parse_module(text), "gpu", device=device).after
    return kernel_selection(after, "gpu", RELEASE, device=load_device(device)).kernels


def test_a_product_with_a_vector_is_no_library_call() -> None:
    (kernel,) = fused_on_gpu(PRODUCT_OF_A_VECTOR)
    assert (kernel.run_by, kernel.code) == ("reduction emitter", "EM040")
    assert [n.rule.code for n in kernel.notes] == ["EM060"]
    assert kernel.notes[0].figures == {"product": "sum.1"}
    assert kernel.figures["reduces"] == "1,024 columns of 512"


def test_one_row_is_one_row() -> None:
    text = TEXTS["row_row"]
    (kernel,) = fused_on_gpu(text)
    assert kernel.figures["reduces"] == "1 row of 6,400"


def test_a_product_no_library_takes() -> None:
    text = TEXTS["product_library_takes"]
    (kernel,) = fused_on_gpu(text)
    # XLA made it `wrapped_dot`, 64 blocks of 128 threads.
    assert (kernel.run_by, kernel.blocks, kernel.threads) == ("loop emitter", 64, 128)
    assert [n.rule.code for n in kernel.notes] == ["EM061"]
    (on_cpu,) = kernel_selection(parse_module(text), "cpu", RELEASE).kernels
    assert (on_cpu.run_by, on_cpu.code) == ("Eigen", "EC003")


@pytest.mark.parametrize(
    ("shapes", "batch", "run_by"),
    [
        (("f32[1,512]", "f32[512,64]", "f32[1,64]"), "", "matrix-vector loop"),
        (("f32[3,3]", "f32[3,3]", "f32[3,3]"), "", "plain loops"),
        (("bf16[64,64]", "bf16[64,64]", "bf16[64,64]"), "", "plain loops"),
        (("f32[4,64,64]", "f32[4,64,64]", "f32[4,64,64]"), "0", "Eigen"),
    ],
)
def test_products_on_cpu(shapes: tuple[str, str, str], batch: str, run_by: str) -> None:
    a, b, c = shapes
    left = shapes[0].count(",")
    text = (
        f"HloModule m\n\nENTRY %main (a: {a}, b: {b}) -> {c} {{\n  %a = {a} parameter(0)\n  %b = {b} "
        "parameter(1)\n"
        f"  ROOT %dot = {c} dot(%a, %b), lhs_batch_dims={{{batch}}}, rhs_batch_dims={{{batch}}},"
        f" lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{left - 1}}}\n}}\n"
    )
    (kernel,) = kernel_selection(parse_module(text), "cpu", RELEASE).kernels
    assert kernel.run_by == run_by


def test_older_releases_have_emitters_of_their_own(samples: Path) -> None:
    module = load(samples / "gpu" / "softmax" / "before.hlo")
    device = load_device("v100")
    fused = compile(module, "gpu-legacy", device=device).after
    found = kernel_selection(fused, "gpu-legacy", release_of("0.4.35"), device=device)
    assert found.release == "jaxlib 0.4.35"
    assert all(k.blocks for k in found.kernels)


def test_names_of_a_dump_are_made_safe(hlofuse: Run) -> None:
    text = (
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        '  ROOT %c = f32[8]{0} custom-call(%p), custom_call_target="f\\033[31m|x"\n}\n'
    )
    for form in ("text", "markdown"):
        result = hlofuse("kernels", "-", "--format", form, stdin=text.encode())
        assert result.status == 0
        assert "\x1b" not in result.out
        assert "EC007" in result.out
    document = json.loads(hlofuse("kernels", "-", "--format", "json", stdin=text.encode()).out)
    (row,) = document["kernels"]
    assert (row["bytes_accessed"], row["bytes_floor"]) == (document["totals"]["bytes"], True)
