"""Names fusions after what they compute (`xla/backends/gpu/transforms/rename_fusions.cc`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.releases import Release
from hlofuse.trace import Recorder

_KINDS = {"kLoop": "loop", "kInput": "input", "kOutput": "output"}
_REASON = "XLA names a fusion after its kind and its heroes"


@dataclass(frozen=True)
class RenameFusions(Pass):
    """`rename_fusions`: `loop_add_fusion` calls `fused_add`. Custom fusions keep their names."""

    name = "rename_fusions"
    device: DeviceDescription = field(compare=False, repr=False)
    release: Release = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        model = kernel_model(self.device, self.release)
        changed = False
        for computation in module.non_fusion_computations():
            for fusion in computation:
                kind = _KINDS.get(fusion.fusion_kind or "")
                if kind is None:
                    continue
                name, heroes = fusion.name, _heroes(fusion, model)
                fusion.name = module.instruction_names.unique(f"{kind}_{heroes}_fusion")
                fusion.fused_computation.name = module.computation_names.unique(f"fused_{heroes}")
                recorder.rewrite(computation.name, [name], [fusion.name], rule="", reason=_REASON)
                changed = True
        return changed


def _heroes(fusion: Instruction, model: KernelModel) -> str:
    """The opcodes of the heroes of all roots, each once (`MakeFusionHeroNames`)."""
    heroes = [root.hero[0] for root in model.summary(fusion).roots]
    opcodes = {hero.opcode if hero is not None else "parameter" for hero in heroes}
    return "_".join(sorted(opcodes)).replace("-", "_")
