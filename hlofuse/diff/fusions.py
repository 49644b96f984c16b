"""Changes of fusions: split, merged, grown, new, removed."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis import kernels
from hlofuse.analysis.cost import Cost
from hlofuse.ir import Instruction, grouped, numbered, reach
from hlofuse.matching.graph import Graph, Group
from hlofuse.matching.key import canonical_attribute
from hlofuse.matching.structure import TRIVIAL, Matching
from .model import Detail, FusionChange, FusionKind, Kind

MOST_TOGETHER = 12
"""Fusions in one change; of more, what happened to each says more than that they were regrouped."""


class MatchedFusion(Struct, eq=False):
    """A fusion's members in terms common to both sides: BEFORE's index, or ~index for AFTER's own."""

    group: Group
    members: frozenset[int]
    core: frozenset[int]  # Values that identify its origin: only those of both sides
    own: frozenset[int]  # Members of the core's sort that the other side has nowhere
    outputs: tuple[int, ...]  # Results, in any order, which does not matter for a multi-output fusion
    sources: "list[MatchedFusion]" = []
    """For a fusion of AFTER: those of BEFORE that explain it; for one of BEFORE: where it went."""
    same_as: "MatchedFusion | None" = None
    loose: frozenset[int] = frozenset()  # Values of its core outside of fusions on the other side


class FusionChanges:
    """Compares the fusions of two matched modules."""

    def __init__(self, matching: Matching, costs: KernelCosts) -> None:
        self.m = matching
        self.costs = costs
        b, a = matching.before, matching.after
        self.before = [self._fusion(b, g, after=False) for g in b.groups.values()]
        self.after = [self._fusion(a, g, after=True) for g in a.groups.values()]
        for key in (
            lambda f: (f.members, f.outputs, f.group.fusion.fusion_kind),
            lambda f: (f.members, f.outputs),
            lambda f: f.members,
        ):
            waiting = grouped((key(f), f) for f in reversed(self.before) if f.same_as is None)
            for f in self.after:
                if f.same_as is None and waiting.get(key(f)):
                    other = waiting[key(f)].pop()
                    f.same_as, other.same_as = other, f
        self._explain(self.before, self.after)
        self._explain(self.after, self.before)
        self.unchanged = 0
        self.reported: set[MatchedFusion] = set()
        """Fusions of either side that are part of a change of several on both sides."""

    def find(self) -> list[FusionChange]:
        """Every change, most telling kinds first, then in the order of the text."""
        found = [*self._same_but(), *self._regrouped(), *self._of_before(), *self._of_after()]
        order = numbered(FusionKind)
        return sorted(found, key=lambda change: order[change.kind])

    def _same_but(self) -> Iterator[FusionChange]:
        """Pairs with the same members: unchanged, unless kind, config or results differ."""
        for a in self.after:
            b = a.same_as
            if b is None:
                continue
            details = tuple(self._details(b, a))
            if details:
                yield self._change(FusionKind.CHANGED, [b], [a], details)
            else:
                self.unchanged += 1

    def _regrouped(self) -> Iterator[FusionChange]:
        """Several that went, in parts, into several: one change, in which nothing else took part."""
        for old, new in self._tied():
            if len(old) > 1 and len(new) > 1 and len(old) + len(new) <= MOST_TOGETHER:
                self.reported.update(old, new)
                yield self._change(FusionKind.REGROUPED, old, new)

    def _tied(self) -> Iterator[tuple[list[MatchedFusion], list[MatchedFusion]]]:
        """The changed fusions of both sides that explain one another, in the order of the text."""
        changed = [f for f in (*self.before, *self.after) if f.same_as is None]
        pairs = ((f, source) for f in changed for source in f.sources if source.same_as is None)
        near = grouped(pair for a, b in pairs for pair in ((a, b), (b, a)))
        place = numbered((*self.before, *self.after))
        seen = set()
        for start in self.before:
            if start in seen or start not in near:
                continue
            found = set(reach([start], near.__getitem__))
            seen |= found
            ordered = sorted(found, key=place.__getitem__)
            split = next((n for n, f in enumerate(ordered) if place[f] >= len(self.before)), len(ordered))
            yield ordered[:split], ordered[split:]

    def _of_before(self) -> Iterator[FusionChange]:
        for b in self.before:
            if b.same_as is not None or b in self.reported:
                continue
            if not b.sources:
                yield self._change(FusionKind.VANISHED, [b], [])
            elif len(b.sources) == 1 and b.sources[0].same_as is not None:
                # All of it is computed in a fusion that was there before.
                yield self._change(FusionKind.VANISHED, [b], [], self._retained_in(b.sources[0]))
            elif self._same_core(b, b.sources[0]):
                continue  # reported from the other side
            elif len(b.sources) > 1:
                yield self._change(FusionKind.SPLIT, [b], b.sources)

    def _of_after(self) -> Iterator[FusionChange]:
        for a in self.after:
            if a.same_as is not None or a in self.reported:
                continue
            sources = a.sources
            whole = [b for b in sources if b.core <= a.core]
            if not sources:
                yield self._change(FusionKind.NEW, [], [a])
            elif len(sources) == 1:
                b = sources[0]
                if b.same_as is not None:
                    yield self._change(FusionKind.NEW, [], [a], self._retained_in(b.same_as))
                elif self._same_core(b, a):
                    yield self._change(
                        FusionKind.CHANGED, [b], [a], (*self._plumbing(b, a), *self._details(b, a))
                    )
                elif whole:
                    more = a.loose or a.own or not (a.members < b.members)
                    yield self._change(FusionKind.GROWN if more else FusionKind.SHRUNK, [b], [a])
                elif len(b.sources) < 2:
                    yield self._change(FusionKind.SHRUNK, [b], [a])
                # Otherwise it is a part of a split fusion, which reports it.
            else:
                kind = FusionKind.MERGED if len(whole) == len(sources) else FusionKind.REGROUPED
                yield self._change(kind, sources, [a])

    @staticmethod
    def _same_core(b: MatchedFusion, a: MatchedFusion) -> bool:
        return b.core == a.core and not (b.own or a.own or b.loose or a.loose)

    def _plumbing(self, b: MatchedFusion, a: MatchedFusion) -> Iterator[Detail]:
        before, after = self.m.before.values, self.m.after.values
        removed = [before[i].instruction for i in sorted(b.members - a.members)]
        here = [(before[i] if i >= 0 else after[~i]).instruction for i in sorted(a.members - b.members)]
        names = [", ".join(f"{i.opcode} {i.name}" for i in found) or None for found in (removed, here)]
        yield Detail(Kind.ATTRIBUTE, "inside", *names)

    def _retained_in(self, fusion: MatchedFusion) -> tuple[Detail, ...]:
        name = fusion.group.fusion.name
        return (Detail(Kind.ANNOTATION, "computed in", name, name),)

    def _details(self, b: MatchedFusion, a: MatchedFusion) -> Iterator[Detail]:
        one, other = b.group.fusion, a.group.fusion
        if one.fusion_kind != other.fusion_kind:
            yield Detail(Kind.ATTRIBUTE, "kind", one.fusion_kind, other.fusion_kind)
        if b.outputs != a.outputs:
            results = self._results(self.m.before, b), self._results(self.m.after, a)
            yield Detail(Kind.ROOT, "results", *results)
        configs = [f.raw("backend_config") for f in (one, other)]
        texts = [None if c is None else canonical_attribute("backend_config", c) for c in configs]
        if texts[0] != texts[1] and (texts[0] or "{}") != (texts[1] or "{}"):
            yield Detail(Kind.ANNOTATION, "backend_config", *texts)
        old = self._copies(b.group)
        new = {self.m.backward[i]: n for i, n in self._copies(a.group).items()}
        for i in dict.fromkeys([*old, *new]):
            if old.get(i, 1) != new.get(i, 1):
                name = self.m.before.values[i].instruction.name if i >= 0 else "?"
                yield Detail(Kind.ATTRIBUTE, f"copies of {name}", str(old.get(i, 1)), str(new.get(i, 1)))

    def _copies(self, group: Group) -> dict[int, int]:
        return {i: len(found) for i, found in group.members.items() if len(found) > 1}

    def _results(self, graph: Graph, f: MatchedFusion) -> str:
        return ", ".join(graph.values[i].instruction.name for i in f.group.outputs)

    def _change(
        self,
        kind: FusionKind,
        before: list[MatchedFusion],
        after: list[MatchedFusion],
        details: tuple[Detail, ...] = (),
    ) -> FusionChange:
        old, new = self.m.before.values, self.m.after.values
        joined = [] if kind is FusionKind.SPLIT else _ordered(i for f in after for i in f.loose)
        left = _ordered(i for f in before for i in f.loose)
        into = [old[i].instruction for i in joined]
        out = [new[self.m.forward[i]].instruction for i in left]
        one, other = (tuple(f.group.fusion for f in side) for side in (before, after))
        cost_before = cost_after = None
        if self._is_closed(before, after, joined, left):
            cost_before = self._cost([*one, *filter(kernels.is_kernel, into)])
            cost_after = self._cost([*other, *filter(kernels.is_kernel, out)])
        return FusionChange(
            kind,
            one,
            other,
            tuple(into),
            tuple(out),
            tuple(new[~i].instruction for f in after for i in sorted(f.own, reverse=True)),
            tuple(old[i].instruction for f in before for i in sorted(f.own)),
            tuple(found[0] for f in after or before for found in f.group.members.values()),
            details,
            cost_before,
            cost_after,
        )

    def _is_closed(
        self,
        before: list[MatchedFusion],
        after: list[MatchedFusion],
        joined: list[int],
        left: list[int],
    ) -> bool:
        """True if nothing else took part: only then can costs be compared."""
        forward, values, others = self.m.forward, self.m.before.values, self.m.after.values
        return (
            all(source in before for f in after for source in f.sources)
            and all(source in after for f in before for source in f.sources)
            and all(len(others[forward[i]].instances) == 1 for i in joined)
            and all(len(values[i].instances) == 1 for i in left)
        )

    def _cost(self, instructions: Iterable[Instruction]) -> Cost:
        total = Cost()
        for i in instructions:
            total += self.costs.instruction(i)
        return total

    def _fusion(
        self,
        graph: Graph,
        group: Group,
        *,
        after: bool,
    ) -> MatchedFusion:
        partner = self.m.backward if after else self.m.forward

        def name(i: int) -> int:
            if after:
                return partner[i] if partner[i] >= 0 else ~i
            # A copy in BEFORE goes by the name its original has.
            return self.m.backward[partner[i]] if partner[i] >= 0 else i

        members = list(group.members)
        telling = [i for i in members if graph.values[i].opcode not in TRIVIAL] or members
        return MatchedFusion(
            group,
            frozenset(map(name, members)),
            frozenset(name(i) for i in telling if partner[i] >= 0),
            frozenset(name(i) for i in telling if partner[i] < 0),
            tuple(sorted(map(name, group.outputs))),
        )

    def _explain(self, fusions: list[MatchedFusion], others: list[MatchedFusion]) -> None:
        """For each fusion the fewest of the other side that cover its core, largest share first."""
        fusions_of = grouped((member, n) for n, other in enumerate(others) for member in other.core)
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


def _ordered(indices: Iterable[int]) -> list[int]:
    return sorted(set(indices))
