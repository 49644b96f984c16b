"""What was made in the body of a loop that was cloned, where names tell no operation from another.

A clone is numbered anew in the order of the text. Each pass behind that begins at the top again and goes on
in the numbers of each root, CallInliner with what was called: whatever has a higher number than another one
of its root that stands behind it came in a later turn.
"""

from __future__ import annotations

from itertools import pairwise

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.names import name_before_renaming

_NUMBERED_OTHERWISE = frozenset({"custom-call", "fusion", "get-tuple-element", "parameter"})


def in_turns(computation: Computation, members: list[Instruction]) -> list[Instruction]:
    """The members, given in the order of the text, by the turns that they were made in.

    The first of a root may be of any turn up to the second one's: it is of the one that needs it.
    """
    place = {x: k for k, x in enumerate(members)}
    chains = chains_of(x for x in members if x.opcode not in _NUMBERED_OTHERWISE)
    turn = dict.fromkeys((x for x in members if x.opcode in _NUMBERED_OTHERWISE), 0)
    following: dict[Instruction, Instruction] = {}
    for chain in chains.values():
        chain.sort(key=lambda x: (name_before_renaming(x).number, place[x]))
        following.update(pairwise(chain))
    back = {x: int(place[y] < place[x]) for x, y in following.items()}
    """Is the next one of the root of a later turn for sure?"""
    _go_through(chains, back, turn)
    later = {x for x in members if not x.op_name and not is_constant(x) and x.opcode != "tuple"}
    """Expanded by passes."""
    if inlined := _are_inlined_late(chains, turn):
        later.update(x for x in members if is_of_call(x))
    turn.update((x, max(turn[x], 1)) for x in later)
    _go_through(chains, back, turn)
    risen = True
    while risen:
        risen = False
        needed = _needed(computation, turn)
        for x in reversed(members):
            if x.opcode in _NUMBERED_OTHERWISE or (inlined and x not in later):
                continue
            latest = needed.get(x, turn[x])
            if x in following:
                latest = min(latest, turn[following[x]] - back[x])
            if latest > turn[x]:
                turn[x] = latest
                risen = True
    return sorted(members, key=lambda x: (turn[x], place[x]))


def _go_through(
    chains: dict[str, list[Instruction]], back: dict[Instruction, int], turn: dict[Instruction, int]
) -> None:
    """Have no turn be before what the one in front of it in its chain asks for."""
    for chain in chains.values():
        turn.setdefault(chain[0], 0)
        for x, y in pairwise(chain):
            turn[y] = max(turn.get(y, 0), turn[x] + back[x])


def _are_inlined_late(chains: dict[str, list[Instruction]], turn: dict[Instruction, int]) -> bool:
    """Is most of what came from calls, where the rest tells, of a later turn than the clone itself?"""
    told = [
        x for chain in chains.values() if not all(map(is_of_call, chain)) for x in filter(is_of_call, chain)
    ]
    return 2 * sum(turn[x] > 0 for x in told) > len(told)


def _needed(computation: Computation, turn: dict[Instruction, int]) -> dict[Instruction, int]:
    """The turn of the first reader of each, by way of others or not."""
    found: dict[Instruction, int] = {}
    for x in reversed(computation.instructions):
        read = [turn[u] if u in turn else found[u] for u in x.users if u in turn or u in found]
        if read:
            found[x] = min(read)
    return found
