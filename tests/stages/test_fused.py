"""Fused modules explained as they are: what is told agrees with the decisions of a replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse import load
from hlofuse.account import observed_replay
from hlofuse.compilation import Compilation, CompilationInput, replay_config
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.copy import copy_module
from hlofuse.ir.fusing import unfuse
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.refusals import refusals
from hlofuse.reports.fused.model import Boundary, gpu_boundaries, recreated_boundaries, split_fusions
from hlofuse.rules.gpu_multi_output_fusion import CONNECTED
from ..fixtures import companion_texts, unpacked
from ..running import Golden, Run, find
from ..tools.module_checks import check_module

TEXTS = companion_texts(__file__)

DATA = Path(__file__).parent.parent / "data"
CPU = ("softmax_column", "layer_norm", "mlp_grad_bf16", "conv_block", "rms_norm", "sibling_reductions")
LEGACY = ("softmax", "layer_norm_grad", "mlp_grad_bf16", "cumulative", "pad_slice", "batch_norm_train")
GPU = ("softmax", "layer_norm_grad", "row_col_reductions", "gpt2_block", "cartpole_baseline", "mlp")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    for name in ("cpu", "gpu", "gpu-legacy"):
        unpacked(DATA / f"{name}.tar.xz", folder)
    return folder


def case(corpus: Path, group: str, name: str) -> Path:
    """The input of the passes; what the replay makes of it is XLA's result, as other tests see to."""
    return next(p for p in sorted(corpus.rglob("before.hlo")) if p.parts[-3:-1] == (group, name))


def reread(module: Module) -> Module:
    """As a dump of it reads."""
    return parse_module(print_module(module))


def replay_reasons(
    created: Compilation, facts: Facts, passes: set[str]
) -> dict[tuple[str, str | None], str | None]:
    """What the replay of the module ahead of fusion says of each pair of kernels."""
    out: dict[tuple[str, str | None], str | None] = {}
    for p in created.passes:
        for r in refusals(p.events, facts) if p.name in passes else ():
            if r.between_kernels:
                out.setdefault((r.kernel or "", r.consumer), r.rule)
    return out


def agreement(
    found: list[Boundary], own: dict[tuple[str, str | None], str | None]
) -> tuple[int, list[Boundary]]:
    """How many reasons are those of the replay, and the boundaries where it says another."""
    reported = [(b, own.get((b.producer, b.consumer))) for b in found if b.rule is not None]
    return sum(b.rule == o for b, o in reported), [b for b, o in reported if o is not None and o != b.rule]


@pytest.mark.parametrize("name", CPU)
def test_cpu_reasons_are_those_of_the_replay(corpus: Path, name: str) -> None:
    created = observed_replay(load(case(corpus, "corpus", name)), replay_config("cpu", None)).replay
    found, how = recreated_boundaries(reread(created.after), "cpu")
    same, other = agreement(found, replay_reasons(created, Facts(created), {"fusion"}))
    assert other == []
    assert same == sum(b.rule is not None for b in found) > 0
    assert "kernels match" in how


@pytest.mark.parametrize("name", GPU)
def test_gpu_reasons_are_those_of_the_replay(corpus: Path, name: str) -> None:
    config = replay_config("gpu", "h100_sxm")
    assert config.device is not None
    before = load(case(corpus, "h100_sxm", name))
    observed = observed_replay(CompilationInput(before, unique_ids_for(before, None)), config)
    found, _ = gpu_boundaries(reread(observed.replay.after), config.device, RELEASE)
    facts = Facts(observed.replay, observed.costs)
    _, other = agreement(found, replay_reasons(observed.replay, facts, {"priority-fusion"}))
    assert other == []
    assert all(b.rule is not None for b in found)


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_reasons_are_those_of_the_replay(corpus: Path, name: str) -> None:
    config = replay_config("gpu-legacy", "a100_sxm_40")
    created = observed_replay(load(case(corpus, "a100_sxm_40", name)), config).replay
    found, how = recreated_boundaries(reread(created.after), "gpu-legacy", config.device)
    own = replay_reasons(created, Facts(created), {p.name for p in created.passes})
    same, other = agreement(found, own)
    assert same + len(other) > 0
    assert {b.rule for b in other} <= {None, CONNECTED.code}
    assert "kernels match" in how


def test_taking_apart_undoes_fusing(corpus: Path) -> None:
    for name in CPU:
        created = observed_replay(load(case(corpus, "corpus", name)), replay_config("cpu", None)).replay
        separate, _ = split_fusions(reread(created.after))
        check_module(separate)
        check_module(parse_module(print_module(separate)))
        kinds = {i.fusion_kind for i in separate.instructions() if i.opcode == "fusion"}
        assert kinds <= {"kCustom"}


SEVERAL = TEXTS["several"]


def test_a_fusion_with_several_results_is_taken_apart() -> None:
    module = copy_module(parse_module(SEVERAL))
    unfuse(find(module, "x"))
    check_module(module)
    assert [i.name for i in module.entry.root.operands] == ["n", "s"]
    assert [i.opcode for i in module.entry] == ["parameter", "add", "negate", "sqrt"]
    assert len(module.computations) == 1


def test_a_fusion_that_is_the_result_is_taken_apart() -> None:
    text = SEVERAL.split("  first =")[0].replace("  x =", "  ROOT x =") + "}\n"
    module = copy_module(parse_module(text))
    unfuse(find(module, "x"))
    check_module(module)
    assert module.entry.root.opcode == "tuple"


@pytest.mark.parametrize(("form", "ending"), [("text", "txt"), ("markdown", "md"), ("json", "json")])
def test_reports(
    samples: Path, hlofuse: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch, form: str, ending: str
) -> None:
    monkeypatch.chdir(samples / "cpu")  # reports name the dump ahead of fusion
    result = hlofuse("explain", Path("softmax") / "after.hlo", "--details", "--format", form)
    assert (result.status, result.err) == (0, "")
    golden(f"explain/fused-softmax.{ending}", result.out)


def test_no_reason_is_made_up(samples: Path, hlofuse: Run, tmp_path: Path) -> None:
    # A kernel that XLA would not make: taken apart and made again it comes out otherwise.
    text = (samples / "cpu" / "softmax" / "after.hlo").read_text()
    path = tmp_path / "odd.hlo"
    path.write_text(text.replace("multiply(", "power("))
    document = json.loads(hlofuse("explain", path, "--format", "json").out)
    unknown = [b for b in document["boundaries"] if b["rule"] is None]
    assert all(b["reason"] for b in unknown)


def test_what_if_is_refused_and_another_target_is_taken_with_a_note(samples: Path, hlofuse: Run) -> None:
    path = samples / "cpu" / "softmax" / "after.hlo"
    assert hlofuse("explain", path, "--disable", "CPU007").status == 2
    result = hlofuse("explain", path, "--target", "gpu", "--device", "v100")
    assert (result.status, "Note: the module is for CPU" in result.out) == (0, True)


def test_a_whole_gpu_dump_names_the_better_file(gpt2_whole: Path, hlofuse: Run) -> None:
    last = next(gpt2_whole.glob("*gpu_after_optimizations.txt"))
    out = hlofuse("explain", last, "--details", "--device", "h100_sxm", columns=300).out
    assert "why these kernels are not fused" in out
    assert "0057.fusion.after_pipeline-start" in out


RESULTS = TEXTS["results"]


def test_gpu_kernels_that_read_one_of_several_results_are_asked_about() -> None:
    device = replay_config("gpu", "h100_sxm").device
    assert device is not None
    found, _ = gpu_boundaries(parse_module(RESULTS), device, RELEASE)
    assert [(b.producer, b.consumer, b.rule is not None) for b in found] == [("f", "g", True)]


def nested_calls(levels: int) -> str:
    """Each computation has a kernel and calls the next one twice, in sequence."""
    out = ["HloModule nested, is_scheduled=true\n"]
    for level in reversed(range(levels)):
        head = f"%level{level}" if level else "ENTRY %main"
        shape = "f32[128]{0}"
        out.append(f"{head} (p{level}: f32[128]) -> f32[128] {{\n  %p{level} = {shape} parameter(0)")
        if level == levels - 1:
            out.append(f"  ROOT %e{level} = {shape} exponential(%p{level})\n}}\n")
        else:
            out.append(f"  %e{level} = {shape} exponential(%p{level})")
            out.append(f"  %a{level} = {shape} call(%e{level}), to_apply=%level{level + 1}")
            out.append(f"  ROOT %b{level} = {shape} call(%a{level}), to_apply=%level{level + 1}\n}}\n")
    return "\n".join(out)


@pytest.mark.parametrize("levels", [2, 16, 40])
def test_rows_are_those_of_kernels_not_of_call_paths(tmp_path: Path, hlofuse: Run, levels: int) -> None:
    path = tmp_path / "nested.hlo"
    path.write_text(nested_calls(levels))
    found = json.loads(hlofuse("explain", path, "--format", "json").out)
    totals, boundaries = found["totals"], found["boundaries"]
    assert (totals["kernels"], totals["launches"]) == (levels, 2**levels - 1)
    assert {k["name"]: k["runs"] for k in found["kernels"]} == {f"e{n}": 2**n for n in range(levels)}
    # Each level reads what the one above computed; the second call reads what the first one returned.
    last = f"e{levels - 1}"
    pairs = {(b["producer"], b["consumer"]): b["runs"] for b in boundaries}
    first_reads = {(f"e{n - 1}", f"e{n}"): 2**n for n in range(1, levels)}
    later_reads = {(last, f"e{n}"): 2**n for n in range(1, levels)}
    assert pairs == first_reads | later_reads
    assert len(boundaries) == len(pairs)
