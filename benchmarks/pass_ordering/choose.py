"""Fixed lists of passes, chosen on the train split only: choose.py SECONDS [COUNT].

Prints COUNT sequences as JSON. The first is best in the mean of instructions, as a share of what XLA:CPU's
order leaves; each further one is best together with those before it, where the best of them counts on each
module. A sequence is built move by move, the further ones begin as the best of all that were tried; then they
are mended: moves inserted, left out, replaced, put elsewhere. Seconds are of the processor.
"""

from __future__ import annotations

import json
import sys
import time
from collections import OrderedDict
from random import Random

from hlofuse.gym.env import benchmark, manifest
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.search.space import ACTIONS, count_ops

LARGEST = 1500
"""Instructions of a module to choose on; the larger ones repeat the smaller ones' layers."""
Moves = tuple[str, ...]


class Train:
    """What sequences leave of each module of the train split."""

    def __init__(self) -> None:
        rows = [m for m in manifest() if m["split"] == "train" and m["instructions"] <= LARGEST]
        self.benchmarks = [benchmark(m["name"]) for m in rows]
        self.defaults = [b.default_ops("cpu", None) for b in self.benchmarks]
        self._modules: OrderedDict[Moves, list[Module]] = OrderedDict(
            {(): [b.module for b in self.benchmarks]}
        )
        self._shares: dict[Moves, list[float]] = {}

    def _after(self, moves: Moves) -> list[Module]:
        if moves in self._modules:
            self._modules.move_to_end(moves)
            return self._modules[moves]
        action, found = ACTIONS[moves[-1]], []
        for module in self._after(moves[:-1]):
            if action.applies({i.opcode for c in module.computations for i in c}):
                changed = copy_module(module)
                module = changed if action.run(changed) else module
            found.append(module)
        self._modules[moves] = found
        while len(self._modules) > 80:
            self._modules.popitem(last=False)
            self._modules[()] = [b.module for b in self.benchmarks]
        return found

    def tried(self) -> list[Moves]:
        """Every sequence so far."""
        return [*self._shares] or [()]

    def shares(self, moves: Moves) -> list[float]:
        """Instructions over the default's, one for each module."""
        if moves not in self._shares:
            ops = map(count_ops, self._after(moves))
            self._shares[moves] = [n / d for n, d in zip(ops, self.defaults, strict=True)]
        return self._shares[moves]


def mean(train: Train, moves: Moves, others: list[Moves]) -> float:
    """Of the best of the sequences on each module."""
    columns = zip(*(train.shares(m) for m in [moves, *others]), strict=True)
    return sum(map(min, columns)) / len(train.benchmarks)


def best(train: Train, others: list[Moves], seconds: float, random: Random) -> Moves:
    """The sequence that is best beside `others`, within the time."""
    until = time.process_time() + seconds
    moves = min(train.tried(), key=lambda tried: (mean(train, tried, others), len(tried)))
    value = mean(train, moves, others)
    while not others:
        tried = [(mean(train, (*moves, a), others), len(a), (*moves, a)) for a in ACTIONS]
        if min(tried)[0] > value - 1e-4:
            break
        value, _, moves = min(tried)
        print(f"{1 - value:7.2%} {' '.join(moves)}", file=sys.stderr, flush=True)
    while time.process_time() < until:
        tries = list(moves)
        for _ in range(random.choice((1, 1, 2))):
            at = random.randint(0, len(tries))
            match random.randrange(4):
                case 0:
                    tries.insert(at, random.choice(list(ACTIONS)))
                case 1 if tries:
                    del tries[at - 1]
                case 2 if tries:
                    tries[at - 1] = random.choice(list(ACTIONS))
                case 3 if tries:
                    tries.insert(random.randint(0, len(tries) - 1), tries.pop(at - 1))
        new = mean(train, tuple(tries), others)
        if (new, len(tries)) < (value, len(moves)):
            if new < value:
                print(f"{1 - new:7.2%} {' '.join(tries)}", file=sys.stderr, flush=True)
            value, moves = new, tuple(tries)
    at = len(moves) - 1
    while at >= 0:
        shorter = moves[:at] + moves[at + 1 :]
        if mean(train, shorter, others) <= value:
            moves, at = shorter, len(shorter)
        at -= 1
    return moves


def main(seconds: float, count: int) -> None:
    train, random, chosen = Train(), Random(0), list[Moves]()
    for _ in range(count):
        chosen.append(best(train, chosen, seconds, random))
        print(json.dumps(chosen[-1]), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4)
