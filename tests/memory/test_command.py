"""`hlofuse memory`: the figures are those of the totals, and the list is what is alive at the peak."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hlofuse.account import Totals
from hlofuse.analysis.cost import Cost
from hlofuse.inputs.text import read_text
from hlofuse.reports.memory.text import _makes_fit
from hlofuse.reports.whatif.model import Trial
from ..conftest import ROOT
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)
INPUTS = ["tutorial/slow/loss", "gpu/gpt2_block", "cartpole/cpu/scan", "cpu/softmax/before.hlo"]


@pytest.mark.parametrize("name", INPUTS)
def test_the_figures_are_those_of_explain(hlofuse: Run, name: str) -> None:
    path = ROOT / "samples" / name
    found = json.loads(hlofuse("memory", path, "--format", "json").out)
    totals = json.loads(hlofuse("explain", path, "--format", "json").out)["totals"]
    memory = found["memory"]
    assert (memory["temporary"], memory["total"]) == (totals["temporary_bytes"], totals["memory_bytes"])
    assert sum(a["bytes"] for a in found["alive"]) == memory["peak"] <= memory["temporary"]
    assert found["alive"] == sorted(found["alive"], key=lambda a: -a["bytes"])


def test_the_tutorial(hlofuse: Run) -> None:
    """XLA's own module lies there: 8,914,944 bytes by its `memory_analysis()`."""
    out = hlofuse("memory", ROOT / "samples/tutorial/slow/loss", columns=120).out
    assert "13.4 MB: arguments 4.46 MB, results 4 B, temporaries 8.91 MB, constants 4 B" in out
    assert "8.91 MB alive at the peak: 3 arrays" in out
    assert "94% of the peak: 8.39 MB at loss.py:21, f32[512,4096]" in out
    row = next(line for line in out.splitlines() if line.split()[:3] == ["8.39", "MB", "ynn_fusion.2"])
    assert row.split() == [
        *("8.39", "MB", "ynn_fusion.2", "f32[512,4096]", "loss.py:21"),
        *("broadcast_select_fusion", "at", "loss.py:22"),
    ]
    assert "1 more" in hlofuse("memory", ROOT / "samples/tutorial/slow/loss", "--limit", "2").out


def test_a_tpu_names_the_memory_of_each_figure(hlofuse: Run, tmp_path: Path) -> None:
    """One array in HBM, one in VMEM; XLA:TPU rounds a place to 16 KiB, and counts the rounding twice."""
    rows = "p = A parameter(0)  a = A negate(p)  b = V negate(a)  ROOT r = A negate(b)"
    for dimension, has_gaps in ((4096, False), (5120, True)):
        array = f"f32[{dimension}]{{0:T(1024)}}"
        entry = rows.replace("A", array).replace("V", array.replace("}", "S(1)}"))
        (tmp_path / "m.hlo").write_text(f"HloModule m, is_scheduled=true\nENTRY e {{ {entry} }}")
        out = hlofuse("memory", tmp_path / "m.hlo", columns=120).out
        assert " of HBM: arguments" in out
        assert "kB of HBM alive at the peak: 1 array" in out
        assert ("The other 24.6 kB of the temporaries: gaps" in out) == has_gaps


@pytest.mark.parametrize(
    ("bytes", "line"), [(8_914_944, "has the same temporaries"), (64, "has temporaries 64 B")]
)
def test_the_dump_of_xlas_buffer_assignment(hlofuse: Run, tmp_path: Path, bytes: int, line: str) -> None:
    final = next((ROOT / "samples/tutorial/slow/loss").glob("*after_optimizations*"))
    name = "module_0001.jit_loss.cpu_after_optimizations"
    (tmp_path / f"{name}.txt").write_text(read_text(final), encoding="utf-8")
    (tmp_path / f"{name}-buffer-assignment.txt").write_text(
        "BufferAssignment:\n"
        "allocation 0: size 9000000, page 0, parameter 0, shape |f32[9]| at ShapeIndex {}:\n"
        f"allocation 1: size {bytes}, page 0, preallocated-temp:\n"
        " value: <1 a @0> (size=64,offset=0): f32[16]{0}\n",
        encoding="utf-8",
    )
    result = hlofuse("memory", tmp_path / f"{name}.txt", columns=120)
    assert f"XLA's own buffer assignment {line}" in result.out
    found = json.loads(hlofuse("memory", tmp_path, "--format", "json").out)["memory"]
    assert (found["recorded_temporary"], found["temporary"]) == (bytes, 8_914_944)
    assert found["recorded_total"] is None


@pytest.mark.parametrize(
    ("report", "line"),
    [
        ("Memory Space: default (color=0)\nTotal bytes: 13375544 (12.76MiB)\n", "has the same total"),
        ("Total bytes used: 13375544 (12.76MiB)\n", "has the same total"),
        ("Total bytes: 64 (64B)\n", "has total 64 B"),
        ("Total bytes: 64 (64B)\nTotal bytes: 64 (64B)\n", ""),
    ],
)
def test_the_memory_usage_report(hlofuse: Run, tmp_path: Path, report: str, line: str) -> None:
    """In the words of two releases. Several memory spaces are not compared."""
    final = next((ROOT / "samples/tutorial/slow/loss").glob("*after_optimizations*"))
    name = "module_0001.jit_loss.cpu_after_optimizations"
    (tmp_path / f"{name}.txt").write_text(read_text(final), encoding="utf-8")
    (tmp_path / f"{name}-memory-usage-report.txt").write_text(report, encoding="utf-8")
    out = hlofuse("memory", tmp_path / f"{name}.txt", columns=120).out
    assert (f"XLA's own memory usage report {line}" in out) == bool(line)
    assert ("memory usage report" in out) == bool(line)


FORWARD_AND_BACKWARD = TEXTS["forward_and_backward"]


@pytest.mark.parametrize(
    ("where", "how", "rows", "first"),
    [
        ("transpose(jvp())", "add", 8, "Put jax.checkpoint around the loop's body"),
        ("jvp()", "add", 8, ""),
        ("transpose(jvp())", "checkpoint/rematted_computation/add", 8, ""),
        ("transpose(jvp())", "checkpoint/rematted_computation/add", 17, ""),
        (
            "transpose(jvp())",
            "checkpoint/rematted_computation/add",
            20,
            "Nest two scans of 5 and 4 iterations",
        ),
    ],
)
def test_what_a_loop_keeps_for_its_backward_loop(
    hlofuse: Run, tmp_path: Path, where: str, how: str, rows: int, first: str
) -> None:
    """Only for a backward loop. What a jax.checkpoint keeps of many iterations is kept by two loops."""
    text = FORWARD_AND_BACKWARD.replace("WHERE", where).replace("HOW", how)
    text = text.replace("[8,", f"[{rows},").replace('"n":"8"', f'"n":"{rows}"')
    (tmp_path / "m.hlo").write_text(text, encoding="utf-8")
    found = json.loads(hlofuse("memory", tmp_path / "m.hlo", "--target", "cpu", "--format", "json").out)
    size = rows * 4096
    (largest,) = (a for a in found["alive"] if a["name"] == "loop.1" and a["bytes"] == size)
    is_stack = where.startswith("transpose")
    assert (largest["reason"] == "each iteration keeps a part for the backward loop loop.2") == is_stack
    texts = [u["text"] for u in found["not_simulated"] if u["bytes"] == size]
    assert [t for t in texts if t.startswith(("Put", "Nest"))] == [
        t for t in texts if first and t.startswith(first)
    ]
    assert len(texts) == bool(first)


@pytest.mark.parametrize(("count", "is_named"), [(2, True), (3, False)])
def test_a_gradient_of_few_numbers_can_be_taken_forward(
    hlofuse: Run, tmp_path: Path, count: int, is_named: bool
) -> None:
    """Of at most a quarter as many numbers as the loop has iterations."""
    text = FORWARD_AND_BACKWARD.replace("WHERE", "transpose(jvp())").replace("HOW", "add")
    text = text.replace("(s32[], f32[8,1024]{1,0})", f"(s32[], f32[8,1024]{{1,0}}, f32[{count}]{{0}})")
    for tuple_, by in (("new", "g.2"), ("stack.3", "g.3"), ("start, stack", "g"), ("start.1, kept", "g")):
        text = text.replace(f"{tuple_})\n", f"{tuple_}, {by})\n")
    for k in (2, 3):
        element = f"  g.{k} = f32[{count}]{{0}} get-tuple-element(arg.{k}), index=2\n"
        text = text.replace(f"  one.{k} =", f"{element}  one.{k} =")
    text = text.replace("  zero = s32", f"  g = f32[{count}]{{0}} parameter(1)\n  zero = s32")
    text = text.replace("  ROOT end.2 = f32[1,1024]{1,0} copy(first)", "  end = f32[1,1024]{1,0} copy(first)")
    text = text.replace(
        "  end = f32", f"  d = f32[{count}]{{0}} get-tuple-element(loop.2), index=2\n  end = f32"
    )
    text = text.replace("copy(first)\n}", "copy(first)")
    both = f"{text}  ROOT both = (f32[1,1024]{{1,0}}, f32[{count}]{{0}}) tuple(end, d)\n}}\n"
    for program in (both, text.replace("  d =", "  ROOT d =") + "}\n"):
        (tmp_path / "m.hlo").write_text(program, encoding="utf-8")
        found = json.loads(hlofuse("memory", tmp_path / "m.hlo", "--target", "cpu", "--format", "json").out)
        texts = [u["text"] for u in found["not_simulated"] if "jax.jacfwd" in u["text"]]
        assert bool(texts) == is_named
        assert all(t.endswith("of the backward loop's results only 2 numbers are read") for t in texts)


JACOBIAN = TEXTS["jacobian"]


@pytest.mark.parametrize(
    ("how", "rows", "columns", "text"),
    [
        ("vmap(transpose(jvp()))", 64, 32, "Take jax.jacfwd for jax.jacrev: 32 columns at once for 64 rows"),
        ("vmap(transpose(jvp()))", 63, 32, ""),
        ("vmap(jvp())/vmap(transpose(jvp()))", 64, 32, ""),  # gradients under vmap
        ("transpose(jvp())", 64, 32, ""),
    ],
)
def test_a_jacobian_by_rows_with_few_columns(
    hlofuse: Run, tmp_path: Path, how: str, rows: int, columns: int, text: str
) -> None:
    module = JACOBIAN.replace("HOW", how).replace("ROWS", str(rows)).replace("COLUMNS", str(columns))
    (tmp_path / "m.hlo").write_text(module, encoding="utf-8")
    found = json.loads(hlofuse("memory", tmp_path / "m.hlo", "--target", "cpu", "--format", "json").out)
    assert [u["text"] for u in found["not_simulated"] if "jac" in u["text"]] == [text] * bool(text)
    large = f"(f32[{rows},{columns}]{{1,0}}, f32[9,64,16,{columns}]{{3,2,1,0}})"
    end = f'  ROOT r = {large} custom-call(j), custom_call_target="h"\n}}\n'
    both = module.replace("ROOT j =", "j =").removesuffix("}\n") + end
    (tmp_path / "m.hlo").write_text(both, encoding="utf-8")
    found = json.loads(hlofuse("memory", tmp_path / "m.hlo", "--target", "cpu", "--format", "json").out)
    assert not [u for u in found["not_simulated"] if "jac" in u["text"]]  # w has many columns


MESH = TEXTS["mesh"]


@pytest.mark.parametrize(
    ("sharding", "rows", "devices", "less"),
    [
        ("{replicated}", 8192, 8, "115 kB"),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", 8192, 4, "98.3 kB"),
        ("{replicated}", 8190, 0, ""),  # neither dimension is a multiple of 8
        ("{devices=[8,1]<=[8]}", 8192, 0, ""),
    ],
)
def test_arguments_that_several_devices_have_can_be_sharded(
    hlofuse: Run, tmp_path: Path, sharding: str, rows: int, devices: int, less: str
) -> None:
    """The state that only the update reads costs a gather of the new weights, in a time that XLA measured."""
    text = MESH.replace("SHARDING", sharding).replace("8192", str(rows))
    (tmp_path / "m.hlo").write_text(text, encoding="utf-8")
    found = json.loads(hlofuse("memory", tmp_path / "m.hlo", "--device", "h100_sxm", "--format", "json").out)
    texts = {u["text"].split(":")[0]: u["text"] for u in found["not_simulated"] if "Shard" in u["text"]}
    assert list(texts) == (["Shard state['w']", "Shard state['m']"] if devices else [])
    if devices:
        start = f": {devices} devices each have the same copy, and would need {less} less for arguments"
        assert all(start in t for t in texts.values())
        assert texts["Shard state['w']"].endswith(
            "what it costs to gather them where they are read is not estimated"
        )
        assert "the other results (131 kB) are then gathered, in " in texts["Shard state['m']"]


WIDE = TEXTS["wide"]
BETWEEN = """  other = bf16[64,600]{1,0} custom-call(w), custom_call_target="product"
  one = f32[] custom-call(other), custom_call_target="norm"
"""


@pytest.mark.parametrize(
    ("columns", "how", "between", "texts"),
    [
        (512, "transpose(jvp())/reduce", BETWEEN, {"Put", "Keep"}),  # kept, also in parts
        (512, "transpose(jvp())/reduce", "", {"Keep"}),  # the kernels at the peak write and read it
        (512, "transpose(jvp())/checkpoint/reduce", BETWEEN, {"Keep"}),
        (512, "jvp()/reduce", "", {"Compute", "Keep"}),
        (513, "jvp()/reduce", "", {"Keep"}),
        (512, "jvp()/dot_general", "", set()),  # a part of a product that XLA splits
    ],
)
def test_changes_that_no_replay_shows(
    hlofuse: Run, tmp_path: Path, columns: int, how: str, between: str, texts: set[str]
) -> None:
    """`high` has 131,072 bytes, twice those of `w` with 512 columns."""
    text = WIDE.replace("COLUMNS", str(columns)).replace("HOW", how)
    if between:
        text = text.replace("  zero", f"{between}  zero").replace("all, zero)", "all, one)")
    (tmp_path / "m.hlo").write_text(text, encoding="utf-8")
    found = json.loads(hlofuse("memory", tmp_path / "m.hlo", "--target", "cpu", "--format", "json").out)
    assert {u["text"].partition(" ")[0] for u in found["not_simulated"]} == texts
    assert all(u["bytes"] == 131_072 for u in found["not_simulated"])
    unnamed = text.replace(', metadata={op_name="jvp()/convert"}', "")  # as what XLA:CPU widens itself
    (tmp_path / "m.hlo").write_text(unnamed, encoding="utf-8")
    assert "narrower" not in hlofuse("memory", tmp_path / "m.hlo", "--target", "cpu").out


def test_what_layers_scatters_and_arguments_take(hlofuse: Run, tmp_path: Path) -> None:
    """By XLA ten such layers take 1.54 GB under one `jax.checkpoint`, 0.96 GB under one for each, and a
    gradient's scatter of 2^30 updates 17.2 GB at once, 0.40 GB in 64 parts."""
    text = Path(__file__).with_name("ideas.hlo").read_text()
    path = tmp_path / "m.hlo"

    def answer(text: str) -> tuple[dict[str, int], dict[str, tuple[int, list[str]]]]:
        path.write_text(text, encoding="utf-8")
        found = json.loads(hlofuse("memory", path, "--target", "cpu", "--format", "json").out)
        ideas = {u["text"].partition(",")[0]: (u["bytes"], u["sources"]) for u in found["not_simulated"]}
        return found["memory"]["by_argument"], ideas

    arguments, ideas = answer(text)
    assert arguments == {"state.params": 8192, "state.mu": 8192}
    assert "Largest arguments: state.params 8.19 kB, state.mu 8.19 kB" in hlofuse("memory", path).out
    layers = "Put jax.checkpoint around each layer"
    assert ideas[layers] == (4 * 4096, ["own.py:5"])
    assert ideas["Scatter in parts: a scan over chunks of the indices"] == (32_768, ["own.py:7"])
    gathered = Path(__file__).with_name("gathered.hlo").read_text()
    assert answer(gathered)[1] == {"Scan over the layers (jax.lax.scan": (65_536, ["own.py:9"])}
    assert answer(gathered.replace("loss, gather.2,", "loss,"))[1] == {}  # one is kept: no layers
    assert not any("the operation" in t for t in ideas)  # no checkpoint: the scatter reads all at the peak
    assert layers not in answer(text.replace("source_line=5", "source_line=6", 1))[1]  # lines of one layer
    assert layers not in answer(text.replace("dot_general", "sin"))[1]  # each keeps one array


def test_it_fits_or_not(hlofuse: Run) -> None:
    """13,375,544 bytes in all: both sides of the boundary, and a GPU with 84,942,979,072 bytes."""
    path = ROOT / "samples/tutorial/slow/loss"
    for size, fits in (("13375544", True), ("13375543", False)):
        found = json.loads(hlofuse("memory", path, "--memory", size, "--format", "json").out)["memory"]
        assert (found["total"], found["available"], found["fits"]) == (13_375_544, int(size), fits)
        line = "13.4 MB of 13.4 MB:" if fits else "13.4 MB does not fit in 13.4 MB:"
        assert line in hlofuse("memory", path, "--memory", size).out
    assert json.loads(hlofuse("memory", path, "--format", "json").out)["memory"]["fits"] is None
    gpu = hlofuse("memory", ROOT / "samples/gpu/softmax", "--device", "h100_sxm").out
    assert "8.39 MB of 84.9 GB (79.1 GiB): arguments" in gpu
    refused = hlofuse("memory", path, "--memory", "80q")
    assert (refused.status, "expected bytes such as" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("saved", "left", "fits"), [(100, 900, True), (99, 900, False), (100, 901, False), (None, 0, False)]
)
def test_a_change_makes_a_program_fit_to_the_byte(saved: int | None, left: int, fits: bool) -> None:
    m: Any = SimpleNamespace(fits=False, total=1000, available=900)
    trial = Trial(Totals(1, Cost(), launches=1, memory_bytes=left), "", None, 0, 0, 0, memory_saved=saved)
    assert _makes_fit(trial, m) is fits
    m.fits = True
    assert not _makes_fit(trial, m)


def test_a_pass_that_keeps_all_stacks_alive_is_left_out(hlofuse: Run) -> None:
    """Three scans with a stack each; by XLA 594,712 temporary bytes, and 397,592 without the pass."""
    path = Path(__file__).with_name("stacks.hlo")
    options = ("--device", "h100_sxm", "--stage", "fusion-input", "--xla", "0.11.1")
    found = json.loads(hlofuse("memory", path, *options, "--format", "json").out)
    assert found["memory"]["temporary"] == 594_712
    change = next(c for c in found["changes"] if c["flag"] == "--xla_disable_hlo_passes=copy_fusion")
    assert abs(change["temporary_bytes"] - 397_592) <= 256
    assert change["saved_bytes"] == 594_712 - change["temporary_bytes"]
    assert change["time_saved_us"] < 0  # the copies are kernels of their own
    assert [c["flag"] for c in found["changes"]].count(change["flag"]) == 1
    out = hlofuse("memory", path, *options).out
    assert ". XLA_FLAGS=--xla_disable_hlo_passes=copy_fusion\n   595 kB → 398 kB temporary, time +" in out


def test_an_unrolled_loop_is_compiled_from_before_optimizations(hlofuse: Run) -> None:
    """XLA has 59,392 temporary bytes for the unrolled program, without a transposed copy of the weights."""
    path = Path(__file__).with_name("layers.hlo")
    out = hlofuse("memory", path, "--device", "h100_sxm", "--xla", "0.11.1", "--format", "json").out
    change = next(c for c in json.loads(out)["changes"] if (c["recipe"] or "").startswith("unroll"))
    assert change["temporary_bytes"] == 59_392


def test_kernels_that_xla_computes_again(hlofuse: Run, tmp_path: Path) -> None:
    """Copies in another layout (`remat_compressed`) compute nothing again."""
    text = """HloModule m, is_scheduled=true

ENTRY main {
  p = f32[1048576]{0} parameter(0)
  a = f32[1048576]{0} sine(p)
  b = f32[1048576]{0} reverse(a), dimensions={0}
  a.NAME = f32[1048576]{0} sine(p)
  ROOT c = f32[1048576]{0} add(b, a.NAME)
}
"""
    for name, count in (("remat", 1), ("remat2", 1), ("remat.3", 1), ("remat_compressed", 0), ("4", 0)):
        (tmp_path / "m.hlo").write_text(text.replace("NAME", name), encoding="utf-8")
        options = (tmp_path / "m.hlo", "--device", "h100_sxm")
        found = json.loads(hlofuse("memory", *options, "--format", "json").out)["memory"]
        assert found["rematerialized"]["kernels"] == count
        out = hlofuse("memory", *options).out
        assert ("XLA computes 1 kernel again to save memory" in out) == bool(count)


def test_a_text_without_its_entry_has_no_memory(hlofuse: Run, tmp_path: Path) -> None:
    text = Path(__file__).with_name("stacks.hlo").read_text(encoding="utf-8")
    (tmp_path / "cut.hlo").write_text(text[: len(text) // 2], encoding="utf-8")
    result = hlofuse("memory", tmp_path / "cut.hlo", "--device", "h100_sxm")
    assert result.status == 2
    assert "the text ends before the module's entry" in result.err
