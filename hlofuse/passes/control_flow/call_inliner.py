"""Calls give way to what they call (`xla/service/call_inliner.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import is_inlined
from hlofuse.ir.graph import Module
from hlofuse.ir.unfusing import check_growth, most_instructions
from hlofuse.passes.base import Pass
from hlofuse.passes.common.inlining import inline
from hlofuse.passes.dce import HloDCE
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class CallInliner(Pass):
    """`call-inliner`, callees first. HlofuseError where inlining gets out of hand."""

    name: ClassVar[str] = "call-inliner"
    single_call_site: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        most = most_instructions(module)
        changed = False
        sites = {c: len(c.callers) for c in module.computations}
        for computation in module.computation_post_order():
            for i in computation.post_order() if computation.module is not None else ():
                if not is_inlined(i):
                    continue
                if self.single_call_site and sites.get(i.called_computations[0], 1) != 1:
                    continue
                inline(i)
                changed = True
            check_growth(module, most)
        if changed:
            HloDCE().run(module, recorder)
        return changed
