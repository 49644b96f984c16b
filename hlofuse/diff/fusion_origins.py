"""Where the fusions of one module are in another.

A fusion is the set of values computed in it. Values that every program computes everywhere (a
broadcast constant) are copied freely into many fusions and say nothing about where a fusion came
from, so only the others, its core, decide that; all of them decide whether it is unchanged.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

from hlofuse.diff.graph import Graph, Group
from hlofuse.diff.matching import TRIVIAL, Matching


@dataclass(slots=True, eq=False)
class MatchedFusion:
    """A fusion's members in terms common to both sides: BEFORE's index, or ~index for AFTER's own."""

    group: Group
    members: frozenset[int]
    core: frozenset[int]
    """Those that say where it came from; only what both sides have."""
    own: frozenset[int]
    """Members of the core's sort that the other side has nowhere."""
    outputs: tuple[int, ...]
    """Results, in any order: that of a multi-output fusion's results is nobody's concern."""
    sources: list[MatchedFusion] = field(default_factory=list)
    """For a fusion of AFTER: those of BEFORE that explain it; for one of BEFORE: where it went."""
    same_as: MatchedFusion | None = None
    loose: frozenset[int] = frozenset()
    """Of its core, what is in no fusion on the other side."""


class FusionOrigins:
    """The fusions of two matched modules, each with those of the other side that it is or comes from."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        b, a = matching.before, matching.after
        self.before = [self._fusion(b, g, after=False) for g in b.groups.values()]
        self.after = [self._fusion(a, g, after=True) for g in a.groups.values()]
        self._pair_same()
        self._explain(self.before, self.after)
        self._explain(self.after, self.before)

    def _fusion(self, graph: Graph, group: Group, *, after: bool) -> MatchedFusion:
        partner = self._matching.backward if after else self._matching.forward

        def name(i: int) -> int:
            if after:
                return partner[i] if partner[i] >= 0 else ~i
            # A copy in BEFORE goes by the name its original has.
            return self._matching.backward[partner[i]] if partner[i] >= 0 else i

        members = list(group.members)
        telling = [i for i in members if graph.values[i].opcode not in TRIVIAL] or members
        return MatchedFusion(
            group,
            frozenset(map(name, members)),
            frozenset(name(i) for i in telling if partner[i] >= 0),
            frozenset(name(i) for i in telling if partner[i] < 0),
            tuple(sorted(map(name, group.outputs))),
        )

    def _pair_same(self) -> None:
        """Fusions with the same members, those with the same results first."""
        for key in (
            lambda f: (f.members, f.outputs, f.group.fusion.fusion_kind),
            lambda f: (f.members, f.outputs),
            lambda f: f.members,
        ):
            waiting: dict[object, list[MatchedFusion]] = {}
            for f in reversed(self.before):
                if f.same_as is None:
                    waiting.setdefault(key(f), []).append(f)
            for f in self.after:
                if f.same_as is None and waiting.get(key(f)):
                    other = waiting[key(f)].pop()
                    f.same_as, other.same_as = other, f

    def _explain(self, fusions: list[MatchedFusion], others: list[MatchedFusion]) -> None:
        """For each fusion the fewest of the other side that cover its core, largest share first."""
        fusions_of: dict[int, list[int]] = {}
        for n, other in enumerate(others):
            for member in other.core:
                fusions_of.setdefault(member, []).append(n)
        for f in fusions:
            if f.same_as is not None:
                f.sources = [f.same_as]
                continue
            rest = set(f.core)
            share = Counter(n for member in rest for n in fusions_of.get(member, ()))
            f.loose = frozenset(member for member in rest if member not in fusions_of)
            rest -= f.loose
            # A fusion that is wholly part of this one explains it better than a large one with as much.
            # What a fusion still explains only shrinks, so an old figure is an upper bound.
            queue = [(-n, -n / len(others[i].core), i) for i, n in share.items()]
            heapq.heapify(queue)
            while rest:
                gain, ratio, best = heapq.heappop(queue)
                left = len(rest & others[best].core)
                if left < -gain:
                    heapq.heappush(queue, (-left, ratio, best))
                else:
                    rest -= others[best].core
                    f.sources.append(others[best])
