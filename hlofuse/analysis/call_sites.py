"""The callers of each computation, and the sense in which they call it (`xla/service/call_graph.cc`)."""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from itertools import count

from hlofuse.ir.graph import Computation, Computations, Instruction, Instructions, Module
from hlofuse.ir.grouping import numbered, post_order
from hlofuse.ir.opcodes import with_trait
from .async_ops import is_async_end


class CallContext(Enum):
    """The way in which the instructions of a computation run."""

    CONTROL_FLOW = "one after the other, as those of the entry"
    EMBEDDED = "for each element, or as part of a kernel"
    BOTH = "some callers so, some so"


_ASYNC = with_trait("async")
_SEQUENTIAL = _ASYNC | with_trait("control-flow")


def called_in_order(x: Instruction) -> Computations:
    """The computations that an instruction calls, a loop's condition first."""
    return [c for _, c in sorted(x.called, key=lambda part: part[0] == "body")]


def is_asynchronous(instruction: Instruction) -> bool:
    """True for the parts of an asynchronous call of a computation (`HloInstruction::IsAsynchronous`)."""
    return instruction.opcode in _ASYNC


def run_by(x: Instruction) -> Computations:
    """The computations that an instruction runs one after the other, a loop's condition first."""
    runs = is_asynchronous(x) and not is_async_end(x.opcode)
    return called_in_order(x) if runs or x.opcode in ("while", "call", "conditional") else []


class CallSites:
    """A snapshot of a module's call graph."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._order = numbered(module.computations)
        # `SetCallContexts`.
        found = {c: CallContext.CONTROL_FLOW for c in self.module.computations if not c.callers}
        queue = deque(found)
        while queue:
            computation = queue.popleft()
            own = found[computation]
            for caller in computation:
                if not caller.called:
                    continue
                new = own if caller.opcode in _SEQUENTIAL else CallContext.EMBEDDED
                for callee in caller.called_computations:
                    old = found.get(callee)
                    context = new if old is None or old is new else CallContext.BOTH
                    if context is not old:
                        found[callee] = context
                        queue.append(callee)
        for computation in self.module.computations:
            found.setdefault(computation, CallContext.EMBEDDED)
        self._context = found
        self._ancestors = dict[Computation, dict[Computation, Instruction]]()

    def callers(self, computation: Computation) -> Instructions:
        """The instructions that call it, in XLA's order (`caller_callsites`)."""
        callers = computation.callers
        if len(callers) < 2:
            return list(callers)
        return sorted(callers, key=lambda x: (self._order.get(x.parent, -1), x.id))

    def context(self, computation: Computation) -> CallContext:
        """In which sense it is called; an unused computation as the entry is."""
        return self._context[computation]

    @property
    def is_flattened(self) -> bool:
        """True if no computation with an order of its own has two callers (`IsFlattened`)."""
        for computation, context in self._context.items():
            if context is CallContext.BOTH:
                return False
            if context is CallContext.CONTROL_FLOW and len(computation.callers) > 1:
                if not all(is_asynchronous(x) for x in computation.callers):
                    return False
            elif any(x.opcode in _SEQUENTIAL and n > 1 for x, n in computation.callers.items()):
                return False
        return True

    def is_nested_in(self, instruction: Instruction, computation: Computation) -> bool:
        """True if it is in `computation` or in what only that calls (`InstructionIsNestedIn`)."""
        inside = instruction.parent
        return inside is computation or computation in self._ancestors_of(inside)

    def nearest_ancestors(self, a: Instruction, b: Instruction) -> tuple[Instruction, Instruction] | None:
        """The callers of both in their innermost common computation (`NearestAncestorsInSameComputation`)."""
        inside_a = a.parent
        inside_b = b.parent
        if inside_a is inside_b:
            return a, b
        above_a = self._ancestors_of(inside_a)
        above_b = self._ancestors_of(inside_b)
        if inside_b in above_a:
            return above_a[inside_b], b
        if inside_a in above_b:
            return a, above_b[inside_a]
        for computation, caller in above_a.items():  # from the inside to the outside
            if computation in above_b:
                return caller, above_b[computation]
        return None

    def chain(self, instruction: Instruction) -> Iterable[Instruction]:
        """The caller of the computation it is in, the caller of that, and so on."""
        return self._ancestors_of(instruction.parent).values()

    def _ancestors_of(self, computation: Computation) -> dict[Computation, Instruction]:
        """The computations around it, each with the instruction in it that leads there, innermost first."""
        found = self._ancestors.get(computation)
        if found is not None:
            return found
        found = self._ancestors[computation] = {}
        inside = computation
        while True:
            callers = self.callers(inside)
            if not callers or (len(callers) > 1 and not all(map(is_asynchronous, callers))):
                return found
            inside = callers[0].parent
            if inside in found:
                return found
            found[inside] = callers[0]


class CallOrder:
    def __init__(
        self, order: Iterable[Computation], callers: Callable[[Computation], Iterable[Computation]]
    ) -> None:
        """`callers` gives the computations by which one is called, maybe also some that are not there yet."""
        self._time = count()
        self._callers = callers
        self._since = {computation: next(self._time) for computation in order}

    def add(self, computation: Computation) -> None:
        """It comes last, also if it was there."""
        self._since[computation] = next(self._time)

    def call_new(self, computation: Computation) -> None:
        """Place a caller of what was added after it, and then all its own callers."""
        for caller in post_order([computation], self._latest_first)[::-1]:
            self.add(caller)

    def listed(self) -> Computations:
        return sorted(self._since, key=self._since.__getitem__)

    def _latest_first(self, computation: Computation) -> Computations:
        callers = {c for c in self._callers(computation) if c in self._since}
        return sorted(callers, key=self._since.__getitem__, reverse=True)


def caller_of(computation: Computation) -> Computations:
    """The computation with the first instruction that calls it, if any does."""
    caller = computation.first_caller
    inside = caller.computation if caller is not None else None
    return [inside] if inside is not None else []


def non_fusion_computations(module: Module) -> Computations:
    """All computations but bodies of fusions, in the order of the dump, the entry last
    (`HloModule::MakeNonfusionComputations`).

    XLA's order is topological and depends on how earlier passes made the computations; no dump has it. This
    is the closest: decisions are the same in any order, and only the numbers in the names of fusions in
    computations that do not call each other can differ (docs/fidelity.md)."""
    if module.computation_order is not None:
        return module.non_fusion_computations()
    others = [c for c in module.computations if c.fusion is None and c is not module.entry]
    return [*others, module.entry]


_OF_THE_PROGRAM = re.compile(r"(?!wide\.)[\w\-]+\.(\d+)")


def creation_order(module: Module) -> Computations:
    """All computations in creation order (`HloModule::computations`). A text prints callees first instead.
    Computations of the program have numbers that show it, as long as no pass has replaced them; those that
    passes add come after them, in the order of `module.computations`."""
    own = {}
    for computation in module.computations:
        number = _OF_THE_PROGRAM.fullmatch(computation.name)
        if number is not None and computation.fusion is None:
            own[computation] = int(number[1])
    later = [c for c in module.computations if c not in own]
    return [*sorted(own, key=own.__getitem__), *later]


def with_changed_after(order: Iterable[Computation], changed: Collection[Computation]) -> Computations:
    """The order that a pass leaves which goes through computations and has these call something new."""
    listed = [*order]
    remaining = CallOrder(listed, caller_of)
    for computation in listed:
        if computation in changed:
            remaining.call_new(computation)
    return remaining.listed()
