"""Wraps single operations into fusions (`xla/service/cpu/fusion_wrapper.cc`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.passes.fusion.wrapping import reached, wrap
from hlofuse.releases import Release
from hlofuse.rules.evaluate import first_verdict, in_force
from hlofuse.rules.fusion_wrapper import RULES, WrapCandidate
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class CpuFusionWrapper(Pass):
    """Goes through the entry computation and the control flow it calls, callees at the point of the call."""

    name: ClassVar[str] = "fusion-wrapper"
    release: Release = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        rules = in_force(RULES, self.release)
        for instruction in reached(module.entry):
            verdict = first_verdict(rules, WrapCandidate(instruction, self.release), self.settings)
            if verdict is None:
                continue
            if not verdict.allows:
                recorder.ineligible(
                    instruction, None, rule=verdict.rule.code, reason=verdict.reason, figures=verdict.figures
                )
                continue
            name = instruction.name
            parent = instruction.computation
            assert parent is not None
            fusion = wrap(module, instruction, "kLoop")
            recorder.rewrite(
                parent.name, [name], [fusion.name], rule=verdict.rule.code, reason=verdict.reason
            )
            changed = True
        return changed
