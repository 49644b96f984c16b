"""Loops that launch kernels, and how many iterations they have."""

import re
from dataclasses import dataclass

from hlofuse.analysis.kernels import CONTROL_FLOW, is_kernel
from hlofuse.ir.graph import Computation, Instruction, Module


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop whose kernels are counted once."""

    name: str
    trips: int | None
    """How often it runs; None where the dump does not say."""
    kernels: int
    """Launched by one turn."""


def outermost_loops(module: Module) -> tuple[Loop, ...]:
    """The outermost loops that launch kernels."""
    return tuple(_loops(module.entry))


def _loops(computation: Computation) -> list[Loop]:
    found: list[Loop] = []
    for instruction in computation:
        if instruction.opcode == "while":
            if count := _launched_by(instruction):
                found.append(Loop(instruction.name, trip_count_of(instruction), count))
        elif instruction.opcode in CONTROL_FLOW:
            for _, called in instruction.called:
                found += _loops(called)
    return found


def _launched_by(instruction: Instruction) -> int:
    if is_kernel(instruction) or instruction.opcode not in CONTROL_FLOW:
        return int(is_kernel(instruction))
    return sum(sum(map(_launched_by, c)) for name, c in instruction.called if runs_in(instruction, name))


def runs_in(caller: Instruction, attribute: str) -> bool:
    """True if what `caller` calls by this attribute runs: not the condition of a loop of known trip count."""
    return caller.opcode != "while" or attribute == "body" or trip_count_of(caller) is None


# How often a loop runs, where XLA has found it out (`known_trip_count` of its backend configuration).

_TRIPS = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')


def trip_count_of(loop: Instruction) -> int | None:
    """None where the dump does not say."""
    found = _TRIPS.search(loop.attributes.raw("backend_config") or "")
    return int(found[1]) if found else None
