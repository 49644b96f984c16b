"""Takes out the copies without which no value is overwritten too early. Mirrors
`CopyInsertion::RemoveUnnecessaryCopies` and `CopyRemover` (`xla/service/copy_removal.cc`) without the
analysis by regions, which both backends leave off by default."""

from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key

from msgspec import Struct

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.call_sites import CallSites, called_in_order, creation_order
from hlofuse.analysis.hlo_alias import HloAlias
from hlofuse.analysis.hlo_ordering import DependencyOrdering, HloOrdering
from hlofuse.analysis.hlo_value import HloUse, HloValue
from hlofuse.analysis.kernels import end_of
from hlofuse.ir.graph import Computation, Instruction, Module

# The values of each buffer in the order in which they are there, as lists that can be joined. Mirrors
# `CopyRemover::ValueNode` and the order that its constructor gives them (`xla/service/copy_removal.cc`).


class ValueNode:
    """One value of a buffer between those before and after it; after the last one comes the first."""

    __slots__ = ("next", "prev", "uses", "value")

    def __init__(self, value: HloValue) -> None:
        self.value = value
        self.uses: list[HloUse] = list(value.uses)
        """Kept while copies go, unlike those of the value."""
        self.prev = self.next = self


class ValueLists:
    def __init__(self) -> None:
        self._heads = set[ValueNode]()

    def add(self, values: Iterable[HloValue]) -> list[ValueNode]:
        nodes = [ValueNode(value) for value in values]
        for k, node in enumerate(nodes):
            node.next = nodes[(k + 1) % len(nodes)]
            node.prev = nodes[k - 1]
        self._heads.add(nodes[0])
        return nodes

    def is_first(self, node: ValueNode) -> bool:
        return node in self._heads

    def is_last(self, node: ValueNode) -> bool:
        return node.next in self._heads

    def after(self, node: ValueNode) -> ValueNode | None:
        """The next one; None at the end (`Next`)."""
        return None if self.is_last(node) else node.next

    def before(self, node: ValueNode) -> ValueNode | None:
        """The one before; None at the start (`Prev`)."""
        return None if self.is_first(node) else node.prev

    def onward(self, node: ValueNode | None) -> Iterator[ValueNode]:
        while node is not None:
            yield node
            node = self.after(node)

    def backward(self, node: ValueNode | None) -> Iterator[ValueNode]:
        while node is not None:
            yield node
            node = self.before(node)

    def splice(self, head: ValueNode, after: ValueNode) -> None:
        """Put a whole list into another one (`SpliceAfter`)."""
        self._heads.discard(head)
        last = head.prev
        last.next, after.next.prev = after.next, last
        after.next, head.prev = head, after

    def remove(self, node: ValueNode) -> None:
        node.prev.next, node.next.prev = node.next, node.prev
        if node in self._heads:
            self._heads.discard(node)
            if node.next is not node:
                self._heads.add(node.next)


class ValueOrder:
    """The order in which the values of a buffer come to be."""

    def __init__(self, module: Module, ordering: HloOrdering) -> None:
        self._ordering = ordering
        self._place = {x: k for k, x in enumerate(_ordered_instructions(module, ordering))}

    def sorted(self, values: Iterable[HloValue]) -> list[HloValue]:
        return sorted(values, key=cmp_to_key(self._compare))

    def _compare(self, a: HloValue, b: HloValue) -> int:
        if a is b:
            return 0
        before = self._ordering.is_defined_before
        is_smaller = self._place.get(a.instruction, 0) < self._place.get(b.instruction, 0)
        first, second = (a, b) if is_smaller else (b, a)
        is_reversed = not before(first, second) and before(second, first)
        return -1 if is_smaller is not is_reversed else 1


def _ordered_instructions(module: Module, ordering: HloOrdering) -> Iterator[Instruction]:
    """All instructions, what is called before its caller, parameters first."""
    seen = set()
    for start in (module.entry, *module.computations):
        if start in seen:
            continue
        seen.add(start)
        pending = [(start, _rest(start, ordering))]
        yield from start.parameters
        waiting = list[Instruction]()
        while pending:
            computation, rest = pending[-1]
            x = waiting.pop() if waiting and waiting[-1].computation is computation else next(rest, None)
            if x is None:
                pending.pop()
                continue
            inner = next((c for c in called_in_order(x) if c not in seen), None)
            if inner is None:
                yield x
                continue
            waiting.append(x)
            seen.add(inner)
            yield from inner.parameters
            pending.append((inner, _rest(inner, ordering)))


def _rest(computation: Computation, ordering: HloOrdering) -> Iterator[Instruction]:
    return (x for x in ordering.sequence(computation) if x.opcode != "parameter")


OrderingOf = Callable[[CallSites, Iterable[Instruction]], HloOrdering]
"""Gives the order to go by, for the instructions that may be compared."""


class _Ends(Struct):
    source: ValueNode
    result: ValueNode


def remove_copies(
    module: Module, alias_info: AliasInfo, ordering_of: OrderingOf = DependencyOrdering
) -> bool:
    """Let readers of needless copies read what is copied; the copies stay, unused. True if there was any."""
    copies = [x for c in creation_order(module) if c.fusion is None for x in c if x.opcode == "copy"]
    if not copies:
        return False
    remover = _CopyRemover(module, alias_info, ordering_of, copies)
    any_changed, changed = False, True
    while changed:
        changed = False
        for copy in copies:
            if remover.try_elide(copy):
                changed = any_changed = True
                copy.drop_all_control_dependencies()
                copy.replace_all_uses_with(copy.operand)
    return any_changed


class _CopyRemover:
    """The values of every buffer that a copy reads or writes, while copies go."""

    def __init__(
        self, module: Module, alias_info: AliasInfo, ordering_of: OrderingOf, copies: list[Instruction]
    ) -> None:
        alias = HloAlias(module, alias_info)
        self._dataflow, self._alias_info = alias.dataflow, alias_info
        pairs = {}
        for copy in copies:
            source, result = self._dataflow.value_at(copy.operand), self._dataflow.value_at(copy)
            if source is not None and result is not None:
                pairs[copy] = source, result
        buffers = dict.fromkeys(alias.buffer_of(v) for ends in pairs.values() for v in ends)
        values = [v for buffer in buffers for v in buffer.values]
        compared = dict.fromkeys(v.instruction for v in values)
        compared.update(dict.fromkeys(use.instruction for v in values for use in v.uses))
        self._ordering = ordering_of(alias.calls, compared)
        self._lists = ValueLists()
        order = ValueOrder(module, self._ordering)
        nodes = {}
        for buffer in buffers:
            for node in self._lists.add(order.sorted(buffer.values)):
                nodes[node.value] = node
        self._ends = {copy: _Ends(nodes[source], nodes[result]) for copy, (source, result) in pairs.items()}

    def try_elide(self, copy: Instruction) -> bool:
        """Join the buffers of a copy if no value suffers; True if the copy is needless (`TryElideCopy`)."""
        ends = self._ends.get(copy)
        if ends is None or copy.shape.key != copy.operand.shape.key:
            return False
        source, result, lists = ends.source, ends.result, self._lists
        if source.next is result:
            pass
        elif lists.is_first(result):
            following = lists.after(result)
            if following is not None and _scatters_both(source, following):
                return False
            if not self._all_before(source, following):
                return False
            if not self._all_before(result.prev, lists.after(source)):
                return False
            lists.splice(result, source)
        elif lists.is_last(source):
            before = lists.before(result)
            if before is None or not self._all_before(before, source.next):
                return False
            if not self._all_before(source, lists.after(result)):
                return False
            lists.splice(source.next, before)
        else:
            if not self._share_a_list(source, result):
                return False
            self._remove(result, source)
            return True
        self._remove(result, result.prev)
        return True

    def _share_a_list(self, source: ValueNode, result: ValueNode) -> bool:
        """Both ends are in one list, and readers of the result are done before what lies between them."""
        between = []
        node = source.next
        while node is not result:
            if node is source:
                return False
            between.append(node)
            node = node.next
        moved = ValueNode(source.value)
        moved.uses = result.uses
        return all(self._is_before(moved, node) for node in between)

    def _all_before(self, source: ValueNode | None, result: ValueNode | None) -> bool:
        """All values up to `source` are dead when those from `result` on come (`CheckLiveRangeBefore`)."""
        if source is None or result is None:
            return True
        lists = self._lists
        return all(self._is_before(a, b) for b in lists.onward(result) for a in lists.backward(source))

    def _is_before(self, a: ValueNode, b: ValueNode) -> bool:
        """`LiveRangeBefore`."""
        if not a.uses:
            return self._ordering.is_defined_before(a.value, b.value)
        if a.value.is_at_root_of(b.value.instruction.computation):
            return False
        return self._ordering.uses_before_definition(a.uses, b.value, self._dataflow, self._alias_info)

    def _remove(self, result: ValueNode, source: ValueNode) -> None:
        """Readers of the copy become readers of what it copies (`RemoveCopyValue`)."""
        self._lists.remove(result)
        copy = result.value.instruction
        for k, use in enumerate(source.uses):
            if use.instruction is copy:
                del source.uses[k]
                break
        source.uses += result.uses
        for use in result.uses:
            if (ends := self._ends.get(use.instruction)) is not None:
                ends.source = source
        del self._ends[copy]


def _scatters_both(source: ValueNode, following: ValueNode) -> bool:
    """True if a scatter of several arrays writes into the copy and reads what is copied."""
    x = following.value.instruction
    scatter = end_of(x)
    if scatter.opcode != "scatter" or not scatter.shape.is_tuple:
        return False
    return any(use.instruction is x for use in source.uses)
