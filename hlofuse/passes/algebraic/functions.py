"""What a small function computes: one operation on its two parameters, the greater with its place, …"""

from __future__ import annotations

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.passes.algebraic.facts import is_scalar_value
from hlofuse.passes.common.literals import highest, lowest, scalar_of


def is_of_parameters(function: Computation, opcode: str) -> bool:
    """`opcode` of parameters 0 and 1, in any order."""
    root = function.root
    if root.opcode != opcode or any(o.opcode != "parameter" for o in root.operands):
        return False
    return sorted(o.parameter_number for o in root.operands) == [0, 1]


def equivalent(a: Computation, b: Computation) -> bool:
    """The same computation, or the same commutative operation (`ReductionComputationsEquivalent`)."""
    if a is b:
        return True
    return any(is_of_parameters(a, op) and is_of_parameters(b, op) for op in ("add", "multiply", "and", "or"))


def is_argument_of_extreme(reduce: Instruction, *, greatest: bool) -> bool:
    """The greatest (least) element and its index, as JAX writes it (`MatchArgMax`, `MatchArgMin`)."""
    if reduce.opcode != "reduce" or len(reduce.operands) != 4 or not reduce.shape.is_tuple:
        return False
    if reduce.operands[1].opcode != "iota" or not is_scalar_value(reduce.operands[3], 0):
        return False
    start = scalar_of(reduce.operands[2])
    element_type = reduce.operands[2].shape.element_type
    if start is None or start != (lowest(element_type) if greatest else highest(element_type)):
        return False
    root = reduce.called_computations[0].root
    if root.opcode != "tuple" or [o.opcode for o in root.operands] != ["select", "select"]:
        return False
    better = "GT" if greatest else "LT"
    first, second = root.operands
    if not _is_better(first.operands[0], better) or not _picks(first, 0, 2) or not _picks(second, 1, 3):
        return False
    chosen = second.operands[0]
    if chosen.opcode != "or":
        return False
    a, b = chosen.operands
    return (_is_better(a, better) and _is_tie(b)) or (_is_better(b, better) and _is_tie(a))


def _picks(select: Instruction, yes: int, no: int) -> bool:
    return _is_parameter(select.operands[1], yes) and _is_parameter(select.operands[2], no)


def _is_parameter(x: Instruction, number: int) -> bool:
    return x.opcode == "parameter" and x.parameter_number == number


def _compares(x: Instruction, a: int, b: int, direction: str) -> bool:
    if x.opcode != "compare" or x.attributes.raw("direction") != direction:
        return False
    return _is_parameter(x.operands[0], a) and _is_parameter(x.operands[1], b)


def _is_better(x: Instruction, direction: str) -> bool:
    if x.opcode != "or":
        return False
    a, b = x.operands
    return any(_compares(p, 0, 2, direction) and _compares(q, 0, 0, "NE") for p, q in ((a, b), (b, a)))


def _is_tie(x: Instruction) -> bool:
    return x.opcode == "and" and _compares(x.operands[0], 0, 2, "EQ") and _compares(x.operands[1], 1, 3, "LT")
