"""The part of the compiler that created an instruction last, from names and neighbours. A pass names new
instructions after the opcode (`multiply.7`), but one that replaces another of its opcode takes over the name
(`HloComputation::ReplaceInstruction`). Then its operands, new as well, give the phase."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from hlofuse.analysis.elementwise import is_broadcast_of_constant
from hlofuse.ir.graph import Computation, Instruction
from .names import (
    LOWERED,
    is_of_call,
    is_of_program,
    is_without_op_name,
    name_before_renaming,
    operation,
    stem,
)


class Phase(IntEnum):
    """Passes of `GpuCompiler`, in the order in which they run last."""

    FRONT_END = 0
    CALLS = 1  # CallInliner clones callees after everything else
    SIMPLIFIED = 3  # AlgebraicSimplifier, first run
    SIMPLIFIED_AGAIN = 4  # AlgebraicSimplifier and ReshapeMover afterwards
    LAYOUTS = 6
    FUSIONS = 8  # Triton fusions and library calls
    BITCASTS = 12  # Any pass: numbers decide


class Evidence:
    """Facts about one computation; `named` have names of the front end."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        self.named = named
        self._names = {name_before_renaming(x) for x in computation}
        self._last = dict[str, int]()
        for x in named:
            if x.computation is computation or computation.is_entry:
                name = name_before_renaming(x)
                self._last[name.stem] = max(name.number, self._last.get(name.stem, 0))

    def phase_of_name(self, x: Instruction) -> Phase:
        if is_of_program(x):
            if is_of_call(x) and x not in self.named:
                return Phase.CALLS
            if x in self.named:
                return Phase.FRONT_END
            return self._recreated_phase(x) if stem(x) == x.opcode else Phase.SIMPLIFIED_AGAIN
        return self._recreated_phase(x) if LOWERED.get(operation(x)) == x.opcode else Phase.SIMPLIFIED

    def _recreated_phase(self, x: Instruction) -> Phase:
        """ReshapeMover's phase where there is only one layout: dimensions of size one rarely have others."""
        return Phase.SIMPLIFIED_AGAIN if x.shape.true_rank < 2 and not x.shape.is_tuple else Phase.LAYOUTS

    def are_missing_before(self, x: Instruction) -> bool:
        """True if two operations before it in the program added or dropped dimensions of size one."""
        stem, number = name_before_renaming(x)
        first = self._last.get(stem, 0) // 2 + 1 if x in self.named else 0
        before = {(stem, number - 1), (stem, number - 2)}
        return number - 2 >= first and before.isdisjoint(self._names)


class Entry(NamedTuple):
    """A row of the table: the phase of instructions that satisfy the predicate."""

    name: str
    holds: Callable[[Evidence, Instruction], bool]
    phase: Phase


def _is_library_or_triton(e: Evidence, x: Instruction) -> bool:
    return x.past("get-tuple-element").opcode == "custom-call" or x.opcode == "fusion"


def _is_constant_of_front_end(e: Evidence, x: Instruction) -> bool:
    if x.opcode == "constant":
        return x in e.named
    return x in e.named and is_broadcast_of_constant(x)


def _is_constant_of_call(e: Evidence, x: Instruction) -> bool:
    if x.opcode == "constant":
        return is_of_call(x)
    if not is_broadcast_of_constant(x) or not is_of_call(x):
        return False
    if is_of_program(x) or is_without_op_name(x):
        return x not in e.named
    created = (Phase.SIMPLIFIED, Phase.LAYOUTS)
    return not all(operation(u) == operation(x) or e.phase_of_name(u) in created for u in x.users)


def _is_broadcast_after_reshape(e: Evidence, x: Instruction) -> bool:
    if x.opcode != "broadcast" or not is_of_program(x):
        return False
    source = x.operand
    if source.opcode != "bitcast" and source.shape.dimensions:
        return True  # two broadcasts, a reshape between them, became one
    return not source.shape.dimensions and source not in e.named and e.are_missing_before(x)


def _is_negated_sum(e: Evidence, x: Instruction) -> bool:
    return x.opcode == "negate" and x.operand.opcode == "reduce" and not is_of_program(x)


TABLE = (
    Entry("bitcast", lambda e, x: x.opcode == "bitcast", Phase.BITCASTS),
    Entry("library or Triton", _is_library_or_triton, Phase.FUSIONS),
    Entry("constant of the front end", _is_constant_of_front_end, Phase.FRONT_END),
    Entry("constant of a call", _is_constant_of_call, Phase.CALLS),
    Entry("broadcast after a reshape", _is_broadcast_after_reshape, Phase.SIMPLIFIED_AGAIN),
    Entry("negated sum", _is_negated_sum, Phase.SIMPLIFIED),
)
"""The first row that holds decides; without one the name alone does."""


def phase_of(e: Evidence, x: Instruction) -> Phase:
    for _, holds, phase in TABLE:
        if holds(e, x):
            return phase
    if x.opcode == "constant" or is_broadcast_of_constant(x):
        return Phase.SIMPLIFIED
    return e.phase_of_name(x)
