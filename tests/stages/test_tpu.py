"""What XLA:TPU fused is read off its dumps; no reason is made up."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import hlofuse as library
from hlofuse import load
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.fusion.tpu_fusion import Prediction
from hlofuse.reports.fused.tpu import compare_tpu, tpu_files
from ..fixtures import Case, read_cases, unpacked
from ..running import Golden, Run

DATA = Path(__file__).parent.parent / "data" / "tpu.tar.xz"


@pytest.fixture(scope="module")
def tpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(DATA, tmp_path_factory.mktemp("dump")) / "tpu"


def test_softmax(tpu: Path) -> None:
    found = compare_tpu(load(tpu / "softmax" / "before.hlo"), load(tpu / "softmax" / "after.hlo"))
    assert (found.kernels_before, found.kernels_after) == (7, 3)
    assert {str(c.kind) for c in found.changes} == {"new"}
    # TPU computes the exponential twice rather than store it.
    shared = [(e.producer, e.consumer) for e in found.edges if e.producer == "exp.1" and e.fused]
    assert shared == [("exp.1", "reduce_sum.7"), ("exp.1", "div.7")]
    block = compare_tpu(load(tpu / "gpt2_block" / "before.hlo"), load(tpu / "gpt2_block" / "after.hlo"))
    assert (block.kernels_before, block.kernels_after) == (66, 18)


@pytest.mark.parametrize(("form", "ending"), [("text", "txt"), ("markdown", "md"), ("json", "json")])
def test_reports(
    tpu: Path, hlofuse: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch, form: str, ending: str
) -> None:
    monkeypatch.chdir(tpu)
    result = hlofuse("explain", "softmax", "--details", "--format", form, columns=100)
    assert (result.status, result.err) == (0, "")
    golden(f"explain/tpu-softmax.{ending}", result.out)


def test_the_library_explores_the_final_module_of_a_dump(tpu: Path) -> None:
    dump, final = (library.open(str(tpu / "softmax" / name)) for name in ("before.hlo", "after.hlo"))
    assert dump.explore() == final.explore()


def test_a_capture_of_one_module_is_explained_as_its_folder(tpu: Path, tmp_path: Path, hlofuse: Run) -> None:
    capture = tmp_path / "capture"
    shutil.copytree(tpu / "softmax", capture / "softmax")
    (capture / "manifest.json").write_text('{"jax": "0.11.1", "target": "tpu", "modules": ["softmax"]}')
    assert tpu_files(capture) == (capture / "softmax" / "before.hlo", capture / "softmax" / "after.hlo")
    shown = hlofuse("explain", capture, "--details")
    assert (shown.status, "7 kernels → 3" in shown.out) == (0, True)
    (capture / "softmax" / "hlofuse.json").write_text(
        '{"schema": "hlofuse.stamp/1", "jaxlib": "0.11.1", "backend": "tpu", "device": "v5e"}'
    )
    stamped = json.loads(hlofuse("explain", capture, "--format", "json").out)["xla"]
    assert (stamped["release"], stamped["backend"], stamped["device"]) == ("0.11.1", "tpu", "v5e")
    shutil.copytree(tpu / "gpt2_block", capture / "gpt2_block")
    assert tpu_files(capture) is None  # which one is for the user to say
    assert tpu_files(capture, "jit_softmax") == tpu_files(capture / "softmax")


def test_kernels_of_a_fused_module_are_listed_without_rules(tpu: Path, tmp_path: Path, hlofuse: Run) -> None:
    alone = shutil.copy(tpu / "softmax" / "after.hlo", tmp_path / "m.hlo")
    document = json.loads(hlofuse("kernels", alone, "--format", "json").out)
    assert (document["target"], document["totals"]["kernels"], document["rules"]) == ("tpu", 3, {})
    assert {(k["run_by"], k["rule"]) for k in document["kernels"]} == {("not known", None)}
    assert "not known" in hlofuse("kernels", alone).out


def test_the_pair_is_found_from_either_file_and_in_a_dump_directory(
    tpu: Path, tmp_path: Path, hlofuse: Run
) -> None:
    pair = tpu / "softmax" / "before.hlo", tpu / "softmax" / "after.hlo"
    assert tpu_files(pair[0]) == tpu_files(pair[1]) == tpu_files(tpu / "softmax") == pair
    first = "0050.Main_fusion.after_pipeline-start.before_tpu_fusion"
    last = "0051.multi_output_fusion_and_bf16_folding.after_tpu_fusion.before_pipeline-end"
    for file, stage in zip(pair, (first, last), strict=True):
        (tmp_path / f"module_0003.jit_softmax.{stage}.txt").write_text(file.read_text())
    out = hlofuse("explain", tmp_path, "--details").out
    assert "7 kernels → 3" in out
    assert "not why" in out


def test_a_module_alone_is_refused_as_before(tpu: Path, tmp_path: Path, hlofuse: Run) -> None:
    alone = tmp_path / "m.hlo"
    alone.write_text((tpu / "softmax" / "before.hlo").read_text())
    result = hlofuse("explain", alone)
    assert (result.status, result.out) == (2, "")
    assert "The fusion passes of TPU are not public" in result.err
    assert "compile it: hlofuse capture FILE --target tpu" in result.err
    assert hlofuse("stats", alone).status == 0
    assert hlofuse("render", alone, "-o", tmp_path / "m.dot").status == 0


def test_an_earlier_module_is_answered_by_the_final_one_next_to_it(
    tpu: Path, tmp_path: Path, hlofuse: Run
) -> None:
    case = tmp_path / "softmax"
    shutil.copytree(tpu / "softmax", case)
    (case / "before_optimizations.hlo").write_text("HloModule m\nENTRY e { ROOT x = f32[8] parameter(0) }\n")
    (case / "hlofuse.json").write_text(
        '{"schema": "hlofuse.stamp/1", "jaxlib": "0.11.1", "backend": "tpu", "device": "v5e", "flags": ""}'
    )
    expected = hlofuse("explain", case / "after.hlo").out.splitlines()[2:]
    for name in ("before.hlo", "before_optimizations.hlo"):
        shown = hlofuse("explain", case / name)
        assert (shown.status, shown.out.splitlines()[-len(expected) :]) == (0, expected)
        assert "its final module, after.hlo" in shown.out + shown.err
    assert hlofuse("explain", case / "before_optimizations.hlo", "--target", "cpu").out.count("cpu")


def test_it_is_not_held_against_another_target(tpu: Path, hlofuse: Run) -> None:
    result = hlofuse("verify", tpu / "softmax")
    assert result.status == 2
    assert "the module is for TPU, not for target cpu" in " ".join(result.out.split())


def test_reasons_are_learnt_and_say_how_often_they_hold(tpu: Path, hlofuse: Run) -> None:
    shown = hlofuse("explain", tpu / "gpt2_block", "--details", "--limit", "0", columns=200).out
    assert "not why" in shown
    split = r"convolution → split.0 +393 kB +The consumer moves data.* \(\d+% of [\d,]+ such pairs; TP001\)"
    assert re.search(split, shown)
    pairs = json.loads(hlofuse("explain", tpu / "gpt2_block", "--format", "json").out)["pairs"]
    assert {p["rule"] for p in pairs if p["fused"]["tpu"]} == {None}
    one = hlofuse("why", tpu / "gpt2_block", "convolution", "split.0", columns=200)
    assert (one.status, "1 of 1 pair not fused" in one.out) == (0, True)
    assert re.search(split.replace("split.0 ", r"split.0 \(\S+, \S+\) "), one.out)
    assert "0 of 3 pairs not fused" in hlofuse("why", tpu / "softmax", "exp.1", "--format", "text").out


def test_names_of_final_kernels_are_pairs(tpu: Path, hlofuse: Run) -> None:
    block = tpu / "gpt2_block"
    for e in compare_tpu(load(block / "before.hlo"), load(block / "after.hlo")).edges[::3]:
        shown = json.loads(hlofuse("why", block, *map(min, e.kernels), "--format", "json").out)["pairs"]
        assert (e.producer, e.consumer, e.rule) in [(p["producer"], p["consumer"], p["rule"]) for p in shown]


def predict(entry: str) -> tuple[Module, Prediction]:
    module = parse_module(f"HloModule m\n\n{ADD}ENTRY e {{\n{entry}\n}}\n")
    return module, Prediction(module)


ADD = """\
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

greatest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}

"""


@pytest.mark.parametrize("case", read_cases(Path(__file__).with_name("tpu.hlo")), ids=str)
def test_each_condition_has_cases_on_both_sides(case: Case) -> None:
    module, predicted = predict(case.text)
    named = {i.name: i for i in module.entry}
    for pair, code in case.options.items():
        x, y = map(named.__getitem__, pair.split(">"))
        assert (pair, predicted.together(x, y)) == (pair, code == "fused")
        assert (predicted.refusal(x, y) or "fused") == code


def test_a_stored_value_and_its_reader_become_one_kernel_with_two_results() -> None:
    entry = (
        "p = f32[8,8] parameter(0)\nx = f32[8,8] convolution(p, p), dim_labels=bf_io->bf\n"
        "y = f32[8,8] exponential(x)\nROOT t = (f32[8,8], f32[8,8]) tuple(x, y)"
    )
    module, predicted = predict(entry)
    x, y = (i for i in module.entry if i.name in "xy")
    assert predicted.together(x, y)
    assert predicted.refusal(x, y) is None
