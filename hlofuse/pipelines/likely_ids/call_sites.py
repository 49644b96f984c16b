"""The order in which the front end went through what a function calls.

A place in the source is known with all that called it. What a function does at one of its call sites is over
before the next one's turn, unless there is a loop around both: a map over leaves goes to each site for each
leaf, and what is differentiated comes again. So where numbers say that all of some sites came before all of
others, these are blocks.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import name_before_renaming, stack_frame

_Chain = list[tuple[int, int]]
"""The numbers of one root, each with its site."""


def in_order_of_call_sites(
    order: list[Instruction], reads: Mapping[Instruction, Iterable[Instruction]]
) -> list[Instruction]:
    """Operations in a likely `order` of the program, with those of one call site together.

    An operation never comes before what it `reads`.
    """
    computation = order[0].computation if order else None
    module = computation.module if computation is not None else None
    if module is None or not module.stack_frames:
        return order
    with_callers = module.stack_frames.with_callers
    paths: dict[Instruction, list[int]] = {}
    out_of_turn: set[int] = set()
    """Sites with numbers, which are written in front of everything else."""
    for x in order:
        if is_constant(x):
            out_of_turn.update(with_callers(stack_frame(x)))
        elif frame := stack_frame(x):
            paths[x] = [*with_callers(frame)][::-1]
    turns = _turns(paths, out_of_turn)
    key: dict[Instruction, tuple[int, ...]] = {}
    behind: tuple[int, ...] = ()
    for x in reversed(order):
        if x in paths:
            behind = _key(paths[x], turns)
        key[x] = () if is_constant(x) else behind
    return _by_key(order, key, reads)


def _turns(paths: Mapping[Instruction, list[int]], out_of_turn: set[int]) -> dict[int, dict[int, int]]:
    """When each site of a caller had its turn, the same for those that may have been mixed.

    Callers with several sites of which nothing is known are left out.
    """
    chains: dict[int, dict[str, _Chain]] = {}
    derived: dict[int, set[int]] = {}
    sites: dict[int, dict[int, None]] = {}
    for x, path in paths.items():
        root, number = name_before_renaming(x)
        for caller, site in pairwise(path):
            sites.setdefault(caller, {})[site] = None
            chains.setdefault(caller, {}).setdefault(root, []).append((number, site))
            if is_of_derivative(x):
                derived.setdefault(caller, set()).add(site)
    found: dict[int, dict[int, int]] = {}
    for caller, of_caller in sites.items():
        of_roots = [sorted(chain) for chain in chains[caller].values()]
        met = _as_met([*of_caller], of_roots, out_of_turn)
        turns = _apart(met, of_roots, derived.get(caller, set()))
        if len(met) == 1 or turns[met[-1]]:
            found[caller] = turns
    return found


def _as_met(sites: list[int], chains: Iterable[_Chain], out_of_turn: set[int]) -> list[int]:
    """The sites in turn. They are numbered as they are met; of those out of turn numbers of roots tell."""
    firsts: list[dict[int, int]] = []
    for chain in chains:
        first: dict[int, int] = {}
        for number, site in chain:
            first.setdefault(site, number)
        firsts.append(first)
    turns = sorted(site for site in sites if site not in out_of_turn)
    for k, site in enumerate(sites):
        if site not in out_of_turn:
            continue
        of_roots = [first for first in firsts if site in first]
        before, behind = -1, len(turns)
        for at, other in enumerate(turns):
            later = {first[site] > first[other] for first in of_roots if other in first}
            before = at if True in later else before
            behind = min(behind, at) if False in later else behind
        if before < 0 and behind == len(turns):
            before = next((turns.index(other) for other in reversed(sites[:k]) if other in turns), -1)
            behind = before + 1
        turns.insert(behind if before < 0 else before + 1, site)
    return turns


def _apart(met: list[int], chains: Iterable[_Chain], derived: set[int]) -> dict[int, int]:
    """The turn of each site: a new one begins where numbers of some root say so, and those of none say no."""
    place = {site: at for at, site in enumerate(met)}
    told: list[range] = []
    mixed: set[int] = set()
    if derived:
        again = [place[site] for site in derived]
        mixed.update(range(min(again) + 1, max(again) + 1))
    for chain in chains:
        lowest: dict[int, int] = {}
        highest: dict[int, int] = {}
        for number, site in chain:
            lowest.setdefault(place[site], number)
            highest[place[site]] = number
        order = sorted(lowest)
        above = [*accumulate((lowest[at] for at in reversed(order)), min)][::-1]
        below = accumulate((highest[at] for at in order), max)
        for (before, at), least, most in zip(pairwise(order), above[1:], below, strict=False):
            between = range(before + 1, at + 1)
            if most < least:
                told.append(between)
            else:
                mixed.update(between)
    begun = {0}
    for between in told:
        likely = [at for at in between if at not in mixed]
        if len(likely) == 1 or not mixed:
            begun.update(likely)
    turns = sorted(begun)
    return {site: bisect_right(turns, at) - 1 for site, at in place.items()}


def _key(path: list[int], turns: Mapping[int, Mapping[int, int]]) -> tuple[int, ...]:
    """The turns of all around an operation, from outside to where sites may have been mixed."""
    found: list[int] = []
    for caller, site in pairwise(path):
        if caller not in turns:
            break
        found.append(turns[caller][site])
        if [*turns[caller].values()].count(found[-1]) > 1:
            break
    return tuple(found)


def _by_key(
    order: list[Instruction],
    key: Mapping[Instruction, tuple[int, ...]],
    reads: Mapping[Instruction, Iterable[Instruction]],
) -> list[Instruction]:
    """The operations by turn, as far as each has what it reads ahead of it."""
    place = {x: k for k, x in enumerate(order)}
    waiting: dict[Instruction, int] = {}
    readers: dict[Instruction, list[Instruction]] = {}
    for x in order:
        needed = [o for o in reads[x] if place[o] < place[x]]
        waiting[x] = len(needed)
        for o in needed:
            readers.setdefault(o, []).append(x)
    ready = [(key[x], place[x]) for x in order if not waiting[x]]
    heapq.heapify(ready)
    found: list[Instruction] = []
    while ready:
        x = order[heapq.heappop(ready)[1]]
        found.append(x)
        for reader in readers.get(x, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (key[reader], place[reader]))
    return found
