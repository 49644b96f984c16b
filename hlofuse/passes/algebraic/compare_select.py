"""Comparisons, logical operations, maxima and minima, and selections."""

from hlofuse.analysis.elementwise import is_constant_effective_scalar
from hlofuse.ir import Instruction, has_side_effect, values
from hlofuse.matching.key import Keys
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import bounds, scalar_of
from .context import (
    Context,
    both_orders,
    broadcast_effective_constant,
    is_all,
    is_floating,
    is_integral,
    is_non_negative,
)


def handle_compare(c: Context, compare: Instruction) -> bool:
    lhs, rhs = compare.operands
    direction = compare.raw("direction")
    if (existing := _portable(lhs, rhs, direction)) is not None:
        return c.become(compare, make.scalar_like, existing)
    if lhs.element_type == "pred" == rhs.element_type and direction in ("NE", "EQ"):
        for constant, other in ((rhs, lhs), (lhs, rhs)):
            if is_all(constant, direction == "EQ"):
                return c.replace(compare, other)
    if direction == "NE" and is_all(rhs, 0) and lhs.opcode == "select":
        condition, yes, no = lhs.operands
        if (
            condition.opcode == "compare"
            and condition.raw("direction") == "GE"
            and is_all(yes, 1)
            and is_all(no, 0)
            and c.same_shape(compare.shape, condition.shape)
        ):
            return c.replace(compare, condition)
    if direction != "GT":
        return False
    for side, opcode in ((0, "maximum"), (1, "minimum")):
        extreme, other = compare.operands[side], compare.operands[1 - side]
        if extreme.opcode != opcode:
            continue
        if other in extreme.operands:
            rest = extreme.second if other is extreme.operand else extreme.operand
            compare.replace_operand(side, rest)
            c.changed = True
        return False
    return False


def _portable(lhs: Instruction, rhs: Instruction, direction: str | None) -> bool | None:
    """The answer, if it does not depend on the values."""
    unsigned = lhs.element_type[0] == "u" or lhs.element_type == "pred"
    if direction in ("LT", "GE") and is_all(rhs, 0) and (unsigned or is_non_negative(lhs)):
        return direction == "GE"
    if direction in ("GT", "LE") and is_all(lhs, 0) and (unsigned or is_non_negative(rhs)):
        return direction == "LE"
    if lhs is rhs and is_integral(lhs):
        return direction in ("EQ", "GE", "LE")
    return None


def handle_and(c: Context, x: Instruction) -> bool:
    lhs, rhs = x.operands
    is_pred = lhs.element_type == "pred" == rhs.element_type
    if (is_pred and c.is_absorbed(x, 1, other=True)) or c.is_absorbed(x, 0, other=False):
        return True
    left, right = _upper_bound(lhs), _upper_bound(rhs)
    if left is not None and right is not None and left[0] is right[0]:
        bound = make.scalar_like(left[0], min(left[1], right[1]))
        return c.become(x, make.compare, "LT", left[0], bound)
    return False


def _upper_bound(x: Instruction) -> tuple[Instruction, int] | None:
    """The variable and the number of `variable < number`."""
    if x.opcode != "compare":
        return None
    a, b = x.operands
    if x.raw("direction") == "GT":
        a, b = b, a
    elif x.raw("direction") != "LT":
        return None
    value = scalar_of(b) if is_constant_effective_scalar(b) and b.element_type == "s32" else None
    return (a, int(value)) if value is not None else None


def handle_or(c: Context, x: Instruction) -> bool:
    lhs, rhs = x.operands
    is_pred = lhs.element_type == "pred" == rhs.element_type
    return (is_pred and c.is_absorbed(x, 1, other=False)) or c.is_absorbed(x, 0, other=True)


def handle_xor(c: Context, x: Instruction) -> bool:
    lhs, rhs = x.operands
    keys = Keys()
    if lhs is rhs or (
        not has_side_effect(lhs)
        and lhs.operands
        and lhs.operands == rhs.operands
        and keys.instruction(lhs) == keys.instruction(rhs)
    ):
        return c.become(x, make.scalar_like, 0)
    return c.is_absorbed(x, 0, other=True)


def handle_not(c: Context, x: Instruction) -> bool:
    inner = x.operand
    return inner.opcode == "not" and c.replace_if_compatible(x, inner.operand)


# They never fall and bring no value further from zero (`IsNondecreasingSublinear`).
_SINKS = values("cbrt erf logistic tanh")


def handle_extreme(c: Context, x: Instruction) -> bool:
    """Both maximum and minimum; what holds for one holds for the other, reversed."""
    lhs, rhs = x.operands
    if lhs is rhs:
        return c.replace(x, lhs)
    maximum = x.opcode == "maximum"
    if is_integral(x) or is_floating(x):
        for bound, other in ((lhs, rhs), (rhs, lhs)):
            neutral = bounds(bound.element_type)[not maximum]
            if neutral is not None and is_all(bound, neutral):
                return c.replace(x, other)
    if lhs.opcode == x.opcode and rhs in lhs.operands:
        return c.replace(x, lhs)
    if rhs.opcode == x.opcode:
        if rhs.operand is lhs:
            return c.replace(x, rhs)
        if rhs.second is lhs:
            x.replace_operand(1, rhs.operand)
            c.changed = True
            return True
    if (clamped := _clamps(c, x)) or not maximum:
        return clamped
    for operand, clamp in both_orders(x):
        if clamp.opcode == "clamp":
            if operand is clamp.operand and c.replace_if_compatible(x, clamp):
                return True
            break
    if lhs.opcode == rhs.opcode and lhs.opcode in _SINKS:
        new = make.binary(x, "maximum", lhs.operand, rhs.operand)
        return c.become(x, make.unary, lhs.opcode, new)
    return False


def _clamps(c: Context, x: Instruction) -> bool:
    """max(lower, min(y, upper)) with lower < upper is a clamp."""
    inner_opcode = "minimum" if x.opcode == "maximum" else "maximum"
    for bound, inner in both_orders(x):
        outer_constant = broadcast_effective_constant(bound)
        if outer_constant is None or inner.opcode != inner_opcode:
            continue
        for y, other in both_orders(inner):
            inner_constant = broadcast_effective_constant(other)
            if inner_constant is None:
                continue
            lower, upper = (bound, other) if x.opcode == "maximum" else (other, bound)
            least, most = scalar_of(lower.operand), scalar_of(upper.operand)
            if least is None or most is None or not least < most:
                return False
            c.become(x, make.add, "clamp", y.shape, [lower, y, upper])
            return True
    return False


def handle_clamp(c: Context, clamp: Instruction) -> bool:
    lower, x, upper = clamp.operands
    if x.opcode == "clamp" and x.operand is lower and x.operands[2] is upper:
        return c.replace_if_compatible(clamp, x)
    return False


_OF_PREDS = {
    "GT": "or",
    "GE": "or",
    "LT": "and",
    "LE": "and",
}


def handle_select(c: Context, select: Instruction) -> bool:
    condition, yes, no = select.operands
    if yes is no and c.replace_if_compatible(select, yes):
        return True
    if is_all(condition, True) and c.replace_if_compatible(select, yes):
        return True
    if is_all(condition, False) and c.replace_if_compatible(select, no):
        return True
    if condition.opcode == "not":
        return c.become(select, make.add, "select", select.shape, [condition.operand, no, yes])
    return (select.element_type == "pred" and _of_preds(c, select)) or _select_part(c, select)


def _select_part(c: Context, select: Instruction) -> bool:
    """A select of an array or the array with a part updated is an update by a select of parts."""
    condition, *values = select.operands
    for update, base in (values[::-1], values):
        if update.opcode != "dynamic-update-slice" or update.operand is not base or update.user_count > 1:
            continue
        part, *starts = update.operands[1:]
        sizes = part.sizes
        cut = [make.dynamic_slice(select, x, starts, sizes) if x.rank else x for x in (condition, base)]
        parts = [part if value is update else cut[1] for value in values]
        new = make.add(select, "select", part.shape, [cut[0], *parts])
        return c.become(select, make.add, update.opcode, select.shape, [base, new, *starts])
    return False


def _of_preds(c: Context, select: Instruction) -> bool:
    condition, yes, no = select.operands
    if is_all(yes, True) and is_all(no, False):
        c.replace(select, condition)
    elif is_all(yes, False) and is_all(no, True):
        c.become(select, make.unary, "not", condition)
    elif condition.opcode == "compare" and condition.operands == [yes, no]:
        direction = str(condition.raw("direction"))
        if direction in _OF_PREDS:
            c.binary(select, _OF_PREDS[direction], yes, no)
        else:
            c.replace(select, no if direction == "EQ" else yes)
    else:
        return False
    return True
