"""XLA's final names: matched with what a replay leaves, and shown first."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.matching.pairs import match
from ..fixtures import packed
from ..running import Golden, Run, find

ARCHIVE = Path(__file__).parent.parent / "data" / "final-names.tar.xz"
_SILENT = ("parameter", "constant", "tuple", "bitcast")


def cases() -> Iterator[tuple[str, Module, Module]]:
    """Modules after fusion and as XLA launched them."""
    for name, files in packed(ARCHIVE).items():
        after, final = (parse_module(files[f].decode()) for f in ("after.hlo", "final.hlo"))
        yield name, after, final


def inside(kernel: Instruction) -> set[str]:
    """Names of operations in a fusion; XLA's passes after fusion leave nearly all as they are."""
    return {i.name.rsplit(".", 1)[0] for i in kernel.fused_computation if i.opcode not in _SILENT}


def test_every_kernel_of_xlas_has_its_name_at_fusion() -> None:
    """The passes after fusion add copies and nothing else; names inside fusions say which is which."""
    count = 0
    for label, after, final in cases():
        names = match(after, final).names
        at_fusion = {i.name: i for i in after.instructions()}
        own = [names[k.name] for k in kernels(final) if k.name in names]
        assert len(own) == len(set(own)), label
        for kernel in kernels(final):
            if kernel.name not in names:
                assert kernel.opcode == "copy", (label, kernel.name)
                continue
            old = at_fusion[names[kernel.name]]
            assert kernel.shape.element_count == old.shape.element_count or old.opcode == "fusion", label
            if kernel.opcode == old.opcode == "fusion" and inside(kernel):
                assert inside(kernel) & inside(old), (label, kernel.name, old.name)
            count += 1
    assert count > 300


AFTER = """HloModule m

%body (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%a)
}

%other (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  ROOT %e = f32[8]{0} exponential(%b)
}

ENTRY %main (p: f32[8]) -> (f32[8], f32[8]) {
  %p = f32[8]{0} parameter(0)
  %fusion.1 = f32[8]{0} fusion(%p), kind=kLoop, calls=%body
  %fusion = f32[8]{0} fusion(%p), kind=kLoop, calls=%other
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%fusion.1, %fusion)
}
"""


def test_names_may_be_exchanged_and_copies_added() -> None:
    """`fusion` and `fusion.1` mean the other one after renaming; a copy has no name at fusion."""
    final = AFTER.replace("%fusion.1", "%x").replace("%fusion", "%fusion.1").replace("%x", "%fusion")
    final = final.replace("fusion(%p), kind=kLoop, calls=%other", "fusion(%copy.1), kind=kLoop, calls=%other")
    final = final.replace("  %fusion =", "  %copy.1 = f32[8]{0} copy(%p)\n  %fusion =")
    names = match(parse_module(AFTER), parse_module(final)).names
    assert (names["fusion"], names["fusion.1"]) == ("fusion.1", "fusion")
    assert (names["n"], names["e"]) == ("n", "e")
    assert "copy.1" not in names


def test_results_that_are_copied_inside_the_kernel() -> None:
    """`copy_fusion` gives a kernel a second result that is a copy of the first."""
    final = AFTER.replace(
        "ROOT %e = f32[8]{0} exponential(%b)",
        "%e = f32[8]{0} exponential(%b)\n  %c = f32[8]{0} copy(%e)\n"
        "  ROOT %r = (f32[8]{0}, f32[8]{0}) tuple(%e, %c)",
    )
    final = final.replace("(b: f32[8]) -> f32[8]", "(b: f32[8]) -> (f32[8], f32[8])")
    final = final.replace(
        "%fusion = f32[8]{0} fusion(%p)", "%loop_exponential_fusion = (f32[8]{0}, f32[8]{0}) fusion(%p)"
    )
    final = final.replace(
        "  ROOT %t", "  %g = f32[8]{0} get-tuple-element(%loop_exponential_fusion), index=1\n  ROOT %t"
    ).replace("tuple(%fusion.1, %fusion)", "tuple(%fusion.1, %g)")
    names = match(parse_module(AFTER), parse_module(final)).names
    assert names["loop_exponential_fusion"] == "fusion"


def test_without_a_final_module_the_passes_after_fusion_are_replayed() -> None:
    done = compile(parse_module(AFTER))
    assert not done.has_xla_final
    assert set(done.names_at_fusion.values()) <= {i.name for i in done.after.instructions()}
    assert find(done.final, done.final_names["fusion.1"]).opcode == "fusion"


def test_reports_show_the_final_name_first(gpt2_whole: Path, hlofuse: Run, golden: Golden) -> None:
    out = hlofuse("kernels", gpt2_whole, "--limit", 6, "--device", "h100_sxm").out
    golden("names/kernels.80.txt", out)
    assert "loop_multiply_fusion" in out
    for command in (["explain", "--details"], ["stats", "--after"]):
        for form in ("text", "markdown"):
            out = hlofuse(*command, gpt2_whole, "--device", "h100_sxm", "--format", form, columns=120).out
            assert "loop_multiply_fusion (fusion.21)" in out.replace("\\", ""), command


def test_rows_of_json_have_both_names_and_the_source(gpt2_whole: Path, hlofuse: Run) -> None:
    def rows(*command: str) -> list[dict[str, object]]:
        out = json.loads(hlofuse(*command, gpt2_whole, "--device", "h100_sxm", "--format", "json").out)
        found: list[dict[str, object]] = []
        if command[0] == "stats":
            found = out["modules"][0]["heaviest"]
        elif command[0] == "kernels":
            found = out["kernels"]
        else:
            found = [k["first"] for k in out["dearest"]]
        return found

    for command in (["kernels"], ["explain"], ["stats", "--after"]):
        row = next(r for r in rows(*command) if r["name"] == "loop_multiply_fusion")
        assert row["input_name"] == "fusion.21"
        document = json.loads(hlofuse(*command, gpt2_whole, "--device", "h100_sxm", "--format", "json").out)
        assert document["final_names"] == "dump"
        assert str(row["source"]).startswith("programs.py:305")


@pytest.mark.parametrize(("target", "archive"), [("cpu", "cpu"), ("h100_sxm", "gpu-h100_sxm")])
def test_xlas_final_module_is_what_is_counted(
    target: str, archive: str, tmp_path: Path, hlofuse: Run
) -> None:
    """Its kernels, launches and bytes, under its names; the replay gives the reasons."""
    for kind, file, into in (("final", "final.hlo", "programs"), ("unoptimized", "before.hlo", ".")):
        with tarfile.open(ARCHIVE.with_name(f"{archive}-{kind}.tar.xz")) as tar:
            tar.extractall(tmp_path / into, [m for m in tar if m.name.endswith(f"/{file}")], filter="data")
    both = [f.parent for f in sorted(tmp_path.rglob("final.hlo")) if f.with_name("before.hlo").exists()]
    for folder in both[::12]:
        final = folder / "final.hlo"
        device = () if target == "cpu" else ("--device", target)
        alone = json.loads(hlofuse("kernels", final, *device, "--format", "json").out)
        final.rename(folder / "after_optimizations.hlo")
        before = (folder / "before.hlo").rename(folder / "before_optimizations.hlo")
        found = json.loads(hlofuse("kernels", before, *device, "--format", "json").out)
        assert found["totals"] == {**alone["totals"], "from": "xla"}, folder
        assert [k["name"] for k in found["kernels"]] == [k["name"] for k in alone["kernels"]], folder
        screen = hlofuse("explain", before, *device, columns=200).out
        assert "XLA's final module (after_optimizations.hlo) has " in screen, folder
    assert len(both) > 40


def test_a_final_module_that_differs_is_counted_and_the_difference_named(
    tmp_path: Path, hlofuse: Run
) -> None:
    (tmp_path / "before.hlo").write_text(AFTER)
    final = AFTER.replace("HloModule m", "HloModule m, is_scheduled=true")
    final = final.replace("  ROOT %t", "  %again = f32[8]{0} copy(%fusion)\n  ROOT %t")
    (tmp_path / "after_optimizations.hlo").write_text(
        final.replace("tuple(%fusion.1, %fusion)", "tuple(%fusion.1, %again)")
    )
    (tmp_path / "hlofuse.json").write_text(
        '{"schema": "hlofuse.stamp/1", "backend": "cpu", "jaxlib": "0.11.1"}'
    )
    how = ("--stage", "fusion-input", "--format", "json")
    found = json.loads(hlofuse("explain", tmp_path / "before.hlo", *how).out)
    assert (found["totals"]["kernels"], found["totals"]["from"]) == (3, "xla")
    assert found["xla_result"]["only_xla"] == ["again"]
    # Another release, or flags that XLA was not given, would not have this result.
    for other in (("--xla", "0.10.2"), ("--xla-flags", "--xla_disable_hlo_passes=fusion")):
        changed = json.loads(hlofuse("explain", tmp_path / "before.hlo", *how, *other).out)
        assert (changed["totals"]["kernels"], changed["totals"]["from"]) == (2, "replayed"), other
        assert "xla_result" not in changed


BOTH = "loop_multiply_fusion (fusion.21)"


def test_check_names_both_sides_of_what_is_kept_apart(gpt2_whole: Path, hlofuse: Run) -> None:
    """What is in the way is found by the names at fusion, whatever a later pass calls the kernels."""
    call = ("check", gpt2_whole, "--device", "h100_sxm", "--max-kernels", 3)
    assert f"gemm_fusion_dot.2 → {BOTH}" in hlofuse(*call, columns=160).out
    module = json.loads(hlofuse(*call, "--format", "json").out)["modules"][0]
    names = {k["input_name"]: k["name"] for k in module["kernels"]}
    assert names["fusion.21"] == "loop_multiply_fusion"
    pairs = module["findings"][0]["held"]
    assert all(p["consumer"] == names[p["consumer_input_name"]] for p in pairs)


def test_pictures_show_the_final_name_first(gpt2_whole: Path, hlofuse: Run) -> None:
    on = ("--device", "h100_sxm", "-o", "-")
    closed = hlofuse("render", gpt2_whole, "--max-nodes", 60, *on).out
    opened = hlofuse("render", gpt2_whole, "--focus", "loop_multiply_fusion", "--open", "fusion.21", *on).out
    both = hlofuse("render", gpt2_whole, "--view", "both", "--max-nodes", 200, *on).out
    for dot in (closed, opened, both):
        assert "<B>loop_multiply_fusion</B>" in dot
        assert "<B>fusion.21</B>" not in dot
        assert ">fusion.21<" in dot
    before = hlofuse("render", gpt2_whole, "--view", "before", *on).out
    assert "loop_multiply_fusion" not in before


def test_plots_show_the_final_name_first(gpt2_whole: Path, hlofuse: Run) -> None:
    out = hlofuse("plot", gpt2_whole, "--kind", "kernels", "--device", "h100_sxm", "-o", "-").out
    assert BOTH in out.replace("&#40;", "(").replace("&#41;", ")")
