"""What no choice of fusions can go below."""

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.account.account import Account, Launched
from hlofuse.account.traffic import border_bytes
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Computation, Instruction

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
