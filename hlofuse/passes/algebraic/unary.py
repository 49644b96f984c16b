"""Operations on one value, powers, complex numbers and converts; operations that call computations."""

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import FLOATING_TYPES, INTEGER_TYPES
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from .arithmetic import spread
from .context import Context, broadcast_constant, is_all, is_complex, is_non_negative, scalar_constant


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
    is_square = operand.opcode == "multiply" and operand.operands[0] is operand.operands[1]
    if not is_square or is_complex(x) or not c.release.undoes_squares_and_exponentials:
        return False
    return c.become(x, make.unary, "abs", operand.operand)


def handle_rsqrt(c: Context, x: Instruction) -> bool:
    operand = x.operand
    if operand.opcode == "divide" and is_all(operand.operands[0], 1) and is_non_negative(operand.operands[1]):
        return c.become(x, make.unary, "sqrt", operand.operands[1], x.shape)
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
    if root.opcode == "parameter":
        return c.replace_if_compatible(x, x.operands[root.parameter_number])
    if root.opcode == "constant":
        if not root.shape.dimensions:
            value = make.add(x, "constant", root.shape, payload=root.payload)
            return c.replace(x, make.broadcast(x, x.shape, value) if x.shape.dimensions else value)
    elif root.opcode == "fusion" or any(o.opcode != "parameter" for o in root.operands):
        return False
    elif is_elementwise(root):
        operands = [x.operands[o.parameter_number] for o in root.operands]
        new = make.add(x, root.opcode, x.shape, operands)
        new.attributes = root.attributes
        return c.replace(x, new)
    return False


def handle_sort(c: Context, sort: Instruction) -> bool:
    first = sort.operand
    if first.shape.element_count == 0 or first.shape.dimensions[sort.dimensions[0]] <= 1:
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
        [predicate.operands[0], conditional.operands[2], conditional.operands[1]],
        called=[("true_computation", one), ("false_computation", zero)],
        copied_attributes=conditional.attributes.given("sharding", "frontend_attributes"),
    )
    return c.replace(conditional, new)


def handle_get_tuple_element(c: Context, x: Instruction) -> bool:
    source = x.operand
    return source.opcode == "tuple" and c.replace_if_compatible(x, source.operands[x.tuple_index])
