"""Where the time goes in the end: the kernels that take longest, as often as their loops run them."""

from __future__ import annotations

from dataclasses import replace

from hlofuse.analysis.loops import turns
from hlofuse.reports.explain.facts import Facts
from hlofuse.reports.explain.model import DearKernel


def dearest(facts: Facts) -> tuple[DearKernel, ...]:
    """Kernels with an estimate, those of the same line and shape together, longest first.

    Those in a loop count as often as it runs, where that is known.
    """
    if facts.costs is None:
        return ()
    launch = facts.costs.device.launch_overhead_us
    often_run = turns(facts.replay.after)
    alike: dict[object, list[DearKernel]] = {}
    for instruction in facts.launched_after.values():
        kernel = facts.costs.kernel(instruction)
        if kernel is not None:
            place = facts.place(instruction.name)
            often = often_run[instruction.computation] if instruction.computation is not None else 1
            one = DearKernel(place, kernel, (kernel.us + launch) * often, turns=often)
            alike.setdefault((place.source or place.name, place.shape, often), []).append(one)
    found = []
    for held in alike.values():
        first = max(held, key=lambda k: k.us)
        found.append(replace(first, us=sum(k.us for k in held), count=len(held)))
    return tuple(sorted(found, key=lambda k: (-k.us, k.place.name)))
