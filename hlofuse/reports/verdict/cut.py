"""The kernels around a place of a large module, as a module of their own: changes are tried on them."""

from collections.abc import Container, Iterable, Iterator
from functools import cached_property

from hlofuse.analysis.kernels import CONTROL_FLOW
from hlofuse.compilation import Compilation
from hlofuse.ir import Attributes, Computation, Instruction, InstructionMap, Instructions, Module, Shape
from hlofuse.ir.fusing import tuple_of
from hlofuse.passes.common.calls import filled
from hlofuse.reports.advice.recipe import Finding
from hlofuse.reports.common.facts import Facts, kernels_of, launched
from hlofuse.reports.common.lineage import Lineage, is_view, readers, through_views
from hlofuse.reports.common.model import TRIED_UP_TO

_HOPS = 2  # a change next to a kernel may let it fuse with what its neighbors read
_MOST_INSTRUCTIONS = 1_000  # instructions in kernels with their neighbors; with more, neighbors are left out
_ELSEWHERE = "elsewhere"
"""The placeholder for every reader elsewhere of the kernels' results: XLA fuses nothing into it."""


class Cutter:
    """Cuts kernels out of a replayed module."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def _holders(self) -> dict[str, set[str]]:
        return kernels_of(self.facts)

    def kind(self, finding: Finding) -> object:
        """Equal for places in kernels that compute the same."""
        inside = [self.facts.before[n] for k in self._around(finding) for n in self._members(k)]
        return finding.rule, self.runs(finding), tuple(sorted((x.opcode, str(x.shape)) for x in inside))

    def runs(self, finding: Finding) -> int:
        x = self.facts.before[finding.at]
        return self.facts.account_before.runs(x.computation) if x.computation is not None else 0

    def touched(self, findings: Iterable[Finding]) -> float:
        """The share of the estimated time, else of the bytes, of all kernels that hold one of the places."""
        account, final = self.facts.account_replayed, self.facts.replay.final_names
        kernels = {final.get(k, k) for f in findings for k in self._around(f)}
        is_timed = account.totals.us is not None
        weights = {
            r.instruction.name: (r.total_us or 0.0) if is_timed else r.cost.bytes_accessed * r.runs
            for r in account.rows
        }
        return sum(w for n, w in weights.items() if n in kernels) / (sum(weights.values()) or 1.0)

    def around(self, finding: Finding) -> Module | None:
        """The kernels that hold a place, and those near them, as a module; of a loop all that are in it. Its
        instructions have their names in the whole module; parameters stand for what is read from others. None
        where the place is not within one computation, or too large."""
        at = self._places(finding)
        if len({x.computation for x in at}) != 1 or at[0].computation is None:
            return None
        kernels = nearest = dict.fromkeys(self._around(finding))
        for _ in range(_HOPS):
            nearest = nearest | dict.fromkeys(k for name in nearest for k in self._next_to(name))
            kernels = nearest if self._size(nearest) <= _MOST_INSTRUCTIONS else kernels
        members = {m for k in kernels for m in self._members(k)}
        members |= {x.name for x in at if x.opcode in CONTROL_FLOW}
        if not kernels or self._size(kernels) > TRIED_UP_TO:
            return None
        return self._cut(at[0].computation, members)

    def _places(self, finding: Finding) -> Instructions:
        return [self.facts.before[n] for n in (finding.at, *finding.parts) if n in self.facts.before]

    def _around(self, finding: Finding) -> Iterator[str]:
        """The kernels that hold the place; of a loop those that it runs."""
        for x in self._places(finding):
            for y in (x, *(_inside(x) if x.opcode in CONTROL_FLOW else ())):
                yield from self._holders.get(y.name, ())

    def _members(self, kernel: str) -> Iterator[str]:
        return (m for m in self.facts.lineage.members(kernel) if m in self.facts.before)

    def _size(self, kernels: Iterable[str]) -> int:
        return sum(len(self.facts.lineage.members(k)) for k in kernels)

    def _next_to(self, name: str) -> Iterator[str]:
        """The kernels whose results a kernel reads, and those that read its own."""
        kernel = self.facts.launched_after[name]
        for x in (*map(through_views, kernel.operands), *readers(kernel)):
            if x.name in self.facts.launched_after:
                yield x.name

    def matched(self, replay: Compilation) -> dict[str, str] | None:
        """The kernels of a replayed cut by final names in the whole module; None if fused otherwise there."""
        lineage, found = Lineage(replay.before, replay.after, replay.events), {}
        final = replay.final_names
        for name in launched(replay.after):
            if _ELSEWHERE not in (inside := frozenset(lineage.members(name))):
                if inside not in self._by_content:
                    return None
                found[self._by_content[inside]] = final.get(name, name)
        return found

    @cached_property
    def _by_content(self) -> dict[frozenset[str], str]:
        final = self.facts.replay.final_names
        members = self.facts.lineage.members
        return {frozenset(members(k)): final.get(k, k) for k in self.facts.launched_after}

    def _cut(self, original: Computation, members: set[str]) -> Module:
        inside = [x for x in original.post_order() if x.name in members]
        copy = _Copy(original, inside)
        results: dict[Instruction, None] = {}
        read: dict[Instruction, None] = {}
        for x in inside:
            for value, user in self._uses(x, x, copy.copies):
                if user is original.root:
                    results[value] = None
                elif not self._holds(user, x):
                    read[value] = None
            if x is original.root:
                results[x] = None
        return copy.finished(results, read)

    def _uses(
        self, x: Instruction, value: Instruction, inside: Container[Instruction]
    ) -> Iterator[tuple[Instruction, Instruction]]:
        """The value that is read, `x` or an element, and who reads it elsewhere, free views passed over."""
        for user in value.users:
            if user in inside:
                continue
            is_free = is_view(user) and user.name not in self._holders
            if is_free:
                element = user if user.is_get_tuple_element else value
                yield from ((element, u) for _, u in self._uses(x, user, inside))
            if user.is_root or not is_free:
                yield value, user

    def _holds(self, user: Instruction, x: Instruction) -> bool:
        """True if every kernel with `user` computes `x` for itself."""
        kernels = self._holders.get(user.name, set())
        return bool(kernels) and kernels <= self._holders.get(x.name, set())


def _inside(x: Instruction) -> Iterator[Instruction]:
    for computation in x.called_computations:
        for y in computation:
            yield y
            yield from _inside(y)


class _Copy:
    """A module in the making."""

    def __init__(self, original: Computation, inside: Iterable[Instruction]) -> None:
        assert original.module is not None
        self.module = Module(original.module.name)
        self.module.order_source = original.module.order_source
        self.entry = self.module.add_computation(Computation("main"))
        self.module.entry = self.entry
        self.copies: InstructionMap = {}
        self._called: dict[Computation, Computation] = {}
        for x in inside:
            self._add(x)

    def _value(self, x: Instruction) -> Instruction:
        """The cut's own value for an operand: constants and views are copied, others become parameters."""
        if x not in self.copies:
            is_leaf = x.opcode in ("tuple", "bitcast") or (not x.operands and not x.is_parameter)
            if is_leaf or (is_view(x) and through_views(x) in self.copies):
                self._add(x)
            else:
                number = len(self.entry.parameters)
                parameter = Instruction(x.name, x.shape, "parameter", payload=str(number))
                self.copies[x] = self.entry.add_instruction(parameter)
        return self.copies[x]

    def _add(self, x: Instruction) -> None:
        copy = x.clone([self._value(o) for o in x.operands])
        copy.called = [(name, self._computation(c)) for name, c in x.called]
        self.copies[x] = self.entry.add_instruction(copy)

    def _computation(self, original: Computation) -> Computation:
        if original not in self._called:
            copy = self._called[original] = Computation(original.name)
            self.module.add_computation(filled(copy, original, self._computation))
        return self._called[original]

    def finished(self, results: Iterable[Instruction], read: Iterable[Instruction]) -> Module:
        elements = [self._value(x) for x in results]
        if others := [self._value(x) for x in read]:
            effect = Attributes(
                raw={"custom_call_target": f'"{_ELSEWHERE}"', "custom_call_has_side_effect": "true"}
            )
            elements.append(Instruction(_ELSEWHERE, Shape.tuple_of(()), "custom-call", others, effect))
        # Ids and users in the order of the original: XLA's decisions hang on both.
        for original, copy in self.copies.items():
            place = {self.copies[u]: n for n, u in enumerate(original.users) if u in self.copies}
            copy.users.sort(key=lambda u: place.get(u, len(place)))
        self.entry.reorder([self.copies[x] for x in sorted(self.copies, key=lambda x: x.id)])
        if others:
            self.entry.add_instruction(elements[-1])
        self.entry.root = self.entry.add_instruction(tuple_of(elements))
        return self.module
