"""Launches of an XLA:TPU module, with times by XLA:TPU's own estimates and HBM apart from VMEM."""

import math
from dataclasses import replace as replace_shape
from functools import cached_property

from hlofuse.analysis.async_ops import fused_collective
from hlofuse.analysis.cost import Cost, CostAnalysis
from hlofuse.analysis.kernels import inside
from hlofuse.analysis.launches import LaunchKind, launch_of
from hlofuse.cost.tpu import TpuDevice, estimated_cycles, tpu_devices
from hlofuse.ir import (
    Instruction,
    Layout,
    Module,
    replace,
)
from hlofuse.ir.shape import HBM
from hlofuse.passes.common.shapes import slice_sizes_of
from .account import Account, Totals
from .collectives import exchange_of
from .figures import KernelTime
from .floor import is_in, is_on_host, products
from .traffic import border_bytes


class TpuAccount(Account):
    def __init__(
        self,
        module: Module,
        device: str | None,
        *,
        is_final: bool = False,
    ) -> None:
        """With times on the device of that name; without on another."""
        super().__init__(module, backend="tpu", is_final=is_final)
        self._counts = CostAnalysis()
        self.tpu = tpu_devices().get(device or "")

    @property
    def machine(self) -> TpuDevice | None:
        return self.tpu

    @property
    def launch_overhead_us(self) -> float | None:
        """Zero: XLA:TPU's estimates include the start of a kernel; None without times."""
        return None if self.tpu is None else 0.0

    @property
    def time_source(self) -> str:
        if self.tpu is None or not self.tpu.clock_rate_ghz:
            return ""
        if not any(self.tpu.cycles_us(r.instruction) for r in self.rows):
            return "at least, by bytes of HBM and products"
        return f"XLA:TPU's cycles at {self.tpu.clock_rate_ghz:g} GHz"

    def cost(self, instruction: Instruction) -> Cost:
        """XLA:TPU's count: a scatter writes its whole result; a collective counts with its start alone."""
        if instruction.opcode == "custom-call":
            return super().cost(instruction)
        cost = self._counts.instruction(instruction)
        collective, stage = fused_collective(instruction)
        if collective is None:
            return cost
        size = collective.shape.leaves_size
        if stage == "start":
            sent = sum(o.shape.leaves_size for o in collective.operands)
            return cost + Cost(0, 0, sent + size, size, -cost.unknown)
        if stage == "update":
            passed = (x.shape for x in instruction.fused_root.operands if x.is_parameter)
            handed_on = sum(shape.leaves_size for shape in passed)
            return cost + Cost(0, 0, -handed_on, -handed_on - size)
        return cost

    def kernel(self, instruction: Instruction) -> KernelTime | None:
        """The estimate, and what explains at least half of it; None without one."""
        launch = launch_of(instruction, self.backend)
        cost = self.cost(instruction)
        us, is_floor = self._time(instruction, launch.kind if launch is not None else "kernel", cost)
        if us is None or is_floor:
            return None
        bounds = self._bounds(instruction)
        by_tiles = estimated_cycles(instruction) is None and tile_bytes(instruction)
        parts = bounds if max(bounds) >= us / 2 and not by_tiles else (0.0, 0.0)
        emitter = "whole tiles" if by_tiles else ""
        return KernelTime(
            us,
            *parts,
            cost.bytes_read,
            cost.bytes_written,
            cost.flops,
            emitter,
            0,
            0,
            True,
        )

    def _bounds(self, instruction: Instruction) -> tuple[float, float]:
        """Microseconds of its bytes of HBM and of its products, each at the full rate."""
        assert self.tpu is not None
        peak = self.tpu.peak
        work = sum(f * mxu_passes(x) / peak(x.operand.element_type) for f, x in products(instruction))
        return hbm_bytes(instruction) / self.tpu.memory_bandwidth * 1e6, work * 1e6

    def _time(
        self,
        instruction: Instruction,
        kind: LaunchKind,
        cost: Cost,
    ) -> tuple[float | None, bool]:
        """The estimate where XLA:TPU wrote one; else bytes of HBM and products, as a lower bound. A copy
        within the TPU takes its bytes' time at the full bandwidth, a reshape more, as estimates; scalars
        none. The whole tiles of a gather or scatter take that of XLA's `optimal_seconds`."""
        if self.tpu is None:
            return None, False
        us = self.tpu.cycles_us(instruction)
        if us is not None:
            return us, False
        if tiles := tile_bytes(instruction):
            return max(tiles / self.tpu.xla_memory_bandwidth * 1e6, *self._bounds(instruction)), False
        if kind == "collective":
            exchange = exchange_of(instruction, self.module)
            sent = exchange.bytes_on_wire if exchange is not None else None
            links = self.tpu.ici_bandwidth
            return (sent / links * 1e6 if sent and links else 0.0), True
        values = (instruction, *instruction.operands)
        if all(x.shape.is_effective_scalar for x in values):
            return 0.0, False
        if instruction.is_reshape:  # a copy to other tiles, also within VMEM
            return TO_OTHER_TILES * cost.bytes_accessed / self.tpu.memory_bandwidth * 1e6, False
        return max(self._bounds(instruction)), kind != "copy" or is_on_host(instruction)

    @cached_property
    def totals(self) -> Totals:
        moved = sum(hbm_bytes(r.instruction) * r.runs for r in self.rows)
        return replace(super().totals, hbm_bytes=moved)


TO_OTHER_TILES = 6.0  # times its bytes' time: XLA:TPU's estimates of a reshape and of slices are 2.2 to 12.6
_PARTS = {"highest": 3, "high": 2}  # of bfloat16, in which the MXU takes a float32 operand


def mxu_passes(product: Instruction) -> int:
    """Products of bfloat16 parts that the MXU computes for a product: those of the largest parts."""
    stated = (product.raw("operand_precision") or "").strip("{}").split(",")
    precise = zip(product.operands, stated, strict=False)
    parts = [_PARTS.get(p, 1) if o.element_type == "f32" else 1 for o, p in precise]
    return sum(max(parts) - n for n in range(min(parts))) if len(parts) > 1 else 1


def tile_bytes(kernel: Instruction, untiled: str = "") -> int:
    """Bytes of the whole tiles that slices of gathers and scatters touch; a scatter reads and writes them.
    `untiled` is the suffix of the layout of arrays without tiles, as `T(8,128)`; they count 0 without one."""
    total = 0
    for x in (i for i in inside(kernel) if i.opcode in ("gather", "scatter")):
        array, moved = x.operand.shape, x.shape if x.opcode == "gather" else x.operands[-1].shape
        if untiled and not array.is_tiled:
            array = replace_shape(array, layout=Layout(array.minor_to_major, untiled))
        if array.is_tiled:
            sizes = slice_sizes_of(x)
            touched = replace_shape(array, dimensions=sizes).buffer_size
            total += touched * (moved.element_count // math.prod(sizes)) * (1 + (x.opcode == "scatter"))
    return total


def hbm_bytes(instruction: Instruction) -> int:
    shape = instruction.shape
    is_start = instruction.opcode.endswith("-start") and shape.is_tuple
    if is_start and instruction.operands:  # reads as much as it writes
        operand = instruction.operand.shape
        result = next((s for s in shape.tuple_shapes[:2] if not s.is_tuple), operand)
        size = min(operand.leaves_size, result.leaves_size)
        return size * (is_in(operand, HBM) + is_in(result, HBM))
    reads, writes = border_bytes(instruction)
    results = shape.tuple_shapes or (shape,)
    found = [(o.shape, size) for o, size in reads.items()]
    found += [(results[k] if k < len(results) else shape, size) for k, size in writes.items()]
    return sum(size for place, size in found if is_in(place, HBM))
