"""Loops that launch kernels, and how often what they call runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlofuse.analysis.kernels import CONTROL_FLOW, is_kernel, launched_computations
from hlofuse.ir.graph import Computation, Instruction, Module


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop whose kernels are counted once."""

    name: str
    trips: int | None
    """How often it runs; None where the dump does not say."""
    kernels: int
    """Launched by one turn."""


def iterations(module: Module) -> dict[Computation, int]:
    """How often each computation that is run is; a loop of which that is not known counts once."""
    executed = launched_computations(module)
    found = {module.entry: 1}

    def often(computation: Computation) -> int:
        if computation not in found:
            found[computation] = sum(
                times * often(caller.computation) * (trip_count_of(caller) or 1)
                for caller, times in computation.callers.items()
                if caller.opcode in CONTROL_FLOW and caller.computation in within
            )
        return found[computation]

    within = set(executed)
    return {c: often(c) for c in executed}


def outermost_loops(module: Module) -> tuple[Loop, ...]:
    """The outermost loops that launch kernels."""
    return tuple(_loops(module.entry))


def _loops(computation: Computation) -> list[Loop]:
    found: list[Loop] = []
    for instruction in computation:
        if instruction.opcode == "while":
            count = sum(map(_kernels, (c for _, c in instruction.called)))
            if count:
                found.append(Loop(instruction.name, trip_count_of(instruction), count))
        elif instruction.opcode in CONTROL_FLOW:
            for _, called in instruction.called:
                found += _loops(called)
    return found


def _kernels(computation: Computation) -> int:
    return sum(map(_launched_by, computation))


def _launched_by(instruction: Instruction) -> int:
    if instruction.opcode in CONTROL_FLOW and not is_kernel(instruction):
        return sum(_kernels(c) for _, c in instruction.called)
    return int(is_kernel(instruction))


# ------------------------------------------------------------ known trips
#
# How often a loop runs, where XLA has found it out (`known_trip_count` of its backend configuration).

_TRIPS = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')


def trip_count_of(loop: Instruction) -> int | None:
    """None where the dump does not say."""
    found = _TRIPS.search(loop.attributes.raw("backend_config") or "")
    return int(found[1]) if found else None
