"""The one matcher of two modules: anchors, then structure, then similarity."""

from collections import Counter, deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from functools import cached_property

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.kernels import inside, kernels
from hlofuse.ir import Computation, Instruction, InstructionMap, Instructions, Module, grouped
from hlofuse.ir.native import no_collection
from .graph import Graph, Matched, Occurrence, Region
from .key import Keys, Strictness, payload, result
from .similarity import Similarity, match_changed_opcodes
from .structure import TRIVIAL, Anchors, Matching, only_pairs


def match_graphs(before: Graph, after: Graph, anchors: Anchors) -> Matching:
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
    m.loose(b, a)
    while Similarity(m, b, a).run() + match_changed_opcodes(m, b, a):
        m.loose(b, a)


class _Pairing:
    """Computations paired so far, and those whose calls are still to be followed."""

    def __init__(self, matching: Matching) -> None:
        self.m = matching
        self.partner = matching.partner
        self.queue = deque[tuple[Region, Region]]()
        self.copies = deque[tuple[Graph, list[int], Region, Region]]()

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
                # The values of `copy` get the partners of `original`, which computes the same.
                by_number = grouped((graph.values[i].number, i) for i in original.indices)
                for i in reversed(copy.indices):
                    partners[i] = partners[by_number[graph.values[i].number].pop()]
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


@no_collection()
def match(before: Module, after: Module, anchors: Anchors = ()) -> "Pairs":
    """The instructions of two modules that compute the same. Neither module is changed. `anchors` are pairs
    that need no search, such as those of a replay by origin."""
    keys = Keys(Strictness.WRITTEN)
    return Pairs(match_graphs(Graph(before, keys), Graph(after, keys), anchors))


class Pairs:
    """The values that two modules have in common."""

    def __init__(self, matching: Matching) -> None:
        self.matching = matching
        self.before = matching.before.module
        self.after = matching.after.module

    @cached_property
    def matches(self) -> tuple[Matched, ...]:
        """Every pair. Values of AFTER that are copies of one of BEFORE come together."""
        m = self.matching
        copies = dict[int, list[Occurrence]]()
        for a, b in enumerate(m.backward):
            if b >= 0 and m.forward[b] != a:
                copies.setdefault(b, []).extend(m.after.values[a].instances)
        found = []
        for b, a in enumerate(m.forward):
            if a >= 0:
                places = (*m.after.values[a].instances, *copies.get(b, ()))
                found.append(Matched(tuple(m.before.values[b].instances), places))
        return tuple(found)

    def after_of(self, instruction: Instruction) -> tuple[Occurrence, ...]:
        """The places of an instruction of BEFORE in AFTER; empty if it was removed."""
        return self._forward.get(instruction, ())

    def before_of(self, instruction: Instruction) -> tuple[Occurrence, ...]:
        """The places of an instruction of AFTER in BEFORE; empty if it was added."""
        return self._backward.get(instruction, ())

    @cached_property
    def _forward(self) -> Mapping[Instruction, tuple[Occurrence, ...]]:
        return {p.instruction: m.after for m in self.matches for p in m.before}

    @cached_property
    def _backward(self) -> Mapping[Instruction, tuple[Occurrence, ...]]:
        return {p.instruction: m.before for m in self.matches for p in m.after}

    @cached_property
    def one_to_one(self) -> InstructionMap:
        """Instructions of AFTER outside fusions with those of BEFORE that compute the same results."""
        pairs = self._by_results()
        self._add_equivalents(pairs)
        elements = dict[tuple[Instruction, int], Instruction]()
        for old in set(pairs.values()):
            for user in old.users:
                if user.is_get_tuple_element:
                    elements.setdefault((old, user.tuple_index), user)
        for computation in self.after.computations:
            for new in computation:
                if new.is_get_tuple_element and new not in pairs:
                    source = pairs.get(new.operand)
                    if source is not None and (source, new.tuple_index) in elements:
                        pairs[new] = elements[source, new.tuple_index]
        return pairs

    @cached_property
    def names(self) -> dict[str, str]:
        """The names in BEFORE of the instructions of AFTER, those in paired fusions included. An instruction
        has at most one name of either module. Copies and wrappers that later passes added have none."""
        names = {new.name: old.name for new, old in self.one_to_one.items()}
        for new, old in self.one_to_one.items():
            if new.is_fusion and new.called and old.called:
                for x in new.fused_computation:
                    place = next((p for p in self.before_of(x) if p.fusion is old), None)
                    if place is not None:
                        names.setdefault(x.name, place.instruction.name)
        return names

    def _by_results(self) -> InstructionMap:
        choices = [
            (x, candidates)
            for computation in self.after.computations
            if computation.fusion is None
            for x in computation
            if (candidates := self._candidates(x))
        ]
        pairs = {}
        taken = set()
        for only_certain in (True, False):
            for new, candidates in choices:
                if new in pairs or (only_certain and len(candidates) > 1):
                    continue
                free = [c for c in candidates if c not in taken]
                old = next((c for c in free if c.name == new.name), free[0] if free else None)
                if old is not None:
                    pairs[new] = old
                    taken.add(old)
        return pairs

    def _candidates(self, new: Instruction) -> Instructions:
        """Instructions that compute every result of `new`, exact ones first."""
        results = _results(new)
        places = [p for r in results if (p := [o.kernel for o in self.before_of(r)])]
        if not places:
            return []
        common = [x for x in dict.fromkeys(places[0]) if all(x in others for others in places[1:])]
        return sorted(common, key=lambda x: (x.opcode != new.opcode, not self._yields(x, results)))

    def _yields(self, old: Instruction, results: Iterable[Instruction]) -> bool:
        """True if the results of `old` are the very results given, and not further uses of them."""
        wanted = {p.instruction for r in results for p in self.before_of(r)}
        return all(r in wanted for r in _results(old))

    def _add_equivalents(self, pairs: InstructionMap) -> None:
        """Pair kernels in another computation, such as an async one, if as many have their outline."""
        taken = set(pairs.values())
        left = grouped((_outline(old), old) for old in kernels(self.before) if old not in taken)
        if not left:
            return
        unmatched = grouped((_outline(new), new) for new in kernels(self.after) if new not in pairs)
        for outline, new_ones in unmatched.items():
            old_ones = left.get(outline, [])
            if len(old_ones) == len(new_ones):
                pairs.update(zip(new_ones, old_ones, strict=True))


def _results(x: Instruction) -> Instructions:
    """The instructions that compute its results: roots of a fusion, without copies of `copy_fusion`."""
    root = x
    while root.is_fusion and root.called:
        root = root.fused_root
    if root is x:
        return [x]
    roots = root.outputs
    return [r.operand if r.opcode == "copy" and len(roots) > 1 else r for r in roots]


def _outline(kernel: Instruction) -> tuple[object, ...]:
    opcodes = tuple(sorted(x.opcode for x in inside(kernel)))
    if custom_call_target(kernel).startswith("__cublas$") or "dot" in opcodes:
        # The autotuner puts a library call, with its workspace, in the place of a fused product.
        return next(kernel.shape.leaves())[1].key, kernel.op_name, "dot"
    return kernel.shape.key, kernel.op_name, opcodes


def counterparts(one: Module, other: Module) -> InstructionMap | None:
    """The instruction of `other` for each of `one`; None as soon as the modules differ. Parameters and roots
    correspond, and so do their operands. Dead instructions are matched by their operands. Unread
    get-tuple-elements have none: XLA's texts omit them."""
    return _Counterparts().find(one, other)


class _Counterparts:
    """Pairs found so far, and paired computations whose instructions are still to be paired."""

    def __init__(self) -> None:
        self._keys = Keys(Strictness.COMPUTED)
        self._other_of = InstructionMap()
        self._taken = set[Instruction]()
        self._computations = dict[Computation, Computation]()
        self._waiting = list[tuple[Computation, Computation]]()

    def find(self, one: Module, other: Module) -> InstructionMap | None:
        """The pairs, or None where the modules differ."""
        self._pair_computations(one.entry, other.entry)
        while self._waiting:
            if not self._match(*self._waiting.pop()):
                return None
        called = [c for c in one.computations if c.callers or c is one.entry]
        return self._other_of if all(c in self._computations for c in called) else None

    def _pair_computations(self, one: Computation, other: Computation) -> bool:
        paired = self._computations.get(one)
        if paired is None:
            self._computations[one] = other
            self._waiting.append((one, other))
        return paired in (None, other)

    def _match(self, one: Computation, other: Computation) -> bool:
        if len(one.parameters) != len(other.parameters):
            return False
        start = [*zip(one.parameters, other.parameters, strict=True), (one.root, other.root)]
        return self._match_operands(start) and self._match_dead(
            _left(one, self._other_of), _left(other, self._taken)
        )

    def _match_operands(self, stack: list[tuple[Instruction, Instruction]]) -> bool:
        while stack:
            a, b = stack.pop()
            paired = self._other_of.get(a)
            if paired is None:
                if not self._pair(a, b):
                    return False
                stack.extend(zip(a.operands, b.operands, strict=True))
            elif paired is not b:
                return False
        return True

    def _match_dead(self, some: Instructions, others: Instructions) -> bool:
        """Match dead instructions, operands before users, so that the operands have counterparts."""
        if len(some) != len(others):
            return False
        readers = grouped((tuple(b.operands), b) for b in others)
        for a in some:
            if any(o not in self._other_of for o in a.operands):
                return False
            candidates = readers.get(tuple(self._other_of[o] for o in a.operands), [])
            found = next((b for b in candidates if b not in self._taken and self._agree(a, b)), None)
            if found is None or not self._pair(a, found):
                return False
        return True

    def _pair(self, one: Instruction, other: Instruction) -> bool:
        """Add the pair; False where they differ, or call computations paired otherwise."""
        if other in self._taken or one.operand_count != other.operand_count:
            return False
        # An array elided in one text equals any.
        hidden = one.opcode == "constant" == other.opcode and (
            one.literal.is_elided or other.literal.is_elided
        )
        if not self._agree(one, other, hidden=hidden):
            return False
        self._other_of[one] = other
        self._taken.add(other)
        called = zip(one.called_computations, other.called_computations, strict=True)
        return all(self._pair_computations(a, b) for a, b in called)

    def _agree(self, one: Instruction, other: Instruction, *, hidden: bool = False) -> bool:
        """True if all but operands and called computations is equal (with `hidden`, but elements, too)."""
        return self._content(one, hidden) == self._content(other, hidden)

    def _content(self, x: Instruction, hidden: bool) -> Hashable:
        text = "" if hidden else payload(x)
        return (x.opcode, result(x).key, self._keys.attributes(x.attributes), text, len(x.called))


def _left(computation: Computation, paired: Container[Instruction]) -> Instructions:
    return [
        x for x in computation.post_order() if x not in paired and (x.users or not x.is_get_tuple_element)
    ]
