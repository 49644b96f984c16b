"""Sums, differences and products, quotients and remainders (`HandleDivide`, `HandleRemainder`). Operations on
one value, powers, complex numbers and converts; operations that call computations."""

import math
from functools import partial

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir import FLOATING_TYPES, INTEGER_TYPES, Instruction
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import Value, scalar_of, values_of
from .context import (
    Context,
    both_orders,
    broadcast_constant,
    broadcast_effective_constant,
    iota_size,
    is_all,
    is_complex,
    is_integral,
    is_non_negative,
    is_power_of_two,
    is_scalar_zero,
    is_signed_integer,
    is_spread_scalar,
    scalar_constant,
    single_value,
)
from .gather_scatter import sum_of_scatters


def handle_add(c: Context, add: Instruction) -> bool:
    lhs, rhs = add.operands
    if c.is_absorbed(add, 0, other=True):
        return True
    if lhs.is_constant and not rhs.is_constant:
        return c.binary(add, "add", rhs, lhs)
    for inner, place in (("add", 1), ("subtract", 0)):
        constants = constants_of_both(lhs, rhs, inner, place) if c.may_reassociate(add) else None
        if constants is not None:
            a, c1, c2 = constants
            total = spread(add, make.binary(add, "add", c1, c2))
            operands = (a, total) if inner == "add" else (total, a)
            return c.binary(add, inner, *operands)
    exact = is_integral(add)
    for x, other in both_orders(add):
        if other.opcode == "subtract" and other.second is x and exact:
            if c.replace_if_compatible(add, other.operand):
                return True
            break
    if _add_to_part(c, add) or _distribute(c, add):
        return True
    return not c.options.layout_sensitive and sum_of_scatters(c, add)


def constants_of_both(
    lhs: Instruction, rhs: Instruction, inner: str, place: int
) -> tuple[Instruction, Instruction, Instruction] | None:
    """a, c1, c2 of (a ∘ c1) ∘ c2, `place` being where c1 stands; both constants, or scalars broadcast."""
    if lhs.opcode != inner:
        return None
    c1, a = lhs.operands[place], lhs.operands[1 - place]
    if a.is_constant:
        return None
    if c1.is_constant and rhs.is_constant:
        return a, c1, rhs
    scalar1, scalar2 = broadcast_constant(c1), broadcast_constant(rhs)
    return (a, scalar1, scalar2) if scalar1 is not None and scalar2 is not None else None


def spread(like: Instruction, value: Instruction) -> Instruction:
    """`value` in the shape of `like`, a scalar being broadcast."""
    if value.sizes or not like.sizes:
        return value
    return make.broadcast(like, like.shape, value)


def _add_to_part(c: Context, add: Instruction) -> bool:
    """x + dynamic-update-slice(zeros, part) needs only a part of x."""
    for lhs, rhs in both_orders(add):
        if rhs.opcode != "dynamic-update-slice":
            continue
        base = broadcast_effective_constant(rhs.operand)
        if base is None or not is_scalar_zero(base):
            continue
        part, starts = rhs.second, rhs.operands[2:]
        sliced = make.dynamic_slice(lhs, lhs, starts, part.sizes)
        total = make.binary(rhs, "add", sliced, part)
        c.become(add, make.dynamic_update_slice, lhs, total, starts)
        return True
    return False


def _distribute(c: Context, add: Instruction) -> bool:
    lhs, rhs = add.operands
    if lhs.opcode != "multiply" or rhs.opcode != "multiply":
        return False
    if lhs.user_count != 1 or rhs.user_count != 1:
        return False
    for a, factor in both_orders(lhs):
        b = next((q for p, q in both_orders(rhs) if p is factor), None)
        if b is None:
            continue
        if is_integral(add) or is_power_of_two(factor):
            c.binary(add, "multiply", make.binary(lhs, "add", a, b, add.shape), factor)
            return True
        return False
    return False


def handle_subtract(c: Context, sub: Instruction) -> bool:
    lhs, rhs = sub.operands
    exact = is_integral(sub)
    if exact and lhs is rhs:
        return c.become(sub, make.scalar_like, 0)
    if is_all(rhs, 0) and c.replace_if_compatible(sub, lhs):
        return True
    constant = rhs.past("broadcast")
    if not lhs.is_constant and constant.is_constant:
        negative = make.unary(constant, "negate", constant)
        if rhs.is_broadcast:
            negative = make.broadcast(constant, rhs.shape, negative, rhs.dimensions)
        return c.binary(sub, "add", lhs, negative)
    if not exact:
        return False
    if rhs.opcode == "subtract" and rhs.operand is lhs and c.replace_if_compatible(sub, rhs.second):
        return True
    if rhs.opcode == "add" and lhs in rhs.operands:
        other = rhs.second if rhs.operand is lhs else rhs.operand
        return c.become(sub, make.unary, "negate", other)
    if lhs.opcode == "add" and rhs in lhs.operands:
        return c.replace_if_compatible(sub, lhs.operand if lhs.second is rhs else lhs.second)
    return False


def handle_multiply(c: Context, multiply: Instruction) -> bool:
    lhs, rhs = multiply.operands
    if c.is_absorbed(multiply, 1, other=True):
        return True
    if is_integral(multiply):
        for zero in (lhs, rhs):
            if is_all(zero, 0) and c.replace_if_compatible(multiply, zero):
                return True
    if lhs.opcode == "negate" == rhs.opcode or (
        lhs is rhs and lhs.opcode == "abs" and not is_complex(lhs.operand)
    ):
        a, b = lhs.operand, rhs.operand
        multiply.replace_operand(0, a)
        multiply.replace_operand(1, b)
        c.changed = True
        return True
    for operand, converted in both_orders(multiply):
        if converted.opcode == "convert" and converted.operand.element_type == "pred":
            zeros = make.zeros(multiply, multiply.shape)
            return c.become(multiply, make.select, converted.operand, operand, zeros, multiply.shape)
    may_reassociate = c.may_reassociate(multiply)
    inside = may_reassociate and "multiply" in (lhs.opcode, rhs.opcode)
    if inside and (_join_constants(c, multiply) or _constant_into_broadcast(c, multiply)):
        return True
    if inside and lhs.opcode == "multiply":
        a, factor = lhs.operands
        c1, c2 = broadcast_constant(factor), broadcast_constant(rhs)
        if c1 is not None and c2 is not None:
            return c.binary(multiply, "multiply", a, _product(multiply, c1, c2))
    if may_reassociate and lhs.opcode == "exponential" == rhs.opcode:
        total = make.binary(multiply, "add", lhs.operand, rhs.operand, multiply.shape)
        return c.become(multiply, make.unary, "exponential", total)
    if lhs.opcode == rhs.opcode and lhs.opcode in ("sqrt", "rsqrt") and lhs.operand is rhs.operand:
        x = lhs.operand
        if is_non_negative(x) and lhs.opcode == "sqrt":
            return c.replace(multiply, x)
        if is_non_negative(x):
            inverse = make.binary(multiply, "divide", make.scalar_like(x, 1), x, multiply.shape)
            return c.replace(multiply, inverse)
    return False


def _product(multiply: Instruction, c1: Instruction, c2: Instruction) -> Instruction:
    return spread(multiply, make.binary(multiply, "multiply", c1, c2))


def _with_constant(x: Instruction) -> tuple[Instruction, Instruction] | None:
    if x.opcode != "multiply":
        return None
    for a, constant in both_orders(x):
        if not a.is_constant and constant.is_constant:
            return a, constant
    return None


def _join_constants(c: Context, multiply: Instruction) -> bool:
    lhs, rhs = multiply.operands
    left, right = _with_constant(lhs), _with_constant(rhs)
    if left and right:
        product = _product(multiply, left[1], right[1])
        inner = make.binary(multiply, "multiply", left[0], right[0], multiply.shape)
        c.binary(multiply, "multiply", inner, product)
        return True
    for inner_, constant in ((left, rhs), (right, lhs)):
        if inner_ and constant.is_constant:
            product = _product(multiply, inner_[1], constant)
            c.binary(multiply, "multiply", inner_[0], product)
            return True
    return False


def _constant_into_broadcast(c: Context, multiply: Instruction) -> bool:
    found = _scaled(multiply, bare=True) or _scaled(multiply, bare=False)
    if found is None:
        return False
    a, constant, op = found
    if not scalar_constant(constant) or not op.is_broadcast or op.operand.is_constant:
        return False
    b = op.operand
    factor = constant if not b.sizes else make.broadcast(multiply, b.shape, constant)
    new = make.binary(multiply, "multiply", b, factor)
    wide = make.broadcast(multiply, multiply.shape, new, op.dimensions)
    return c.binary(multiply, "multiply", a, wide)


def _scaled(multiply: Instruction, *, bare: bool) -> tuple[Instruction, Instruction, Instruction] | None:
    for inner, op in both_orders(multiply):
        if inner.opcode != "multiply":
            continue
        for a, factor in both_orders(inner):
            constant = factor if bare else (factor.operand if factor.is_broadcast else None)
            if not a.is_constant and constant is not None and constant.is_constant:
                return a, constant, op
    return None


def handle_divide(c: Context, divide: Instruction) -> bool:
    a, b = divide.operands
    if is_all(b, 1) and c.replace_if_compatible(divide, a):
        return True
    if is_integral(divide) and (power := _power_of_two(b)) is not None:
        if not is_signed_integer(divide):
            return c.binary(divide, "shift-right-logical", a, make.scalar_like(a, power))
        return _restore_sign(c, divide, "shift-right-logical", power, make.scalar_like(a, 0))
    times = partial(c.binary, divide, "multiply", a)
    if b.opcode == "exponential" and c.may_reassociate(divide):
        if a.opcode == "exponential":
            difference = make.binary(divide, "subtract", a.operand, b.operand, divide.shape)
            return c.become(divide, make.unary, "exponential", difference)
        negated = make.unary(divide, "negate", b.operand, divide.shape)
        return times(make.unary(b, "exponential", negated))
    if b.opcode == "power":
        base, exponent = b.operands
        power_ = make.binary(b, "power", base, make.unary(b, "negate", exponent))
        return times(power_)
    if b.opcode in ("sqrt", "rsqrt") and b.user_count == 1 and a is not b:
        other = make.unary(b, "rsqrt" if b.opcode == "sqrt" else "sqrt", b.operand, divide.shape)
        return times(other)
    if is_integral(divide):
        return False
    return _divide_by_constant(c, divide) or _divide_by_broadcast(c, divide) or _nested(c, divide)


def _power_of_two(b: Instruction) -> int | None:
    """The exponent where `b` is 2^k, perhaps broadcast."""
    value = single_value(b)
    if value is None or value <= 0 or int(value) & (int(value) - 1):
        return None
    return int(value).bit_length() - 1


def _restore_sign(
    c: Context,
    x: Instruction,
    opcode: str,
    amount: int,
    zero: Instruction,
) -> bool:
    """The operation on the absolute value, the sign put back."""
    a = x.operand
    negative = make.compare(x, "LT", a, zero)
    absolute = make.select(x, negative, make.unary(x, "negate", a), a)
    result = make.binary(x, opcode, absolute, make.scalar_like(absolute, amount), x.shape)
    return c.become(x, make.select, negative, make.unary(x, "negate", result), result)


def _divide_by_constant(c: Context, divide: Instruction) -> bool:
    a, b = divide.operands
    constant = b.past("broadcast")
    if a.is_constant or not constant.is_constant:
        return False
    values = values_of(constant)
    if values is None or 0j in [v for v in values if isinstance(v, complex)]:
        inverse = make.unknown_constant(constant, constant.shape)
    else:
        inverse = make.constant(constant, constant.shape, [_inverse(v) for v in values])
    if b is not constant:
        inverse = make.broadcast(b, b.shape, inverse, b.dimensions)
    return c.become(divide, make.binary, "multiply", a, inverse)


def _inverse(value: Value) -> Value:
    """1 / `value`, infinite for a real zero, of which it has the sign."""
    if value == 0:
        return math.copysign(math.inf, value.real)
    inverse = 1 / value
    if isinstance(value, complex) and value.imag == 0:
        return complex(inverse.real, 0.0 * value.real - value.imag)
    return inverse


def _divide_by_broadcast(c: Context, divide: Instruction) -> bool:
    a, wide = divide.operands
    on_cpu = c.options.executing_on_cpu and c.release.inverts_broadcasts
    if not on_cpu or not wide.is_broadcast:
        return False
    b = wide.operand
    if is_complex(divide) or b.user_count != 1:
        return False
    inverse = make.binary(wide, "divide", make.scalar_like(b, 1), b)
    spread = make.broadcast(wide, divide.shape, inverse, wide.dimensions)
    return c.binary(divide, "multiply", a, spread)


def _nested(c: Context, divide: Instruction) -> bool:
    a, b = divide.operands
    top, below = a.operands if a.opcode == "divide" else (a, None)
    bottom, above = b.operands if b.opcode == "divide" else (b, None)
    if above is not None:
        top = make.binary(divide, "multiply", top, above)
    if below is not None:
        bottom = make.binary(divide, "multiply", below, bottom)
    if below is not None or above is not None:
        return c.become(divide, make.binary, "divide", top, bottom)
    if a.opcode == "convert" and a.operand.element_type == "pred" and is_spread_scalar(b):
        scalar = b.operand
        inverse = make.binary(divide, "divide", make.scalar_like(scalar, 1), scalar)
        spread = make.broadcast(b, divide.shape, inverse)
        return c.become(divide, make.binary, "multiply", spread, a)
    return False


def handle_remainder(c: Context, remainder: Instruction) -> bool:
    a, b = remainder.operands
    if a.opcode == "remainder" and a.second is b:
        return c.replace(remainder, a)
    if is_integral(remainder) and (power := _power_of_two(b)) is not None:
        mask = (1 << power) - 1
        if is_signed_integer(remainder):
            _restore_sign(c, remainder, "and", mask, make.zeros(remainder, a.shape))
        else:
            c.binary(remainder, "and", a, make.scalar_like(b, mask))
        return False
    divisor = broadcast_effective_constant(b)
    value = scalar_of(divisor)
    if not isinstance(value, int):
        return False
    if a.opcode == "iota":
        if value >= iota_size(a):
            return c.replace(remainder, a)
    elif a.opcode == "add":
        for iota, added in both_orders(a):
            if iota.opcode != "iota" or broadcast_effective_constant(added) is not divisor:
                continue
            most = value + iota_size(iota)
            if most < 1 << (iota.shape.bit_width - is_signed_integer(iota)):
                c.binary(remainder, "remainder", iota, b)
            return False
    return False


def handle_abs(c: Context, x: Instruction) -> bool:
    return is_non_negative(x.operand) and c.replace(x, x.operand)


def handle_negate(c: Context, x: Instruction) -> bool:
    return x.operand.opcode == "negate" and c.replace_if_compatible(x, x.operand.operand)


def handle_exponential(c: Context, x: Instruction) -> bool:
    operand = x.operand
    constant = operand if scalar_constant(operand) else broadcast_constant(operand)
    return constant is not None and scalar_of(constant) == 0 and c.become(x, make.scalar_like, 1)


def handle_log(c: Context, log: Instruction) -> bool:
    operand = log.operand
    if operand.opcode == "exponential" and c.release.undoes_squares_and_exponentials:
        return c.replace_if_compatible(log, operand.operand)
    if operand.opcode == "power":
        a, b = operand.operands
        absolute = a if is_complex(a) else make.unary(log, "abs", a, log.shape)
        product = make.binary(operand, "multiply", make.unary(log, "log", absolute, log.shape), b, log.shape)
        is_zero = make.compare(b, "EQ", b, make.scalar_like(b, 0))
        return c.become(log, make.select, is_zero, make.scalar_like(log, 0), product)
    if operand.opcode in ("sqrt", "rsqrt"):
        half = 0.5 if operand.opcode == "sqrt" else -0.5
        new = make.unary(log, "log", operand.operand, log.shape)
        return c.binary(log, "multiply", new, make.scalar_like(log, half))
    return False


def handle_sqrt(c: Context, x: Instruction) -> bool:
    operand = x.operand
    is_square = operand.opcode == "multiply" and operand.operand is operand.second
    if not is_square or is_complex(x) or not c.release.undoes_squares_and_exponentials:
        return False
    return c.become(x, make.unary, "abs", operand.operand)


def handle_rsqrt(c: Context, x: Instruction) -> bool:
    operand = x.operand
    if operand.opcode == "divide" and is_all(operand.operand, 1) and is_non_negative(operand.second):
        return c.become(x, make.unary, "sqrt", operand.second, x.shape)
    return False


def handle_power(c: Context, power: Instruction) -> bool:
    lhs, rhs = power.operands
    if is_all(rhs, 0):
        return c.become(power, make.scalar_like, 1)
    if is_all(rhs, 1) and c.replace_if_compatible(power, lhs):
        return True
    if lhs.opcode == "exponential":
        product = make.binary(power, "multiply", lhs.operand, rhs, power.shape)
        return c.become(power, make.unary, "exponential", product)
    if is_all(rhs, 2):
        return c.binary(power, "multiply", lhs, lhs)
    if is_all(rhs, 3):
        square = make.binary(power, "multiply", lhs, lhs, power.shape)
        return c.binary(power, "multiply", lhs, square)
    if is_all(rhs, -1):
        return c.binary(power, "divide", make.scalar_like(lhs, 1), lhs)
    if is_all(rhs, 0.5) and is_non_negative(lhs):
        return c.become(power, make.unary, "sqrt", lhs, power.shape)
    return False


def handle_complex(c: Context, x: Instruction) -> bool:
    real, imag = x.operands
    if real.opcode == "real" and imag.opcode == "imag" and real.operand is imag.operand:
        return c.replace(x, real.operand)
    return False


def handle_part(c: Context, x: Instruction) -> bool:
    operand = x.operand
    if operand.opcode == "complex":
        return c.replace(x, operand.operands[0 if x.opcode == "real" else 1])
    if not is_complex(operand):
        if x.opcode == "real":
            return c.replace(x, operand)
        return c.replace(x, spread(x, make.scalar(x, x.element_type, 0)))
    return False


def handle_convert(c: Context, convert: Instruction) -> bool:
    operand = convert.operand
    result = convert.element_type
    if operand.element_type == result:
        return c.replace(convert, operand)
    if operand.opcode == "convert":
        source = operand.operand.element_type
        if source == result and keeps_values(source, operand.element_type):
            return c.replace(convert, operand.operand)
    return False


# Bits of precision, smallest and greatest exponent of a normal number.
_FLOATS = {
    "f16": (11, -13, 16),
    "bf16": (8, -125, 128),
    "f32": (24, -125, 128),
    "f64": (53, -1021, 1024),
}


def keeps_values(source: str, result: str) -> bool:
    """Every value of one type is one of the other's (`CastPreservesValues`)."""
    if source == result:
        return True
    if source == "pred":
        return result in INTEGER_TYPES or result in FLOATING_TYPES
    if source in INTEGER_TYPES:
        bits = int(source[1:]) - (source[0] == "s")
        if result in INTEGER_TYPES:
            if source[0] == "s" and result[0] == "u":
                return False
            return bits <= int(result[1:]) - (result[0] == "s")
        if result in _FLOATS:
            return bits <= _FLOATS[result][0] and bits <= _FLOATS[result][2]
        return False
    if source in _FLOATS and result in _FLOATS:
        a, b = _FLOATS[source], _FLOATS[result]
        return a[0] <= b[0] and a[1] >= b[1] and a[2] <= b[2]
    return False


def handle_reduce_precision(c: Context, x: Instruction) -> bool:
    precision, _, end = _FLOATS.get(x.operand.element_type, (0, 0, 0))
    bits = (x.attributes.get("exponent_bits"), x.attributes.get("mantissa_bits"))
    is_same = bits == (end.bit_length(), precision - 1)
    return c.options.remove_no_op_reduce_precision and is_same and c.replace(x, x.operand)


def handle_map(c: Context, x: Instruction) -> bool:
    root = x.to_apply.root
    if root.is_parameter:
        return c.replace_if_compatible(x, x.operands[root.parameter_number])
    if root.is_constant:
        if not root.sizes:
            value = make.add(x, "constant", root.shape, payload=root.payload)
            return c.replace(x, make.broadcast(x, x.shape, value) if x.sizes else value)
    elif root.is_fusion or any(not o.is_parameter for o in root.operands):
        return False
    elif is_elementwise(root):
        operands = [x.operands[o.parameter_number] for o in root.operands]
        new = make.add(x, root.opcode, x.shape, operands)
        new.attributes = root.attributes
        return c.replace(x, new)
    return False


def handle_sort(c: Context, sort: Instruction) -> bool:
    first = sort.operand
    if first.element_count == 0 or first.sizes[sort.dimension] <= 1:
        return c.become(sort, make.result_of, sort.operands)
    return False


def handle_conditional(c: Context, conditional: Instruction) -> bool:
    predicate = conditional.operand
    is_on = c.options.conditional_simplification and c.release.simplifies_conditionals
    if not is_on or predicate.opcode != "convert":
        return False
    if predicate.operand.element_type != "pred" or len(conditional.called_computations) != 2:
        return False
    zero, one = conditional.called_computations
    new = make.add(
        conditional,
        "conditional",
        conditional.shape,
        [predicate.operand, conditional.operands[2], conditional.second],
        called=[("true_computation", one), ("false_computation", zero)],
        copied_attributes=conditional.attributes.given("sharding", "frontend_attributes"),
    )
    return c.replace(conditional, new)


def handle_get_tuple_element(c: Context, x: Instruction) -> bool:
    source = x.operand
    return source.opcode == "tuple" and c.replace_if_compatible(x, source.operands[x.tuple_index])
