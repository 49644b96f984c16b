"""Copies where two values would need one buffer at the same time (`xla/service/copy_insertion.cc`). Those
without which no value is overwritten too early are taken out. Mirrors
`CopyInsertion::RemoveUnnecessaryCopies` and `CopyRemover` (`xla/service/copy_removal.cc`) without the
analysis by regions, which both backends leave off by default."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field
from functools import cmp_to_key, partial

from msgspec import Struct

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.async_ops import is_async_end
from hlofuse.analysis.call_sites import (
    CallContext,
    CallSites,
    called_in_order,
    creation_order,
    is_asynchronous,
    non_fusion_computations,
)
from hlofuse.analysis.custom_calls import custom_call_target, is_flagged
from hlofuse.analysis.hlo_alias import HloAlias, HloBuffer
from hlofuse.analysis.hlo_ordering import DependencyOrdering, HloOrdering, SequentialOrdering
from hlofuse.analysis.hlo_value import HloUse, HloValue, Index, shape_tree, subshape_at
from hlofuse.analysis.in_place import InPlacePair
from hlofuse.analysis.kernels import end_of
from hlofuse.analysis.memory_scheduler import live_ranges
from hlofuse.ir import Computation, Instruction, Instructions, Module, Shape, grouped, numbered, values
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import replace_users
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.releases import AROUND_FUSION
from hlofuse.rules.rewrites import COPY
from hlofuse.trace import OnlySkipped, Recorder

Because = Callable[[Instruction, str], None]  # Takes a copy and the reason why it is there
_NON_COPYABLE = values("send recv copy-start")
_DISJOINT = ("xla_disjoint_read_write_regions", "xla.disjoint_read_write_regions")
_NO_COPIES = ("xla_disable_while_loop_copies", "xla.disable_while_loop_copies")


# More copies than are needed: wherever values might have to share a buffer.
#
# Mirrors `AddCopiesToResolveInterference` with the functions it calls, but for the chains of send and recv
# that go around a loop (`AddCopiesForNonCopyableTransitions`).
def add_copies(module: Module, alias_info: AliasInfo, because: Because) -> None:
    alias = HloAlias(module, alias_info)
    for computation in non_fusion_computations(module):
        if is_asynchronous_body(computation):
            continue
        for x in computation.post_order():
            if x.is_while:
                _add_for_loop(alias, x, because)
            elif x.opcode == "conditional":
                _add_for_conditional(alias, x, because)
            elif x.opcode not in _NON_COPYABLE:
                _add_for_in_place(x, _pairs(alias_info, x), because)
    _add_for_aliased_results(alias, module, because)


def is_asynchronous_body(computation: Computation) -> bool:
    """True for what an asynchronous call runs (`IsAsyncComputation`)."""
    caller = computation.first_caller
    return caller is not None and is_asynchronous(caller)


def _add_for_loop(alias: HloAlias, loop: Instruction, because: Because) -> None:
    """Copy what goes in, what an iteration begins with and what it ends with (`AddCopiesForWhile`)."""
    init, dataflow = loop.operand, alias.dataflow
    if is_flagged(loop, _NO_COPIES) or not dataflow.covers(loop):
        return
    indices = set()
    for index, before, after in zip(
        shape_tree(loop.shape).indices, dataflow.values_of(init), dataflow.values_of(loop), strict=True
    ):
        is_copyable = not index or not (
            index[0] < init.operand_count and init.operands[index[0]].opcode in _NON_COPYABLE
        )
        if before is not after and is_copyable:
            indices.add(index)
    if not indices:
        return
    copies = dict[Index, Instruction]()
    init.replace_use_with(loop, deep_copy(init, indices, copies))
    _explain(copies, f"iterations of {loop.name} overwrite its initial value", because)
    body = dict(loop.called)["body"]
    parameter, root = body.parameter, body.root
    users = list(parameter.users)
    first = dict[Index, Instruction]()
    last = dict[Index, Instruction]()
    begins = deep_copy(parameter, indices, first)
    body.root = deep_copy(root, indices, last)
    for index, copy in first.items():
        copy.add_control_dependency_to(last[index])
    for user in users:
        parameter.replace_use_with(user, begins)
    _explain(first, f"an iteration of {loop.name} reads it after its buffer is written", because)
    _explain(last, f"the next iteration of {loop.name} overwrites its buffer", because)


def _add_for_conditional(alias: HloAlias, conditional: Instruction, because: Because) -> None:
    """Copy what the branches give where it is not the same (`AddCopiesForConditional`)."""
    if not alias.dataflow.covers(conditional):
        return
    values = alias.dataflow.values_of(conditional)
    indices = {
        index
        for index, value in zip(shape_tree(conditional.shape).indices, values, strict=True)
        if value is not None and value.is_phi and value.instruction is conditional
    }
    if not indices:
        return
    for branch in conditional.called_computations:
        copies = copy_for_users(branch.root, indices)
        _explain(copies, f"the branches of {conditional.name} write their results to one buffer", because)


def _pairs(alias_info: AliasInfo, x: Instruction) -> list[InPlacePair]:
    """The operands overwritten by it, or by the computation that an asynchronous call starts."""
    if x.opcode == "async-start" and x.called and x.raw("output_to_operand_aliasing") is None:
        return alias_info.in_place_pairs(x.to_apply.root)
    return alias_info.in_place_pairs(x)


def _add_for_in_place(x: Instruction, pairs: list[InPlacePair], because: Because) -> None:
    """Copy what is overwritten (`AddCopiesForInPlaceOperation`)."""
    copied = set()
    for pair in pairs:
        number = pair.operand_number
        if number in copied or number >= x.operand_count:
            continue
        if is_flagged(x, _DISJOINT) and all(
            u is x or is_flagged(u, _DISJOINT) for u in x.operands[number].users
        ):
            continue
        copied.add(number)
        copies = dict[Index, Instruction]()
        x.replace_operand(number, deep_copy(x.operands[number], None, copies))
        _explain(copies, f"{x.name} overwrites it", because)


def _add_for_aliased_results(alias: HloAlias, module: Module, because: Because) -> None:
    """Copy arguments and the results that lie in their memory (`AddCopiesForAliasedInputOutputs`)."""
    entry, aliases = module.entry, alias.config.aliases
    if not aliases:
        return
    copied = {}
    for parameter in list(entry.parameters):
        number = parameter.parameter_number
        indices = {index for n, index in aliases.values() if n == number}
        if not indices:
            continue
        copied[number] = copy_for_users(parameter, indices)
        _explain(copied[number], f"a result overwrites {parameter.name}", because)
    if not copied:
        return
    results = dict[Index, Instruction]()
    root = deep_copy(entry.root, set(aliases), results)
    for output, (number, index) in sorted(aliases.items()):
        before, after = copied.get(number, {}).get(index), results.get(output)
        if before is not None and after is not None:
            before.add_control_dependency_to(after)
    entry.root = root
    _explain(results, "the result uses an argument's buffer", because)


def _explain(copies: dict[Index, Instruction], reason: str, because: Because) -> None:
    for copy in copies.values():
        because(copy, reason)


def deep_copy(
    x: Instruction,
    indices: Collection[Index] | None,
    added: dict[Index, Instruction],
    index: Index = (),
) -> Instruction:
    """A tuple of copies of the leaves of `x` at `indices` (None: all) and of the others as they are
    (`HloComputation::DeepCopyInstruction`). `added` learns of the copies; `index` is the place of `x`."""
    if x.is_array and (indices is None or index in indices):
        added[index] = make.added(x, "copy", x.shape, [x])
        return added[index]
    if not x.is_tuple:
        return x
    elements = []
    for k in range(x.tuple_size):
        elements.append(deep_copy(make.bare_element(x, x, k), indices, added, (*index, k)))
    return make.added(x, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)


def copy_for_users(x: Instruction, indices: Collection[Index]) -> dict[Index, Instruction]:
    """A deep copy is read in place of `x`, also as a root; the copies in it."""
    users, copies = list(x.users), dict[Index, Instruction]()
    replace_users(users, x, deep_copy(x, indices, copies))
    return copies


# The values of each buffer in the order in which they are there, as lists that can be joined. Mirrors
# `CopyRemover::ValueNode` and the order that its constructor gives them (`xla/service/copy_removal.cc`).
class ValueNode:
    """One value of a buffer between those before and after it; after the last one comes the first."""

    __slots__ = ("next", "prev", "uses", "value")

    def __init__(self, value: HloValue) -> None:
        self.value = value
        self.uses: list[HloUse] = list(value.uses)  # Kept while copies go, unlike those of the value
        self.prev = self.next = self


class ValueLists(Struct):
    _heads: set[ValueNode] = set()

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
        waiting = Instructions()
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
    return (x for x in ordering.sequence(computation) if not x.is_parameter)


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
        self, module: Module, alias_info: AliasInfo, ordering_of: OrderingOf, copies: Instructions
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
    if scatter.opcode != "scatter" or not scatter.is_tuple:
        return False
    return any(use.instruction is x for use in source.uses)


class CopyInsertion(Pass):
    """`copy-insertion`: copies wherever they might be needed, but for those that turn out not to be."""

    name = "copy-insertion"
    alias_info: Callable[[], AliasInfo] = field(default=partial(AliasInfo, AROUND_FUSION), compare=False)
    """Makes what the backend knows of buffers, for one run."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not CallSites(module).is_flattened:
            recorder.skipped(module.entry.root, "a computation has several callers, and XLA stops here")
            return False
        info = self.alias_info()
        reasons = dict[Instruction, str]()
        add_copies(module, info, reasons.__setitem__)
        _clean_up(module)
        remove_copies(module, info)
        add_special_copies(module, info, reasons.__setitem__)
        _clean_up(module)
        record_copies(recorder, reasons)
        return True


def record_copies(recorder: Recorder, reasons: dict[Instruction, str]) -> None:
    for copy, reason in reasons.items():
        if copy.computation is not None:
            recorder.rewrite(copy.computation.name, [], [copy], reason, COPY)


def _clean_up(module: Module) -> None:
    silent = OnlySkipped()
    TupleSimplifier().run(module, silent)
    HloDCE().run(module, silent)


# A second look at copies once the order of execution is known.
#
# Mirrors `RunPostSchedulingCopyInsertion` (`gpu_compiler.cc`), without copies for memory that devices share.
class PostSchedulingCopyInsertion(CopyInsertion):
    """Removes copies that the schedule makes needless and adds those for read-only memory again. XLA runs it
    as a function and not as a pass. A module without a schedule runs in the order of XLA's scheduler."""

    name = "post-scheduling-copy-insertion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not CallSites(module).is_flattened:
            return False
        info = self.alias_info()
        reasons = dict[Instruction, str]()
        changed = remove_copies(module, info, partial(_sequential_ordering, info))
        HloDCE().run(module, OnlySkipped())
        add_special_copies(module, info, reasons.__setitem__)
        HloDCE().run(module, OnlySkipped())
        record_copies(recorder, reasons)
        return changed or bool(reasons)


def _sequential_ordering(info: AliasInfo, calls: CallSites, _compared: Iterable[Instruction]) -> HloOrdering:
    """The order of XLA's scheduler; post order where it moves ends of asynchronous operations."""
    alias = HloAlias(calls.module, info)
    live = live_ranges(calls.module, alias, info, "gpu", alias.sizes())
    orders = {c: live.order_of(c) for c in live.spans}
    for c in orders if not calls.module.is_scheduled else ():
        if any(is_async_end(x.opcode) for x in c):
            orders[c] = c.post_order()
    return SequentialOrdering(calls, orders)


# Copies for other reasons than that a value is read too late.
#
# Mirrors `CopyInsertion::AddSpecialCaseCopies` (`xla/service/copy_insertion.cc`): read-only memory may not be
# overwritten, and every result of the module needs memory of its own.
def add_special_copies(module: Module, alias_info: AliasInfo, because: Because) -> None:
    found = _SpecialCases(module, alias_info)
    for buffer in found.alias.shared_buffers:
        found.check_buffer(buffer)
    for computation in module.computations:
        if computation.fusion is None:
            found.check_root(computation)
    for x, wanted in found.in_order():
        for index, copy in copy_for_users(x, wanted).items():
            because(copy, wanted[index])


class _SpecialCases:
    def __init__(self, module: Module, alias_info: AliasInfo) -> None:
        self.alias = HloAlias(module, alias_info)
        self._module = module
        self._info = alias_info
        self._wanted = dict[Instruction, dict[Index, str]]()

    def in_order(self) -> Iterable[tuple[Instruction, dict[Index, str]]]:
        """Values to copy with the reasons, in creation order."""
        place = numbered(creation_order(self._module))
        return sorted(
            self._wanted.items(),
            key=lambda p: (place[c] if (c := p[0].computation) is not None else -1, p[0].id),
        )

    def check_buffer(self, buffer: HloBuffer) -> None:
        """Read-only memory shared with other values, and operands shared with results that may not be."""
        defined_by = grouped((value.instruction, value) for value in buffer.values)
        for value in buffer.values:
            if self._is_read_only(value):
                reason = "constants must not be overwritten"
                if value.instruction.is_parameter:
                    reason = "the argument is not donated"
                self._want(value.instruction, value.index, reason)
            for use in value.uses:
                for other in defined_by.get(use.instruction, ()):
                    if other is not value:
                        self._check_use(use, other)

    def _check_use(self, use: HloUse, other: HloValue) -> None:
        x = use.instruction
        if custom_call_target(x) == "Pin":
            return
        if x.opcode in ("async-update", "async-done") and use.operand_number == 0:
            return
        operand = x.operands[use.operand_number]
        if not self._info.can_share(self.alias.dataflow, operand, use.operand_index, x, other.index):
            self._want(operand, use.operand_index, f"{x.name} cannot overwrite it while reading it")

    def check_root(self, computation: Computation) -> None:
        """Results that share memory, and results that are constants or arguments."""
        alias, root = self.alias, computation.root
        if alias.calls.context(computation) is not CallContext.CONTROL_FLOW:
            return
        is_entry = computation is self._module.entry
        indices = shape_tree(root.shape).indices
        values = alias.dataflow.values_of(root)
        seen = dict[HloBuffer, Index]()
        for index, value in zip(indices, values, strict=True):
            if value is None:
                continue
            buffer = alias.buffer_of(value)
            first = seen.setdefault(buffer, index)
            if first == index or not (is_entry or self._meets_at_conditional(computation, index)):
                continue
            is_aliased = is_entry and index in alias.config.aliases
            self._want(root, first if is_aliased else index, "the same value is returned twice")
        if is_entry:
            for index, value in zip(indices, values, strict=True):
                if value is not None and self._is_read_only(value):
                    kind = "an argument" if value.instruction.is_parameter else "a constant"
                    self._want(root, index, f"the result is {kind}")

    def _meets_at_conditional(self, computation: Computation, index: Index) -> bool:
        """`ShouldCopyConditionalRootAt`."""
        dataflow = self.alias.dataflow
        for caller in self.alias.calls.callers(computation):
            if caller.opcode == "conditional":
                value = dataflow.value_at(caller, index) if dataflow.has(caller, index) else None
                if value is None or value.is_phi:
                    return True
        return False

    def _is_read_only(self, value: HloValue) -> bool:
        """`ValueIsReadOnly`."""
        x = value.instruction
        if x.is_constant:
            return True
        if not x.is_parameter or x.computation is not self._module.entry:
            return False
        return not self.alias.config.is_aliased((x.parameter_number, value.index))

    def _want(self, x: Instruction, index: Index, reason: str) -> None:
        computation = x.computation
        if computation is None or self._is_in_loop_without_copies(x) or is_asynchronous_body(computation):
            return
        if subshape_at(x.shape, index).element_type == "buffer":
            return
        self._wanted.setdefault(x, {}).setdefault(index, reason)

    def _is_in_loop_without_copies(self, x: Instruction) -> bool:
        """`IsWhileLoopCopyDisabled`."""
        return any(y.is_while and is_flagged(y, _NO_COPIES) for y in self.alias.calls.chain(x))
