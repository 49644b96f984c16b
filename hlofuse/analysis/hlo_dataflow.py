"""The value at each place of a module (`xla/hlo/analysis/hlo_dataflow_analysis.cc`). In the form for copy
insertion values that meet form a phi, and a bitcast defines none: with calls flattened a place has one."""

import heapq
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from hlofuse.ir.graph import Computation, Instruction, Instructions, Module
from hlofuse.ir.opcodes import values, with_trait
from .async_ops import is_async_end, wrapped_opcode
from .call_sites import CallContext, CallSites, run_by
from .hlo_value import HloPosition, HloValue, Index, PhiGraph, Readers, shape_tree


class Forward(NamedTuple):
    """So many values from a place in the result on are those of `source` from `start` on."""

    at: int
    size: int
    source: Instruction
    start: int


_WHOLE = values("add-dependency all-reduce-done bitcast call domain opt-barrier")
"""They forward the whole of their operand."""
_STARTS = values("all-gather-start collective-permute-start")
_DONES = values("all-gather-done collective-permute-done")
_ASYNC = with_trait("async")
_ONE_ELEMENT: dict[str, tuple[Index, Index]] = {
    "send": ((0,), ()),
    "recv-done": ((0,), (0,)),
    "copy-start": ((1,), ()),
    "copy-done": ((), (0,)),
}
"""The index that they forward, and the element of their operand that it is."""
_FORWARDING = (
    frozenset({"tuple", "get-tuple-element", "copy", *_ONE_ELEMENT}) | _WHOLE | _STARTS | _DONES | _ASYNC
)


@cache
def may_forward(opcode: str) -> bool:
    return opcode in _FORWARDING or wrapped_opcode(opcode) is not None or is_async_end(opcode)


def forwards_of(x: Instruction) -> list[Forward]:
    """The values that an instruction forwards; empty if it defines all of its result."""
    opcode = x.opcode
    operands = x.operands
    if opcode in _WHOLE:
        return _found(x, (), x.to_apply.root if opcode == "call" else operands[0], ())
    if opcode == "get-tuple-element":
        return _found(x, (), operands[0], (x.tuple_index,))
    if opcode == "tuple":
        return [f for k, operand in enumerate(operands) for f in _found(x, (k,), operand, ())]
    if opcode == "copy":
        return _elements(x, (), operands[0], ())
    if opcode in _ONE_ELEMENT:
        at, index = _ONE_ELEMENT[opcode]
        return _found(x, at, operands[0], index)
    if opcode in _STARTS:
        if len(operands) == 1 or (opcode == "collective-permute-start" and x.raw("slice_sizes")):
            return _found(x, (0,), operands[0], ())
        return [f for k, operand in enumerate(operands) for f in _found(x, (0, k), operand, ())]
    if opcode in _DONES:
        found = _elements if x.is_tuple else _found
        return found(x, (), operands[0], (1,))
    return _of_async(x)


def _of_async(x: Instruction) -> list[Forward]:
    """Operands and results of a computation that runs by the side (`UpdateAsyncStartValueSet`)."""
    operands = x.operands
    root = x.to_apply.root if x.called else None
    if is_async_end(x.opcode):
        done = x.opcode.endswith("-done")
        if root is None:
            found = _leaves(x, (), operands[0], (1,) if done else ())
        else:
            found = _leaves(x, () if done else (1,), root, ())
            if not done:
                found += _leaves(x, (0,), operands[0], (0,))
        # XLA:TPU may start without operands, and hand them to the update.
        for k, operand in enumerate(operands[1:]):
            found += _leaves(x, (0, k), operand, ())
        return found
    found = [f for k, operand in enumerate(operands) for f in _leaves(x, (0, k), operand, ())]
    if root is not None:
        # Of an update the result is the operand's buffer, which is known before it is written.
        source = operands[0] if root.opcode == "dynamic-update-slice" else root
        found += _leaves(x, (1,), source, ())
    return found


def _found(x: Instruction, at: Index, source: Instruction, index: Index) -> list[Forward]:
    """The whole of `source` at `index` is what `x` holds at `at`; nothing where that does not exist."""
    tree = shape_tree(x.shape)
    source_tree = shape_tree(source.shape)
    place = tree.place.get(at)
    start = source_tree.place.get(index)
    if place is None or start is None:
        return []
    size = len(shape_tree(source_tree.shapes[start])) if source.is_tuple else 1
    own = len(shape_tree(tree.shapes[place])) if x.is_tuple else 1
    return [Forward(place, size, source, start)] if size == own else []


def _elements(x: Instruction, at: Index, source: Instruction, index: Index) -> list[Forward]:
    count = x.tuple_size if x.is_tuple else 0
    return [f for k in range(count) for f in _found(x, (*at, k), source, (*index, k))]


def _leaves(x: Instruction, at: Index, source: Instruction, index: Index) -> list[Forward]:
    tree = shape_tree(source.shape)
    if index not in tree.place:
        return []
    found = list[Forward]()
    for inner in tree.indices:
        is_inside = inner[: len(index)] == index
        if is_inside and not (source.is_tuple and tree.shapes[tree.place[inner]].is_tuple):
            found += _found(x, (*at, *inner[len(index) :]), source, inner)
    return found


class HloDataflow:
    """The values of a module, a snapshot. Of fusions only those bodies count that `includes` names."""

    def __init__(self, module: Module, calls: CallSites, includes: Iterable[Computation] = ()) -> None:
        self.module = module
        self.calls = calls
        included = set(includes)
        self._computations = [c for c in module.computation_post_order() if c.fusion is None or c in included]
        self._trees = dict[Instruction, list[HloValue | None]]()
        self._forwards = dict[Instruction, list[Forward]]()
        self._phi_inputs = dict[Instruction, Instructions]()
        self._readers = dict[Instruction, Instructions]()
        self._phis = PhiGraph()
        self._use_lists = Readers()
        self._count = 0
        self._removed = set[HloValue]()
        all_values = list[HloValue]()
        self._values = all_values
        for computation in self._computations:
            for x in computation.post_order():
                self._initialize(x)
        self._propagate()
        self._replace_phis()
        self._note_positions()
        self.values = [v for v in all_values if v not in self._removed]  # All of them in order of ids

    def value_at(self, instruction: Instruction, index: Index = ()) -> HloValue | None:
        """`GetUniqueValueAt`; None where nothing arrives."""
        tree = self._trees[instruction]
        return tree[0] if not index else tree[shape_tree(instruction.shape).place[index]]

    def has(self, instruction: Instruction, index: Index) -> bool:
        """True if its result has something at `index`."""
        return index in shape_tree(instruction.shape).place

    def values_of(self, instruction: Instruction) -> list[HloValue | None]:
        """The values at all indices, in the order of `shape_tree`."""
        return self._trees[instruction]

    def covers(self, instruction: Instruction) -> bool:
        return instruction in self._trees

    def is_defined_at(self, instruction: Instruction) -> bool:
        """True if its value is its own (`ValueIsDefinedAt`)."""
        value = self.value_at(instruction, ())
        return value is not None and value.instruction is instruction

    def _initialize(self, x: Instruction) -> None:
        """`InitializeInstructionValueSets`."""
        opcode = x.opcode
        inputs = Instructions()
        forwards = list[Forward]()
        if opcode == "parameter":
            inputs, forwards = self._into_parameter(x)
        elif opcode == "while":
            inputs = [dict(x.called)["body"].root, x.operand]
        elif opcode == "conditional":
            inputs = [c.root for c in x.called_computations]
        elif may_forward(opcode):
            forwards = forwards_of(x)
        size = len(shape_tree(x.shape))
        if not inputs and not forwards:
            self._trees[x] = [self._new_value(x, index) for index in shape_tree(x.shape).indices]
            return
        tree: list[HloValue | None] = [None] * size
        self._trees[x] = tree
        if inputs:
            self._phi_inputs[x] = inputs
        else:
            self._forwards[x] = forwards
            covered = bytearray(size)
            for at, count, _, _ in forwards:
                covered[at : at + count] = b"\1" * count
            indices = shape_tree(x.shape).indices
            for k in range(size):
                if not covered[k]:
                    tree[k] = self._new_value(x, indices[k])
        for source in inputs or [source for _, _, source, _ in forwards]:
            readers = self._readers.setdefault(source, [])
            if not readers or readers[-1] is not x:
                readers.append(x)

    def _into_parameter(self, parameter: Instruction) -> tuple[Instructions, list[Forward]]:
        """The values that meet in it, or that one caller passes in (`UpdateParameterValueSet`)."""
        computation = parameter.parent
        callers = self.calls.callers(computation)
        if not callers or self.calls.context(computation) is not CallContext.CONTROL_FLOW:
            return [], []
        caller = callers[0]
        number = parameter.parameter_number
        if caller.is_while:
            root = dict(caller.called)["body"].root
            return [caller.operand, *([root] if root is not parameter else [])], []
        if caller.opcode == "conditional":
            return [caller.operands[caller.called_computations.index(computation) + 1]], []
        given = caller.operands or [o for user in caller.users for o in user.operands[1:]]
        if number < len(given):
            return [], [Forward(0, len(shape_tree(parameter.shape)), given[number], 0)]
        return [], []

    def _new_value(self, x: Instruction, index: Index, is_phi: bool = False) -> HloValue:
        value = HloValue(self._count, x, index, is_phi, self._use_lists)
        self._count += 1
        self._values.append(value)
        return value

    def _propagate(self) -> None:
        """Hand values on until nothing changes, in the order in which the program runs (`Propagate`)."""
        place = {x: k for k, x in enumerate(self._executed())}
        by_place = {}
        for x in (*self._forwards, *self._phi_inputs):
            by_place[place.setdefault(x, len(place))] = x
        queue = sorted(by_place)
        queued = set(queue)
        while queue:
            k = heapq.heappop(queue)
            queued.discard(k)
            x = by_place[k]
            if not (self._forward(x) if x in self._forwards else self._phi(x)):
                continue
            for reader in self._readers.get(x, ()):
                if (n := place[reader]) not in queued:
                    queued.add(n)
                    heapq.heappush(queue, n)

    def _executed(self) -> Iterator[Instruction]:
        """All instructions that run, a loop's condition before its body, what is called before its caller
        (`CalculatePostOrderSchedule`).

        A computation comes at its first call: the paths of calls to it may be very many."""
        pending = [iter(self.module.entry.post_order())]
        waiting = []
        seen = set[Computation]()
        while pending:
            for x in pending[-1]:
                if inner := [c for c in run_by(x) if c not in seen]:
                    seen.update(inner)
                    waiting.append(x)
                    pending.append(y for c in inner for y in c.post_order())
                    break
                yield x
            else:
                pending.pop()
                if pending:
                    yield waiting.pop()

    def _forward(self, x: Instruction) -> bool:
        tree = self._trees[x]
        trees = self._trees
        changed = False
        for at, count, source, start in self._forwards[x]:
            new = trees[source][start : start + count]
            if tree[at : at + count] != new:
                tree[at : at + count] = new
                changed = True
        return changed

    def _phi(self, x: Instruction) -> bool:
        """Let values meet (`Phi`)."""
        tree = self._trees[x]
        changed = False
        sources = [self._trees[source] for source in self._phi_inputs[x]]
        indices = shape_tree(x.shape).indices
        for k, current in enumerate(tree):
            inputs = [v for source in sources if (v := source[k]) is not None]
            is_own = current is not None and current.instruction is x and current.index == indices[k]
            if len(inputs) == 1:
                if current is not inputs[0]:
                    if current is not None and is_own:
                        self._removed.add(current)
                    tree[k] = inputs[0]
                    changed = True
            elif inputs:
                if current is None or not is_own:
                    current = tree[k] = self._new_value(x, indices[k], is_phi=True)
                elif self._phis.has_inputs(current, inputs):
                    continue
                self._phis.register(current, inputs)
                changed = True
        return changed

    def _replace_phis(self) -> None:
        """`OptimizePhiValues`."""
        if not self._phi_inputs:
            return
        self._phis.optimize()
        for x in (*self._phi_inputs, *self._forwards):
            tree = self._trees[x]
            for k, value in enumerate(tree):
                if value is not None and value.is_phi and (new := self._phis.optimized(value)) is not value:
                    self._removed.add(value)
                    tree[k] = new

    def _note_positions(self) -> None:
        """Tell every value where it has come to."""
        special = {*self._forwards, *self._phi_inputs}
        covered = set(self._computations)
        for computation in [c for c in self.module.computations if c in covered]:
            for x in computation:
                if x not in special:
                    continue
                indices = shape_tree(x.shape).indices
                for k, value in enumerate(self._trees[x]):
                    if value is not None and value.instruction is not x:
                        value.positions.append(HloPosition(x, indices[k]))
