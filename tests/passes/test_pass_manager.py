"""Whatever a module holds, the passes ahead of fusion come to an end and leave a module."""

from __future__ import annotations

from typing import ClassVar

import pytest

from hlofuse.compilation import spans
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import FixedPoint, NotRepresentable, Pass, Pipeline, UnimplementedPass, rewrite_each
from hlofuse.passes.common import make
from hlofuse.pipelines.targets import before_fusion, compilation
from hlofuse.trace import Recorder, Skipped
from ..running import lowered

TEXT = """HloModule jit_f

ENTRY e {
  p = f32[16]{0} parameter(0)
  a = f32[16]{0} negate(p)
  ROOT b = f32[16]{0} negate(a)
}
"""


class Restless(Pass):
    """Says each time that it changed something."""

    name: ClassVar[str] = "restless"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return True


class Unable(Pass):
    """Begins to rewrite what cannot be written in the end."""

    name: ClassVar[str] = "unable"

    def run(self, module: Module, recorder: Recorder) -> bool:
        def handle(x: Instruction) -> bool:
            make.add(x, "cosine", x.shape, x.operands)
            raise NotRepresentable("no words for it")

        return rewrite_each(module, ["negate"], handle, recorder)


def use(monkeypatch: pytest.MonkeyPatch, *steps: Pass) -> None:
    monkeypatch.setattr(spans, "before_fusion", lambda *build: (Pipeline("all", steps),))


def test_an_instruction_whose_rewrite_cannot_be_expressed_stays_and_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, FixedPoint(Pipeline("inner", (Unable(), UnimplementedPass("batchnorm_expander")))))
    out = lowered(parse_module(TEXT), "cpu")
    assert out.left_alone == (
        Skipped("unable", "e", "a", "no words for it"),
        Skipped("unable", "e", "b", "no words for it"),
    )
    assert print_module(out.module) == print_module(parse_module(TEXT))


def test_a_pass_that_never_rests_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FixedPoint(Restless()))
    module = parse_module(TEXT)
    assert print_module(lowered(module, "cpu").module) == print_module(module)


def test_passes_of_a_user_that_never_rest_are_an_error() -> None:
    with pytest.raises(HlofuseError, match="still changes the module after 25 rounds"):
        FixedPoint(Restless(), must_end=True).run(parse_module(TEXT), Recorder())


def test_the_module_itself_stays_as_it_is() -> None:
    module = parse_module(TEXT)
    assert [i.opcode for i in lowered(module, "cpu").module.entry] == ["parameter"]
    assert print_module(module) == print_module(parse_module(TEXT))


def test_a_compilation_is_one_list_with_fusion_as_a_span_of_it() -> None:
    passes = compilation("cpu")
    fusion = [p.name for p in passes].index("fusion")
    names = [p.name for top in passes[:fusion] for p in top.flattened() if isinstance(p, Pipeline)]
    spmd = ["pre-spmd-partitioner", "spmd-partitioner", "sharding-removal"]
    assert names[:6] == ["async-collective", *spmd, "HLO_passes_through_layout_assignment", "simplification"]
    assert len(names) == len(set(names))
    assert [p.name for p in passes[fusion].flattened()] == ["fusion", "fusion", "fusion-wrapper"]
    after = [p.name for top in passes[fusion + 1 :] for p in top.flattened()]
    assert after.index("algsimp") < after.index("copy-insertion") < after.index("small-while-loop-hoisting")
    assert not before_fusion("unheard-of")
    assert not before_fusion("gpu-legacy", load_device("v100"))
