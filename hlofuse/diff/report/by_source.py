"""What the lines of the user's program cost, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import kernels
from hlofuse.diff.model import ModuleDiff
from hlofuse.diff.times import Estimate, Times
from hlofuse.ir import Module

NO_LINE = "no source line"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What a line of the user's program costs."""

    source: str
    kernels_before: int
    kernels_after: int
    bytes_before: int
    bytes_after: int
    us: tuple[float, float] | None = None
    """Estimated time; None where no device is given, or a kernel has no figure."""


def by_source(diff: ModuleDiff, times: Times | None) -> Iterator[SourceLine]:
    """What kernels each line of the program has on either side; nothing where one side names no line."""
    ours = _kernels_by_source(diff.before.module, times.before if times is not None else None)
    theirs = _kernels_by_source(diff.after.module, times.after if times is not None else None)
    if set(ours) <= {""} or set(theirs) <= {""}:
        return
    rows = []
    for source in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(source, _Costs()), theirs.get(source, _Costs())
        timed = times is not None and one.us is not None and other.us is not None
        rows.append(
            SourceLine(
                source or NO_LINE,
                one.kernels,
                other.kernels,
                one.bytes,
                other.bytes,
                (one.us or 0.0, other.us or 0.0) if timed else None,
            )
        )
    changed = [
        r
        for r in rows
        if ((r.kernels_before, r.bytes_before) != (r.kernels_after, r.bytes_after) or _slower_or_faster(r))
    ]
    yield from sorted(changed, key=lambda r: (-abs(r.bytes_after - r.bytes_before), r.source))


def _slower_or_faster(r: SourceLine) -> bool:
    return r.us is not None and abs(r.us[1] - r.us[0]) > 0.05 * max(r.us)


@dataclass(slots=True)
class _Costs:
    kernels: int = 0
    bytes: int = 0
    us: float | None = 0.0


def _kernels_by_source(module: Module, time: Estimate | None) -> dict[str, _Costs]:
    """What the kernels cost, under the line they came from."""
    costs = CostAnalysis()
    out: dict[str, _Costs] = {}
    for kernel in kernels(module):
        place = module.source_of(kernel)
        if place is None and kernel.opcode == "fusion" and kernel.called:
            inside = Counter(str(s) for i in kernel.fused_computation if (s := module.source_of(i)))
            text = inside.most_common(1)[0][0] if inside else ""
        else:
            text = str(place) if place else ""
        line = out.setdefault(text, _Costs())
        line.kernels += 1
        line.bytes += costs.instruction(kernel).bytes_accessed
        us = time(kernel) if time is not None else None
        line.us = line.us + us if line.us is not None and us is not None else None
    return out
