"""The time of every kernel of a module as it is, without a replay."""

from hlofuse.account.account import Account
from hlofuse.account.figures import KernelTime, kernel_time, us
from hlofuse.account.tiles import tiling_of
from hlofuse.cost.combined import model_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import INFINITE, nanoseconds
from hlofuse.cost.tiling.dot_cost import peak_matrix_ops
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.plugins.entries import CustomFusion, Kernel, KernelCost
from hlofuse.plugins.rewrite import call_plugin
from hlofuse.releases import Release
from hlofuse.replay import Replay
from hlofuse.rules.gpu_fusible import may_be_fused


class KernelTimes:
    """Estimates of kernels on one device."""

    def __init__(
        self,
        device: DeviceDescription,
        release: Release,
        replay: Replay | None = None,
        model: KernelModel | None = None,
    ) -> None:
        """By the model of a release, unless `model` is at hand.

        `replay` made the module, and knows which kernels others brought.
        """
        self.device = device
        self.model = model or model_of(device, release)
        self._replay = replay

    def kernel(self, instruction: Instruction) -> KernelTime | None:
        """None for library calls and whatever else XLA makes no estimate of."""
        custom = self._replay.custom_kernel(instruction) if self._replay is not None else None
        if custom is not None:
            return custom_kernel_time(*custom, self.model)
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


def custom_kernel_time(fusion: CustomFusion, kernel: Kernel, model: KernelModel) -> KernelTime:
    """Compute and memory at the device's full rates, overlapping as in XLA's model; or as it says."""
    cost = call_plugin(fusion.code, "the cost", fusion.cost, kernel, model.device)
    if not isinstance(cost, KernelCost):
        raise HlofuseError(
            f"the cost of rule {fusion.code}, which is not XLA's, is {type(cost).__name__}, not KernelCost"
        )
    device, timing = model.device, model.timing
    read = kernel.bytes_read if cost.bytes_read is None else cost.bytes_read
    written = kernel.bytes_written if cost.bytes_written is None else cost.bytes_written
    if min(read, written, cost.flops, cost.matrix_flops, cost.us or 0) < 0:
        raise HlofuseError(f"the cost of rule {fusion.code}, which is not XLA's, is negative")
    compute = timing.compute(int(cost.flops), device.core_count, device.fpus_per_core)
    peak = peak_matrix_ops(device, cost.matrix_type)
    compute += nanoseconds(cost.matrix_flops / peak) if peak else INFINITE
    memory = timing.read(kernel.bytes_read, int(read), 0, timing.saturating_blocks)
    memory += timing.write(int(written))
    time = us(timing.combine(compute, memory)) if cost.us is None else float(cost.us)
    flops = int(cost.flops + cost.matrix_flops)
    emitter = f"custom kernel {fusion.kernel}"
    return KernelTime(time, us(memory), us(compute), int(read), int(written), flops, emitter, 0, 0, True)
