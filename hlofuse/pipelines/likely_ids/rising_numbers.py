"""Numbers in names of what passes made: of one root they grow from turn to turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.never_back import never_back
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming

_TURNS = (
    Maker.INLINER,
    Maker.SIMPLIFIER,
    Maker.SIMPLIFIER_AGAIN,
    Maker.DOT_MERGER,
    Maker.MOVED_COPIES,
    Maker.LAYOUT_NORMALIZATION,
    Maker.SIMPLIFIER_LAST,
)
_SHOWN = (Maker.DOT_MERGER, Maker.MOVED_COPIES)
_FALL = 20
"""What speaks against one turn of what goes all the way back in the text: a pass goes through it once."""
_WEIGHTS = [6, 7, 8, 16, 16, 8, 16]
"""How surely neighbours tell it.

What is converted there has a name of its own, what is called has not. What seems to be of the first
simplification may only lack a sign of the next one.
"""


def by_numbers(
    makers: Mapping[Instruction, Maker], sure: Collection[Instruction] = ()
) -> dict[Instruction, Maker]:
    """The makers of what passes named after its opcode, such that none of a root goes back.

    Of some they are `sure`.
    """
    chains = chains_of(x for x, maker in makers.items() if _is_of_turn(x, maker))
    place = {x: k for k, x in enumerate(makers)}
    found: dict[Instruction, Maker] = {}
    for chain in chains.values():
        chain.sort(key=lambda x: name_before_renaming(x).number)
        told = [_TURNS.index(makers[x]) for x in chain]
        told_surely = {k for k, x in enumerate(chain) if x in sure}
        at = [place[x] for x in chain]
        falls = {k: _FALL * (a - b) // len(place) for k, (a, b) in enumerate(pairwise(at), 1) if a > b}
        turns = _nearest(told, never_back(told, _WEIGHTS, told_surely, falls))
        found.update((x, _TURNS[turn]) for x, turn in zip(chain, turns, strict=True))
    return found


def _is_of_turn(x: Instruction, maker: Maker) -> bool:
    is_turn = maker in _TURNS and (maker != Maker.SIMPLIFIER_LAST or x.opcode == "broadcast")
    return is_turn and not is_told_of_program(x)


def later(in_turn: Mapping[Instruction, Maker], makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What seems to be of the first simplification, but not by its numbers."""
    return [
        x for x, maker in in_turn.items() if maker == Maker.SIMPLIFIER_AGAIN and makers[x] == Maker.SIMPLIFIER
    ]


def _nearest(turns: list[int], rising: list[int]) -> list[int]:
    """The same ones kept, and the others as little out of place as they may be.

    What was merged or moved shows: nothing else is of those turns.
    """
    latest = len(_TURNS)
    highest = []
    for turn, own in zip(reversed(turns), reversed(rising), strict=True):
        latest = own if own == turn else latest
        highest.append(latest)
    first = 0
    found = []
    for turn, last in zip(turns, reversed(highest), strict=True):
        first = max(first, min(turn, last))
        at = first
        while at != turn and _TURNS[at] in _SHOWN and at < min(last, len(_TURNS) - 1):
            at += 1
        found.append(first if _TURNS[at] in _SHOWN else at)
        first = found[-1]
    return found
