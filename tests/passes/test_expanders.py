"""Passes that few programs need, settled by XLA's dumps of small modules that hold what they work on.

`tests/data/cpu-expanders-unoptimized.tar.xz` and `gpu-expanders-…` are made by
`tests/tools/pack_passes.py --only`: each module as XLA was given it and as it entered the fusion passes, and
the pair around each of these passes.
"""

from __future__ import annotations

import re

import pytest

import hlofuse as library
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import Pass
from hlofuse.pipelines.targets import before_fusion
from hlofuse.trace import Recorder
from ..running import lowered
from ..tools.compare_passes import same_structure
from ..tools.module_checks import check_module
from .packed import archive

H100 = load_device("h100_sxm")
PASSES: dict[str, dict[str, Pass]] = {
    target: {p.name: p for top in before_fusion(target, H100) for p in top.flattened()}
    for target in ("cpu", "gpu")
}
PAIRS = [(t, case) for t in PASSES for case in archive(f"{t}-expanders") if case.startswith("passes/")]
PROGRAMS = [(t, case) for t in PASSES for case in archive(f"{t}-expanders") if case.startswith("programs/")]
_NOTE = re.compile(r"(, )?frontend_attributes=\{grad_x=\"false\",grad_y=\"false\"\}")
"""XLA's note on a product; not every pass hands it on to what it writes instead."""


def run(step: Pass, text: str) -> Module:
    module = parse_module(text)
    recorder = Recorder()
    assert step.run(module, recorder)
    assert not recorder.left_alone
    check_module(module)
    parse_module(print_module(module))
    return module


@pytest.mark.parametrize(("target", "case"), PAIRS)
def test_a_pass_changes_a_module_as_xla_does(target: str, case: str) -> None:
    texts = archive(f"{target}-expanders")[case]
    module = run(PASSES[target][case.split("/")[1]], texts["given"])
    assert same_structure(module, parse_module(texts["left"]))


@pytest.mark.parametrize(("target", "case"), PROGRAMS)
def test_a_program_comes_out_as_xla_has_it_ahead_of_fusion(target: str, case: str) -> None:
    texts = archive(f"{target}-expanders")[case]
    out = lowered(parse_module(texts["before"]), target, H100 if target == "gpu" else None)
    assert not out.left_alone
    check_module(out.module)
    actual, expected = (
        parse_module(_NOTE.sub("", text)) for text in (print_module(out.module), texts["ahead"])
    )
    assert same_structure(actual, expected)


_CONVERTS = ["convert_convert_fusion", "convert_convert_fusion.1", "convert_convert_fusion.2"]


@pytest.mark.parametrize(
    ("element_type", "operation", "kernels"),
    [
        ("f8e4m3fn", "add(x, y)", ["add_convert_fusion"]),
        ("f8e4m3fn", "negate(x)", ["negate_convert_fusion"]),
        (
            "f8e5m2",
            "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            [*_CONVERTS, "ynn_fusion"],
        ),
        ("s4", "multiply(x, y)", ["multiply_convert_fusion"]),
        ("f16", "add(x, y)", ["wrapped_add"]),
    ],
)
def test_a_cpu_computes_types_of_eight_bits_and_less_in_wider_ones(
    element_type: str, operation: str, kernels: list[str]
) -> None:
    """XLA 0.11.1 has these kernels (`float-normalization-f8e4m3fn` and others)."""
    array = f"{element_type}[64,64]"
    text = f"""HloModule m
ENTRY e {{
  x = {array} parameter(0)
  y = {array} parameter(1)
  ROOT r = {array} {operation}
}}
"""
    report = library.open(text, target="cpu", stage="before-optimizations")
    assert sorted(k.name for k in report.kernels) == kernels
