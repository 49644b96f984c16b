"""The part of the compiler that created an instruction last, from names and neighbours. A pass names new
instructions after the opcode (`multiply.7`), but one that replaces another of its opcode takes over the name
(`HloComputation::ReplaceInstruction`). Then its operands, new as well, give the phase."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from hlofuse.analysis.elementwise import is_broadcast_of_constant
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from .names import (
    LOWERED,
    is_of_call,
    is_of_program,
    is_without_op_name,
    operation,
    stack_frame,
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
    FLOATS = 10
    SIMPLIFIED_LAST = 11  # AlgebraicSimplifier, last run
    BITCASTS = 12  # Any pass: numbers decide


Named = frozenset[Instruction]
"""The instructions with names of the front end."""


def phase_of_name(named: Named, x: Instruction) -> Phase:
    if not is_of_program(x):
        return _recreated_phase(x) if LOWERED.get(operation(x)) == x.opcode else Phase.SIMPLIFIED
    if x in named:
        return Phase.FRONT_END
    if is_of_call(x):
        return Phase.CALLS
    return _recreated_phase(x) if stem(x) == x.opcode else Phase.SIMPLIFIED_AGAIN


def _recreated_phase(x: Instruction) -> Phase:
    """ReshapeMover's phase where there is only one layout: dimensions of size one rarely have others."""
    return Phase.SIMPLIFIED_AGAIN if x.shape.true_rank < 2 and not x.shape.is_tuple else Phase.LAYOUTS


class Entry(NamedTuple):
    """A row of the table: the phase of instructions that satisfy the predicate."""

    name: str
    holds: Callable[[Named, Instruction], bool]
    phase: Phase


def _is_library_or_triton(named: Named, x: Instruction) -> bool:
    return x.opcode == "fusion" or x.past("get-tuple-element").opcode == "custom-call"


def _is_constant_of_front_end(named: Named, x: Instruction) -> bool:
    if x.opcode == "constant":
        return x in named
    if not is_broadcast_of_constant(x):
        return False
    return x in named and (is_of_program(x) or not (is_without_op_name(x) and stack_frame(x)))


def _is_constant_of_call(named: Named, x: Instruction) -> bool:
    if x.opcode == "constant":
        return is_of_call(x)
    if not is_broadcast_of_constant(x) or not is_of_call(x):
        return False
    if is_of_program(x) or is_without_op_name(x):
        return x not in named
    created = (Phase.SIMPLIFIED, Phase.LAYOUTS)
    return not all(operation(u) == operation(x) or phase_of_name(named, u) in created for u in x.users)


def _is_broadcast_after_reshape(named: Named, x: Instruction) -> bool:
    """True if a reshape was merged into a broadcast of the program."""
    if x.opcode != "broadcast" or not is_of_program(x) or x.operands[0].opcode == "bitcast":
        return False
    return bool(x.operands[0].shape.dimensions)


def _is_spread_last(named: Named, x: Instruction) -> bool:
    """True if it was narrow, and so converted after the broadcast."""
    if x.opcode != "broadcast" or is_of_program(x) or is_broadcast_of_constant(x):
        return False
    source = x.operands[0].past("bitcast")
    if not _is_inserted_convert(named, source):
        return False
    created = {u.element_type for u in x.users}
    narrow = source.operands[0].element_type if source.operands else ""
    return not (all(u.opcode == "convert" for u in x.users) and created == {narrow})


def _is_inserted_convert(named: Named, x: Instruction) -> bool:
    if x.opcode != "convert" or is_of_program(x) or LOWERED.get(operation(x)) == x.opcode:
        return False
    return {x.operands[0].element_type, x.element_type} <= FLOATING_TYPES


def _is_negated_sum(named: Named, x: Instruction) -> bool:
    """True for the sum of what was negated, which became the negated sum."""
    return x.opcode == "negate" and x.operands[0].opcode == "reduce" and not is_of_program(x)


TABLE = (
    Entry("bitcast", lambda named, x: x.opcode == "bitcast", Phase.BITCASTS),
    Entry("library or Triton", _is_library_or_triton, Phase.FUSIONS),
    Entry("constant of the front end", _is_constant_of_front_end, Phase.FRONT_END),
    Entry("constant of a call", _is_constant_of_call, Phase.CALLS),
    Entry("broadcast after a reshape", _is_broadcast_after_reshape, Phase.SIMPLIFIED_AGAIN),
    Entry("broadcast of what was widened", _is_spread_last, Phase.SIMPLIFIED_LAST),
    Entry("inserted convert", _is_inserted_convert, Phase.FLOATS),
    Entry("negated sum", _is_negated_sum, Phase.SIMPLIFIED),
)
"""The first row that holds decides; without one the name alone does."""


def phase_of(named: Named, x: Instruction) -> Phase:
    for _, holds, phase in TABLE:
        if holds(named, x):
            return phase
    if x.opcode == "constant" or is_broadcast_of_constant(x):
        return Phase.SIMPLIFIED
    return phase_of_name(named, x)
