"""Who calls which computation, and in which sense (`xla/service/call_graph.cc`)."""

from collections import deque
from collections.abc import Iterable
from enum import Enum

from hlofuse.ir.graph import Computation, Instruction, Module


class CallContext(Enum):
    """How the instructions of a computation run."""

    CONTROL_FLOW = "one after the other, as those of the entry"
    EMBEDDED = "for each element, or as part of a kernel"
    BOTH = "some callers so, some so"


_SEQUENTIAL = frozenset({"call", "conditional", "while", "async-start", "async-update", "async-done"})


def is_asynchronous(instruction: Instruction) -> bool:
    """True for the parts of an asynchronous call of a computation (`HloInstruction::IsAsynchronous`)."""
    return instruction.opcode in ("async-start", "async-update", "async-done")


class CallSites:
    """A snapshot of a module's call graph."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._order = {c: k for k, c in enumerate(module.computations)}
        self._context = self._contexts()
        self._ancestors: dict[Computation, dict[Computation, Instruction]] = {}

    def callers(self, computation: Computation) -> list[Instruction]:
        """The instructions that call it, in XLA's order (`caller_callsites`)."""
        callers = computation.callers
        if len(callers) < 2:
            return list(callers)
        return sorted(callers, key=lambda x: (self._order.get(_place(x), -1), x.id))

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
        inside = _place(instruction)
        if inside is computation or computation in self._ancestors_of(inside):
            return True
        if len(inside.callers) < 2:
            return False
        pending, seen = [inside], {inside}
        while pending:
            for caller in pending.pop().callers:
                above = _place(caller)
                if above is computation or above in seen:
                    continue
                if not above.callers:
                    return False
                seen.add(above)
                pending.append(above)
        return True

    def nearest_ancestors(self, a: Instruction, b: Instruction) -> tuple[Instruction, Instruction] | None:
        """What stands for both in the innermost computation of both (`NearestAncestorsInSameComputation`)."""
        inside_a, inside_b = _place(a), _place(b)
        if inside_a is inside_b:
            return a, b
        above_a, above_b = self._ancestors_of(inside_a), self._ancestors_of(inside_b)
        if inside_b in above_a:
            return above_a[inside_b], b
        if inside_a in above_b:
            return a, above_b[inside_a]
        for computation, caller in above_a.items():  # from the inside to the outside
            if computation in above_b:
                return caller, above_b[computation]
        return None

    def chain(self, instruction: Instruction) -> Iterable[Instruction]:
        """What calls the computation it is in, what calls that, and so on."""
        return self._ancestors_of(_place(instruction)).values()

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
            inside = _place(callers[0])
            if inside in found:
                return found
            found[inside] = callers[0]

    def _contexts(self) -> dict[Computation, CallContext]:
        """`SetCallContexts`."""
        found = {c: CallContext.CONTROL_FLOW for c in self.module.computations if not c.callers}
        queue = deque(found)
        while queue:
            computation = queue.popleft()
            own = found[computation]
            for caller in computation:
                if not caller.called:
                    continue
                new = own if caller.opcode in _SEQUENTIAL else CallContext.EMBEDDED
                for _, callee in caller.called:
                    old = found.get(callee)
                    context = new if old is None or old is new else CallContext.BOTH
                    if context is not old:
                        found[callee] = context
                        queue.append(callee)
        for computation in self.module.computations:
            found.setdefault(computation, CallContext.EMBEDDED)
        return found


def _place(instruction: Instruction) -> Computation:
    computation = instruction.computation
    assert computation is not None
    return computation
