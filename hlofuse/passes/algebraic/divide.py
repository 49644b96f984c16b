"""Quotients and remainders (`HandleDivide`, `HandleRemainder`)."""

import math

from hlofuse.analysis.elementwise import is_constant_effective_scalar
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context, both_orders
from hlofuse.passes.algebraic.facts import (
    broadcast_effective_constant,
    is_all,
    is_complex,
    is_integral,
    is_signed_integer,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import Value, scalar_of, values_of


def handle_divide(c: Context, divide: Instruction) -> bool:
    a, b = divide.operands
    if is_all(b, 1) and c.replace_if_compatible(divide, a):
        return True
    if is_integral(divide) and (power := _power_of_two(b)) is not None:
        return _by_shifting(c, divide, power)
    if b.opcode == "exponential":
        if a.opcode == "exponential":
            difference = make.binary(divide, "subtract", a.operands[0], b.operands[0], divide.shape)
            return c.replace(divide, make.unary(divide, "exponential", difference))
        negated = make.unary(divide, "negate", b.operands[0], divide.shape)
        return c.replace(
            divide, make.binary(divide, "multiply", a, make.unary(b, "exponential", negated), divide.shape)
        )
    if b.opcode == "power":
        base, exponent = b.operands
        power_ = make.binary(b, "power", base, make.unary(b, "negate", exponent))
        return c.replace(divide, make.binary(divide, "multiply", a, power_, divide.shape))
    if b.opcode in ("sqrt", "rsqrt") and len(b.users) == 1 and a is not b:
        other = make.unary(b, "rsqrt" if b.opcode == "sqrt" else "sqrt", b.operands[0], divide.shape)
        return c.replace(divide, make.binary(divide, "multiply", a, other, divide.shape))
    if is_integral(divide):
        return False
    return _by_constant(c, divide) or _by_broadcast(c, divide) or _nested(c, divide)


def _power_of_two(b: Instruction) -> int | None:
    """The exponent where `b` is 2^k, perhaps broadcast."""
    constant = b if is_constant_effective_scalar(b) else broadcast_effective_constant(b)
    value = scalar_of(constant) if constant is not None else None
    if value is None or value <= 0 or int(value) & (int(value) - 1):
        return None
    return int(value).bit_length() - 1


def _by_shifting(c: Context, divide: Instruction, power: int) -> bool:
    a = divide.operands[0]
    if not is_signed_integer(divide):
        return c.replace(divide, make.binary(divide, "shift-right-logical", a, make.scalar_like(a, power)))
    return _restore_sign(c, divide, "shift-right-logical", power, make.scalar_like(divide.operands[0], 0))


def _restore_sign(c: Context, x: Instruction, opcode: str, amount: int, zero: Instruction) -> bool:
    """The operation on the absolute value, the sign put back."""
    a = x.operands[0]
    negative = make.compare(x, "LT", a, zero)
    absolute = make.select(x, negative, make.unary(x, "negate", a), a)
    result = make.binary(x, opcode, absolute, make.scalar_like(absolute, amount), x.shape)
    return c.replace(x, make.select(x, negative, make.unary(x, "negate", result), result))


def _by_constant(c: Context, divide: Instruction) -> bool:
    a, b = divide.operands
    constant = b.operands[0] if b.opcode == "broadcast" else b
    if a.opcode == "constant" or constant.opcode != "constant":
        return False
    values = values_of(constant)
    if values is None or 0j in [v for v in values if isinstance(v, complex)]:
        inverse = make.unknown_constant(constant, constant.shape)
    else:
        inverse = make.constant(constant, constant.shape, [_inverse(v) for v in values])
    if b is not constant:
        inverse = make.broadcast(b, b.shape, inverse, b.dimensions)
    c.replace(divide, make.binary(divide, "multiply", a, inverse))
    return True


def _inverse(value: Value) -> Value:
    """1 / `value`, infinite for a real zero, of which it has the sign."""
    if value == 0:
        return math.copysign(math.inf, value.real)
    inverse = 1 / value
    if isinstance(value, complex) and value.imag == 0:
        return complex(inverse.real, 0.0 * value.real - value.imag)
    return inverse


def _by_broadcast(c: Context, divide: Instruction) -> bool:
    """A / broadcast(B) is A * broadcast(1 / B), on CPU."""
    a, wide = divide.operands
    options = c.options
    if not options.executing_on_cpu or not options.sink_broadcast or wide.opcode != "broadcast":
        return False
    b = wide.operands[0]
    if (is_complex(divide) and not options.fast_math) or len(b.users) != 1:
        return False
    inverse = make.binary(wide, "divide", make.scalar_like(b, 1), b)
    spread = make.broadcast(wide, divide.shape, inverse, wide.dimensions)
    c.replace(divide, make.binary(divide, "multiply", a, spread, divide.shape))
    return True


def _nested(c: Context, divide: Instruction) -> bool:
    a, b = divide.operands
    if a.opcode == "divide" == b.opcode:
        top = make.binary(divide, "multiply", a.operands[0], b.operands[1])
        bottom = make.binary(divide, "multiply", a.operands[1], b.operands[0])
        return c.replace(divide, make.binary(divide, "divide", top, bottom))
    if a.opcode == "divide":
        bottom = make.binary(divide, "multiply", a.operands[1], b)
        return c.replace(divide, make.binary(divide, "divide", a.operands[0], bottom))
    if b.opcode == "divide":
        top = make.binary(divide, "multiply", a, b.operands[1])
        return c.replace(divide, make.binary(divide, "divide", top, b.operands[0]))
    if (
        a.opcode == "convert"
        and a.operands[0].shape.element_type == "pred"
        and b.opcode == "broadcast"
        and not b.operands[0].shape.dimensions
    ):
        scalar = b.operands[0]
        inverse = make.binary(divide, "divide", make.scalar_like(scalar, 1), scalar)
        spread = make.broadcast(b, divide.shape, inverse, ())
        return c.replace(divide, make.binary(divide, "multiply", spread, a))
    return False


def handle_remainder(c: Context, remainder: Instruction) -> bool:
    a, b = remainder.operands
    if a.opcode == "remainder" and a.operands[1] is b:
        return c.replace(remainder, a)
    if is_integral(remainder) and (power := _power_of_two(b)) is not None:
        mask = (1 << power) - 1
        if is_signed_integer(remainder):
            _restore_sign(c, remainder, "and", mask, make.zeros(remainder, a.shape))
        else:
            c.replace(remainder, make.binary(remainder, "and", a, make.scalar_like(b, mask)))
        return False
    divisor = broadcast_effective_constant(b)
    value = scalar_of(divisor) if divisor is not None else None
    if not isinstance(value, int):
        return False
    if a.opcode == "iota":
        if value >= a.shape.dimensions[int(a.attributes["iota_dimension"])]:
            return c.replace(remainder, a)
    elif a.opcode == "add":
        for iota, added in both_orders(a):
            if iota.opcode != "iota" or broadcast_effective_constant(added) is not divisor:
                continue
            most = value + iota.shape.dimensions[int(iota.attributes["iota_dimension"])]
            if most < 1 << (iota.shape.bit_width - is_signed_integer(iota)):
                c.replace(remainder, make.binary(remainder, "remainder", iota, b))
            return False
    return False
