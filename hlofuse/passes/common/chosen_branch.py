"""Conditionals whose branch is known (`HandleConditional`, `xla/hlo/evaluator/hlo_evaluator.cc`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.elementwise import CannotEvaluate
from hlofuse.passes.common.evaluation import evaluate
from hlofuse.passes.common.literals import Value, scalar_of


def chosen_branch(conditional: Instruction) -> int | None:
    """The number of the branch, the last where there is none of that number; None where it is not known."""
    index = conditional.operands[0]
    value = scalar_of(index)
    if value is None:
        return None
    if index.shape.element_type == "pred":
        return 0 if value else 1
    last = len(conditional.called_computations) - 1
    return int(value) if 0 <= value <= last else last


def elements_of_choice(conditional: Instruction) -> list[list[Value]]:
    """The values of each element of the tuple that the chosen branch makes."""
    branch = chosen_branch(conditional)
    if branch is None:
        raise CannotEvaluate
    given = conditional.operands[1 + branch]
    root = conditional.called_computations[branch].root
    if root.opcode != "tuple" or any(o.shape.is_tuple for o in root.operands):
        raise CannotEvaluate
    known: dict[Instruction, list[Value]] = {}
    for parameter in conditional.called_computations[branch].parameters:
        if parameter.shape.is_array:
            known[parameter] = evaluate(given)
        for element in parameter.users:
            if element.opcode == "get-tuple-element" and element.shape.is_array and given.opcode == "tuple":
                known[element] = evaluate(given.operands[element.tuple_index])
    return [evaluate(o, known) for o in root.operands]
