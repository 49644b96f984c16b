"""The time that no kernel can stay below: what it moves over the bandwidth, what it computes over the peak.

It stands for XLA's estimate where XLA has none (matrix products, library calls, sorts), and where XLA's
estimate is lower than any machine.
"""

import json
import math
from collections.abc import Iterable

from hlofuse.analysis.cost import Cost
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.flops import convolution_flops, dot_flops
from hlofuse.analysis.kernels import computed_in
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.dot_cost import peak_matrix_ops
from hlofuse.ir.graph import Instruction

_PRODUCTS = ("dot", "scaled-dot")


def floor_us(kernel: Instruction, cost: Cost, device: DeviceDescription) -> float:
    """Microseconds that one run takes at least, its launch not included; `cost` is what it does and moves."""
    moving = cost.bytes_accessed / device.memory_bandwidth * 1e6
    computing = sum(
        flops / peak / 1e3
        for flops, element_type in products(kernel)
        if (peak := product_peak(device, element_type))
    )
    return max(moving, computing)


def product_peak(device: DeviceDescription, element_type: str) -> int:
    """Operations a nanosecond at most; 0 where XLA's numbers of the device leave out its matrix units."""
    cores_only = device.platform == "CUDA" and device.compute_capability < (8, 0)
    bounded = device.matrix_units or (cores_only and element_type in ("f32", "f64"))
    return peak_matrix_ops(device, element_type) if bounded else 0


def products(kernel: Instruction) -> list[tuple[int, str]]:
    """Operations and element type of each matrix product and convolution that a kernel computes."""
    inside: Iterable[Instruction] = computed_in(kernel) if kernel.opcode == "fusion" else (kernel,)
    found = []
    for x in inside:
        flops = _product_flops(x)
        if flops:
            found.append((flops, x.operands[0].shape.element_type))
    return found


def _product_flops(x: Instruction) -> int:
    if x.opcode in _PRODUCTS:
        return dot_flops(x)
    if x.opcode == "convolution":
        return convolution_flops(x)
    target = custom_call_target(x) or ""
    if target.startswith("__cublas$"):
        return _called_product(x)
    return 0


def _called_product(call: Instruction) -> int:
    """Of a call of cuBLAS, whose configuration holds the dimensions of the product."""
    try:
        config = json.loads(call.attributes.raw("backend_config") or "{}")["gemm_backend_config"]
        contracted = config["dot_dimension_numbers"]["lhs_contracting_dimensions"]
        sizes = [call.operands[0].shape.dimensions[int(d)] for d in contracted]
    except (ValueError, KeyError, TypeError, IndexError):
        return 0
    result = call.shape.tuple_shapes[0] if call.shape.is_tuple else call.shape
    return 2 * result.element_count * math.prod(sizes)
