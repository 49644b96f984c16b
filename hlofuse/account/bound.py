"""Lower bounds over all choices of fusions."""

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.account.account import Account, Launched
from hlofuse.account.traffic import border_bytes
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.analysis.in_place import Index, follow_tuples, in_place_pairs
from hlofuse.analysis.kernels import is_small_call, iter_kernels
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.releases import AROUND_FUSION

_VIEWS = frozenset({"bitcast", "get-tuple-element"})
_Place = tuple[Instruction, Index]


@dataclass(frozen=True, slots=True)
class FusionFloor:
    """The minimal traffic and time of a program over all choices of fusions."""

    bytes_accessed: int
    us: float | None
    """Microseconds, with other instructions unchanged and launches; None without a device."""


def fusion_floor(
    account: Account, is_fused: Callable[[Instruction], bool], flops: int, device: DeviceDescription | None
) -> FusionFloor:
    """The floor of a final module; `is_fused` is True for instructions that fusion can change.

    Fused kernels read values that enter a computation, or come from a library call, a copy or a collective.
    They write values that leave to those. The time is the memory time of both plus one launch, or the time of
    all arithmetic (`flops`) on all units, if longer.
    """
    fused: dict[Computation, list[Launched]] = {}
    moved, us, crossing, launches = 0, 0.0, 0, 0
    for row in account.rows:
        if is_small_call(row.instruction):
            for c, runs in account.costs.inside(row.instruction)[0].items():
                crossing += _border({i for i in iter_kernels(c) if not is_small_call(i)}) * runs * row.runs
        elif row.kind == "kernel" and row.instruction.computation is not None and is_fused(row.instruction):
            fused.setdefault(row.instruction.computation, []).append(row)
        else:
            moved += row.cost.bytes_accessed * row.runs
            us += row.total_us or 0.0
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
    """Bytes that one computation's kernels read from others and write for others, without
    updates in place."""
    read: dict[_Place, int] = {}
    written = 0
    borders = {kernel: border_bytes(kernel) for kernel in kernels}
    updated: dict[_Place, tuple[_Place, int]] = {}
    for kernel, (_, writes) in borders.items():
        for pair in in_place_pairs(kernel, AROUND_FUSION):
            new = writes.get((*pair.output_index, 0)[0]) or sum(writes.values())
            updated[kernel, pair.output_index] = _place(kernel.operands[pair.operand_number]), new
    for kernel, (reads, writes) in borders.items():
        for operand, size in reads.items():
            place = _place(operand)
            while place in updated:
                place, new = updated[place]
                size -= new
            if place[0] not in kernels and place[0].opcode != "constant":
                read[place] = max(read.get(place, 0), size)
        leaving = _leaving(kernel, kernels)
        written += sum(size for k, size in writes.items() if leaving is None or k in leaving)
    return sum(read.values()) + written


def _place(value: Instruction) -> _Place:
    return follow_tuples(without_bitcasts(value), ())


def _leaving(kernel: Instruction, kernels: set[Instruction]) -> set[int] | None:
    """The indices of the results with other readers than these kernels; None for all."""
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
