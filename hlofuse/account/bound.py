"""What no choice of fusions can go below."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hlofuse.account.account import Account, Launched
from hlofuse.account.traffic import border_bytes
from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.flops import convolution_flops, dot_flops
from hlofuse.analysis.kernels import computed_in
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.dot_cost import peak_matrix_ops
from hlofuse.ir.graph import Computation, Instruction

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


_VIEWS = frozenset({"bitcast", "get-tuple-element"})


@dataclass(frozen=True, slots=True)
class FusionFloor:
    """The least that a program moves, and takes, however its operations are fused."""

    bytes_accessed: int
    us: float | None
    """With what is no fusion as it is, launches included; None without a device."""


def fusion_floor(
    account: Account, is_fused: Callable[[Instruction], bool], flops: int, device: DeviceDescription | None
) -> FusionFloor:
    """The floor of a final module; `is_fused` says which instructions fusion can change.

    Fused kernels read what enters each computation, or comes from a library call, a copy or a collective,
    and write what leaves to those, once in each run: over the memory's bandwidth, and one launch. Their
    arithmetic, `flops` in all, takes as long as on all units at once, whichever is longer.
    """
    fused: dict[Computation, list[Launched]] = {}
    moved, us = 0, 0.0
    for row in account.rows:
        if row.kind == "kernel" and row.instruction.computation is not None and is_fused(row.instruction):
            fused.setdefault(row.instruction.computation, []).append(row)
        else:
            moved += row.cost.bytes_accessed * row.runs
            us += row.total_us or 0.0
    crossing = launches = 0
    for rows in fused.values():
        runs = rows[0].runs
        crossing += _border({r.instruction for r in rows}) * runs
        launches += runs
    if device is None:
        return FusionFloor(moved + crossing, None)
    peak = 2.0 * device.core_count * device.fpus_per_core * device.clock_rate_ghz * 1e3
    fused_us = max(crossing / device.memory_bandwidth * 1e6, flops / peak)
    return FusionFloor(moved + crossing, us + fused_us + launches * device.launch_overhead_us)


def _border(kernels: set[Instruction]) -> int:
    """Bytes that kernels of one computation read from others and write for others, each value once."""
    read: dict[Instruction, int] = {}
    written = 0
    for kernel in kernels:
        reads, writes = border_bytes(kernel)
        for operand, size in reads.items():
            value = without_bitcasts(operand)
            if _source(value) not in kernels and value.opcode != "constant":
                read[value] = max(read.get(value, 0), size)
        leaving = _leaving(kernel, kernels)
        written += sum(size for k, size in writes.items() if leaving is None or k in leaving)
    return sum(read.values()) + written


def _source(value: Instruction) -> Instruction:
    """What computes a value, views and elements of tuples passed over."""
    while value.opcode in _VIEWS:
        value = value.operands[0]
    return value


def _leaving(kernel: Instruction, kernels: set[Instruction]) -> set[int] | None:
    """The indices of the results that something else than these kernels reads; None for all."""
    if kernel.is_root:
        return None
    found: set[int] = set()
    for user in kernel.users:
        views = [user]
        index = user.tuple_index if user.opcode == "get-tuple-element" else 0
        while views:
            view = views.pop()
            if view.opcode in _VIEWS:
                if view.is_root:
                    found.add(index)
                views += view.users
            elif view not in kernels:
                found.add(index)
    return found
