"""The time of every kernel of a module as it is, without a replay."""

from hlofuse.account.account import Account
from hlofuse.account.figures import KernelTime, kernel_time
from hlofuse.account.tiles import tiling_of
from hlofuse.cost.combined import model_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction, Module
from hlofuse.releases import Release
from hlofuse.rules.gpu_fusible import may_be_fused


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


# The time of a custom kernel, by what its package says that it does.
