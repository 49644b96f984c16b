"""Products (`HandleMultiply`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.add_subtract import spread
from hlofuse.passes.algebraic.context import Context, either_way
from hlofuse.passes.algebraic.facts import (
    broadcast_constant,
    is_all,
    is_complex,
    is_integral,
    is_non_negative,
    scalar_constant,
)
from hlofuse.passes.common import make


def handle_multiply(c: Context, multiply: Instruction) -> None:
    lhs, rhs = multiply.operands
    for one, other in ((rhs, lhs), (lhs, rhs)):
        if is_all(one, 1) and c.replace_if_compatible(multiply, other):
            return
    if c.options.fast_math or is_integral(multiply):
        for zero in (lhs, rhs):
            if is_all(zero, 0) and c.replace_if_compatible(multiply, zero):
                return
    if lhs.opcode == "negate" == rhs.opcode or (
        lhs is rhs and lhs.opcode == "abs" and not is_complex(lhs.operands[0])
    ):
        a, b = lhs.operands[0], rhs.operands[0]
        multiply.replace_operand(0, a)
        multiply.replace_operand(1, b)
        c.changed = True
        return
    for operand, converted in either_way(multiply):
        if converted.opcode == "convert" and converted.operands[0].shape.element_type == "pred":
            zeros = make.zeros(multiply, multiply.shape)
            c.replace(multiply, make.select(multiply, converted.operands[0], operand, zeros))
            return
    if _join_constants(c, multiply) or _constant_into_broadcast(c, multiply):
        return
    if lhs.opcode == "multiply":
        for a, factor in ((lhs.operands[0], lhs.operands[1]),):
            c1, c2 = broadcast_constant(factor), broadcast_constant(rhs)
            if c1 is not None and c2 is not None:
                product = _product(multiply, c1, c2)
                c.replace(multiply, make.binary(multiply, "multiply", a, product, multiply.shape))
                return
    if lhs.opcode == "exponential" == rhs.opcode:
        total = make.binary(multiply, "add", lhs.operands[0], rhs.operands[0], multiply.shape)
        c.replace(multiply, make.unary(multiply, "exponential", total))
        return
    if lhs.opcode == rhs.opcode and lhs.opcode in ("sqrt", "rsqrt") and lhs.operands[0] is rhs.operands[0]:
        x = lhs.operands[0]
        if not is_non_negative(x):
            return
        if lhs.opcode == "sqrt":
            c.replace(multiply, x)
        else:
            c.replace(multiply, make.binary(multiply, "divide", make.scalar_like(x, 1), x, multiply.shape))


def _product(multiply: Instruction, c1: Instruction, c2: Instruction) -> Instruction:
    return spread(multiply, make.binary(multiply, "multiply", c1, c2))


def _with_constant(x: Instruction) -> tuple[Instruction, Instruction] | None:
    """a and c of a product of something and a constant."""
    if x.opcode != "multiply":
        return None
    for a, constant in either_way(x):
        if a.opcode != "constant" == constant.opcode:
            return a, constant
    return None


def _join_constants(c: Context, multiply: Instruction) -> bool:
    lhs, rhs = multiply.operands
    left, right = _with_constant(lhs), _with_constant(rhs)
    if left and right:
        product = _product(multiply, left[1], right[1])
        inner = make.binary(multiply, "multiply", left[0], right[0], multiply.shape)
        c.replace(multiply, make.binary(multiply, "multiply", inner, product, multiply.shape))
        return True
    for inner_, constant in ((left, rhs), (right, lhs)):
        if inner_ and constant.opcode == "constant":
            product = _product(multiply, inner_[1], constant)
            c.replace(multiply, make.binary(multiply, "multiply", inner_[0], product, multiply.shape))
            return True
    return False


def _constant_into_broadcast(c: Context, multiply: Instruction) -> bool:
    """(a * constant) * broadcast(b) multiplies b, which is smaller."""
    found = _scaled(multiply, bare=True) or _scaled(multiply, bare=False)
    if found is None:
        return False
    a, constant, op = found
    if not scalar_constant(constant) or op.opcode != "broadcast" or op.operands[0].opcode == "constant":
        return False
    b = op.operands[0]
    factor = constant if not b.shape.dimensions else make.broadcast(multiply, b.shape, constant, ())
    new = make.binary(multiply, "multiply", b, factor)
    wide = make.broadcast(multiply, multiply.shape, new, op.dimensions)
    c.replace(multiply, make.binary(multiply, "multiply", a, wide, multiply.shape))
    return True


def _scaled(multiply: Instruction, *, bare: bool) -> tuple[Instruction, Instruction, Instruction] | None:
    for inner, op in either_way(multiply):
        if inner.opcode != "multiply":
            continue
        for a, factor in either_way(inner):
            constant = factor if bare else (factor.operands[0] if factor.opcode == "broadcast" else None)
            if a.opcode != "constant" and constant is not None and constant.opcode == "constant":
                return a, constant, op
    return None
