"""Ways to look for good moves until the time is over: greedy appends, evolution changes sequences."""

import math
import time
from collections.abc import Callable
from random import Random

from hlofuse.ir import Module, Record
from .space import SAME, TIMES, Moves, Score, Space, SpentBudget

LONGEST = 40  # Moves in a sequence at most
_NAMES = {
    "A": "algsimp(dot_strength_reduction=false)",
    "I": "call-inliner(single_call_site=true)",
    "D": "computation-deduplicator",
    "R": "reshape-mover",
    "F": "constant_folding",
    "C": "call-inliner",
    "S": "cse",
    "T": "transpose-folding",
    "U": "tuple-simplifier",
    "M": "convert-mover",
}
PORTFOLIO: tuple[Moves, ...] = tuple(
    tuple(_NAMES[k] for k in word) for word in "ADRRACFAST AIDFSAFIS DRACUFS AFRCARMFADS".split()
)
"""The best together on the train split of `benchmarks/pass_ordering`; tried ahead of everything else."""


class Step(Record):
    move: str
    score: Score  # With the moves up to this one


class Found(Record):
    """The best sequence of a search, without moves that it can do without."""

    moves: Moves
    default: Score
    score: Score
    steps: tuple[Step, ...]
    evaluations: int
    seconds: float
    module: Module
    """After the passes among the moves, ahead of XLA's own; to be read only."""


def search(
    space: Space,
    method: str,
    seconds: float = math.inf,
    tries: float = math.inf,
    seed: int = 0,
) -> Found:
    """The best sequence that `method` finds, never worse than XLA's default; seeds repeat it."""
    began = time.monotonic()
    space.deadline, space.most_evaluations = began + seconds, tries
    try:
        for sequence in PORTFOLIO:
            if set(sequence) <= set(space.moves):
                space.value(sequence)
        METHODS[method](space, Random(seed))
    except SpentBudget:
        pass
    space.deadline = space.most_evaluations = math.inf
    return result_of(space, minimized(space, space.best), began)


def result_of(space: Space, moves: Moves, began: float) -> Found:
    """A sequence with all its figures."""
    default, score = space.default(), space.score(moves)
    assert score is not None
    steps = [Step(m, s) for k, m in enumerate(moves, 1) if (s := space.score(moves[:k])) is not None]
    seconds = time.monotonic() - began
    return Found(moves, default, score, tuple(steps), space.evaluations, seconds, space.module(moves))


def minimized(space: Space, moves: Moves) -> Moves:
    """The sequence without every move that does not make it better; a time, by what a report shows."""
    at = len(moves) - 1
    least = space.value(moves) * (1 + (SAME if space.objective in TIMES else 0))
    while at >= 0:
        shorter = moves[:at] + moves[at + 1 :]
        if space.value(shorter) <= least:
            moves, at = shorter, len(shorter)
        at -= 1
    return moves


def greedy(space: Space, random: Random) -> None:
    """Append what helps most, until nothing does."""
    moves: Moves = ()
    for _ in range(LONGEST):
        longer = [(*moves, m) for m in space.moves if space.changes(moves, m)]
        moves = min(longer, key=space.value, default=moves)
        if not longer or moves != space.best:
            return


def evolve(space: Space, random: Random) -> None:
    """Single moves first, then the best sequences with moves added, left out, replaced and exchanged."""
    for move in space.moves:
        if space.changes((), move):
            space.value((move,))
    while True:
        parents = space.fittest()
        moves = list(random.choice(parents[: random.randint(1, len(parents))]))
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            at = random.randint(0, len(moves))
            match random.randrange(5):
                case 0 | 1:
                    moves.insert(at, random.choice(space.moves))
                case 2 if moves:
                    del moves[at - 1]
                case 3 if moves:
                    moves[at - 1] = random.choice(space.moves)
                case 4:
                    other = random.choice(parents)
                    moves = moves[:at] + list(other[random.randint(0, len(other)) :])
        space.value(tuple(moves[:LONGEST]))


METHODS: dict[str, Callable[[Space, Random], None]] = {"greedy": greedy, "evolve": evolve}
