"""Which value of BEFORE is which value of AFTER.

After the idea of GumTree (Falleri et al., 2014), as XLA's own `hlo_diff` uses it: first what is
certain, then what follows from it. Identical subgraphs come first; since a value's number stands
for the whole subgraph below it, that is one pass from the leaves up (`up`), and it takes the
tallest along with the rest. A second pass from the root down (`down`) finds what is used in the
same way although something below it changed. Both are repeated with what is matched as fixed
points, and with less strictness, and each takes only pairs that are the only ones possible.
What is still open is left to similarity (`pairing.py`).

Lines of the program follow: operations that are matched by structure and come from the same function come
from the same line, whatever its number, so that an edit above a line moves it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator

from hlofuse.diff.graph import Graph, Region, Value
from hlofuse.diff.model import ModuleDiff, Occurrence
from hlofuse.format.paths import source_text
from hlofuse.ir.graph import Module
from hlofuse.ir.grouping import grouped
from hlofuse.ir.stack_frames import SourceLocation


def moved_lines(diff: ModuleDiff) -> dict[str, str]:
    """Of lines of BEFORE that have another number in AFTER: `model.py:35` to `model.py:37`.

    Each line is at most one line of the other side: that with which it has most operations in common.
    """
    before, after = diff.before.module, diff.after.module
    if _same_tables(before, after):
        return {}
    votes: Counter[tuple[SourceLocation, SourceLocation]] = Counter()
    for match in diff.matches:
        old, new = _places(match.before, before), _places(match.after, after)
        if len(old) == len(new):
            votes.update(pair for pair in zip(old, new, strict=True) if _same_function(*pair))
    texts: Counter[tuple[str, str]] = Counter()
    for (one, other), count in votes.items():
        texts[source_text(one), source_text(other)] += count
    found: dict[str, str] = {}
    taken: set[str] = set()
    for (old_text, new_text), _ in sorted(texts.items(), key=lambda item: (-item[1], item[0])):
        if old_text not in found and new_text not in taken:
            found[old_text] = new_text
            taken.add(new_text)
    return {old: new for old, new in found.items() if old != new}


class LineShifts:
    """Which line of AFTER a line of BEFORE is by now, as far as matched operations of a region tell."""

    def __init__(self, m: Matching, region: Region) -> None:
        before, after = m.before, m.after
        self._lines: dict[tuple[str, str], list[tuple[int, int]]] = {}
        if _same_tables(before.module, after.module):
            return
        votes: dict[tuple[str, str], dict[int, Counter[int]]] = {}
        for b in region.indices:
            a = m.forward[b]
            if a < 0:
                continue
            one = before.module.source_of(before.values[b].instruction)
            other = after.module.source_of(after.values[a].instruction)
            if one is not None and other is not None and _same_function(one, other):
                lines = votes.setdefault(_function(one), {})
                lines.setdefault(one.line, Counter())[other.line] += 1
        for function, lines in votes.items():
            self._lines[function] = sorted((n, c.most_common(1)[0][0]) for n, c in lines.items())

    def line_after(self, place: SourceLocation) -> str:
        """`model.py:37`; of a line that no matched operation has, as far from its neighbour as before."""
        lines = self._lines.get(_function(place))
        if not lines:
            return line_text(place)
        old, new = lines[max(0, bisect_right(lines, place.line, key=lambda pair: pair[0]) - 1)]
        return line_text(place, new - old)


def line_text(place: SourceLocation, shift: int = 0) -> str:
    """`model.py:37`, wherever the file lies."""
    return f"{_file(place)}:{place.line + shift}"


def _same_tables(before: Module, after: Module) -> bool:
    """True for two dumps of one compilation: no line has moved."""
    one, other = before.stack_frames, after.stack_frames
    return bool(one) and (one.files, one.functions, one.locations) == (
        other.files,
        other.functions,
        other.locations,
    )


def _places(occurrences: Iterable[Occurrence], module: Module) -> list[SourceLocation]:
    found = {s: None for o in occurrences if (s := module.source_of(o.instruction)) is not None and s.line}
    return sorted(found, key=lambda s: (s.file, s.line, s.column))


def _same_function(one: SourceLocation, other: SourceLocation) -> bool:
    """Older releases name no function: then the file decides."""
    if one.function and other.function:
        return one.function == other.function
    return _file(one) == _file(other)


def _function(place: SourceLocation) -> tuple[str, str]:
    return _file(place), place.function


def _file(place: SourceLocation) -> str:
    return place.file.replace("\\", "/").rpartition("/")[2]


# Values that say little about where they stand: every program is full of them.
TRIVIAL = frozenset({"bitcast", "broadcast", "constant", "get-tuple-element", "iota", "parameter", "tuple"})


class Matching:
    """The pairs found so far. `forward[b]` is the partner in AFTER of value b of BEFORE, -1 for none."""

    def __init__(self, before: Graph, after: Graph) -> None:
        self.before = before
        self.after = after
        self.forward = [-1] * len(before.values)
        self.backward = [-1] * len(after.values)
        self.regions: list[tuple[Region, Region]] = []
        self.partner: dict[Region, Region] = {}
        """Computation to computation, both ways; of several copies on one side the first is the partner."""
        self.callers: dict[Region, tuple[int, int]] = {}
        """The matched instructions through which a region of BEFORE was met."""
        self.moved: set[int] = set()
        """Values of BEFORE whose partner is in a computation that is not the partner of their own."""

    def match(self, b: int, a: int) -> None:
        """Say that they are the same; both must be free."""
        self.forward[b] = a
        self.backward[a] = b

    def free_before(self, region: Region) -> list[int]:
        return [i for i in region.indices if self.forward[i] < 0]

    def free_after(self, region: Region) -> list[int]:
        return [i for i in region.indices if self.backward[i] < 0]

    def fix(self, b: Region, a: Region) -> None:
        """What is known to begin with: parameters and root."""
        match_parameters(self, b, a)
        one, other = self.before.values[b.root], self.after.values[a.root]
        equal = one.exact == other.exact and bool(one.operands)
        if one.opcode == other.opcode and (equal or one.opcode == "tuple"):
            self.match(b.root, a.root)

    def exact(self, b: Region, a: Region) -> None:
        """Everything that exact comparison settles."""
        while self._up(b, a, _exact) + self._down(b, a, _exact):
            pass

    def loose(self, b: Region, a: Region) -> None:
        """Opcode and attributes, then the opcode alone; shapes, literals and annotations may differ."""
        for level in (lambda v: v.kind, lambda v: v.opcode):
            found = 1
            while found:
                found = self._up(b, a, level) + self._down(b, a, level)
                if found:
                    self.exact(b, a)

    def _up(self, b: Region, a: Region, level: Level) -> int:
        """Pairs that say the same and have the same operands."""

        def key(v: Value, names: dict[int, int]) -> Hashable:
            return level(v), *[names[o] for o in v.operands]

        return self._pass(b, a, key, self._grounded if level is not _exact else None)

    def _down(self, b: Region, a: Region, level: Level) -> int:
        """Pairs that say the same and are used the same way."""

        def key(v: Value, names: dict[int, int]) -> Hashable:
            uses = sorted((names[u], position) for u, position in v.users)
            return level(v), v.index == v.region.root, *uses

        return self._pass(b, a, key, self._used, from_root=True)

    def _pass(
        self,
        b: Region,
        a: Region,
        key: Callable[[Value, dict[int, int]], Hashable],
        allowed: Callable[[Value, Value], bool] | None,
        *,
        from_root: bool = False,
    ) -> int:
        """Pairs of equal keys, which are made of the names of values seen before."""
        if not self._open(b, a):
            return 0
        numbers: dict[Hashable, int] = {}
        sides = []
        for graph, region, matched in ((self.before, b, self.forward), (self.after, a, self.backward)):
            names: dict[int, int] = {}
            for i in reversed(region.indices) if from_root else region.indices:
                p = matched[i]
                if p >= 0 and region is b:
                    p = i  # both sides go by BEFORE's
                elif p < 0:
                    p = -1 - numbers.setdefault(key(graph.values[i], names), len(numbers))
                names[i] = p
            sides.append(names)
        before, after = sides
        old = ((before[i], i) for i in self.free_before(b))
        new = ((after[i], i) for i in self.free_after(a))
        found = 0
        for i, j in only_pairs(old, new):
            if allowed is None or allowed(self.before.values[i], self.after.values[j]):
                self.match(i, j)
                found += 1
        return found

    def _open(self, b: Region, a: Region) -> bool:
        return any(self.forward[i] < 0 for i in b.indices) and any(self.backward[i] < 0 for i in a.indices)

    def _grounded(self, b: Value, a: Value) -> bool:
        """Operands alone say enough when one of them is more than a constant."""
        if b.instruction.shape.key_ignoring_layout == a.instruction.shape.key_ignoring_layout:
            return bool(b.operands)
        values = self.before.values
        return any(values[o].opcode not in TRIVIAL for o in b.operands)

    def _used(self, b: Value, a: Value) -> bool:
        """A value nobody uses, or an unused parameter, is not identified by its users."""
        return bool(b.users) or b.exact == a.exact


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


def match_parameters(m: Matching, b: Region, a: Region) -> None:
    """Pair the parameters: by number if the signature is the same, otherwise by use, name, number."""
    old = [m.before.values[i] for i in b.parameters]
    new = [m.after.values[i] for i in a.parameters]
    old.sort(key=lambda v: v.instruction.parameter_number)
    new.sort(key=lambda v: v.instruction.parameter_number)

    def shape(v: Value) -> Hashable:
        return v.instruction.shape.key_ignoring_layout

    if len(old) == len(new) and (
        len(old) == 1 or all(shape(x) == shape(y) for x, y in zip(old, new, strict=True))
    ):
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
    # Alike in every respect: in the order they stand.
    rest = grouped((shape(v), v.index) for v in new if m.backward[v.index] < 0)
    for v in old:
        if m.forward[v.index] < 0 and rest.get(shape(v)):
            m.match(v.index, rest[shape(v)].pop(0))


def _use(graph: Graph, v: Value, depth: int) -> Hashable:
    """How a value is used, that many steps up; a fan-out is cut short."""
    if not depth:
        return v.kind
    used = sorted((graph.values[u].kind, position, u) for u, position in v.users)[:8]
    uses = [(p, _use(graph, graph.values[u], depth - 1)) for _, p, u in used]
    return (v.kind, *sorted(uses, key=repr))
