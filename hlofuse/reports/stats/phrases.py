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
ITERATIONS = "Bytes and flops are those of all iterations of a loop"


def headline(m: ModuleStatistics) -> tuple[str, ...]:
    """Kernels, launches where loops or branches change their number, bytes, flops and transcendentals."""
    t = m.totals
    return (
        plural(t.kernels, "kernel"),
        *([plural(t.launches, "launch", "launches")] if t.launches != t.kernels else []),
        f"{bytes_text(m.totals.cost.bytes_accessed)} moved",
        f"{quantity(m.totals.cost.flops)} flops",
        f"{quantity(m.totals.cost.transcendentals)} transcendentals",
    )


def uncounted_line(m: ModuleStatistics) -> str:
    """What the figures leave out; empty for nothing."""
    if not m.totals.cost.unknown:
        return ""
    return f"{plural(m.totals.cost.unknown, 'custom call')} not counted: XLA does not know their cost"


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
