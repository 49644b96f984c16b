"""Profiles made by hand: a line for each kernel, `FILE:LINE FUNCTION | KERNEL` as in a baseline."""

from __future__ import annotations

from hlofuse.reports.check import Profile
from hlofuse.reports.check.model import BaselineKernel, Figures, RefusedEdge, Where


def kernel(line: str) -> BaselineKernel:
    place, _, what = line.partition(" | ")
    at, _, function = place.partition(" ")
    file, _, number = at.partition(":")
    return BaselineKernel(what, Where(file, int(number or 0), function))


def profile(
    *lines: str, moved: int = 1000, us: float | None = None, device: str | None = None, name: str = "m"
) -> Profile:
    kernels = tuple(kernel(line) for line in lines)
    target = "cpu" if device is None else "gpu"
    return Profile(name, target, device, "jaxlib 0.11.1", Figures(len(kernels), moved, us), kernels)


def nothing_refused() -> list[RefusedEdge]:
    return []
