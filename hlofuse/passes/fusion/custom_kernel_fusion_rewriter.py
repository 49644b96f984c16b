"""Patterns from outside become custom fusions before XLA's own passes begin.

XLA had a pass of this name (`custom_kernel_fusion_rewriter.cc`) for kernels of its own; here it does
nothing unless a package with patterns takes part in the replay.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from hlofuse.analysis.kernels import launched_computations
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.plugins.active import ActiveRules
from hlofuse.plugins.entries import CustomFusion, Kernel
from hlofuse.plugins.pattern import Match, Matcher, find_matches, parse_pattern
from hlofuse.plugins.rewrite import call_plugin, replace_match
from hlofuse.trace import Recorder


def _where(fusion: CustomFusion) -> Callable[[Match], bool] | None:
    if fusion.where is None:
        return None
    return partial(call_plugin, fusion.code, "the condition", fusion.where)


@dataclass(frozen=True, kw_only=True)
class CustomKernelFusionRewriter(Pass):
    """`custom-kernel-fusion-rewriter`: of matches that overlap the largest, then the one registered first."""

    name: ClassVar[str] = "custom-kernel-fusion-rewriter"
    kernels: dict[str, tuple[CustomFusion, Kernel]] = field(default_factory=dict, compare=False, repr=False)
    """The fusions made by this run, by name."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        plugins = self.settings.plugins
        if not isinstance(plugins, ActiveRules):
            return False
        fusions = [f for f in plugins.fusions(plugins.target) if f.code not in self.settings.disabled]
        matchers = [
            (f, Matcher(parse_pattern(text, f.code), f.through)) for f in fusions for text in f.patterns
        ]
        number = len(self.kernels)
        for computation in launched_computations(module):
            self._run_on(computation, matchers, recorder)
        return len(self.kernels) > number

    def _run_on(
        self, computation: Computation, matchers: list[tuple[CustomFusion, Matcher]], recorder: Recorder
    ) -> None:
        found = [(f, m) for f, matcher in matchers for m in find_matches(matcher, computation, _where(f))]
        found.sort(key=lambda pair: -pair[1].size)  # stable: then as registered, then operands first
        taken: set[Instruction] = set()
        became: dict[Instruction, Instruction] = {}
        for fusion, match in found:
            if taken.isdisjoint(match.inside):
                taken.update(match.inside)
                self._replace(fusion, match, became, recorder)

    def _replace(
        self,
        fusion: CustomFusion,
        match: Match,
        became: dict[Instruction, Instruction],
        recorder: Recorder,
    ) -> None:
        operands = {name: became.get(x, x) for name, x in match.operands.items()}
        match = replace(match, operands=operands)
        names = [x.name for x in match.inside]
        number, copied = replace_match(match, fusion.kernel)
        became[match.root] = number
        parent_name = number.computation.name if number.computation is not None else ""
        shapes = {name: x.shape for name, x in operands.items()}
        self.kernels[number.name] = (fusion, Kernel(shapes, number.shape, match.sizes))
        consumer = names.pop()
        if not names:
            recorder.rewrite(parent_name, [consumer], [number.name], rule=fusion.code, reason=fusion.title)
        for producer in reversed(names):
            recorder.fuse(
                producer,
                consumer,
                number,
                rule=fusion.code,
                created=consumer != number.name,
                figures={"kernel": fusion.kernel},
            )
            consumer = number.name
        if copied:
            recorder.rewrite(parent_name, copied, [number.name], rule=fusion.code, reason=fusion.title)
