"""Passes that few programs need, settled by XLA's dumps of small modules that hold what they work on.

`tests/data/cpu-expanders-unoptimized.tar.xz` and `gpu-expanders-…` are made by
`tests/tools/pack_passes.py --only`: each module as XLA was given it and as it entered the fusion passes, and
the pair around each of these passes. The passes at the end are in no pipeline of XLA:CPU or XLA:GPU, so
XLA has no answer: what they leave follows from their source.
"""

from __future__ import annotations

import re

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import Pass
from hlofuse.passes.registry import make_pass
from hlofuse.pipelines.targets import before_fusion
from hlofuse.releases import REFERENCE, release_of
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


def named(name: str) -> Pass:
    return make_pass(name, "gpu", release_of(REFERENCE))


LOOP = """HloModule m
body {
  p = (s32[], f32[8], f32[8], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[8]{0} get-tuple-element(p), index=1
  b = f32[8]{0} get-tuple-element(p), index=2
  m = f32[8,8]{1,0} get-tuple-element(p), index=3
  n = f32[8,8]{1,0} get-tuple-element(p), index=4
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = f32[8,8]{1,0} dot(m, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  x = f32[8]{0} dot(d, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[8]{0} dot(m, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8], f32[8], f32[8,8], f32[8,8]) tuple(j, x, y, m, n)
}
cond {
  p = (s32[], f32[8], f32[8], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(5)
  ROOT lt = pred[] compare(i, k), direction=LT
}
ENTRY e {
  x = f32[8]{0} parameter(0)
  m = f32[8,8]{1,0} parameter(1)
  n = f32[8,8]{1,0} parameter(2)
  z = s32[] constant(0)
  t = (s32[], f32[8], f32[8], f32[8,8], f32[8,8]) tuple(z, x, x, m, n)
  w = (s32[], f32[8], f32[8], f32[8,8], f32[8,8]) while(t), condition=cond, body=body
  g = f32[8]{0} get-tuple-element(w), index=1
  ROOT r = f32[8]{0} negate(g)
}
"""


def test_an_element_that_only_feeds_itself_leaves_the_loop() -> None:
    """Element 2 is computed from itself, and nothing else reads it."""
    module = run(named("hlo-module-dce"), LOOP)
    (loop,) = (i for i in module.instructions() if i.opcode == "while")
    assert [s.dimensions for s in loop.shape.tuple_shapes] == [(), (8,), (8, 8), (8, 8)]
    assert len([i for i in module.instructions() if i.opcode == "dot"]) == 2


def test_an_element_that_an_attribute_retains_stays_in_the_loop() -> None:
    text = LOOP.replace("body=body", 'body=body, frontend_attributes={xla_disable_while_loop_dce="true"}')
    module = parse_module(text)
    named("hlo-module-dce").run(module, Recorder())
    assert len([i for i in module.instructions() if i.opcode == "dot"]) == 3


def dots_before_loop(text: str) -> int:
    module = parse_module(text)
    named("while-loop-expensive-invariant-code-motion").run(module, Recorder())
    check_module(module)
    return len([i for i in module.entry if i.opcode == "dot"])


def test_a_product_of_invariants_moves_out_once_all_readers_of_its_operands_do() -> None:
    assert dots_before_loop(LOOP.replace("dot(m, b)", "dot(d, b)")) == 1
    assert dots_before_loop(LOOP) == 0  # m would be read in the loop besides the product


def test_a_product_larger_than_its_operands_stays_in_the_loop() -> None:
    outer = "dot(c, c), lhs_contracting_dims={}, rhs_contracting_dims={}"
    text = LOOP.replace("dot(m, b)", "dot(d, b)").replace(
        "  d = f32[8,8]{1,0} dot(m, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
        f"  s = f32[1,8]{{1,0}} slice(m), slice={{[0:1], [0:8]}}\n  c = f32[8]{{0}} reshape(s)\n"
        f"  o = f32[8,8]{{1,0}} {outer}\n  d = f32[8,8]{{1,0}} add(o, n)\n",
    )
    assert dots_before_loop(text) == 1  # all of m is what it is computed from
    assert (
        dots_before_loop(
            text.replace("slice(m)", "slice(a8)").replace(
                "  s = ", "  z = f32[] constant(1)\n  a8 = f32[8,8]{1,0} broadcast(z), dimensions={}\n  s = "
            )
        )
        == 0
    )
