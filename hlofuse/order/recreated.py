"""Instructions recreated by ReshapeMover and AlgebraicSimplifier together, and their rounds. The pipeline
with the two runs until nothing changes. In one round, ReshapeMover
(`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moves a reshape after the element-wise operations that
read it, but not after the readers of their results, and leaves it where it has other users. In the next round
AlgebraicSimplifier merges it into the broadcasts that read it."""

from collections.abc import Iterable

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, is_broadcast_of_constant, is_constant
from hlofuse.ir import Instruction
from .names import is_of_program
from .phases import Phase

Phases = dict[Instruction, Phase]
_SAME_NAMES = (Phase.CALLS, Phase.SIMPLIFIED, Phase.LAYOUTS)
"""Phases whose instructions have the same names as those that ReshapeMover creates."""


def add_recreated(phases: Phases) -> None:
    """Add the readers of moved instructions, and the broadcasts of constants that only moved ones read."""
    moved = dict.fromkeys(
        x for x, p in phases.items() if p == Phase.SIMPLIFIED_AGAIN and x.opcode in ELEMENTWISE_OPCODES
    )
    pending = [*moved]
    for source in pending:
        for x in source.users:
            if x not in moved and x.opcode in ELEMENTWISE_OPCODES and phases.get(x) in _SAME_NAMES:
                moved[x] = None
                pending.append(x)
    read = (o for x in moved for o in x.operands if is_broadcast_of_constant(o))
    spread = (o for o in read if moved.keys() >= {*o.users})
    phases.update(dict.fromkeys([*moved, *spread], Phase.SIMPLIFIED_AGAIN))


def alone_in_layout(phases: Phases) -> list[Instruction]:
    """Operations without neighbours in another layout, but with a stem shared by framework and compiler.
    LayoutNormalization recreated all in one layout, or none. One after a reshape keeps its stem."""
    laid_out = {x for x, p in phases.items() if p == Phase.LAYOUTS and not is_broadcast_of_constant(x)}
    shared = [x for x in phases if x in laid_out and is_of_program(x) and x.opcode in ELEMENTWISE_OPCODES]
    members = {*shared}

    def near(x: Instruction) -> set[Instruction]:
        return laid_out.intersection([*x.operands, *x.users])

    return [x for x in shared if near(x) <= members]


_SPREAD = ("broadcast", "iota")


def split_rounds(recreated: Iterable[Instruction]) -> list[Instruction]:
    """The instructions recreated after the first round, by round of the two passes."""
    rest = dict.fromkeys(recreated)
    rounds = list[Instruction]()
    while rest:
        done = len(rounds)
        found = {x: None for x in rest if rest.keys().isdisjoint(_sources(x))}
        rounds += found
        rest = {x: None for x in rest if x not in found}
        if len(rounds) == done:
            break
    return [*rounds, *rest]


def _sources(x: Instruction) -> list[Instruction]:
    """The instructions recreated earlier: the arrays that one reads, and for a constant its first reader."""
    if x.opcode not in _SPREAD:
        return [o for o in x.operands if not is_constant(o)]
    return x.users[:1] if is_broadcast_of_constant(x) else x.operands[:1]
