"""Instructions recreated by ReshapeMover and AlgebraicSimplifier together, and their rounds. The pipeline
with the two runs until nothing changes. In one round, ReshapeMover
(`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moves a reshape after the element-wise operations that
read it, but not after the readers of their results, and leaves it where it has other users. In the next round
AlgebraicSimplifier merges it into the broadcasts that read it."""

from collections.abc import Callable, Iterable
from itertools import accumulate

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, is_broadcast_of_constant, is_constant
from hlofuse.ir import Instruction, grouped
from .names import is_of_program, number, operation, stack_frame, stem
from .phases import Phase

Phases = dict[Instruction, Phase]

_EARLIER = (Phase.FRONT_END, Phase.CALLS, Phase.SIMPLIFIED)
_SAME_NAMES = (Phase.CALLS, Phase.SIMPLIFIED, Phase.LAYOUTS)
"""Phases whose instructions have the same names as those that ReshapeMover creates."""


def add_recreated(phases: Phases) -> None:
    """Add instructions recreated together with those of a later round, and the broadcasts for them."""
    for find in (
        _read_moved,
        _chain_to_mean,
        _converted_for_moved,
        _spread_for_moved,
        _spread_of_moved,
    ):
        phases.update(dict.fromkeys(find(phases), Phase.SIMPLIFIED_AGAIN))


def _is_moved(x: Instruction, phases: Phases) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and phases.get(x) == Phase.SIMPLIFIED_AGAIN


def _read_moved(phases: Phases) -> Iterable[Instruction]:
    found = dict[Instruction, None]()
    pending = [x for x in phases if _is_moved(x, phases)]
    for source in pending:
        for x in source.users:
            if x not in found and x.opcode in ELEMENTWISE_OPCODES and phases.get(x) in _SAME_NAMES:
                found[x] = None
                pending.append(x)
    return found


def _chain_to_mean(phases: Phases) -> Iterable[Instruction]:
    """A mean that keeps its dimensions, and the operations between it and moved ones."""
    found = {}
    for x in phases:
        if not _is_moved(x, phases):
            continue
        path = []
        arrays = arrays_read_by(x)
        while len(arrays) == 1 and phases.get(arrays[0]) in _EARLIER:
            if arrays[0].opcode not in ELEMENTWISE_OPCODES or len(arrays[0].users) != 1:
                break
            path += arrays
            arrays = arrays_read_by(path[-1])
        if len(path) > 1 and path[-1].opcode == "multiply" and _reads_reduction(path[-1]):
            found.update(dict.fromkeys(path))
    return found


def _converted_for_moved(phases: Phases) -> Iterable[Instruction]:
    """Sums that keep their dimensions, converted after the reshape that is in their broadcasts now."""
    return [
        x
        for x, phase in phases.items()
        if phase == Phase.FRONT_END and x.opcode == "convert" and x.users and x.operands[0].opcode == "reduce"
        if all(u.opcode == "broadcast" and phases.get(u) == Phase.SIMPLIFIED_AGAIN for u in x.users)
    ]


def _spread_for_moved(phases: Phases) -> Iterable[Instruction]:
    """Operations moved like their readers, and the broadcasts that only moved ones read."""
    moved = [x for x in phases if _is_moved(x, phases)]
    merged = [x for x, p in phases.items() if p == Phase.SIMPLIFIED_AGAIN and x.opcode == "broadcast"]
    found = dict.fromkeys(x for x, p in phases.items() if p == Phase.SIMPLIFIED and _ends_in_reshape(x))
    pending = [*moved, *merged, *found]
    for reader in pending:
        for x in reader.operands:
            if x in found or phases.get(x) != Phase.SIMPLIFIED or not _reads_one_array(x):
                continue
            if reader.opcode != "broadcast" or _reads_reduction(x):
                found[x] = None
                pending.append(x)
    readers = {*moved, *found}
    spread = (
        o for x in readers for o in x.operands if is_broadcast_of_constant(o) and readers.issuperset(o.users)
    )
    return [*found, *dict.fromkeys(spread)]


def _spread_of_moved(phases: Phases) -> Iterable[Instruction]:
    """The broadcasts that absorbed the reshape after a moved operation."""
    return [
        x
        for x, phase in phases.items()
        if x.opcode == "broadcast"
        and phase in _EARLIER
        and _is_moved(x.operands[0], phases)
        and (x.operands[0].shape.rank or any(o.opcode != "reduce" for o in arrays_read_by(x.operands[0])))
    ]


def arrays_read_by(x: Instruction) -> list[Instruction]:
    """The operands without constants and broadcasts of constants."""
    return [o for o in x.operands if not is_constant(o)]


def _reads_one_array(x: Instruction) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and len(arrays_read_by(x)) == 1 < len(x.operands)


def _reads_reduction(x: Instruction) -> bool:
    return any(o.opcode == "reduce" for o in x.operands)


def _ends_in_reshape(x: Instruction) -> bool:
    """True for a mean that keeps its dimensions: the reshape is after the quotient, or in its broadcasts."""
    negated = any(o.opcode == "negate" and _reads_reduction(o) for o in x.operands)
    if not (_reads_one_array(x) and x.users and (_reads_reduction(x) or negated)):
        return False
    if all(u.opcode == "bitcast" for u in x.users):
        return True
    return bool(x.shape.rank) and {u.opcode for u in x.users} <= {"broadcast", "negate"}


def alone_in_layout(phases: Phases) -> list[Instruction]:
    """Operations without neighbours in another layout, but with a stem shared by framework and compiler.
    LayoutNormalization recreated all in one layout, or none. One after a reshape keeps its stem."""
    shared = [
        x
        for x, phase in phases.items()
        if phase == Phase.LAYOUTS and is_of_program(x) and x.opcode in ELEMENTWISE_OPCODES
    ]
    members = set(shared)
    found = []
    seen = set()
    for start in shared:
        if start in seen:
            continue
        group, laid_out = [start], False
        seen.add(start)
        for x in group:
            for near in (*x.operands, *x.users):
                if near in members:
                    if near not in seen:
                        seen.add(near)
                        group.append(near)
                elif phases.get(near) == Phase.LAYOUTS and not is_broadcast_of_constant(near):
                    laid_out = True
        if not laid_out:
            found += group
    return found


def split_rounds(recreated: Iterable[Instruction]) -> list[list[Instruction]]:
    """The instructions recreated after the first round, by round of the two passes."""
    rest = dict.fromkeys(recreated)
    rounds = list[list[Instruction]]()
    while True:
        moved = _movable(rest)
        for x in moved:
            del rest[x]
        taken = [x for x in rest if _takes_reshape(x, rest)]
        for x in taken:
            del rest[x]
        if not moved and not taken:
            break
        rounds += [_sort_by_operands([x for one in rounds for x in one], moved), taken]
    return [*_drop_falling_numbers(rounds), [*rest]]


def _drop_falling_numbers(rounds: list[list[Instruction]]) -> list[list[Instruction]]:
    """The rounds, without instructions numbered higher than a later one of their stem."""
    at = {x: k for k, members in enumerate(rounds) for x in members}
    for chain in chains_of(at, lambda x: not is_of_program(x) and _has_its_own_number(x)):
        at.update(zip(chain, accumulate((at[x] for x in chain), max), strict=True))
    risen: list[list[Instruction]] = [[] for _ in rounds]
    for x, k in at.items():
        risen[k].append(x)
    return risen


def chains_of(
    members: Iterable[Instruction], wanted: Callable[[Instruction], bool]
) -> list[list[Instruction]]:
    """The wanted members of each stem, sorted by number, which rises in passes."""
    chains = grouped((stem(x), x) for x in members if wanted(x))
    for chain in chains.values():
        chain.sort(key=number)
    return [*chains.values()]


def _has_its_own_number(x: Instruction) -> bool:
    return is_broadcast_of_constant(x) if x.opcode == "broadcast" else x.opcode in ELEMENTWISE_OPCODES


def _takes_reshape(x: Instruction, rest: dict[Instruction, None]) -> bool:
    """True if none of a broadcast's sources is still to come."""
    if x.opcode not in ("broadcast", "iota"):
        return False
    return rest.keys().isdisjoint(x.users[:1] if is_broadcast_of_constant(x) else x.operands[:1])


def _movable(rest: dict[Instruction, None]) -> list[Instruction]:
    """Instructions with no source still to come, unless a remaining one shares an operand."""
    moved = {
        x
        for x in rest
        if x.opcode not in ("broadcast", "iota") and rest.keys().isdisjoint(_blocking_arrays(x))
    }
    while stay := {
        x for x in moved if any(u in rest and u not in moved for o in arrays_read_by(x) for u in o.users)
    }:
        moved -= stay
    # Candidates are moved by their ids: what AlgebraicSimplifier made before comes after the program's.
    candidates = [x for x in rest if x in moved]
    return sorted(candidates, key=lambda x: stem(x) == x.opcode != operation(x))


def _blocking_arrays(x: Instruction) -> list[Instruction]:
    """Its arrays without broadcasts: ReshapeMover moves those with it."""
    arrays = arrays_read_by(x)
    return [o for o in arrays if o.opcode != "broadcast" or o.operands[0].shape.true_rank > 1] or arrays


def _sort_by_operands(is_earlier: list[Instruction], moved: list[Instruction]) -> list[Instruction]:
    """The moved ones in the order of their operands, if each reads one earlier array."""
    place = {x: k for k, x in enumerate(is_earlier)}
    read = {x: [*dict.fromkeys(arrays_read_by(x))] for x in moved}
    if any(len(arrays) != 1 or arrays[0] not in place for arrays in read.values()):
        return moved
    return sorted(moved, key=lambda x: (place[read[x][0]], stack_frame(x)))
