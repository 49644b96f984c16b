"""One operation followed through every pass."""

from __future__ import annotations

import json
from pathlib import Path

from hlofuse.compilation import replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.reports.timeline import dump_sequences
from hlofuse.reports.trace_op import follow
from hlofuse.reports.trace_op.follow import How, Trail, with_replayed_passes
from ..running import Golden, Run, lowered
from .dump_directory import ALL, FUSED, PLAIN, SIMPLER, text, write


def only(folder: Path, requested: str) -> Trail:
    (trail,) = follow(dump_sequences(folder)[0], requested).trails
    return trail


def test_changed_then_fused(tmp_path: Path, hlofuse: Run) -> None:
    trail = only(write(tmp_path, ALL), "%d")
    assert [(s.dump.after, s.how) for s in trail.events] == [
        ("before_optimizations", How.FOUND),
        ("algsimp", How.CHANGED),
        ("fusion", How.FUSED),
    ]
    assert [(k.name, k.opcodes) for k in trail.ends] == [("x", ("multiply", "negate", "sqrt"))]
    assert "divide becomes multiply, renamed m" in hlofuse("trace-op", tmp_path, "d").out


def test_operations_with_the_same_steps_are_shown_once(gpt2_whole: Path, hlofuse: Run) -> None:
    command = "trace-op", gpt2_whole, "programs.py:296", "--limit"
    found = json.loads(hlofuse(*command, "0", "--format", "json").out)["operations"]
    shown = hlofuse(*command, "0", columns=200).out
    assert "  same steps and kernels: sub.25 (subtract)\n" in shown
    heads = [o["name"] for o in found if f"\n{o['name']}  {o['opcode']}  " in shown]
    others = [o["name"] for o in found if f": {o['name']} ({o['opcode']})" in shown]
    assert sorted(heads + others) == sorted(o["name"] for o in found)
    fewer = hlofuse(*command, "1").out
    assert f"… {len(found) - 2} more" in fewer  # the first has one with the same steps


def test_a_name_of_a_later_dump_is_followed_back(tmp_path: Path) -> None:
    longer = SIMPLER.replace("negate(m)", "negate(t)").replace("  n =", "  t = f32[8]{0} tanh(m)\n  n =")
    created = only(write(tmp_path, (PLAIN, PLAIN, longer, longer, longer)), "t").events[0]
    assert (created.dump.after, created.how) == ("algsimp", How.CREATED)
    # A fusion stands for what it computes.
    write(tmp_path, ALL)
    root = only(tmp_path, "x")
    assert (root.events[0].dump.after, root.events[0].locations[0].name) == ("before_optimizations", "s")


def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    dead = PLAIN.replace("  n =", "  z = f32[8]{0} tanh(p)\n  n =")
    trail = only(write(tmp_path, (dead, dead, SIMPLER, FUSED, FUSED)), "z")
    assert trail.events[-1].how is How.REMOVED
    assert trail.ends == ()


def test_what_a_reader_takes_in_or_takes_instead_is_followed(tmp_path: Path) -> None:
    slices = "  i = f32[6]{0} slice(p), slice={[1:7]}", "  j = f32[4]{0} slice(i), slice={[1:5]}"
    two = text(*slices, "  ROOT n = f32[4]{0} negate(j)")
    one = text("  r = f32[4]{0} slice(p), slice={[2:6]}", "  ROOT n = f32[4]{0} negate(r)")
    merged = only(write(tmp_path, (two, two, one, one, one)), "i")
    assert (merged.events[-1].how, [k.name for k in merged.ends]) == (How.MERGED, ["r"])
    twice = SIMPLER.replace("negate(m)", "negate(t)").replace("  n =", "  t = f32[8]{0} abs(m)\n  n =")
    replaced = only(write(tmp_path, (twice, twice, SIMPLER, SIMPLER, SIMPLER)), "t")
    assert (replaced.events[-1].how, [k.name for k in replaced.ends]) == (How.REPLACED, ["m"])


def test_an_operation_of_a_gpt2_block_from_its_line_to_its_kernel(gpt2_whole: Path) -> None:
    provenance = follow(dump_sequences(gpt2_whole)[0], "programs.py:304")
    product, residual = provenance.trails
    assert [(s.dump.after, s.how) for s in product.events] == [
        ("before_optimizations", How.FOUND),
        ("dot_decomposer", How.REWRITTEN),
        ("splitk-rewriter", How.REWRITTEN),
        ("triton-gemm-rewriter", How.FUSED),
        ("rename-instructions", How.CHANGED),
        ("priority-fusion", How.CHANGED),
        ("rename_fusions", How.CHANGED),
    ]
    # The product is split, and the kernels that read it sum its parts.
    assert [k.name for k in product.ends] == ["gemm_fusion_dot.6", "loop_add_fusion", "triton_softmax.6"]
    assert product.ends[0].opcodes == ("dot",)
    # The sum is computed where it is stored and again where it is normalized.
    assert [k.name for k in residual.ends] == ["loop_add_fusion", "triton_softmax.6"]
    assert all("add" in k.opcodes for k in residual.ends)


def test_what_is_in_the_place_of_an_operation_is_followed(gpt2_whole: Path) -> None:
    trail = only(gpt2_whole, "div.17")
    replaced = next(s for s in trail.events if s.how is How.REPLACED)
    assert (replaced.dump.after, replaced.locations[0].opcode) == ("algsimp", "multiply")
    assert [k.name for k in trail.ends] == ["triton_softmax.10"]


def test_fusions_of_a_line_are_told_by_what_is_in_them(samples: Path, tmp_path: Path) -> None:
    trails = follow(dump_sequences(samples / "cpu" / "softmax")[0], "programs.py:89").trails
    assert all(t.opcode != "fusion" and t.ends for t in trails)
    # Where the line has nothing but a fusion, what it computes stands for it.
    fused = FUSED.replace("calls=f", 'calls=f, metadata={source_file="a.py" source_line=3}')
    trail = only(write(tmp_path, (fused,) * len(ALL)), "a.py:3")
    assert (trail.name, [k.name for k in trail.ends]) == ("s", ["x"])


def test_reports(gpt2_whole: Path, hlofuse: Run, golden: Golden) -> None:
    for form, ending in (("text", "txt"), ("markdown", "md"), ("json", "json")):
        result = hlofuse("trace-op", gpt2_whole, "programs.py:304", "--format", form, columns=100)
        assert (result.status, result.err) == (0, "")
        golden(f"trace-op/gpt2_block.{ending}", result.out)


def test_wrong_names(tmp_path: Path, gpt2_whole: Path, hlofuse: Run) -> None:
    write(tmp_path, ALL)
    assert "no instruction, op_name or function q7; did you mean q" in hlofuse("trace-op", tmp_path, "q7").err
    assert "no operation from that source line" in hlofuse("trace-op", tmp_path, "a.py:3").err
    assert "did you mean programs.py:" in hlofuse("trace-op", gpt2_whole, "programs.py:1").err
    write(tmp_path, ALL, "module_0001.jit_g")
    several = hlofuse("trace-op", tmp_path, "d")
    assert (several.status, "--module" in several.err) == (2, True)
    assert hlofuse("trace-op", tmp_path, "d", "--module", "jit_g").status == 0


def test_a_damaged_dump_is_left_out_and_named(gpt2: Path, hlofuse: Run) -> None:
    cut = next(gpt2.glob("*.0045.*"))
    cut.write_text(cut.read_text()[:5000])
    document = json.loads(hlofuse("trace-op", gpt2, "dot_general.9", "--format", "json").out)
    assert document["unreadable"] == [cut.name]
    assert document["operations"][0]["ends_in"][0]["name"] == "gemm_fusion_dot.6"


def test_a_capture_folder_is_followed_from_the_program_on(tmp_path: Path) -> None:
    """It holds dumps around fusion only: XLA's other passes are repeated."""
    product = """HloModule m

ENTRY main {
  x = f32[64,8192]{1,0} parameter(0)
  w = f32[8192,128]{1,0} parameter(1)
  s.4 = f32[64,8192]{1,0} sine(x)
  ROOT d = f32[64,128]{1,0} dot(s.4, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    begun = lowered(parse_module(product), "gpu", load_device("h100_sxm"))
    (tmp_path / "before_optimizations.hlo").write_text(product)
    for name in ("before.hlo", "after.hlo"):
        (tmp_path / name).write_text(print_module(begun.module))
    whole = with_replayed_passes(dump_sequences(tmp_path)[0], replay_config("gpu", "h100_sxm"))
    (trail,) = follow(whole, "d").trails
    assert [s.dump.after for s in trail.events][:3] == [
        "before_optimizations",
        "splitk-rewriter",
        "triton-gemm-rewriter",
    ]
    assert len(trail.ends) == 2
    (sine,) = follow(whole, "s.4").trails
    assert sine.ends
