"""The time of every kernel of a module as it is, without a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofuse.account.account import Account
from hlofuse.account.figures import KernelTime, kernel_time
from hlofuse.cost.combined import CombinedModel, model_of
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.terms import OperandRead, operand_reads, pair_operand_reads
from hlofuse.cost.tiling.tiling import Tiling
from hlofuse.ir.graph import Instruction, Module
from hlofuse.releases import Release
from hlofuse.rules.gpu_fusible import may_be_fused

if TYPE_CHECKING:
    from hlofuse.cost.tiling.tiled_cost import TileRead


class KernelTimes:
    """Estimates of kernels on one device."""

    def __init__(self, device: DeviceDescription, release: Release, model: KernelModel | None = None) -> None:
        """By the model of a release, unless `model` is at hand."""
        self.device = device
        self.model = model or model_of(device, release)

    def kernel(self, instruction: Instruction) -> KernelTime | None:
        """None for library calls and whatever else XLA makes no estimate of."""
        if not may_be_fused(instruction, self.model.release):
            return None
        estimate = self.model.run_time(instruction)
        return kernel_time(estimate, tiling_of(self.model, estimate, instruction))

    def modelled_us(self, instruction: Instruction) -> float | None:
        """Microseconds, the launch not included; None as `kernel`."""
        estimate = self.kernel(instruction)
        return None if estimate is None else estimate.us

    def account(self, module: Module, *, is_final: bool = False) -> Account:
        """What a module launches, with times on the device."""
        return Account(module, self.device, self.modelled_us, "gpu", is_final=is_final)


# What the tiled model says of a kernel that Triton emits.


def tiling_of(model: KernelModel, estimate: Estimate, *parts: Instruction) -> Tiling | None:
    """The tiling an estimate of a kernel, or of a pair, is of; None where it is of none."""
    if estimate.launch.kind != "triton" or not isinstance(model, CombinedModel):
        return None
    if len(parts) > 1:
        found = model.tiling.best_tiling(*parts)
    elif is_generic_triton_fusion(parts[0]):
        found = model.tiling.run_time(parts[0])
    else:
        return None
    # A pair may have the time of another that XLA takes for the same.
    return found if isinstance(found, Tiling) and found.exec_time == estimate.ticks else None


def reads_of(
    model: KernelModel, estimate: Estimate, tiling: Tiling | None, *parts: Instruction
) -> Sequence[OperandRead | TileRead]:
    """Operand by operand, of a kernel or of a producer and its consumer as one."""
    if tiling is not None and isinstance(model, CombinedModel):
        return model.tiling.reads(tiling, *parts)
    if estimate.launch.kind == "triton" and (len(parts) == 1 or any(map(is_generic_triton_fusion, parts))):
        return ()
    return operand_reads(model, *parts) if len(parts) == 1 else pair_operand_reads(model, *parts)
