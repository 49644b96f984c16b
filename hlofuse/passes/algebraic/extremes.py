"""Greatest, least and in between (`HandleMaximum`, `HandleMinimum`, `HandleClamp`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context, either_way
from hlofuse.passes.algebraic.facts import (
    broadcast_effective_constant,
    is_all,
    is_floating,
    is_integral,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import highest, lowest, scalar_of

# They never fall and bring no value further from zero (`IsNondecreasingSublinear`).
_SINKS = frozenset({"cbrt", "erf", "logistic", "tanh"})


def handle_extreme(c: Context, x: Instruction) -> None:
    """Both maximum and minimum; what is said of one holds of the other the other way round."""
    lhs, rhs = x.operands
    if lhs is rhs:
        c.replace(x, lhs)
        return
    maximum = x.opcode == "maximum"
    if is_integral(x) or (is_floating(x) and c.options.minmax_propagate_nan):
        for bound, other in ((lhs, rhs), (rhs, lhs)):
            element_type = bound.shape.element_type
            neutral = lowest(element_type) if maximum else highest(element_type)
            if neutral is not None and is_all(bound, neutral):
                c.replace(x, other)
                return
    if lhs.opcode == x.opcode and rhs in lhs.operands:
        c.replace(x, lhs)
        return
    if rhs.opcode == x.opcode:
        if rhs.operands[0] is lhs:
            c.replace(x, rhs)
            return
        if rhs.operands[1] is lhs:
            x.replace_operand(1, rhs.operands[0])
            c.changed = True
            return
    if _clamps(c, x) or not maximum:
        return
    for operand, clamp in either_way(x):
        if clamp.opcode == "clamp":
            if operand is clamp.operands[0] and c.replace_if_compatible(x, clamp):
                return
            break
    if lhs.opcode == rhs.opcode and lhs.opcode in _SINKS:
        new = make.binary(x, "maximum", lhs.operands[0], rhs.operands[0])
        c.replace(x, make.unary(x, lhs.opcode, new))


def _clamps(c: Context, x: Instruction) -> bool:
    """max(lower, min(y, upper)) with lower < upper is a clamp."""
    inner_opcode = "minimum" if x.opcode == "maximum" else "maximum"
    for bound, inner in either_way(x):
        outer_constant = broadcast_effective_constant(bound)
        if outer_constant is None or inner.opcode != inner_opcode:
            continue
        for y, other in either_way(inner):
            inner_constant = broadcast_effective_constant(other)
            if inner_constant is None:
                continue
            lower, upper = (bound, other) if x.opcode == "maximum" else (other, bound)
            least, most = scalar_of(lower.operands[0]), scalar_of(upper.operands[0])
            if least is None or most is None or not least < most:
                return False
            c.replace(x, make.add(x, "clamp", y.shape, [lower, y, upper]))
            return True
    return False


def handle_clamp(c: Context, clamp: Instruction) -> None:
    lower, x, upper = clamp.operands
    if x.opcode == "clamp" and x.operands[0] is lower and x.operands[2] is upper:
        c.replace_if_compatible(clamp, x)
