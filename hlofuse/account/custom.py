"""The time of a custom kernel, by what its package says that it does."""

from __future__ import annotations

from hlofuse.account.figures import KernelTime, us
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import INFINITE, nanoseconds
from hlofuse.cost.gpu.timing import Timing
from hlofuse.cost.tiling.dot_cost import peak_matrix_ops
from hlofuse.ir.errors import HlofuseError
from hlofuse.plugins.calling import call_outside
from hlofuse.plugins.entries import CustomFusion, Kernel, KernelCost


def custom_kernel_time(fusion: CustomFusion, kernel: Kernel, device: DeviceDescription) -> KernelTime:
    """Compute and memory at the device's full rates, overlapping as in XLA's model; or as it says."""
    cost = call_outside(fusion.code, "the cost", fusion.cost, kernel, device)
    if not isinstance(cost, KernelCost):
        raise HlofuseError(
            f"the cost of rule {fusion.code}, which is not XLA's, is {type(cost).__name__}, not KernelCost"
        )
    timing = Timing(device)
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
