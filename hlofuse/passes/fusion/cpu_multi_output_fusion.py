"""XLA:CPU's sibling fusion, off unless asked for (`xla/service/cpu/cpu_multi_output_fusion.cc`)."""

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Computation
from hlofuse.passes.fusion.multi_output_fusion import MultiOutputFusion, SiblingDriver
from hlofuse.rules.multi_output_fusion import CPU_CANDIDATE, CPU_LEGAL


class _Driver(SiblingDriver):
    candidate_rules = CPU_CANDIDATE
    legal_rules = CPU_LEGAL

    def run(self) -> bool:
        return not _is_inside_fusion(self.computation) and super().run()


@dataclass(frozen=True, kw_only=True)
class CpuMultiOutputFusion(MultiOutputFusion):
    """`cpu_multi_output_fusion`, run with `xla_cpu_use_multi_output_fusion`."""

    name: ClassVar[str] = "cpu_multi_output_fusion"
    driver: ClassVar[type[SiblingDriver]] = _Driver


def _is_inside_fusion(computation: Computation) -> bool:
    """The computation is called, by whatever way, from inside a fusion (`CheckInsideFusion`)."""
    pending, seen = [computation], {computation}
    while pending:
        current = pending.pop()
        if current.fusion is not None:
            return True
        for caller in current.callers:
            if caller.computation is not None and caller.computation not in seen:
                seen.add(caller.computation)
                pending.append(caller.computation)
    return False
