"""Passes that few programs need, settled by XLA's dumps of small modules that hold what they work on.

`tests/data/cpu-expanders-unoptimized.tar.xz` and `gpu-expanders-…` are made by
`tests/tools/pack_passes.py --only`: each module as XLA was given it and as it entered the fusion passes, and
the pair around each of these passes.
"""

from __future__ import annotations

import re

import pytest

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
