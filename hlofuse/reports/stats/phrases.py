"""Words that the reports of `stats` share."""

from __future__ import annotations

from hlofuse.format.units import bytes_text, plural, quantity
from hlofuse.reports.stats.model import KernelStatistics, ModuleStatistics

STAGES = {
    "fusion-input": "no sign of fusion yet",
    "before-optimizations": "before optimizations",
    "after-fusion": "fused",
    "scheduled": "fused and scheduled",
}
ONE_ITERATION = "Kernels, bytes and flops are those of one turn of each loop"


def headline(m: ModuleStatistics) -> tuple[str, str, str, str]:
    """Kernels, bytes, flops and transcendentals."""
    return (
        plural(m.kernels, "kernel"),
        f"{bytes_text(m.cost.bytes_accessed)} moved",
        f"{quantity(m.cost.flops)} flops",
        f"{quantity(m.cost.transcendentals)} transcendentals",
    )


def uncounted_line(m: ModuleStatistics) -> str:
    """What the figures leave out; empty for nothing."""
    if not m.cost.unknown:
        return ""
    return f"{plural(m.cost.unknown, 'custom call')} not counted: XLA does not know their cost"


def counts(m: ModuleStatistics) -> list[tuple[str, dict[str, int]]]:
    """Instructions by opcode and fusions by kind, each with its heading."""
    found = [(f"{plural(m.instructions, 'instruction')}: ", m.opcodes)]
    if m.fusions:
        found.append((f"{plural(sum(m.fusions.values()), 'fusion')}: ", m.fusions))
    return found


def kernel_figures(k: KernelStatistics) -> tuple[str, str]:
    """Bytes and flops of one turn."""
    if k.cost.unknown:
        return "unknown", "unknown"
    return bytes_text(k.cost.bytes_accessed), quantity(k.cost.flops + k.cost.transcendentals)


def where(kernel: KernelStatistics) -> str:
    """The layer and the line."""
    return ": ".join(filter(None, (kernel.layer, kernel.source)))
