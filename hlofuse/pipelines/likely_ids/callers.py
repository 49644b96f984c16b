"""What the order of computations in a text tells of the instructions that call them.

`HloModule::PrintComputations` writes callees before callers, and what the older instruction calls first
(`MakeEmbeddedComputationsList`): so of two instructions the one is older whose computation is written first,
if that computation is called by nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass


def with_callers_as_written(order: list[Instruction], written: dict[Computation, int]) -> list[Instruction]:
    """The instructions of a computation, given in their likely `order` of age, callers as `written`."""
    at: dict[Instruction, int] = {}
    found: set[Computation] = set()
    for x in order:
        for called in x.called_computations:
            if called not in found and all(u.computation is x.computation for u in called.callers):
                found.add(called)
                for u in _made_together(x, called):
                    at[u] = max(at.get(u, -1), written[called])
    callers = sorted(at, key=lambda x: (at[x], any(at.get(o) == at[x] for o in x.operands)))
    return in_order_of_pass(order, callers, frozenset(order))


def reductions_as_written(
    makers: Mapping[Instruction, Maker], named: frozenset[Instruction], written: Mapping[Computation, int]
) -> dict[Instruction, Maker]:
    """Who made reductions of the program, of which a guess has it that they were made anew, or were not.

    What is written ahead of something that had been there was there as well, and what it reads was reshaped
    by the program itself. What is written behind the sums of a product that was split (SplitkRewriter) was
    made anew.
    """
    at = {
        x: written[c]
        for x in makers
        if x.opcode == "reduce"
        for c in x.called_computations
        if len(c.callers) == 1
    }
    end = min((k for x, k in at.items() if makers[x] == Maker.SPLIT_K), default=len(written))
    last = max((k for x, k in at.items() if makers[x] <= Maker.INLINER and k < end), default=-1)
    found: dict[Instruction, Maker] = {}
    for x, k in at.items():
        if makers[x] == Maker.REDUCTIONS and x in named and k < last:
            found[x] = Maker.FRONT_END
        elif makers[x] <= Maker.INLINER and k > end:
            found[x] = Maker.REDUCTIONS
    return found


def _made_together(first: Instruction, called: Computation) -> list[Instruction]:
    """The oldest of those that call a computation, and what TreeReductionRewriter made with it.

    The two halves of a reduction are put behind everything else, one reading the other.
    """
    return [u for u in called.callers if u is first or first in u.operands or u in first.operands]
