"""`diff`: two modules in, a ModuleDiff out."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis import kernels
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction, Module, Shape, grouped
from hlofuse.ir.native import no_collection
from hlofuse.ir.stack_frames import SourceLocation
from hlofuse.matching.graph import Graph, Occurrence, Value
from hlofuse.matching.key import ANNOTATIONS, canonical_attribute
from hlofuse.matching.pairs import match
from hlofuse.matching.similarity import same_function, same_tables
from hlofuse.matching.structure import Matching
from .fusions import FusionChanges
from .model import Added, Changed, Detail, Edit, Kind, ModuleDiff, ModuleSide, Moved, Removed

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
                if one.opcode == "parameter":
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
