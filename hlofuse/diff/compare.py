"""`diff`: two modules in, a ModuleDiff out, with fusions split, merged, grown, new, removed."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis import kernels
from hlofuse.analysis.cost import Cost
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction, Module, Shape, grouped, numbered, reach
from hlofuse.ir.attributes.metadata import SourceLocation
from hlofuse.ir.native import no_collection
from hlofuse.matching.graph import Graph, Group, Occurrence, Value
from hlofuse.matching.key import ANNOTATIONS, canonical_attribute
from hlofuse.matching.pairs import match
from hlofuse.matching.similarity import same_function, same_tables
from hlofuse.matching.structure import TRIVIAL, Matching
from .model import (
    Added,
    Changed,
    Detail,
    Edit,
    FusionChange,
    FusionKind,
    Kind,
    ModuleDiff,
    ModuleSide,
    Moved,
    Removed,
)

_SHAPE_KINDS = frozenset({Kind.TYPE, Kind.SHAPE, Kind.LAYOUT})


class Changes(Struct):
    m: Matching
    metadata: bool
    details: dict[int, tuple[Detail, ...]] = {}

    def edits(self) -> Iterator[Edit]:
        """Every edit, in BEFORE's order, then what was added."""
        m = self.m
        for b, a in enumerate(m.forward):
            # A copy's values are compared where their original's are.
            if a >= 0 and m.backward[a] == b:
                details = tuple(self._compare(m.before.values[b], m.after.values[a]))
                if details:
                    self.details[b] = details
        for b, a in enumerate(m.forward):
            v = m.before.values[b]
            if a < 0:
                yield Removed(tuple(v.instances), self._because_unused(m.before, m.forward, v))
                continue
            other = m.after.values[a]
            old, new = tuple(v.instances), tuple(other.instances)
            if b in m.moved:
                yield Moved(old, new)
            if b in self.details:
                yield Changed(old, new, self.details[b], self._because(v, other))
            if m.backward[a] == b:
                yield from _copies(v, other)
        for a, b in enumerate(m.backward):
            if b < 0:
                v = m.after.values[a]
                yield Added(tuple(v.instances), self._because_unused(m.after, m.backward, v))
        # A computation that returns something else, where that is said by no other edit.
        for region, its_partner in m.regions:
            roots = region.root, its_partner.root
            if m.forward[roots[0]] >= 0 and m.backward[roots[1]] >= 0 and not self._same(*roots):
                v, other = m.before.values[roots[0]], m.after.values[roots[1]]
                names = v.instruction.name, other.instruction.name
                detail = Detail(Kind.ROOT, region.computation.name, *names)
                yield Changed(tuple(v.instances), tuple(other.instances), (detail,))

    def _compare(self, b: Value, a: Value) -> Iterator[Detail]:
        one, other = b.instruction, a.instruction
        if b.exact != a.exact:
            if one.opcode != other.opcode:
                yield Detail(Kind.OPCODE, "", one.opcode, other.opcode)
            for kind in sorted(_shape_kinds(one.shape, other.shape)):
                yield Detail(kind, "", *_shape_texts(kind, one.shape, other.shape))
            if one.payload != other.payload and one.opcode == other.opcode:
                if one.is_parameter:
                    yield Detail(Kind.ATTRIBUTE, "number", one.payload, other.payload)
                elif one.literal.canonical_text != other.literal.canonical_text:
                    yield Detail(Kind.LITERAL, "", one.payload, other.payload)
            yield from self._attributes(one, other)
            yield from self._callees(one, other)
        yield from self._operands(b, a)
        yield from self._control(b, a)
        if self.metadata:
            yield from self._metadata(one, other)

    def _attributes(self, one: Instruction, other: Instruction) -> Iterator[Detail]:
        if one.attributes is other.attributes:
            return
        old, new = (dict(self.m.before.keys.attributes(x.attributes)) for x in (one, other))
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                kind = Kind.ANNOTATION if name in ANNOTATIONS else Kind.ATTRIBUTE
                yield Detail(kind, name, one.raw(name), other.raw(name))

    def _callees(self, one: Instruction, other: Instruction) -> Iterator[Detail]:
        m = self.m
        old, new = grouped(one.called), grouped(other.called)
        for name in {**old, **new}:
            own = [m.before.regions[c] for c in old.get(name, ())]
            others = [m.after.regions[c] for c in new.get(name, ())]
            agree = len(own) == len(others) and all(
                b.number == a.number or m.partner.get(b) is a or m.partner.get(a) is b
                for b, a in zip(own, others, strict=True)
            )
            if not agree:
                yield Detail(
                    Kind.CALLEE,
                    name,
                    ", ".join(b.computation.name for b in own) or None,
                    ", ".join(a.computation.name for a in others) or None,
                )

    def _operands(self, b: Value, a: Value) -> Iterator[Detail]:
        m = self.m
        if len(b.operands) == len(a.operands):
            wrong = [(x, y) for x, y in zip(b.operands, a.operands, strict=True) if not self._same(x, y)]
            now = [m.backward[y] for _, y in wrong]
            if wrong and sorted(now) == sorted(x for x, _ in wrong):
                orders = [[x for x, _ in wrong], now]
                texts = [", ".join(m.before.values[x].instruction.name for x in order) for order in orders]
                yield Detail(Kind.ORDER, "operands", *texts)
                return
        for position in range(max(len(b.operands), len(a.operands))):
            x = b.operands[position] if position < len(b.operands) else -1
            y = a.operands[position] if position < len(a.operands) else -1
            if not self._same(x, y):
                old = m.before.values[x].instruction.name if x >= 0 else None
                new = m.after.values[y].instruction.name if y >= 0 else None
                yield Detail(Kind.OPERAND, str(position), old, new)

    def _same(self, b: int, a: int) -> bool:
        if b < 0 or a < 0:
            return False
        return self.m.forward[b] == a or self.m.backward[a] == b

    def _control(self, b: Value, a: Value) -> Iterator[Detail]:
        one, other = b.instruction, a.instruction
        if not one.control_predecessors and not other.control_predecessors:
            return
        m = self.m
        here, there = m.before.numbers, m.after.numbers
        old = {m.forward[here[p]] if p in here else -1 for p in one.control_predecessors}
        new = {there.get(p, -1) for p in other.control_predecessors}
        if old != new:
            names = [", ".join(p.name for p in i.control_predecessors) or None for i in (one, other)]
            yield Detail(Kind.CONTROL, "control-predecessors", *names)

    def _metadata(self, one: Instruction, other: Instruction) -> Iterator[Detail]:
        own, after_side = one.attributes.get("metadata"), other.attributes.get("metadata")
        for name in ("op_type", "op_name"):
            old = getattr(own, name, None)
            new = getattr(after_side, name, None)
            if old != new:
                yield Detail(Kind.METADATA, name, old, new)
        places = self.m.before.module.source_of(one), self.m.after.module.source_of(other)
        if places[0] != places[1]:
            yield Detail(Kind.METADATA, "source", *(str(p) if p else None for p in places))

    def _because(self, b: Value, a: Value) -> tuple[Instruction, ...]:
        """The reasons of a change if every one of its details has one elsewhere."""
        reasons = {}
        for detail in self.details[b.index]:
            found = list(self._reasons(detail, b, a))
            if not found:
                return ()
            reasons.update(dict.fromkeys(found))
        return tuple(reasons)

    def _reasons(
        self,
        detail: Detail,
        b: Value,
        a: Value,
    ) -> Iterator[Instruction]:
        m = self.m
        if detail.kind is Kind.OPERAND:
            position = int(detail.name)
            if position < len(a.operands) and m.backward[a.operands[position]] < 0:
                yield m.after.values[a.operands[position]].instruction
            if position < len(b.operands) and m.forward[b.operands[position]] < 0:
                yield m.before.values[b.operands[position]].instruction
        elif detail.kind in _SHAPE_KINDS:
            for x in b.operands:
                if any(d.kind is detail.kind for d in self.details.get(x, ())):
                    yield m.after.values[m.forward[x]].instruction
            if any(d.kind is Kind.OPERAND for d in self.details[b.index]):
                yield from (m.after.values[y].instruction for y in a.operands if m.backward[y] < 0)
            caller = m.callers.get(b.region)
            if b.opcode == "parameter" and caller and caller[0] in self.details:
                yield m.after.values[caller[1]].instruction
            for callee in b.instruction.called_computations:
                root = m.before.regions[callee].root
                if any(d.kind is detail.kind for d in self.details.get(root, ())):
                    yield m.before.values[root].instruction

    def _because_unused(
        self,
        graph: Graph,
        partner: list[int],
        v: Value,
    ) -> tuple[Instruction, ...]:
        removed = v.region not in self.m.partner
        if removed and v.opcode == "parameter":
            return tuple(v.region.computation.callers)[:1]
        if v.users and v.index != v.region.root:
            users = dict.fromkeys(u for u, _ in v.users)
            if all(partner[u] < 0 for u in users):
                return tuple(graph.values[u].instruction for u in users)
            return ()
        if removed:
            return tuple(v.region.computation.callers)[:1]
        return ()


def _copies(b: Value, a: Value) -> Iterator[Edit]:
    """Instructions outside fusions that compute once more, or once less, what stays."""
    if any(p.fusion for p in b.instances) or any(p.fusion for p in a.instances):
        return  # copies change with fusions, which report them
    for place in b.instances[len(a.instances) :]:
        yield Removed((place,), (), b.instances[0].instruction)
    for place in a.instances[len(b.instances) :]:
        yield Added((place,), (), a.instances[0].instruction)


def _shape_kinds(one: Shape, other: Shape) -> set[Kind]:
    if one is other:
        return set()
    if one.is_tuple and other.is_tuple and len(one.tuple_shapes) == len(other.tuple_shapes):
        pairs = zip(one.tuple_shapes, other.tuple_shapes, strict=True)
        return {kind for x, y in pairs for kind in _shape_kinds(x, y)}
    if one.is_tuple or other.is_tuple:
        return {Kind.SHAPE}
    found = set()
    if one.element_type != other.element_type:
        found.add(Kind.TYPE)
    if (one.dimensions, one.dynamic_dimensions) != (other.dimensions, other.dynamic_dimensions):
        found.add(Kind.SHAPE)
    elif one.key[1:] != other.key[1:]:
        found.add(Kind.LAYOUT)
    return found


def _shape_texts(kind: Kind, one: Shape, other: Shape) -> tuple[str, str]:
    if kind is Kind.TYPE and not one.is_tuple:
        return one.element_type, other.element_type
    if kind is Kind.SHAPE:
        return one.text_without_layout, other.text_without_layout
    return str(one), str(other)


MOST_TOGETHER = 12  # Fusions in one change; of more, what happened to each says more


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
        values = [*(new[self.m.forward[i]] for i in joined), *(old[i] for i in left)]
        is_closed = all(source in before for f in after for source in f.sources)
        is_closed &= all(source in after for f in before for source in f.sources)
        if is_closed and all(len(v.instances) == 1 for v in values):  # nothing else took part
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


@no_collection()
def diff(before: Module, after: Module, *, metadata: bool = False) -> ModuleDiff:
    """The differences of `after` from `before`. Names, numbers and the order of the text are never a
    difference; op_name and source lines are one with `metadata`. Neither module is changed."""
    pairs = match(before, after)
    m = pairs.matching
    edits = tuple(Changes(m, metadata).edits())
    fusions = FusionChanges(m, KernelCosts())
    found = tuple(fusions.find())
    return ModuleDiff(
        before=_side(m.before),
        after=_side(m.after),
        pairs=pairs,
        edits=edits,
        fusions=found,
        fusions_unchanged=fusions.unchanged,
        header=tuple(_header(before, after, edits)),
    )


def _side(graph: Graph) -> ModuleSide:
    module = graph.module
    return ModuleSide(
        module=module,
        instructions=sum(len(c) for c in graph.reachable),
        kernels=len(kernels.kernels(module)),
        fusions=len(graph.groups),
        unreachable=graph.unreachable,
    )


def _header(before: Module, after: Module, edits: tuple[Edit, ...]) -> Iterator[Detail]:
    own, other = before.attributes.raw_items, after.attributes.raw_items
    for name in {**own, **other}:
        old, new = own.get(name), other.get(name)
        if old and new and canonical_attribute(name, old) == canonical_attribute(name, new):
            continue
        if name == "entry_computation_layout" and any(isinstance(e, Changed) for e in edits):
            continue  # it repeats the shapes of parameters and root
        yield Detail(Kind.ATTRIBUTE, name, old, new)


def moved_lines(diff: ModuleDiff) -> dict[str, str]:
    """Lines of BEFORE with another number in AFTER, by the operations that they have in common."""
    before, after = diff.before.module, diff.after.module
    if same_tables(before, after):
        return {}
    votes: Counter[tuple[SourceLocation, SourceLocation]] = Counter()
    for pair in diff.matches:
        old, new = _places(pair.before, before), _places(pair.after, after)
        if len(old) == len(new):
            votes.update(pair for pair in zip(old, new, strict=True) if same_function(*pair))
    texts: Counter[tuple[str, str]] = Counter()
    for (one, other), count in votes.items():
        texts[source_text(one), source_text(other)] += count
    found = {}
    taken = set()
    for (old_text, new_text), _ in sorted(texts.items(), key=lambda item: (-item[1], item[0])):
        if old_text not in found and new_text not in taken:
            found[old_text] = new_text
            taken.add(new_text)
    return {old: new for old, new in found.items() if old != new}


def _places(occurrences: Iterable[Occurrence], module: Module) -> list[SourceLocation]:
    found = {s: None for o in occurrences if (s := module.source_of(o.instruction)) is not None and s.line}
    return sorted(found, key=lambda s: (s.file, s.line, s.column))
