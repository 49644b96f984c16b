"""Target-independent passes as actions: a search runs them in any order on a module before optimizations.

The default orders to compare with are those of XLA's backends, reduced to these passes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hlofuse.ir.graph import Module
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.reduction import TreeReductionRewriter
from hlofuse.passes.registry import PassLists
from hlofuse.pipelines.targets import before_fusion
from hlofuse.releases import AROUND_FUSION
from hlofuse.trace import Recorder

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

Kind = Literal["simplify", "expand", "merge"]
_PAIRS = "XLA's dumps"
_CPU = Options(supports_non_canonical_dots=False, executing_on_cpu=True)


@dataclass(frozen=True, slots=True)
class Action:
    kind: Kind
    """Its main effect: fewer or cheaper instructions, several for one, one for several."""
    step: Pass
    opcodes: tuple[str, ...]
    """The precondition: without one of these in the module, nothing changes. Empty for none."""
    name: str
    """XLA's name with the options that differ from the pass's own."""
    evidence: str
    """The check it passed: XLA's modules around the pass, or small cases with XLA's answer."""

    def applies(self, opcodes: Iterable[str]) -> bool:
        """False where a module of these opcodes stays as it is for sure."""
        return not self.opcodes or not set(self.opcodes).isdisjoint(opcodes)

    def run(self, module: Module) -> bool:
        """Run it on the module in place; True if that changed anything."""
        return self.step.run(module, Recorder())


_LISTS = PassLists("", {})
_OWN: dict[str, Pass] = {
    "algsimp": AlgebraicSimplifier(_CPU),
    "algsimp(supports_non_canonical_dots=true)": AlgebraicSimplifier(Options()),
    "algsimp(dot_strength_reduction=false)": AlgebraicSimplifier(
        replace(_CPU, dot_strength_reduction=False, dot_to_multiply=False)
    ),
    "cse": HloCSE(release=AROUND_FUSION, layout_sensitive=False, only_fusion_computations=False),
    "dot-merger": DotMerger(64 << 20),
    "tree_reduction_rewriter": TreeReductionRewriter(lambda x: False),
}
"""Passes with options that no text holds, by the names of their actions."""


def _action(row: dict[str, Any]) -> Action:
    name = row["name"]
    step = _OWN[name] if name in _OWN else _LISTS.step(name)
    return Action(row["kind"], step, tuple(row.get("opcodes", ())), name, row.get("evidence", _PAIRS))


_TABLE = tomllib.loads(Path(__file__).with_name("actions.toml").read_text(encoding="utf-8"))
ACTIONS: dict[str, Action] = {a.name: a for a in map(_action, _TABLE["actions"])}
_NAMES = {a.step.name for a in ACTIONS.values()}


def default_order(target: str, device: DeviceDescription | None = None) -> Pass:
    """XLA's order of these passes before fusion, fixed points included."""
    return Pipeline(target, [s for p in before_fusion(target, device) for s in _reduce(p)])


def _reduce(step: Pass) -> list[Pass]:
    """The pass with only the steps that are actions."""
    if isinstance(step, Pipeline):
        inner = [s for x in step.steps for s in _reduce(x)]
        return [replace(step, steps=inner)] if inner else []
    if isinstance(step, FixedPoint):
        return [replace(step, of=s) for s in _reduce(step.of)]
    return [step] if step.name in _NAMES and not isinstance(step, UnimplementedPass) else []
