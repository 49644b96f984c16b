"""Where the time goes in the end: the kernels that take longest, and the loops that run them often."""

from __future__ import annotations

from dataclasses import replace

from hlofuse.analysis.kernels import CONTROL_FLOW, is_kernel
from hlofuse.analysis.known_trips import known_trips
from hlofuse.explainer.facts import Facts
from hlofuse.explainer.model import DearKernel, Loop
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction


def dearest(facts: Facts) -> tuple[DearKernel, ...]:
    """Kernels with an estimate, those of the same line and shape together, longest first.

    Those in a loop count as often as it runs, where that is known.
    """
    if facts.costs is None:
        return ()
    launch = facts.costs.device.launch_overhead_us
    turns = _turns(facts.replay.after.entry, 1)
    alike: dict[object, list[DearKernel]] = {}
    for instruction in facts.launched_after.values():
        kernel = facts.costs.kernel(instruction)
        if kernel is not None:
            place = facts.place(instruction.name)
            often = turns.get(instruction.computation, 1)
            one = DearKernel(place, kernel, (kernel.us + launch) * often, turns=often)
            alike.setdefault((place.source or place.name, place.shape, often), []).append(one)
    found = []
    for held in alike.values():
        first = max(held, key=lambda k: k.us)
        found.append(replace(first, us=sum(k.us for k in held), count=len(held)))
    return tuple(sorted(found, key=lambda k: (-k.us, k.place.name)))


def _turns(computation: Computation | None, often: int) -> dict[Computation | None, int]:
    """How often a computation and what it calls is run; a loop of which that is not known counts once."""
    found = {computation: often}
    for instruction in computation or ():
        if instruction.opcode in CONTROL_FLOW:
            more = (known_trips(instruction) or 1) if instruction.opcode == "while" else 1
            for _, called in instruction.called:
                found |= _turns(called, often * more)
    return found


def loops(facts: Facts) -> tuple[Loop, ...]:
    """The outermost loops that launch kernels."""
    return tuple(_loops(facts.replay.after.entry))


def _loops(computation: Computation) -> list[Loop]:
    found: list[Loop] = []
    for instruction in computation:
        if instruction.opcode == "while":
            count = sum(map(_kernels, (c for _, c in instruction.called)))
            if count:
                found.append(Loop(instruction.name, known_trips(instruction), count))
        elif instruction.opcode in CONTROL_FLOW:
            for _, called in instruction.called:
                found += _loops(called)
    return found


def _kernels(computation: Computation) -> int:
    return sum(map(_launched_by, computation))


def _launched_by(instruction: Instruction) -> int:
    if instruction.opcode in CONTROL_FLOW:
        return sum(_kernels(c) for _, c in instruction.called)
    return int(is_kernel(instruction))
