"""Pairs of computations: the entries, then those that matched instructions call, then similar ones."""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator

from hlofuse.ir import Instruction
from hlofuse.ir.grouping import grouped
from hlofuse.matching.graph import Graph, Region
from hlofuse.matching.similarity import Similarity, match_changed_opcodes
from hlofuse.matching.structure import TRIVIAL, Matching, only_pairs


def match_graphs(before: Graph, after: Graph, anchors: Iterable[tuple[Instruction, Instruction]]) -> Matching:
    """Match two modules. `anchors` are pairs of instructions that need no search."""
    pairing = _Pairing(Matching(before, after, anchors))
    pairing.pair(before.entry, after.entry)
    pairing.drain()
    for key in (lambda region: region.number, _same_signature):
        pairing.pair_the_rest(key)
    _match_similar(pairing)
    _match_across(pairing)
    return pairing.m


def match_region(m: Matching, b: Region, a: Region) -> None:
    """Match the values of two computations: certain pairs, then those that follow, then similar ones."""
    m.fix(b, a)
    m.exact(b, a)
    m.loose(b, a)
    while Similarity(m, b, a).run() + match_changed_opcodes(m, b, a):
        m.exact(b, a)
        m.loose(b, a)


class _Pairing:
    """Computations paired so far, and those whose calls are still to be followed."""

    def __init__(self, matching: Matching) -> None:
        self.m = matching
        self.partner = matching.partner
        self.queue: deque[tuple[Region, Region]] = deque()
        self.copies: deque[tuple[Graph, list[int], Region, Region]] = deque()

    def pair(self, b: Region, a: Region) -> None:
        self.partner[b], self.partner[a] = a, b
        self.queue.append((b, a))

    def drain(self) -> None:
        """Match the queued computations, and follow their calls."""
        m = self.m
        while self.queue or self.copies:
            if self.queue:
                b, a = self.queue.popleft()
                m.regions.append((b, a))
                match_region(m, b, a)
                followed = b
            else:
                graph, partners, copy, original = self.copies.popleft()
                _adopt(graph, partners, copy, original)
                if graph is m.after:
                    for j in copy.indices:
                        if partners[j] >= 0:
                            self._visit(partners[j], j)
                    continue
                followed = copy
            for i in followed.indices:
                if m.forward[i] >= 0:
                    self._visit(i, m.forward[i])

    def _visit(self, i: int, j: int) -> None:
        """Pair the computations that two matched instructions call."""
        m, partner = self.m, self.partner
        old = m.before.values[i].instruction.called
        if not old:
            return
        for (name, one), (other_name, other) in zip(old, m.after.values[j].instruction.called, strict=False):
            b, a = m.before.regions[one], m.after.regions[other]
            if name != other_name or (b in partner and a in partner):
                continue
            if b not in partner and a not in partner:
                m.callers[b] = (i, j)
                self.pair(b, a)
            elif a in partner and b.number == partner[a].number:
                partner[b] = a
                self.copies.append((m.before, m.forward, b, partner[a]))
            elif b in partner and a.number == partner[b].number:
                partner[a] = b
                self.copies.append((m.after, m.backward, a, partner[b]))
        self._visit_instances(m.before, m.forward, i)
        self._visit_instances(m.after, m.backward, j)

    def _visit_instances(self, graph: Graph, partners: list[int], i: int) -> None:
        """Pair the computations that further instances call: copies of those that the first one calls."""
        value = graph.values[i]
        for place in value.instances:
            for (_, copy), (_, first) in zip(
                place.instruction.called, value.instruction.called, strict=False
            ):
                own, original = graph.regions.get(copy), graph.regions[first]
                if own is not None and own not in self.partner and original in self.partner:
                    self.partner[own] = self.partner[original]
                    self.copies.append((graph, partners, own, original))

    def pair_the_rest(self, key: Callable[[Region], object]) -> None:
        """Pair computations whose callers have no partner by a key."""
        new = {key(a): a for a in self.m.after.regions.values() if a not in self.partner}
        for b in self.m.before.regions.values():
            a = new.get(key(b))
            if a is not None and b not in self.partner and a not in self.partner:
                self.pair(b, a)
        self.drain()


def _adopt(graph: Graph, partners: list[int], copy: Region, original: Region) -> None:
    """Give the values of `copy` the partners of `original`, which computes the same."""
    by_number = grouped((graph.values[i].number, i) for i in original.indices)
    for i in reversed(copy.indices):
        partners[i] = partners[by_number[graph.values[i].number].pop()]


def _same_signature(region: Region) -> object:
    """The name with the shapes of parameters and result: a name alone is no evidence."""
    c = region.computation
    shapes = tuple(p.shape.key_ignoring_layout for p in c.parameters)
    return c.name, shapes, c.root.shape.key_ignoring_layout


# Fewer operations in common, or a smaller share, is no evidence of a common origin.
_MIN_SIMILAR = 4
_LEAST_SHARE = 0.3


def _match_similar(pairing: _Pairing) -> None:
    """Match computations with similar leftovers: straight code that became a loop's body."""
    m = pairing.m
    old = _leftovers(m.before, m.forward)
    new = _leftovers(m.after, m.backward)
    candidates = []
    for n, (b, own) in enumerate(old):
        for k, (a, other) in enumerate(new):
            common = (own & other).total()
            if common >= max(_MIN_SIMILAR, _LEAST_SHARE * min(own.total(), other.total())):
                candidates.append((-common, n, k, b, a))
    for *_, b, a in sorted(candidates, key=lambda item: item[:3]):
        free = m.free_before(b)
        while Similarity(m, b, a).run():
            m.exact(b, a)
            m.loose(b, a)
        if m.partner.get(b) is not a:
            m.moved.update(i for i in free if m.forward[i] >= 0)


def _leftovers(graph: Graph, partners: list[int]) -> list[tuple[Region, Counter[int]]]:
    """The computations with most unmatched operations, and the keys of these."""
    out = []
    for region in graph.regions.values():
        free = [graph.values[i] for i in region.indices if partners[i] < 0]
        counts = Counter(v.exact for v in free if v.opcode not in TRIVIAL)
        if counts.total() >= _MIN_SIMILAR:
            out.append((region, counts))
    return sorted(out, key=lambda item: -item[1].total())[:16]


def _match_across(pairing: _Pairing) -> None:
    """Match values that are in another computation now: a loop unrolled, a call inlined."""
    m = pairing.m

    def left(graph: Graph, partner: list[int]) -> Iterator[tuple[Hashable, int]]:
        for v in graph.values:
            if partner[v.index] < 0 and v.opcode not in TRIVIAL:
                operands = tuple(sorted(graph.values[o].exact for o in v.operands))
                uses = tuple(sorted(graph.values[u].exact for u, _ in v.users))
                yield (v.exact, operands, uses, v.instruction.op_name), v.index

    for b, a in only_pairs(left(m.before, m.forward), left(m.after, m.backward)):
        m.match(b, a)
        if m.partner.get(m.before.values[b].region) is not m.after.values[a].region:
            m.moved.add(b)
