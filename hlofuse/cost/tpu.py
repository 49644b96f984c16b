"""TPUs, and the times of their kernels: a lower bound, or a device's clock makes times of `estimated_cycles`,
which XLA:TPU writes into the configuration of a final module's fusions, products and copies."""

import math
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.ir.record import Record

if TYPE_CHECKING:
    from hlofuse.ir.graph import Instruction

_PACKAGED = Path(__file__).with_name("tpu.toml")
_CYCLES = re.compile(r'"estimated_cycles":\s*"?(\d{1,15})\b')
_SCOPED = re.compile(r'"used_scoped_memory_configs":\s*\[\{"memory_space":"1",[^}]*"size":"(\d{1,15})"')


class TpuDevice(Record):
    """A TPU as one JAX device; the figures of two cores are of both where XLA compiles for them as one."""

    name: str
    kind: str  # `device_kind` in JAX
    xla_version: str  # `TPU_VERSION_…` in a dump's `target_arguments.txt`, and the variant
    topology: str  # The smallest that libtpu compiles for, as `--topology` takes it
    cores: int  # TensorCores that XLA compiles for as one
    devices_per_chip: int
    clock_rate_ghz: float  # 0 where it is not published
    clock_source: str
    memory_bandwidth: float  # Bytes per second of HBM
    device_memory_size: int  # Bytes of HBM
    vmem_size: int  # Bytes of VMEM of a core
    mxus: int
    mxu_size: int  # Rows and columns of a matrix unit
    ici_bandwidth: float  # Bytes per second that all links to other chips send; 0 where it is not published
    xla_flops: float  # FLOP per second by XLA's `optimal_seconds` of a bf16 product
    xla_memory_bandwidth: float  # Bytes per second by XLA's `optimal_seconds`
    source: str
    peaks: dict[str, float]  # Published operations per second by element type
    scoped_vmem_size: int = 16 << 20  # Bytes of VMEM that XLA:TPU lets a kernel's own blocks take
    reuses_results: bool = False  # True if XLA places temporary arrays where results will lie

    def topology_of(self, devices: int) -> str:
        name, _, text = self.topology.partition(":")
        sizes = [int(n) for n in reversed(text.split("x"))]
        while math.prod(sizes) * self.devices_per_chip < devices:
            sizes[sizes.index(min(sizes))] *= 2
        return f"{name}:{'x'.join(map(str, reversed(sizes)))}"

    def cycles_us(self, instruction: "Instruction") -> float | None:
        """Microseconds of XLA:TPU's estimate; None without one, or without a clock."""
        cycles = estimated_cycles(instruction)
        return cycles / self.clock_rate_ghz / 1e3 if cycles is not None and self.clock_rate_ghz else None

    def peak(self, element_type: str) -> float:
        """Operations per second of a matrix product: the peak of bf16 for wider types."""
        return self.peaks.get(element_type, self.peaks["bf16"])


def estimated_cycles(instruction: "Instruction") -> int | None:
    """The estimate that XLA:TPU wrote for one run; None without one."""
    found = _CYCLES.search(instruction.raw("backend_config") or "")
    return int(found[1]) if found is not None else None


def scoped_vmem(instruction: "Instruction") -> int:
    """Bytes of VMEM that the kernel's own blocks take, as XLA:TPU wrote them; 0 where it wrote none."""
    found = _SCOPED.search(instruction.raw("backend_config") or "")
    return int(found[1]) if found is not None else 0


@cache
def tpu_devices() -> dict[str, TpuDevice]:
    values = tomllib.loads(_PACKAGED.read_text(encoding="utf-8"))
    return {name: TpuDevice(name, **numbers) for name, numbers in values.items()}


_VERSION = re.compile(r"version: TPU_VERSION_(\w+)(?:\s+variant: \"(\w+)\")?")


def tpu_of(text: str) -> str:
    """The TPU of a topology (`v5e:2x2`), a kind in JAX, or a dump's `target_arguments.txt`; else empty."""
    version = _VERSION.search(text)
    named = " ".join(filter(None, version.groups())) if version is not None else text.partition(":")[0]
    for device in tpu_devices().values():
        if named.lower() in (device.name, device.kind.lower(), device.xla_version.lower()):
            return device.name
    return ""
