"""Pairs by similarity: values of one opcode that share operands, users, name or source line, best first."""

import heapq
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import product

from hlofuse.ir import Instruction, Module, grouped
from hlofuse.ir.attributes.metadata import SourceLocation
from .graph import Graph, Region, Value
from .structure import TRIVIAL, Matching

# More proposals from one pair than this say that its neighbours are indistinguishable that way.
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
        self.queue = list[tuple[float, int, int]]()
        self.deferred = list[tuple[float, int, int]]()  # Pairs that have rivals
        self.scores = dict[int, dict[int, float]]()
        """Proposals of each value of BEFORE, and under ~index of each of AFTER."""
        self.lines: LineShifts  # Set when there is something to match
        self.hints = dict[Instruction, tuple[str, str, str]]()

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
            # Where nothing tells the deferred ones apart: in the order of the text.
            source = self.queue or self.deferred
            score, b, a = heapq.heappop(source)
            if not self._free(b, a):
                continue
            if source is self.queue and self._has_rival(b, a, -score):
                heapq.heappush(self.deferred, (score, b, a))
                continue
            m.match(b, a)
            found += 1
            self._propose_around(b, a)
            self._reconsider(b, a)
        return found

    def _free(self, b: int, a: int) -> bool:
        return self.m.forward[b] < 0 and self.m.backward[a] < 0

    def _has_rival(self, b: int, a: int, score: float) -> bool:
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

        def key(graph: Graph, i: int) -> Hashable:
            v = graph.values[i]
            return v.kind, v.instruction.shape.key_ignoring_layout, *self._hints(graph, v)[1:]

        return self._paired(old, others, key)

    def _propose_by_hints(self) -> None:
        """Far from anything matched, the same kind of operation from the same line is a proposal."""

        def key(graph: Graph, i: int) -> Hashable:
            v = graph.values[i]
            stem, op, line = self._hints(graph, v)
            return None if v.opcode in TRIVIAL else (v.opcode, op.rpartition("/")[2], line or stem)

        for x, y in self._paired(self.m.free_before(self.b), self.m.free_after(self.a), key):
            self._propose(x, y)

    def _paired(
        self,
        old: Iterable[int],
        new: Iterable[int],
        key: Callable[[Graph, int], Hashable],
    ) -> Iterator[tuple[int, int]]:
        """All pairs with the same key, where it is not shared by too many."""
        sides = [
            grouped((key(graph, i), i) for i in indices)
            for graph, indices in ((self.m.before, old), (self.m.after, new))
        ]
        for name, own in sides[0].items():
            other = sides[1].get(name, [])
            if name is not None and len(own) * len(other) <= _MOST_PROPOSALS:
                yield from product(own, other)

    def _propose(self, b: int, a: int) -> None:
        if not self._free(b, a):
            return
        one, other = self.m.before.values[b], self.m.after.values[a]
        if one.opcode != other.opcode:
            return
        score = self.score(one, other)
        enough = _ENOUGH_FOR_TRIVIAL if one.opcode in TRIVIAL else _ENOUGH
        if score >= enough and self.scores.get(b, {}).get(a) != score:
            self.scores.setdefault(b, {})[a] = score
            self.scores.setdefault(~a, {})[b] = score
            heapq.heappush(self.queue, (-score, b, a))

    def score(self, b: Value, a: Value) -> float:
        """The similarity of two values of one opcode; 10 and more is certain."""
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
    free = ((graph.values[user].opcode, place, user) for user, place in value.users if partner[user] < 0)
    return grouped(((opcode, -1 if opcode == "tuple" else place), user) for opcode, place, user in free)


def match_changed_opcodes(m: Matching, b: Region, a: Region) -> int:
    """A value that took the place of another: same operands, same users, another operation."""
    places = dict[tuple[object, ...], list[int]]()
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


class LineShifts:
    """The lines of AFTER that lines of BEFORE became, by the matched operations of two regions."""

    def __init__(self, m: Matching, region: Region) -> None:
        before, after = m.before, m.after
        self._lines = dict[tuple[str, str], list[tuple[int, int]]]()
        if same_tables(before.module, after.module):
            return
        votes = dict[tuple[str, str], dict[int, Counter[int]]]()
        for b in region.indices:
            a = m.forward[b]
            if a < 0:
                continue
            one = before.module.source_of(before.values[b].instruction)
            other = after.module.source_of(after.values[a].instruction)
            if one is not None and other is not None and same_function(one, other):
                lines = votes.setdefault(_function(one), {})
                lines.setdefault(one.line, Counter())[other.line] += 1
        for function, lines in votes.items():
            self._lines[function] = sorted((n, c.most_common(1)[0][0]) for n, c in lines.items())

    def line_after(self, place: SourceLocation) -> str:
        """`model.py:37`; a line without matched operations keeps its distance from the line before."""
        lines = self._lines.get(_function(place))
        if not lines:
            return line_text(place)
        old, new = lines[max(0, bisect_right(lines, place.line, key=lambda pair: pair[0]) - 1)]
        return line_text(place, new - old)


def line_text(place: SourceLocation, shift: int = 0) -> str:
    """`model.py:37`, wherever the file lies."""
    return f"{_file(place)}:{place.line + shift}"


def same_tables(before: Module, after: Module) -> bool:
    """True for two dumps of one compilation: no line has moved."""
    one, other = before.stack_frames, after.stack_frames
    return bool(one) and (one.files, one.functions, one.locations) == (
        other.files,
        other.functions,
        other.locations,
    )


def same_function(one: SourceLocation, other: SourceLocation) -> bool:
    """Older releases name no function: then the file decides."""
    if one.function and other.function:
        return one.function == other.function
    return _file(one) == _file(other)


def _function(place: SourceLocation) -> tuple[str, str]:
    return _file(place), place.function


def _file(place: SourceLocation) -> str:
    return place.file.replace("\\", "/").rpartition("/")[2]
