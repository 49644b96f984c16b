"""Pairs by structure: values of BEFORE and AFTER that are computed or used the same way.

After the idea of GumTree (Falleri et al., 2014), as XLA's own `hlo_diff` uses it: certain pairs first, then
the pairs that follow from them. Identical subgraphs come first; since a value's number stands for the whole
subgraph below it, that is one pass from the leaves up (`up`), and it takes the tallest along with the rest. A
second pass from the root down (`down`) finds values that are used in the same way although something below
them changed. Both are repeated with the pairs found as fixed points, and with less strictness, and each takes
only pairs that are the only ones possible. The rest is left to similarity (`similarity.py`)."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeAlias

from hlofuse.ir import Instruction, grouped, values
from .graph import Graph, Region, Value

# Values that are no evidence of their place: every program is full of them.
TRIVIAL = values("bitcast broadcast constant get-tuple-element iota parameter tuple")
Anchors: TypeAlias = Iterable[tuple[Instruction, Instruction]]
"""Pairs of instructions of BEFORE and AFTER that need no search."""


class Matching:
    """The pairs found so far. `forward[b]` is the partner in AFTER of value b of BEFORE, -1 for none."""

    def __init__(self, before: Graph, after: Graph, anchors: Anchors = ()) -> None:
        self.before = before
        self.after = after
        self.forward = [-1] * len(before.values)
        self.backward = [-1] * len(after.values)
        self._anchors = _values_of(anchors, before, after)
        self.regions = list[tuple[Region, Region]]()
        self.partner = dict[Region, Region]()
        """Computation to computation, in both directions; the first of several copies is the partner."""
        self.callers = dict[Region, tuple[int, int]]()
        """The matched instructions that call a region of BEFORE and its partner."""
        self.moved = set[int]()  # Values of BEFORE whose partner is in no partner of their own computation

    def match(self, b: int, a: int) -> None:
        """Pair two values; both must be free."""
        self.forward[b] = a
        self.backward[a] = b

    def free_before(self, region: Region) -> list[int]:
        return [i for i in region.indices if self.forward[i] < 0]

    def free_after(self, region: Region) -> list[int]:
        return [i for i in region.indices if self.backward[i] < 0]

    def fix(self, b: Region, a: Region) -> None:
        """Pair anchors, parameters and equal roots."""
        for i, j in self._anchors.get((b, a), ()):
            if self.forward[i] < 0 and self.backward[j] < 0:
                self.match(i, j)
        match_parameters(self, b, a)
        if self.forward[b.root] >= 0 or self.backward[a.root] >= 0:
            return
        one, other = self.before.values[b.root], self.after.values[a.root]
        equal = one.exact == other.exact and bool(one.operands)
        if one.opcode == other.opcode and (equal or one.opcode == "tuple"):
            self.match(b.root, a.root)

    def exact(self, b: Region, a: Region) -> None:
        """Match by exact comparison until nothing follows."""
        while self._up(b, a, _exact) + self._down(b, a, _exact):
            pass

    def loose(self, b: Region, a: Region) -> None:
        """Match by opcode and attributes, then by opcode; shapes, literals and annotations may differ."""
        self.exact(b, a)
        for level in (lambda v: v.kind, lambda v: v.opcode):
            found = 1
            while found:
                found = self._up(b, a, level) + self._down(b, a, level)
                if found:
                    self.exact(b, a)

    def _up(self, b: Region, a: Region, level: "Level") -> int:
        """Match values of one level with the same operands; the number of pairs."""

        def key(v: Value, names: dict[int, int]) -> Hashable:
            return level(v), *[names[o] for o in v.operands]

        return self._pass(b, a, key, self._grounded if level is not _exact else None)

    def _down(self, b: Region, a: Region, level: "Level") -> int:
        """Match values of one level with the same uses; the number of pairs."""

        def key(v: Value, names: dict[int, int]) -> Hashable:
            uses = sorted((names[u], position) for u, position in v.users)
            return level(v), v.index == v.region.root, *uses

        # Users identify a value if it has some, or if nothing about it differs.
        return self._pass(b, a, key, lambda b, a: bool(b.users) or b.exact == a.exact, from_root=True)

    def _pass(
        self,
        b: Region,
        a: Region,
        key: Callable[[Value, dict[int, int]], Hashable],
        allowed: Callable[[Value, Value], bool] | None,
        *,
        from_root: bool = False,
    ) -> int:
        """Match values that are the only ones of their key, made of the names of values visited before."""
        left = self.free_before(b)
        added = self.free_after(a)
        if not left or not added:
            return 0
        numbers = dict[Hashable, int]()
        sides = []
        for graph, region, matched in ((self.before, b, self.forward), (self.after, a, self.backward)):
            names = dict[int, int]()
            for i in reversed(region.indices) if from_root else region.indices:
                p = matched[i]
                if p >= 0 and region is b:
                    p = i  # both sides go by BEFORE's
                elif p < 0:
                    p = -1 - numbers.setdefault(key(graph.values[i], names), len(numbers))
                names[i] = p
            sides.append(names)
        before, after = sides
        old = ((before[i], i) for i in left)
        new = ((after[i], i) for i in added)
        found = 0
        for i, j in only_pairs(old, new):
            if allowed is None or allowed(self.before.values[i], self.after.values[j]):
                self.match(i, j)
                found += 1
        return found

    def _grounded(self, b: Value, a: Value) -> bool:
        """True if operands are evidence enough: the shapes agree, or an operand is more than a constant."""
        if b.instruction.shape.key_ignoring_layout == a.instruction.shape.key_ignoring_layout:
            return bool(b.operands)
        values = self.before.values
        return any(values[o].opcode not in TRIVIAL for o in b.operands)


Level = Callable[[Value], Hashable]


def _exact(v: Value) -> int:
    return v.exact


def only_pairs(
    before: Iterable[tuple[Hashable, int]], after: Iterable[tuple[Hashable, int]]
) -> Iterator[tuple[int, int]]:
    """Numbers, which are not negative, that are the only ones of one key on both sides."""
    old, new = dict[Hashable, int](), dict[Hashable, int]()
    for only, pairs in ((old, before), (new, after)):
        for key, number in pairs:
            only[key] = -1 if key in only else number
    for key, number in old.items():
        if number >= 0 and (other := new.get(key, -1)) >= 0:
            yield number, other


def _values_of(
    anchors: Anchors, before: Graph, after: Graph
) -> dict[tuple[Region, Region], list[tuple[int, int]]]:
    pairs = list(anchors)
    if not pairs:
        return {}
    old, new = before.numbers, after.numbers
    both = ((old[x], new[y]) for x, y in pairs if x in old and y in new)
    return grouped(((before.values[i].region, after.values[j].region), (i, j)) for i, j in both)


def match_parameters(m: Matching, b: Region, a: Region) -> None:
    """Pair the parameters: by number if the signature is the same, otherwise by use, name, number."""
    old = [m.before.values[i] for i in b.parameters if m.forward[i] < 0]
    new = [m.after.values[i] for i in a.parameters if m.backward[i] < 0]
    for free in (old, new):
        free.sort(key=lambda v: v.instruction.parameter_number)

    def shape(v: Value) -> Hashable:
        return v.instruction.shape.key_ignoring_layout

    if len(old) == len(new) == 1 or [*map(shape, old)] == [*map(shape, new)]:
        for x, y in zip(old, new, strict=True):
            m.match(x.index, y.index)
        return
    keys: list[Callable[[Graph, Value], Hashable]] = [
        lambda g, v: (shape(v), _use(g, v, 2), v.instruction.op_name),
        lambda g, v: (shape(v), _use(g, v, 2)),
        lambda g, v: (shape(v), v.instruction.op_name or v.instruction.name),
        lambda g, v: v.instruction.op_name or v.instruction.name,
        lambda g, v: (shape(v), v.instruction.parameter_number),
        lambda g, v: (_use(g, v, 1), v.instruction.parameter_number),
    ]
    for key in keys:
        old = [v for v in old if m.forward[v.index] < 0]
        new = [v for v in new if m.backward[v.index] < 0]
        own = [(key(m.before, v), v.index) for v in old]
        for i, j in only_pairs(own, [(key(m.after, v), v.index) for v in new]):
            m.match(i, j)
    # Equal in every respect: in their order.
    rest = grouped((shape(v), v.index) for v in new if m.backward[v.index] < 0)
    for v in old:
        if m.forward[v.index] < 0 and rest.get(shape(v)):
            m.match(v.index, rest[shape(v)].pop(0))


def _use(graph: Graph, v: Value, depth: int) -> Hashable:
    """The uses of a value, `depth` levels of users; at most eight users count."""
    if not depth:
        return v.kind
    used = sorted((graph.values[u].kind, position, u) for u, position in v.users)[:8]
    uses = [(p, _use(graph, graph.values[u], depth - 1)) for _, p, u in used]
    return (v.kind, *sorted(uses, key=repr))
