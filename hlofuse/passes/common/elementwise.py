"""Elementwise operations on single values (`xla/hlo/evaluator/hlo_evaluator_typed_visitor.h`). Functions such
as exp are computed in double precision; the caller rounds; XLA's last digit may differ."""

import math
import operator
from collections.abc import Callable
from functools import cache

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES
from .literals import Value


class CannotEvaluate(Exception):
    """The operation, or a value it reads, is not worked out here."""


def value_function(x: Instruction) -> Callable[..., Value]:
    """From a value of each operand to that of `x`, not rounded; CannotEvaluate where it is not known."""
    element_type = x.operands[0].shape.element_type if x.operands else ""
    if x.opcode == "compare":
        return _COMPARE[str(x.attributes.raw("direction"))]
    if x.opcode == "convert":
        return _convert(element_type, x.shape.element_type)
    if element_type in INTEGER_TYPES:
        function = _integer(x.opcode, element_type)
    elif element_type == "pred":
        function = _PREDS.get(x.opcode)
    elif element_type in COMPLEX_TYPES:
        function = _COMPLEX.get(x.opcode)
    elif element_type in FLOATING_TYPES:
        function = _FLOATS.get(x.opcode)
    else:
        raise CannotEvaluate
    if function is None:
        function = _ANY.get(x.opcode)
    if function is None:
        raise CannotEvaluate
    return function


def _convert(source: str, result: str) -> Callable[[Value], Value]:
    if result == "pred":
        return lambda v: v != 0
    if result in INTEGER_TYPES and source not in INTEGER_TYPES:
        low = -(1 << (int(result[1:]) - 1)) if result[0] == "s" else 0
        high = (1 << (int(result[1:]) - (result[0] == "s"))) - 1

        def to_integer(v: Value) -> Value:
            if isinstance(v, complex):
                raise CannotEvaluate
            if math.isnan(v):
                return 0
            if math.isinf(v):
                return high if v > 0 else low
            return min(high, max(low, math.trunc(v)))

        return to_integer
    return lambda v: v


_COMPARE: dict[str, Callable[..., Value]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


_ANY: dict[str, Callable[..., Value]] = {
    "select": lambda p, a, b: a if p else b,
    "copy": lambda a: a,
    "clamp": lambda low, a, high: min(max(a, low), high),
}


_PREDS: dict[str, Callable[..., Value]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": operator.ne,
    "not": operator.not_,
    "maximum": lambda a, b: a or b,
    "minimum": lambda a, b: a and b,
    "add": lambda a, b: a or b,
    "multiply": lambda a, b: a and b,
}


@cache
def _integer(opcode: str, element_type: str) -> Callable[..., Value] | None:
    bits = int(element_type[1:])
    mask = (1 << bits) - 1

    def quotient(a: int, b: int) -> int:
        if b == 0:
            return -1
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def remainder(a: int, b: int) -> int:
        return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)

    def power(a: int, b: int) -> int:
        if b < 0:
            raise ValueError
        return pow(a, b, 1 << bits)

    table: dict[str, Callable[..., Value]] = {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": quotient,
        "remainder": remainder,
        "power": power,
        "maximum": max,
        "minimum": min,
        "negate": operator.neg,
        "abs": abs,
        "sign": lambda a: (a > 0) - (a < 0),
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
        "not": operator.invert,
        "shift-left": lambda a, b: (a & mask) << b if 0 <= b < bits else 0,
        "shift-right-logical": lambda a, b: (a & mask) >> b if 0 <= b < bits else 0,
        "shift-right-arithmetic": lambda a, b: a >> (b if 0 <= b < bits else bits - 1),
        "popcnt": lambda a: (a & mask).bit_count(),
        "count-leading-zeros": lambda a: bits - (a & mask).bit_length(),
    }
    return table.get(opcode)


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _complex_product(a: complex, b: complex) -> Value:
    """The product if one factor is real, which needs no sum to be rounded as in XLA."""
    if a.imag and b.imag:
        raise CannotEvaluate
    return a * b


_COMPLEX: dict[str, Callable[..., Value]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": _complex_product,
    "negate": operator.neg,
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
}


_FLOATS: dict[str, Callable[..., Value]] = {
    "complex": complex,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": _divide,
    "remainder": math.fmod,
    "power": math.pow,
    "maximum": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    "minimum": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
    "negate": operator.neg,
    "abs": abs,
    "sign": lambda a: a if a == 0 or math.isnan(a) else math.copysign(1.0, a),
    "floor": lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    "ceil": lambda a: float(math.ceil(a)) if math.isfinite(a) else a,
    "round-nearest-even": lambda a: float(round(a)) if math.isfinite(a) else a,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: _divide(1.0, math.sqrt(x)),
    "is-finite": math.isfinite,
    "erf": math.erf,
    "exponential": math.exp,
    "exponential-minus-one": math.expm1,
    "log": math.log,
    "log-plus-one": math.log1p,
    "tanh": math.tanh,
    "sine": math.sin,
    "cosine": math.cos,
    "cbrt": math.cbrt,
    "logistic": lambda a: 1 / (1 + math.exp(-a)),
}
