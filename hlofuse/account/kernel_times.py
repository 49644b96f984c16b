"""The time of every kernel of a module as it is, without a replay."""

from __future__ import annotations

from hlofuse.account.figures import KernelTime, kernel_time
from hlofuse.account.models import model_of
from hlofuse.account.tiles import tiling_of
from hlofuse.analysis.release import RELEASES
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction
from hlofuse.pipelines import TARGETS
from hlofuse.replay import Replay
from hlofuse.rules.gpu_fusible import may_be_fused


def time_by(model: KernelModel, instruction: Instruction, replay: Replay | None = None) -> KernelTime | None:
    """None for library calls and whatever else XLA makes no estimate of.

    `replay` made the module, and knows which kernels others brought.
    """
    if replay is not None and replay.is_custom_kernel(instruction):
        from hlofuse.account.custom import custom_kernel_time

        return custom_kernel_time(*replay.custom_kernels[instruction.name], model.device)
    if not may_be_fused(instruction):
        return None
    estimate = model.run_time(instruction)
    return kernel_time(estimate, tiling_of(model, estimate, instruction))


class KernelTimes:
    """Estimates on one device, by the model of the release that a target repeats."""

    def __init__(self, device: DeviceDescription, target: str = "gpu", replay: Replay | None = None) -> None:
        self.device = device
        self._replay = replay
        self._model = model_of(device, RELEASES[TARGETS[target].release])

    def kernel(self, instruction: Instruction) -> KernelTime | None:
        """None for library calls and whatever else XLA makes no estimate of."""
        return time_by(self._model, instruction, self._replay)

    def us(self, instruction: Instruction) -> float | None:
        """Microseconds, the launch included."""
        estimate = self.kernel(instruction)
        return None if estimate is None else estimate.us + self.device.launch_overhead_us
