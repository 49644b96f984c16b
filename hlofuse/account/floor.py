"""A lower bound for the time of a kernel, where XLA has no estimate, or an impossibly low one."""

import math
import re
from collections.abc import Callable

from hlofuse.analysis.cost import Cost
from hlofuse.analysis.custom_calls import custom_call_target, is_library_convolution
from hlofuse.analysis.flops import convolution_flops, dot_flops
from hlofuse.analysis.kernels import end_of, inside
from hlofuse.cost.gpu.backend_config import gpu_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.rates import Sizes, tabled_product_us
from hlofuse.cost.tiling.dot_cost import peak_matrix_ops
from hlofuse.cost.tiling.triton_support import dot_dimensions
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.shape import HBM, HOST, Shape
from hlofuse.passes.common.shapes import window_of

_FREE = with_trait("free")
_MOVED = {"copy": 0, "copy-start": 0, "dynamic-update-slice": 1}  # The operand whose bytes are moved
_PRODUCTS = ("dot", "scaled-dot")
_DIMENSIONS = tuple(
    f"{side}_{kind}_dimensions" for kind in ("batch", "contracting") for side in ("lhs", "rhs")
)
_CUBLAS = "__cublas$gemm", "__cublas$lt$"
_ATTENTION, _ATTENTION_US, _ATTENTION_RATE = "__cudnn$fmha", 5.0, 0.4
"""The start of the name of cuDNN's attention, microseconds of any call, the part of the peak it reaches."""
_TILE = 12  # the power of two of the elements that a block of a sort exchanges
_EXACT = re.compile(r"highest|f32_f32_f32", re.IGNORECASE)  # `high` is TF32, too
_PRECISE = re.compile(rf"{_EXACT.pattern}|_x[369]\b", re.IGNORECASE)


def floor_us(kernel: Instruction, cost: Cost, device: DeviceDescription) -> float:
    """The lower bound of one run in microseconds, without its launch; `cost` is its work and traffic."""
    moved = max(cost.bytes_accessed, _sorted_bytes(kernel, device))
    moving = moved / device.memory_bandwidth * 1e6
    moving = max(moving, bytes_over_link(kernel) / device.host_bandwidth * 1e6)
    computing = sum(
        flops / peak / 1e3 for flops, x in products(kernel) if (peak := product_peak(device, _peak_type(x)))
    )
    return max(moving, computing)


_MOVERS = ("__cudnn$", "__cub$", "xla.gpu.ext.cub_")  # Beginnings of targets: normalizations, sorts and scans


def is_bound_by_bytes(call: Instruction) -> bool:
    """False for a call that does more than move its bytes, and whose operations are not known."""
    target = custom_call_target(end_of(call))
    moves = not target and end_of(call).opcode != "cholesky"
    return (moves or target.startswith(_MOVERS) or bool(products(call))) and not taps_of_one_channel(call)


_LONG_WINDOW = 225  # elements


def taps_of_one_channel(call: Instruction) -> int:
    """The elements of a long window that a convolution of cuDNN applies to one channel at a time, else 0:
    a contraction over one channel leaves its tiles of channels empty."""
    x = end_of(call)
    if custom_call_target(x) != "__cudnn$convForward":
        return 0
    taps = math.prod(d.size for d in window_of(x))
    return taps if taps >= _LONG_WINDOW and taps in [o.element_count for o in x.operands[1:2]] else 0


def bytes_over_link(kernel: Instruction) -> int:
    """Bytes that a copy, slice or update reads from host memory or writes there; 0 for others."""
    if not is_on_host(kernel):
        return 0
    x = end_of(kernel)
    if x.opcode in ("slice", "dynamic-slice"):
        return x.shape.leaves_size
    if x.opcode in _MOVED:
        return x.operands[_MOVED[x.opcode]].shape.leaves_size
    return 0


def is_on_host(x: Instruction) -> bool:
    """True if the instruction reads host memory or writes there."""
    return any(is_in(y.shape, HOST) for y in (x, *x.operands))


def is_in(shape: Shape, space: int) -> bool:
    layouts = (leaf.layout for leaf in shape.leaf_shapes)
    return any((layout.memory_space if layout else HBM) == space for layout in layouts)


def _sorted_bytes(kernel: Instruction, device: DeviceDescription) -> int:
    """Bytes of keys, beyond the L2 cache, in the passes of XLA's bitonic sort (`EmitBitonicSortLLVMIR`)."""
    x = end_of(kernel)
    if x.opcode != "sort":
        return 0
    keys = x.operand.shape
    beyond = max((keys.dimensions[x.dimension] - 1).bit_length() - _TILE, 0)
    passes = 1 + beyond * (beyond + 3) // 2
    return passes * max(keys.byte_size - device.l2_cache_size, 0)


def product_peak(device: DeviceDescription, element_type: str) -> int:
    """The maximum of operations per nanosecond; 0 where XLA has no numbers of the matrix units."""
    cores_only = device.platform == "CUDA" and device.compute_capability < (8, 0)
    bounded = device.matrix_units or (cores_only and element_type in ("f32", "f64", "cores"))
    return peak_matrix_ops(device, element_type) if bounded else 0


def products(kernel: Instruction) -> list[tuple[int, Instruction]]:
    return [(flops, x) for x in inside(kernel) if (flops := _product_flops(x))]


def _peak_type(product: Instruction) -> str:
    """The type whose peak bounds a product; `cores` for float32 that may not be rounded."""
    kind = product.operand.element_type
    return "cores" if kind == "f32" and _states(product, _EXACT) else kind


def modelled_product_us(kernel: Instruction, device: DeviceDescription) -> float | None:
    """Microseconds of a matrix product by XLA's rates (TF32 for float32) or of cuDNN's attention, or None."""
    if custom_call_target(kernel).startswith(_ATTENTION):
        return _attention_us(kernel, device)
    found = [x for x in inside(kernel) if _product_flops(x)]
    if len(found) != 1 or (sizes := _sizes(found[0])) is None:
        return None
    lhs, rhs = (o.element_type for o in found[0].operands[:2])
    if lhs == "f32" and _states(found[0], _PRECISE):
        return None
    return tabled_product_us(device, sizes, lhs, rhs)


def _states(x: Instruction, precision: re.Pattern[str]) -> bool:
    """True for a product that asks for such a precision."""
    texts = map(x.attributes.raw, ("operand_precision", "algorithm", "backend_config"))
    return any(precision.search(text or "") for text in texts)


def _attention_us(kernel: Instruction, device: DeviceDescription) -> float | None:
    """Two products forward, five backward, at a rate measured on an H200 (9.9 µs for 1.1 GFLOP)."""
    try:
        config = gpu_config(kernel, "cudnn_fmha_backend_config")
        scores = [int(n) for n in config["intermediate_tensor_shape"]["dimensions"]]
    except (ValueError, KeyError, TypeError):
        return None
    query = kernel.operand.shape
    peak = product_peak(device, query.element_type)
    if not peak or len(scores) < 2:
        return None
    products = 5 if custom_call_target(kernel).endswith("Backward") else 2
    return _ATTENTION_US + 2 * products * query.element_count * scores[-1] / (peak * _ATTENTION_RATE) / 1e3


def scheduled_us(
    device: DeviceDescription, modelled: Callable[[Instruction], float | None], x: Instruction
) -> float:
    """Microseconds by which XLA:GPU orders instructions (`SolLatencyEstimator::NodeCost`)."""
    us = modelled(x) if x.fusion_kind in ("kLoop", "kInput") else modelled_product_us(x, device)
    return us or (0.0 if x.opcode in _FREE else 10.0 if x.opcode == "custom-call" else 0.01)


def _product_flops(x: Instruction) -> int:
    if x.opcode in _PRODUCTS:
        return dot_flops(x)
    if x.opcode == "convolution" or is_library_convolution(x):
        return convolution_flops(x)
    sizes = _sizes(x)
    return 2 * math.prod(sizes) if sizes is not None else 0


def _sizes(x: Instruction) -> Sizes | None:
    """Sizes of a dot, or of a cuBLAS call from its configuration; None for other operations."""
    try:
        if x.is_dot:
            dims = dot_dimensions(x)
        elif custom_call_target(x).startswith(_CUBLAS):
            numbers = gpu_config(x, "gemm_backend_config")["dot_dimension_numbers"]
            dims = tuple(tuple(int(d) for d in numbers.get(name, ())) for name in _DIMENSIONS)
        else:
            return None
        lhs, rhs = (o.sizes for o in x.operands[:2])
        batch, summed = (math.prod(lhs[d] for d in dims[side]) for side in (0, 2))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    common = max(batch * summed, 1)
    return batch, math.prod(lhs) // common, summed, math.prod(rhs) // common
