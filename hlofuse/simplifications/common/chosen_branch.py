"""What a conditional on constants leaves (`HandleConditional`, `xla/hlo/evaluator/hlo_evaluator.cc`)."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.simplifications.common.elementwise import CannotEvaluate
from hlofuse.simplifications.common.evaluation import evaluate
from hlofuse.simplifications.common.literals import Value, values_of


def elements_of_choice(conditional: Instruction) -> list[list[Value]]:
    """The values of each element of the tuple that the chosen branch makes."""
    branch, given = _chosen(conditional)
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


def _chosen(conditional: Instruction) -> tuple[int, Instruction]:
    """The number of the branch, the last where there is none of that number, and what it is given."""
    index, *given = conditional.operands
    values = values_of(index) if index.opcode == "constant" else None
    if not values or isinstance(values[0], complex):
        raise CannotEvaluate
    number = int(values[0])
    if index.shape.element_type == "pred":
        number = 1 - number
    if not 0 <= number < len(given):
        number = len(given) - 1
    return number, given[number]
