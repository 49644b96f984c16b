"""What was dead, and still there, when HloCSE first ran.

AlgebraicSimplifier makes the negated sum of what was a sum of negated values, and leaves the negation to
HloDCE, which comes behind HloCSE (`HandleReduce`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). CSE's walk starts from all that has no users, in
the order of age, and so from those negations before the root; what calls brought in stands behind that.

WhileLoopSimplifier (`xla/hlo/transforms/simplifiers/while_loop_simplifier.cc`) comes between the two, and
has HloDCE go through the whole module where it did anything: it puts the body of a loop of one turn, which
ScatterExpander (`xla/service/scatter_expander.cc`) makes of a scatter of one window, in the place of it.
"""

from __future__ import annotations

from bisect import bisect_left

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation
from hlofuse.pipelines.users.common.visits import Uses, uses_in_order
from hlofuse.pipelines.users.products.merged_dots import operands_before_merger
from hlofuse.pipelines.users.products.side_inputs import has_side_input, operands_before_side_input
from hlofuse.pipelines.users.products.taken_operands import operands_before_gemms


class UsesAtCse:
    """The order in which a walk of CSE comes along each use."""

    def __init__(self, computation: Computation, uses: Uses) -> None:
        """`uses` is the order without what was dead; what else reads a negation keeps it."""
        negations = [x for x in computation if x.opcode == "negate" and x.operands[0].shape.is_array]
        read = {(x.op_name, _summed(x)) for x in negations if is_of_program(x)}
        negated = [x for x in negations if was_sum_of_negated(x) and (x.op_name, _summed(x)) not in read]
        # A loop has been simplified before, and what was dead in it went.
        if negated and (not computation.is_entry or _had_scatter_of_one_window(computation)):
            negated = []
        starts = sorted((_summed(x) for x in negated if not outermost_call(x)), key=lambda x: x.id)
        apart = operands_before_merger(computation, operands_before_gemms(computation))
        adding = (x for x in computation if x not in apart and has_side_input(x))
        apart |= {x: operands_before_side_input(x) for x in adding}
        self._last_round = uses_in_order(computation, read=apart) if apart else uses
        self._first_round = uses_in_order(computation, starts, apart) if starts else self._last_round
        self._end = max((x.id for x in negated), default=-1)
        self._made = sorted(computation, key=lambda x: x.id)
        self._ids = [x.id for x in self._made]
        self._normalized = min((x.id for x in computation if x.opcode == "bitcast"), default=None)

    def of(self, producer: Instruction) -> Uses:
        """The order when the like of `producer` was merged: what is younger than the negations was later."""
        return self._first_round if producer.id < self._end else self._last_round

    @property
    def at_first(self) -> Uses:
        """The order when CSE first ran."""
        return self._first_round

    def gone_between(self, older: Instruction, younger: Instruction) -> int:
        """How many made after the `older` one and before the `younger` are there no more."""
        return younger.id - older.id - 1 - len(self.made_between(older, younger))

    def made_between(self, older: Instruction, younger: Instruction) -> list[Instruction]:
        """What of that is there."""
        return self._made[bisect_left(self._ids, older.id) + 1 : bisect_left(self._ids, younger.id)]

    def met(self, x: Instruction) -> bool:
        """Was `x` there, rather than made when layouts were normalized?"""
        return self._normalized is None or x.id < self._normalized

    def sorted(self, producer: Instruction, users: list[Instruction]) -> list[Instruction]:
        """`users` in that order if anything was dead."""
        if producer.id >= self._end:
            return users
        return sorted(users, key=lambda user: self._first_round[producer, user])


def _had_scatter_of_one_window(entry: Computation) -> bool:
    """Is anything left in the module of such a scatter: the update, or a number that was updated?"""
    module = entry.module
    return module is not None and any(_is_of_one_window(x) for c in module.computations for x in c)


def _is_of_one_window(x: Instruction) -> bool:
    if x.opcode == "dynamic-update-slice":
        return operation(x).startswith("scatter")
    if x.opcode != "broadcast" or not operation(x).startswith("scatter"):
        return False
    return not any(u.opcode == "scatter" and u.operands[0] is x for u in x.users)


def was_sum_of_negated(x: Instruction) -> bool:
    """Is it the negated sum that AlgebraicSimplifier made of such a sum?"""
    return (
        x.opcode == "negate"
        and x.operands[0].opcode == "reduce"
        and is_of_program(x.operands[0])
        and operation(x) == "neg"
        and name_before_renaming(x).root == "negate"
    )


def _summed(negated: Instruction) -> Instruction:
    x = negated.operands[0]
    while x.opcode in {"bitcast", "reduce"}:
        x = x.operands[0]
    return x
