"""Wraps single operations into fusions on GPU (`xla/backends/gpu/transforms/fusion_wrapper.cc`)."""

from dataclasses import dataclass, field
from typing import ClassVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.passes.fusion.wrapping import reached, wrap
from hlofuse.releases import Release
from hlofuse.rules.fusion_wrapper import WRAPPED_OPCODES
from hlofuse.rules.gpu_fusible import choose_kind
from hlofuse.trace import Recorder

_WRAPPED = WRAPPED_OPCODES | frozenset("concatenate convolution dot scatter stochastic-convert".split())
_REASON = "XLA:GPU has code for the operation inside a fusion only"


@dataclass(frozen=True)
class GpuFusionWrapper(Pass):
    """`fusion-wrapper`: every operation that XLA:GPU has code for in fusions only."""

    name: ClassVar[str] = "fusion-wrapper"
    device: DeviceDescription = field(compare=False, repr=False)
    release: Release = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [i for i in reached(module.entry) if i.opcode in _WRAPPED]
        if not found:
            return False
        model = kernel_model(self.device, self.release)
        for instruction in found:
            parent, name = computation_of(instruction), instruction.name
            fusion = wrap(module, instruction, choose_kind(instruction, instruction, model))
            recorder.rewrite(parent.name, [name], [fusion.name], rule="", reason=_REASON)
        return True
