"""Elementwise operations on arrays (`xla/hlo/evaluator/hlo_evaluator_typed_visitor.h`). Functions such as exp
are computed in double precision; the caller rounds; XLA's last digit may differ."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES, INTEGER_TYPES
from .literals import Elements, bounds


class CannotEvaluate(Exception):
    """The operation, or a value it reads, is not worked out here."""


Function = Callable[..., Any]


def array_function(x: Instruction) -> Function:
    """From an array of each operand to that of `x`, not rounded; CannotEvaluate where it is not known."""
    kind = x.operand.element_type if x.operands else ""
    name = str(x.raw("direction")) if x.opcode == "compare" else x.opcode
    if name == "convert":
        return _converted(kind, x.element_type)
    found = _OF_ALL.get(name)
    if kind in COMPLEX_TYPES:
        found = _OF_COMPLEX.get(name)
    elif kind in INTEGER_TYPES and name in _OF_INTEGERS:
        found = _OF_INTEGERS[name](int(kind[1:]))
    if found is None:
        raise CannotEvaluate
    return found


def _converted(kind: str, result: str) -> Function:
    if result == "pred":
        return lambda a: a != 0
    if result not in INTEGER_TYPES or kind in (*INTEGER_TYPES, "pred"):
        return lambda a: a
    low, high = bounds(result)

    def integer(value: float) -> Any:
        return 0 if math.isnan(value) else math.trunc(min(high, max(low, value)))

    return _each(integer)


def _each(function: Function, operands: int = 1) -> Function:
    """A function of single values, applied to each."""
    found = np.frompyfunc(function, operands, 1)
    return lambda *given: np.asarray(found(*given), object)


def _bare(a: Elements, bits: int) -> Elements:
    """The bits of integers as numbers from 0 on."""
    return a.astype("u8") & np.uint64((1 << bits) - 1)


def _shifted(
    shift: np.ufunc,
    a: Elements,
    by: Elements,
    bits: int,
) -> Elements:
    places = by.astype("u8")
    return np.where(places < bits, shift(_bare(a, bits), places % 64), np.uint64(0))


def _quotient(a: Elements, b: Elements) -> Elements:
    by = np.where(b == 0, a * 0 + 1, b)
    rest = (a % by != 0) & ((a < 0) != (b < 0))
    return np.where(b == 0, ~(a * 0), a // by + rest.astype(a.dtype))


_OF_INTEGERS: dict[str, Callable[[int], Function]] = {
    "divide": lambda bits: _quotient,
    "remainder": lambda bits: lambda a, b: np.where(b == 0, a, np.fmod(a, b)),
    "shift-left": lambda bits: lambda a, by: _shifted(np.left_shift, a, by, bits),
    "shift-right-logical": lambda bits: lambda a, by: _shifted(np.right_shift, a, by, bits),
    "shift-right-arithmetic": lambda bits: lambda a, by: a >> np.where(_bare(by, 64) < bits, by, bits - 1),
    "popcnt": lambda bits: lambda a: _each(int.bit_count)(_bare(a, bits)),
    "count-leading-zeros": lambda bits: lambda a: bits - _each(int.bit_length)(_bare(a, bits)),
}
"""The functions that integers have of their own, from their bits."""
_UFUNCS = """
    EQ=equal NE=not_equal LT=less LE=less_equal GT=greater GE=greater_equal and=bitwise_and or=bitwise_or
    xor=bitwise_xor not=invert add=add subtract=subtract multiply=multiply divide=divide remainder=fmod
    power=power maximum=maximum minimum=minimum negate=negative abs=abs floor=floor ceil=ceil
    round-nearest-even=rint sqrt=sqrt is-finite=isfinite exponential=exp exponential-minus-one=expm1 log=log
    log-plus-one=log1p tanh=tanh sine=sin cosine=cos cbrt=cbrt select=where
"""
_OF_ALL: dict[str, Function] = {
    **{key: getattr(np, name) for key, _, name in (pair.partition("=") for pair in _UFUNCS.split())},
    "copy": lambda a: a,
    "clamp": lambda low, a, high: np.minimum(np.maximum(a, low), high),
    "complex": _each(complex, 2),
    "sign": lambda a: np.where(a == 0, a, np.sign(a)),
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "erf": _each(math.erf),
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
}


def _complex_product(a: Elements, b: Elements) -> Elements:
    """The product if one factor is real, which needs no sum to be rounded as in XLA."""
    if np.any(a.imag * b.imag):
        raise CannotEvaluate
    return a * b


_OF_COMPLEX: dict[str, Function] = {
    **{name: _OF_ALL[name] for name in "EQ NE add subtract negate select copy".split()},
    "multiply": _complex_product,
    "real": np.real,
    "imag": np.imag,
}
