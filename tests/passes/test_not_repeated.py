"""What a note says of passes that are not repeated, and programs that only the partitioner can lower."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hlofuse.compilation import Compilation, replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.control_flow.annotations import ShardingRemover
from hlofuse.pipelines.targets import Stage
from hlofuse.reports.common.head import lowering_note
from hlofuse.trace import Recorder
from ..fixtures import find_case
from ..running import lowered

CASES = Path(__file__).parent / "cases" / "control_flow.hlo"

ROUNDED = """HloModule m
ENTRY e {
  a = f32[4,4]{1,0} parameter(0)
  x = u32[4,4]{1,0} parameter(1)
  b = bf16[4,4]{1,0} stochastic-convert(a, x)
  c = bf16[4,4]{1,0} stochastic-convert(a, x)
  ROOT r = bf16[4,4]{1,0} add(b, c)
}
"""
PLAIN = ROUNDED.replace("stochastic-convert(a, x)", "convert(a)")
BY_HAND = """HloModule m, num_partitions=8
ENTRY e {
  a = f32[32,784]{1,0} parameter(0)
  b = f32[32,98]{1,0} custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
  ROOT r = f32[32,784]{1,0} custom-call(b), custom_call_target="SPMDShardToFullShape", sharding={replicated}
}
"""


def note(text: str) -> str:
    return lowering_note(Compilation.of(parse_module(text), Stage.BEFORE, replay_config("cpu")))


def test_a_note_counts_what_passes_that_are_not_repeated_would_work_on() -> None:
    assert "Not replayed: stochastic_convert_decomposer (2 stochastic-convert)." in note(ROUNDED)
    assert lowered(parse_module(ROUNDED), "cpu").not_repeated == {
        "stochastic_convert_decomposer": Counter({"stochastic-convert": 2})
    }


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("f32[4,4]{1,0} cholesky(a), lower=true", "cholesky_expander (1 cholesky)"),
        ('(f32[4,4], f32[4]) custom-call(a), custom_call_target="Qr"', "qr_expander (1 custom-call)"),
        ('(f32[4,4], f32[4]) custom-call(a), custom_call_target="Eigh"', "eigh_expander (1 custom-call)"),
        ("f32[4,4] triangular-solve(a, a), left_side=true", "triangular_solve_expander (1 triangular-solve)"),
        ("f32[4,4] rng(s, s), distribution=rng_normal", "rng-expander (1 rng)"),
        ('(f32[4,4], f32[4]) custom-call(a), custom_call_target="lapack_sgeqrf"', ""),
    ],
)
def test_a_note_names_the_pass_that_would_expand_an_operation(operation: str, name: str) -> None:
    parameters = "a = f32[4,4] parameter(0)\n s = f32[] parameter(1)\n v = f32[4] parameter(2)\n"
    found = note(f"HloModule m\nENTRY e {{\n {parameters} ROOT r = {operation}\n}}\n")
    assert f"Not replayed: {name}" in found if name else "Not replayed" not in found


_PRODUCT = """HloModule m
ENTRY e {{
  x = f32[256,128] parameter(0)
  y = f32[128,128] parameter(1)
  s = f32[{n},128] slice(x), slice={{[0:{n}], [0:128]}}
  ROOT p = f32[{n},128] dot(s, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""
_CONVOLUTION = """HloModule m
ENTRY e {{
  x = {kind}[8,16,16,{n}] parameter(0)
  w = {kind}[3,3,{n},16] parameter(1)
  ROOT c = {kind}[8,14,14,16] convolution(x, w), window={{size=3x3}}, dim_labels=b01f_01io->b01f
}}"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (_PRODUCT.format(n=128), "dynamic-slice-fusion-rewriter-v2"),
        (_PRODUCT.format(n=256), ""),
        (find_case(CASES, "slices_of_product_in_loop").text, "dynamic-slice-fusion-rewriter-v2"),
        (_CONVOLUTION.format(kind="f16", n=12), "cudnn_pad_for_convolutions"),
        (_CONVOLUTION.format(kind="f16", n=16), ""),
        (_CONVOLUTION.format(kind="f32", n=12), ""),
    ],
)
def test_a_gpus_calls_that_further_passes_would_change_are_named(text: str, name: str) -> None:
    found = lowered(parse_module(text), "gpu", load_device("v100")).not_repeated
    assert {k for k in found if k.startswith(("dynamic-slice", "cudnn"))} == ({name} if name else set())


def test_a_note_says_that_all_passes_were_repeated_where_none_had_more_to_do() -> None:
    assert "The passes before fusion were replayed first, as in XLA 0.11.1." in note(PLAIN)
    assert "Not replayed" not in note(PLAIN)


def test_a_program_partitioned_by_hand_is_refused_before_the_partitioner() -> None:
    with pytest.raises(HlofuseError, match="partitioned manually over 8 devices"):
        lowered(parse_module(BY_HAND), "cpu")


def test_sharding_remover_leaves_calls_that_change_a_shape() -> None:
    module, recorder = parse_module(BY_HAND), Recorder()
    assert not ShardingRemover().run(module, recorder)
    assert [s.instruction for s in recorder.left_alone] == ["r", "b"]


@pytest.mark.parametrize(("other", "left_alone"), [("constant({{1,2,3}})", ["d"]), ("parameter(1)", [])])
def test_a_product_of_constants_is_left_alone_and_named(other: str, left_alone: list[str]) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[2,3]{{1,0}} parameter(0)
  c = f32[2,1]{{1,0}} constant({{{{1}},{{2}}}})
  o = f32[1,3]{{1,0}} {other}
  d = f32[2,3]{{1,0}} dot(c, o), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[2,3]{{1,0}} add(d, x)
}}
"""
    recorder = Recorder()
    assert not HloConstantFolding().run(parse_module(text), recorder)
    assert [s.instruction for s in recorder.left_alone] == left_alone
