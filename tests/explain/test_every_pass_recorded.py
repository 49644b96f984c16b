"""What passes before fusion tell: XLA's kernels of each case are those of jaxlib 0.11.1."""

from __future__ import annotations

import pytest

from hlofuse.compilation import Compilation, CompilationInput, compile, replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.reader import parse_module
from hlofuse.reports.common.phrases import created_by_lines
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.model import explanation_json
from hlofuse.reports.why import PairAnswer, Story
from hlofuse.reports.why.story import answers
from hlofuse.rules.catalogue import catalogue
from ..fixtures import companion_texts
from ..running import lowered

TEXTS = companion_texts(__file__)

SUM = TEXTS["sum"]

PRODUCT = TEXTS["product"]
TWICE = """  a = f32[1024,256]{1,0} abs(d)
  ROOT v = f32[1024,256]{1,0} multiply(d, a)"""
TANH = "  ROOT v = f32[1024,256]{1,0} tanh(d)"


def _replayed(text: str, target: str, flags: tuple[str, ...] = ()) -> Compilation:
    device = load_device("h100_sxm") if target == "gpu" else None
    begun = lowered(parse_module(text), target, device, flags)
    config = replay_config(target, device)
    return compile(CompilationInput(begun.module, events=tuple(begun.events)), config)


def _kernels(result: Compilation) -> int:
    return sum(i.opcode in ("fusion", "reduce", "cosine") for i in result.after.entry)


def test_a_sum_over_more_than_32_elements_names_the_pass_and_its_flag() -> None:
    result = _replayed(SUM.replace("[N]", "[33]"), "cpu")
    explained = [r["made_by"] for p in explanation_json(explain(result))["passes"] for r in p["refused"]]
    created = [m for m in explained if m is not None]
    assert created
    assert {(m["pass"], m["rule"], m["flag"]) for m in created} == {
        ("tree_reduction_rewriter", "RW001", "--xla_disable_hlo_passes=tree_reduction_rewriter")
    }
    story = answers(result, "r")[0]
    assert isinstance(story, Story)
    first, second = created_by_lines(story.created_by)
    assert "were created by tree_reduction_rewriter: a reduction over 33 elements" in first
    assert second == (
        'XLA_FLAGS="--xla_disable_hlo_passes=tree_reduction_rewriter" disables tree_reduction_rewriter'
    )


@pytest.mark.parametrize(
    ("size", "flags"), [("32", ()), ("33", ("--xla_disable_hlo_passes=tree_reduction_rewriter",))]
)
def test_a_sum_that_is_not_split_is_one_kernel(size: str, flags: tuple[str, ...]) -> None:
    result = _replayed(SUM.replace("[N]", f"[{size}]"), "cpu", flags)
    assert result.input.events == ()
    assert _kernels(result) == 1


def test_a_product_ends_at_a_value_with_two_readers() -> None:
    result = _replayed(PRODUCT.replace("END", TWICE), "gpu")
    assert _kernels(result) == 2
    pair = answers(result, "gemm_fusion_d", "v.1")[0]
    assert isinstance(pair, PairAnswer)
    (explained,) = pair.created_by
    assert explained.rule.code == "RW013"
    assert explained.created == ("gemm_fusion_d", "v.1")
    assert explained.reason == "d is read by 2 operations (a, v), and the GEMM fusion ends there"


def test_an_activation_with_one_reader_goes_into_the_product() -> None:
    result = _replayed(PRODUCT.replace("END", TANH), "gpu")
    assert _kernels(result) == 1
    assert [e.rule for e in result.input.events] == ["RW012"]


def test_every_page_of_a_pass_has_the_flag_that_switches_it_off() -> None:
    pages = [r for r in catalogue().values() if r.pass_name]
    assert len(pages) >= 12
    for rule in pages:
        assert rule.code.startswith("RW")
        assert rule.essential or rule.flag == f"--xla_disable_hlo_passes={rule.pass_name}"
