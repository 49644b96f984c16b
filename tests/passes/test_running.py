"""Whatever a module holds, the passes ahead of fusion come to an end and leave a module."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.module import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.simplification import FixedPoint, NotRepeated, Pipeline, Simplification, pipelines_in
from hlofuse.pipelines import manager as running
from hlofuse.pipelines.lowering import pipelines_of
from hlofuse.pipelines.manager import prepare

TEXT = """HloModule jit_f

ENTRY e {
  p = f32[16]{0} parameter(0)
  a = f32[16]{0} negate(p)
  ROOT b = f32[16]{0} negate(a)
}
"""


@dataclass(frozen=True)
class Failing:
    """Breaks what it is given, and then fails."""

    name: str = "failing"
    error: type[Exception] = KeyError

    def run(self, module: Module) -> bool:
        module.entry.root.opcode = "broken"
        raise self.error("what a pass did not foresee")


@dataclass(frozen=True)
class Restless:
    """Says each time that it changed something."""

    name: str = "restless"

    def run(self, module: Module) -> bool:
        return True


def use(monkeypatch: pytest.MonkeyPatch, *steps: Simplification) -> None:
    monkeypatch.setattr(running, "pipelines_of", lambda target, device: (Pipeline("all", steps),))


def test_a_pass_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FixedPoint(Pipeline("inner", (Failing(), AlgebraicSimplifier()))))
    out = prepare(parse_module(TEXT), "cpu")
    assert out.skipped == ("failing",)
    assert [i.opcode for i in out.module.entry] == ["parameter"]


def test_what_the_user_is_to_know_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Failing(error=HlofuseError))
    with pytest.raises(HlofuseError):
        prepare(parse_module(TEXT), "cpu")


def test_a_pass_that_never_rests_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FixedPoint(Restless()))
    assert print_module(prepare(parse_module(TEXT), "cpu").module) == print_module(parse_module(TEXT))


def test_the_module_itself_stays_as_it_is() -> None:
    module = parse_module(TEXT)
    assert [i.opcode for i in prepare(module, "cpu").module.entry] == ["parameter"]
    assert print_module(module) == print_module(parse_module(TEXT))


def test_pipelines_have_the_names_of_dump_files() -> None:
    names = [p.name for top in pipelines_of("cpu") for p in pipelines_in(top)]
    assert names[:3] == ["sharding-removal", "HLO_passes_through_layout_assignment", "simplification"]
    assert len(names) == len(set(names))
    assert not pipelines_of("unheard-of")


def test_a_pass_that_is_not_repeated_changes_nothing() -> None:
    module = parse_module(TEXT)
    assert not NotRepeated("batchnorm_expander").run(module)
    assert print_module(module) == print_module(parse_module(TEXT))
