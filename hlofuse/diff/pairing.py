"""The call graph: which computation is compared with which, starting at the entries."""

import heapq
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator

from hlofuse.diff.graph import Graph, Region, Value
from hlofuse.diff.matching import TRIVIAL, LineShifts, Matching, line_text, only_pairs
from hlofuse.ir import Instruction
from hlofuse.ir.grouping import grouped

# More proposals from one pair than this say that its neighbours cannot be told apart that way.
_MOST_PROPOSALS = 64
_ENOUGH = 4.0
_ENOUGH_FOR_TRIVIAL = 5.0
# Where it is run: the function that was compiled (older releases of JAX say jit(main) as well), a loop.
_PLACES = re.compile(r"^jit\([^()]*\)/(jit\(main\)/)?|while/body/(closed_call/|eval_jaxpr/)?")
_NUMBERS = re.compile(r"(\.\d+|\.clone|\.remat\d*)+$")


class Similarity:
    """Matches what is left of a pair of regions."""

    def __init__(self, matching: Matching, b: Region, a: Region) -> None:
        self.m = matching
        self.b = b
        self.a = a
        self.queue: list[tuple[float, int, int]] = []
        self.deferred: list[tuple[float, int, int]] = []
        """Pairs that have rivals."""
        self.scores: dict[int, dict[int, float]] = {}
        """Proposals of each value of BEFORE, and under ~index of each of AFTER."""
        self.lines: LineShifts
        """Set when there is something to match."""
        self.hints: dict[Instruction, tuple[str, str, str]] = {}

    def run(self) -> int:
        """Match by likeness; the number of pairs found."""
        m = self.m
        if not self.m.free_before(self.b) or not self.m.free_after(self.a):
            return 0
        self.lines = LineShifts(m, self.b)
        for b in self.b.indices:
            if m.forward[b] >= 0:
                self._propose_around(b, m.forward[b])
        self._propose_by_hints()
        found = 0
        while self.queue or self.deferred:
            if self.queue:
                score, b, a = heapq.heappop(self.queue)
                if not self._free(b, a):
                    continue
                if self._has_rival(b, a, -score):
                    heapq.heappush(self.deferred, (score, b, a))
                    continue
            else:
                # Nothing tells them apart: in the order of the text.
                score, b, a = heapq.heappop(self.deferred)
                if not self._free(b, a):
                    continue
            m.match(b, a)
            found += 1
            self._propose_around(b, a)
            self._reconsider(b, a)
        return found

    def _free(self, b: int, a: int) -> bool:
        return self.m.forward[b] < 0 and self.m.backward[a] < 0

    def _has_rival(self, b: int, a: int, score: float) -> bool:
        """True if another pair with one of the two is as likely."""
        m = self.m
        return any(s >= score and x != a and m.backward[x] < 0 for x, s in self.scores[b].items()) or any(
            s >= score and x != b and m.forward[x] < 0 for x, s in self.scores[~a].items()
        )

    def _reconsider(self, b: int, a: int) -> None:
        """Pairs that may have lost their last rival."""
        for x in self.scores.pop(b, ()):
            if self.m.backward[x] < 0:
                for y, score in self.scores[~x].items():
                    heapq.heappush(self.queue, (-score, y, x))
        for y in self.scores.pop(~a, ()):
            if self.m.forward[y] < 0:
                for x, score in self.scores[y].items():
                    heapq.heappush(self.queue, (-score, y, x))

    def _propose_around(self, b: int, a: int) -> None:
        one, other = self.m.before.values[b], self.m.after.values[a]
        if len(one.operands) == len(other.operands):
            pairs = list(zip(one.operands, other.operands, strict=True))
        elif len(one.operands) * len(other.operands) <= _MOST_PROPOSALS:
            pairs = [(x, y) for x in one.operands for y in other.operands]
        else:
            pairs = []
        for x, y in pairs:
            self._propose(x, y)
        if not one.users or not other.users:
            return
        uses = _free_uses(self.m.before, self.m.forward, one)
        new = _free_uses(self.m.after, self.m.backward, other) if uses else {}
        for key, old in uses.items():
            for x, y in self._narrow(old, new.get(key, ())):
                self._propose(x, y)

    def _narrow(self, old: list[int], new: Iterable[int]) -> Iterable[tuple[int, int]]:
        """All pairs, or where they are many, those that also agree in kind, shape and origin."""
        others = list(new)
        if len(old) * len(others) <= _MOST_PROPOSALS:
            return [(x, y) for x in old for y in others]
        buckets: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
        for side, graph, indices in ((0, self.m.before, old), (1, self.m.after, others)):
            for i in indices:
                v = graph.values[i]
                _, op, line = self._hints(graph, v)
                key = (v.kind, v.instruction.shape.key_ignoring_layout, op, line)
                buckets.setdefault(key, ([], []))[side].append(i)
        return [
            (x, y)
            for own, other in buckets.values()
            if len(own) * len(other) <= _MOST_PROPOSALS
            for x in own
            for y in other
        ]

    def _propose_by_hints(self) -> None:
        """Far from anything matched, the same kind of operation from the same line is a proposal."""
        buckets: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
        sides = ((0, self.m.before, self.m.free_before(self.b)), (1, self.m.after, self.m.free_after(self.a)))
        for side, graph, indices in sides:
            for i in indices:
                v = graph.values[i]
                stem, op, line = self._hints(graph, v)
                if v.opcode not in TRIVIAL:
                    key = (v.opcode, op.rpartition("/")[2], line or stem)
                    buckets.setdefault(key, ([], []))[side].append(i)
        for old, new in buckets.values():
            if len(old) * len(new) <= _MOST_PROPOSALS:
                for x in old:
                    for y in new:
                        self._propose(x, y)

    def _propose(self, b: int, a: int) -> None:
        m = self.m
        if m.forward[b] >= 0 or m.backward[a] >= 0:
            return
        one, other = m.before.values[b], m.after.values[a]
        if one.opcode != other.opcode:
            return
        score = self.score(one, other)
        enough = _ENOUGH_FOR_TRIVIAL if one.opcode in TRIVIAL else _ENOUGH
        if score >= enough and self.scores.get(b, {}).get(a) != score:
            self.scores.setdefault(b, {})[a] = score
            self.scores.setdefault(~a, {})[b] = score
            heapq.heappush(self.queue, (-score, b, a))

    def score(self, b: Value, a: Value) -> float:
        """How alike two values of one opcode are; 10 and more is beyond doubt."""
        total = 2.0
        if b.kind == a.kind:
            total += 1.0
        if b.exact == a.exact:
            total += 1.0
        shape, other = b.instruction.shape, a.instruction.shape
        if shape.key_ignoring_layout == other.key_ignoring_layout:
            total += 1.0
        elif shape.dimensions == other.dimensions:
            total += 0.5
        total += 2.0 * self._shared_operands(b, a) + 2.0 * self._shared_users(b, a)
        return total + self._likeness_of_hints(b, a)

    def _shared_operands(self, b: Value, a: Value) -> float:
        if not b.operands or not a.operands:
            return 0.0
        forward = self.m.forward
        same = sum(forward[x] == y for x, y in zip(b.operands, a.operands, strict=False))
        partners = {forward[x] for x in b.operands if forward[x] >= 0}
        moved = len(partners.intersection(a.operands))
        return max(same, 0.8 * moved) / max(len(b.operands), len(a.operands))

    def _shared_users(self, b: Value, a: Value) -> float:
        if not b.users or not a.users:
            return 0.0
        forward = self.m.forward
        new = set(a.users)
        same = sum((forward[u], position) in new for u, position in b.users)
        return same / max(len(b.users), len(a.users))

    def _likeness_of_hints(self, b: Value, a: Value) -> float:
        old = self._hints(self.m.before, b)
        new = self._hints(self.m.after, a)
        total = 0.0
        for own, other, weight in zip(old, new, (0.25, 0.5, 0.5), strict=True):
            if own and own == other:
                total += weight
        return total + (0.25 if b.instruction.name == a.instruction.name else 0.0)

    def _hints(self, graph: Graph, v: Value) -> tuple[str, str, str]:
        """Name without its numbers, the framework's name, the source line as it is numbered in AFTER."""
        i = v.instruction
        found = self.hints.get(i)
        if found is None:
            source, line = graph.module.source_of(i), ""
            if source is not None:
                line = self.lines.line_after(source) if graph is self.m.before else line_text(source)
            op = _PLACES.sub("", i.op_name or "")
            found = self.hints[i] = (_NUMBERS.sub("", i.name), op, line)
        return found


def _free_uses(graph: Graph, partner: list[int], value: Value) -> dict[tuple[str, int], list[int]]:
    """The users that are not matched, by opcode and operand; tuples whatever the operand."""
    found: dict[tuple[str, int], list[int]] = {}
    for user, position in value.users:
        if partner[user] < 0:
            opcode = graph.values[user].opcode
            found.setdefault((opcode, -1 if opcode == "tuple" else position), []).append(user)
    return found


def match_changed_opcodes(m: Matching, b: Region, a: Region) -> int:
    """A value that took the place of another: same operands, same users, another operation."""
    places: dict[tuple[object, ...], list[int]] = {}
    for i in m.free_before(b):
        v = m.before.values[i]
        uses = [(m.forward[u], p) for u, p in v.users]
        operands = [m.forward[o] for o in v.operands]
        if (uses or i == b.root) and all(u >= 0 for u, _ in uses) and all(o >= 0 for o in operands):
            places.setdefault((i == b.root, *sorted(operands), "used by", *sorted(uses)), []).append(i)
    found = 0
    for j in m.free_after(a):
        v = m.after.values[j]
        key = (j == a.root, *sorted(v.operands), "used by", *sorted(v.users))
        here = places.get(key)
        if here and len(here) == 1:
            m.match(here.pop(), j)
            found += 1
    return found


def match_graphs(before: Graph, after: Graph) -> Matching:
    """Match two modules."""
    pairing = _Pairing(Matching(before, after))
    pairing.pair(before.entry, after.entry)
    pairing.drain()
    for key in (lambda region: region.number, _same_signature):
        pairing.pair_the_rest(key)
    _match_similar(pairing)
    _match_across(pairing)
    return pairing.m


def match_region(m: Matching, b: Region, a: Region) -> None:
    """Match the values of two computations."""
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
        """Match what is queued, and follow its calls."""
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
                            self._meet(partners[j], j)
                    continue
                followed = copy
            for i in followed.indices:
                if m.forward[i] >= 0:
                    self._meet(i, m.forward[i])

    def _meet(self, i: int, j: int) -> None:
        """Two instructions are the same one: so are the computations they call."""
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
        self._meet_instances(m.before, m.forward, i)
        self._meet_instances(m.after, m.backward, j)

    def _meet_instances(self, graph: Graph, partners: list[int], i: int) -> None:
        """Instructions that are one value call computations that are equal: copies of the first's."""
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
        """Computations whose callers have no partner."""
        new = {key(a): a for a in self.m.after.regions.values() if a not in self.partner}
        for b in self.m.before.regions.values():
            a = new.get(key(b))
            if a is not None and b not in self.partner and a not in self.partner:
                self.pair(b, a)
        self.drain()


def _adopt(graph: Graph, partners: list[int], copy: Region, original: Region) -> None:
    """`copy` computes what `original` does, value for value: they have the same partners."""
    by_number = grouped((graph.values[i].number, i) for i in original.indices)
    for i in reversed(copy.indices):
        partners[i] = partners[by_number[graph.values[i].number].pop()]


def _same_signature(region: Region) -> object:
    """A name alone says nothing; with the same parameters and result it does."""
    c = region.computation
    shapes = tuple(p.shape.key_ignoring_layout for p in c.parameters)
    return c.name, shapes, c.root.shape.key_ignoring_layout


# Less than that many operations in common, or less than that share, is no sign of common origin.
_MIN_SIMILAR = 4
_LEAST_SHARE = 0.3


def _match_similar(pairing: _Pairing) -> None:
    """Computations whose leftovers are much alike: a body of straight code that became a loop's."""
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
    """The computations with most operations unmatched, and what these say."""
    out = []
    for region in graph.regions.values():
        free = [graph.values[i] for i in region.indices if partners[i] < 0]
        counts = Counter(v.exact for v in free if v.opcode not in TRIVIAL)
        if counts.total() >= _MIN_SIMILAR:
            out.append((region, counts))
    return sorted(out, key=lambda item: -item[1].total())[:16]


def _match_across(pairing: _Pairing) -> None:
    """What went from one computation to another: a loop unrolled, a call inlined."""
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
