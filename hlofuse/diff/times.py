"""Estimated times, where somebody brings a model of them: a diff itself knows of no device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hlofuse.analysis.kernels import is_kernel, kernels
from hlofuse.diff.model import FusionChange, ModuleDiff
from hlofuse.ir import Instruction

Estimate = Callable[[Instruction], float | None]
"""Microseconds of a kernel, its launch included; None where the model has no figure."""


@dataclass(frozen=True, slots=True)
class Times:
    """What estimates the kernels of either side."""

    before: Estimate
    after: Estimate
    devices: tuple[str, str]

    def totals(self, diff: ModuleDiff) -> tuple[float, float]:
        """Microseconds of all kernels that have a figure."""
        return _sum(self.before, kernels(diff.before.module)), _sum(self.after, kernels(diff.after.module))

    def untimed(self, diff: ModuleDiff) -> tuple[int, int]:
        """Kernels without a figure."""
        sides = (self.before, diff.before.module), (self.after, diff.after.module)
        first, second = (sum(time(k) is None for k in kernels(module)) for time, module in sides)
        return first, second

    def of_change(self, change: FusionChange) -> tuple[float, float] | None:
        """Microseconds before and after; None where other fusions took part or a kernel has no figure."""
        if change.cost_before is None or change.cost_after is None:
            return None
        old = [self.before(k) for k in (*change.before, *filter(is_kernel, change.joined))]
        new = [self.after(k) for k in (*change.after, *filter(is_kernel, change.left))]
        first = [us for us in old if us is not None]
        second = [us for us in new if us is not None]
        if len(first) < len(old) or len(second) < len(new):
            return None
        return sum(first), sum(second)


def _sum(time: Estimate, instructions: Iterable[Instruction]) -> float:
    return sum(us for k in instructions if (us := time(k)) is not None)
