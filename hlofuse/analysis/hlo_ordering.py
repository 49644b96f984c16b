"""In which order instructions run (`xla/hlo/analysis/hlo_ordering.cc`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import Enum

from msgspec import Struct

from hlofuse.ir.graph import Computation, Instruction, Instructions, InstructionSequence
from .alias_info import AliasInfo
from .call_sites import CallSites, is_asynchronous
from .hlo_dataflow import HloDataflow
from .hlo_value import HloUse, HloValue


class Order(Enum):
    """The order of two instructions, as far as it counts (`HloOrdering::ExecutionConstraint`)."""

    SAME = "the same"
    BEFORE = "before the other one starts or ends, or in an earlier branch of a conditional"
    IN_LATER_BRANCH = "in a later branch of a conditional"
    OTHER = "after the other one, or unknown"


class HloOrdering(ABC):
    def __init__(self, calls: CallSites) -> None:
        self.calls = calls

    @abstractmethod
    def executes_before_in_same_computation(self, a: Instruction, b: Instruction) -> bool:
        """True if `a` is known to run before `b`, which is in the same computation."""

    @abstractmethod
    def sequence(self, computation: Computation) -> InstructionSequence:
        """The instructions one after the other, in an order that may be."""

    def order(self, a: Instruction, b: Instruction) -> Order:
        """The order of `a` relative to `b` (`GetExecutionConstraint`)."""
        if a is b or _wraps(a, b) or _wraps(b, a):
            return Order.SAME
        ancestors = self.calls.nearest_ancestors(a, b)
        if ancestors is None:
            return Order.OTHER
        above_a, above_b = ancestors
        if above_a is above_b and above_a.is_while:
            parts = dict(above_a.called)
            if self.calls.is_nested_in(a, parts["condition"]) and self.calls.is_nested_in(b, parts["body"]):
                return Order.BEFORE
        if above_a is above_b and above_a.opcode == "conditional":
            branch_a = self._branch(a, above_a)
            branch_b = self._branch(b, above_a)
            if branch_b < 0:
                return Order.BEFORE
            if branch_a < 0:
                return Order.OTHER
            if branch_a != branch_b:
                return Order.BEFORE if branch_a < branch_b else Order.IN_LATER_BRANCH
        is_before = self.executes_before_in_same_computation(above_a, above_b)
        return Order.BEFORE if is_before else Order.OTHER

    def is_defined_before(self, a: HloValue, b: HloValue) -> bool:
        """True if `a` is there before `b` (`IsDefinedBefore`)."""
        x = a.instruction
        y = b.instruction
        nested = self.calls.is_nested_in
        entry = self.calls.module.entry
        if y.computation is entry and y.is_parameter:
            return False
        if x.computation is entry and x.is_parameter:
            return True
        # A phi at a parameter precedes all else in its computation; one at a loop or a branch follows it.
        phi_a = a.is_phi and x.is_parameter
        phi_b = b.is_phi and y.is_parameter
        if phi_a and not phi_b and x.computation is not None and nested(y, x.computation):
            return True
        if phi_b and y.computation is not None and nested(x, y.computation):
            return False
        is_merged = b.is_phi and y.opcode in ("while", "conditional")
        if is_merged and any(nested(x, part) for part in y.called_computations):
            return True
        return self.order(x, y) is Order.BEFORE

    def uses_before_definition(
        self, uses: Iterable[HloUse], value: HloValue, dataflow: HloDataflow, alias_info: AliasInfo
    ) -> bool:
        """True if `value` comes to be after all these uses (`UsesBeforeValueDefinition`)."""
        definition = value.instruction
        check = None
        for use in uses:
            x = use.instruction
            if x.computation is definition.computation and self.executes_before_in_same_computation(
                x, definition
            ):
                continue  # as nearly always
            check = check or _UsesBefore(self, value, dataflow, alias_info)
            if not check.is_before(use):
                return False
        return True

    def _branch(self, x: Instruction, conditional: Instruction) -> int:
        """The branch of a conditional that holds `x`; -1 if it is the conditional itself."""
        found = -1
        for k, (_, branch) in enumerate(conditional.called):
            if self.calls.is_nested_in(x, branch):
                found = k
        return found


class _UsesBefore(Struct, eq=False):
    """Compares uses with one definition. What an earlier use showed counts for later ones."""

    _ordering: HloOrdering
    _value: HloValue
    _dataflow: HloDataflow
    _alias_info: AliasInfo
    _escapes_branch: bool = False

    def is_before(self, use: HloUse) -> bool:
        order = self._ordering.order(use.instruction, self._value.instruction)
        if order is Order.BEFORE or (order is Order.SAME and self._can_share(use)):
            return True
        if order is Order.IN_LATER_BRANCH and not self._escapes_branch:
            return True
        return self._is_before_by_nesting(use)

    def _can_share(self, use: HloUse) -> bool:
        x = use.instruction
        definition = self._value.instruction
        operand = x.operands[use.operand_number]
        index = use.operand_index
        if is_asynchronous(x) and x.called and definition.computation is x.to_apply:
            parameters = x.to_apply.parameters
            if x.opcode == "async-start":
                operand = parameters[use.operand_number]
            elif len(index) > 1:
                operand, index = parameters[index[1]], index[2:]
        return self._alias_info.can_share(self._dataflow, operand, index, definition, self._value.index)

    def _is_before_by_nesting(self, use: HloUse) -> bool:
        """A loop reads its operand before its body runs, and is done when that has run; and so on."""
        x = use.instruction
        definition = self._value.instruction
        nested = self._ordering.calls.is_nested_in
        if x.is_while:
            parts = dict(x.called)
            if nested(definition, parts["body"]):
                return True
            if nested(definition, parts["condition"]):
                return definition is parts["condition"].parameter
        if definition.is_while and any(nested(x, part) for part in definition.called_computations):
            return True
        if (x.opcode == "call" or is_asynchronous(x)) and any(nested(definition, c) for _, c in x.called):
            return True
        if x.opcode == "conditional":
            for branch in x.called_computations:
                if nested(definition, branch):
                    # A value that a branch returns may come back through a loop around the conditional.
                    operand = use.instruction.operands[use.operand_number]
                    if not self._dataflow.is_defined_at(operand):
                        self._escapes_branch |= any(u.instruction.is_root for u in self._value.uses)
                    if not self._escapes_branch:
                        return True
            return definition is x
        return False


class DependencyOrdering(HloOrdering):
    """The order by dependencies of the current graph alone (`DependencyHloOrdering`)."""

    def __init__(self, calls: CallSites, compared: Iterable[Instruction]) -> None:
        """`compared` are the instructions that may be compared; others would cost memory."""
        super().__init__(calls)
        sources = dict[Computation, Instructions]()
        self._places = dict[Instruction, int]()
        for x in compared:
            for y in (x, *calls.chain(x)):
                if y not in self._places and (computation := y.computation) is not None:
                    listed = sources.setdefault(computation, [])
                    self._places[y] = len(listed)
                    listed.append(y)
        self._rows = dict[Instruction, int]()
        """For each instruction the set of those to be compared that reach it, one bit for each."""
        places = self._places
        for computation in sources:
            rows = dict[Instruction, int]()
            for x in computation.post_order():
                row = 1 << places[x] if x in places else 0
                for source in x.predecessors:
                    row |= rows[source]
                rows[x] = row
                if x in places:
                    self._rows[x] = row

    def executes_before_in_same_computation(self, a: Instruction, b: Instruction) -> bool:
        place = self._places.get(a)
        return place is not None and a is not b and bool(self._rows.get(b, 0) >> place & 1)

    def sequence(self, computation: Computation) -> InstructionSequence:
        return computation.post_order()


class SequentialOrdering(HloOrdering):
    """A schedule: one instruction after the other (`SequentialHloOrdering`)."""

    def __init__(self, calls: CallSites, schedule: Mapping[Computation, InstructionSequence]) -> None:
        super().__init__(calls)
        self._schedule = schedule
        self._place = {x: k for order in schedule.values() for k, x in enumerate(order)}

    def executes_before_in_same_computation(self, a: Instruction, b: Instruction) -> bool:
        if a not in self._place or b not in self._place or a.is_root:
            return False
        return self._place[a] < self._place[b]

    def sequence(self, computation: Computation) -> InstructionSequence:
        return self._schedule.get(computation) or computation.post_order()


def _wraps(x: Instruction, inner: Instruction) -> bool:
    """True if `x` runs `inner` by the side."""
    return is_asynchronous(x) and bool(x.called) and x.to_apply.root is inner
