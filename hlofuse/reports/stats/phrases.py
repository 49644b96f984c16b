"""Words that the reports of `stats` share."""

from __future__ import annotations

from hlofuse.reports.stats.model import KernelStatistics

ONE_TURN = "Kernels, bytes and flops are those of one turn of each loop"


def where(kernel: KernelStatistics) -> str:
    """The layer and the line."""
    return ": ".join(filter(None, (kernel.layer, kernel.source)))
