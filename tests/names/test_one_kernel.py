"""`explain`, `kernels` and `what-if` of the kernels alone that a name means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlofuse.ir import parse_module
from ..running import Golden, Run, finished

H100 = ("--device", "h100_sxm")


def kernels_of(command: str, hlofuse: Run, *args: object) -> list[str]:
    done = hlofuse(command, *args, "--format", "json")
    assert done.status == 0, done.err
    return [k["input_name"] for k in json.loads(done.out)["kernels"]]


@pytest.mark.parametrize("command", ["explain", "kernels"])
@pytest.mark.parametrize(
    "name",
    [
        "loop_multiply_fusion",
        "fusion.21",
        "%fusion.21",
        "fusion.33",
        "tanh.1.0",
        "jit(gpt2_block)/tanh",
        "tanh",
    ],
)
def test_any_name_of_one_kernel(command: str, name: str, gpt2_whole: Path, hlofuse: Run) -> None:
    """XLA's final name, that at fusion, a fusion in between, an operation inside, a part of an op_name."""
    assert kernels_of(command, hlofuse, gpt2_whole, name, *H100) == ["fusion.21"]


def test_a_name_of_the_module_before_optimizations(gpt2_whole: Path, hlofuse: Run) -> None:
    """`tanh.0` of the program is `tanh.1.0` at fusion; what is removed runs nowhere."""
    program = next(gpt2_whole.glob("*before_optimizations.txt")).read_text()
    name = next(line.split("=")[0].strip().lstrip("%") for line in program.splitlines() if " tanh(" in line)
    assert kernels_of("explain", hlofuse, gpt2_whole, name, *H100) == ["fusion.21"]


def test_all_kernels_of_a_line(gpt2_whole: Path, hlofuse: Run) -> None:
    both = [kernels_of(c, hlofuse, gpt2_whole, "programs.py:305", *H100) for c in ("explain", "kernels")]
    assert both[0] == both[1]
    assert sorted(both[0]) == ["fusion.21", "fusion.27", "gemm_fusion_dot.2", "gemm_fusion_dot.7"]


def test_explain_keeps_what_is_about_the_kernel(gpt2_whole: Path, hlofuse: Run) -> None:
    def document(*name: str) -> dict[str, Any]:
        out: dict[str, Any] = json.loads(hlofuse("explain", gpt2_whole, *name, *H100, "--format", "json").out)
        return out

    whole, one = document(), document("loop_multiply_fusion")
    assert whole["selected"] is None
    assert one["totals"] == whole["totals"]
    assert one["kernels"] == [k for k in whole["kernels"] if k["input_name"] == "fusion.21"]
    assert [row["first"]["name"] for row in one["dearest"]] == ["loop_multiply_fusion"]
    assert {r["consumer"] for p in one["passes"] for r in p["refused"] if r["consumer"]} == {
        "loop_multiply_fusion",
        "gemm_fusion_dot.7",
    }
    fused = [g["fusion"]["name"] for p in one["passes"] for g in p["fused"]]
    assert fused == ["loop_multiply_fusion"]
    edges = [{o["rule"]: o["edges"] for o in found["obstacles"]} for found in (one, whole)]
    assert edges[0] == {"PF002": 1, "PF031": 1}
    assert all(edges[1][rule] > 1 for rule in edges[0])


@pytest.mark.parametrize("columns", [80, 160])
def test_the_report(
    columns: int, samples: Path, hlofuse: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(samples.parent)  # commands to copy name the input
    done = hlofuse("explain", "samples/cpu/gpt2_block", "programs.py:305", columns=columns)
    golden(f"explain/gpt2_block.line.{columns}.txt", done.out)
    assert "programs.py:305: operations in 4 of 28 kernels" in done.out


def test_markdown_and_the_choice_of_emitters(samples: Path, hlofuse: Run) -> None:
    block = samples / "cpu" / "gpt2_block"
    assert (
        "### programs.py:305: operations in 4 of 28 kernels"
        in hlofuse("explain", block, "programs.py:305", "--format", "markdown").out
    )
    assert "programs.py:305: 4 of 28 kernels after fusion" in hlofuse("kernels", block, "programs.py:305").out
    assert "_block: operations in 2" in hlofuse("why", block, "_block").out  # a function


@pytest.mark.parametrize("command", ["explain", "kernels"])
def test_a_fused_module(command: str, samples: Path, hlofuse: Run) -> None:
    """Taken as it is; an operation stands for the kernel that holds it."""
    done = hlofuse(command, samples / "cpu" / "softmax" / "after.hlo", "divide.1", "--format", "json")
    assert [k["name"] for k in json.loads(done.out)["kernels"]] == ["broadcast_divide_fusion"]


@pytest.mark.parametrize("command", ["explain", "kernels", "what-if"])
@pytest.mark.parametrize(
    ("name", "message"), [("brodcast_divide_fusion", "did you mean"), ("%p", "hlofuse why explains")]
)
def test_names_of_no_kernel(command: str, name: str, message: str, tmp_path: Path, hlofuse: Run) -> None:
    """A name that is mistyped, and one of an operation that nothing runs for."""
    file = tmp_path / "m.hlo"
    file.write_text(
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[2,4] {\n  %p = f32[8]{0} parameter(0)\n"
        "  %broadcast_divide_fusion = f32[8]{0} negate(%p)\n"
        "  ROOT %reshape.2 = f32[2,4]{1,0} bitcast(%broadcast_divide_fusion)\n}\n"
    )
    done = hlofuse(command, file, name, "--target", "cpu")
    assert done.status == 2
    assert message in done.err


def test_what_if_tries_the_rules_around_the_kernels(samples: Path, hlofuse: Run) -> None:
    block = samples / "cpu" / "gpt2_block"
    out = json.loads(hlofuse("what-if", block, "programs.py:305", "--format", "json").out)
    assert [r["rule"] for r in out["relaxed"]] == ["IF002"]
    assert {f["rule"] for f in out["fixed"]} == {"CPU001", "CPU005"}
    title = hlofuse("what-if", block, "programs.py:305", columns=160).out
    assert "Rules that refused to fuse programs.py:305 with other kernels" in title


def test_a_sweep_is_about_a_whole_module(samples: Path, hlofuse: Run) -> None:
    sweep = ("--sweep", "launch_overhead_us=1,2")
    done = hlofuse("what-if", samples / "gpu" / "softmax", "programs.py:89", *sweep)
    assert done.status == 2
    assert "takes no NAME" in done.err


def test_a_kernel_that_yields_an_element_of_a_tuple_has_its_own_name() -> None:
    """A later pass takes the tuple apart; the element's name is not the kernel's."""
    module = parse_module(
        """HloModule m

%f (a: f32[64,32]) -> f32[64,32] {
  %a = f32[64,32]{1,0} parameter(0)
  ROOT %n = f32[64,32]{1,0} negate(%a)
}

ENTRY %main (p: f32[64,32]) -> f32[64,32] {
  %p = f32[64,32]{1,0} parameter(0)
  %fusion.1 = f32[64,32]{1,0} fusion(%p), kind=kLoop, calls=%f
  %both = (f32[64,32]{1,0}, f32[64,32]{1,0}) tuple(%fusion.1, %p)
  ROOT %element = f32[64,32]{1,0} get-tuple-element(%both), index=0
}
"""
    )
    final = finished(module, "cpu")
    assert final.names_at_fusion[final.final.entry.root.name] == "fusion.1"
