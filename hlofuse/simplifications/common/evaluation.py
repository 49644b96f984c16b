"""What an operation on constants computes (`xla/hlo/evaluator/hlo_evaluator.cc`).

Elementwise operations on real numbers and those that only move elements. Functions such as exp are
rounded from a wider type; XLA's own result may differ in the last digit.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES, Shape
from hlofuse.simplifications.common.literals import MOST_ELEMENTS, Value, rounded, values_of
from hlofuse.simplifications.common.windows import reduced_windows


class CannotEvaluate(Exception):
    """The operation, or a value it reads, is not worked out here."""


def evaluate(x: Instruction, known: Mapping[Instruction, list[Value]] | None = None) -> list[Value]:
    """The elements of `x` in row-major order, those of `known` given; CannotEvaluate where not known."""
    if known is not None and x in known:
        return known[x]
    if not x.shape.is_array or x.shape.element_count > MOST_ELEMENTS or x.shape.dynamic_dimensions:
        raise CannotEvaluate
    if x.opcode == "constant":
        values = values_of(x)
        if values is None:
            raise CannotEvaluate
        return values
    if x.opcode in _MOVES:
        return _MOVES[x.opcode](x)
    compute = _elementwise(x)
    columns = [_as_wide_as(evaluate(o, known), o.shape, x.shape) for o in x.operands]
    out: list[Value] = []
    for row in zip(*columns, strict=True):
        try:
            value = rounded(x.shape.element_type, compute(*row))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            raise CannotEvaluate from None
        if value is None or (value != value and x.opcode not in _KEEPS_NAN):
            raise CannotEvaluate  # which NaN an operation makes is up to the machine
        out.append(value)
    return out


_KEEPS_NAN = frozenset({"convert", "copy", "select"})


def _as_wide_as(values: list[Value], shape: Shape, wanted: Shape) -> list[Value]:
    if shape.dimensions == wanted.dimensions:
        return values
    if shape.dimensions:
        raise CannotEvaluate
    return values * wanted.element_count  # a scalar bound of a clamp, a scalar predicate


# ---------------------------------------------------------------- elementwise


def _elementwise(x: Instruction) -> Callable[..., Value]:
    element_type = x.operands[0].shape.element_type if x.operands else ""
    if x.opcode == "compare":
        return _COMPARE[str(x.attributes.raw("direction"))]
    if x.opcode == "convert":
        return _convert(element_type, x.shape.element_type)
    if element_type in INTEGER_TYPES:
        function = _integer(x.opcode, element_type) or _ANY.get(x.opcode)
    elif element_type == "pred":
        function = _PREDS.get(x.opcode) or _ANY.get(x.opcode)
    elif element_type in COMPLEX_TYPES:
        function = _COMPLEX.get(x.opcode) or _ANY.get(x.opcode)
    elif element_type in FLOATING_TYPES:
        function = _FLOATS.get(x.opcode) or _ANY.get(x.opcode)
    else:
        function = None
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


def _divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _greater(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def _less(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


def _of_root(x: float) -> float:
    return _divided(1.0, math.sqrt(x))


def _complex_product(a: complex, b: complex) -> Value:
    """Of which one is real: no sum that would have to be rounded as XLA does."""
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
    "divide": _divided,
    "remainder": math.fmod,
    "power": math.pow,
    "maximum": _greater,
    "minimum": _less,
    "negate": operator.neg,
    "abs": abs,
    "sign": lambda a: a if a == 0 or math.isnan(a) else math.copysign(1.0, a),
    "floor": lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    "ceil": lambda a: float(math.ceil(a)) if math.isfinite(a) else a,
    "round-nearest-even": lambda a: float(round(a)) if math.isfinite(a) else a,
    "sqrt": math.sqrt,
    "rsqrt": _of_root,
    "is-finite": math.isfinite,
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


# ---------------------------------------------------------------- moving and joining elements


def _indices(sizes: Sequence[int]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(range(n) for n in sizes))


def _at(values: Sequence[Value], sizes: Sequence[int], index: Sequence[int]) -> Value:
    place = 0
    for size, k in zip(sizes, index, strict=True):
        place = place * size + k
    return values[place]


def _picked(x: Instruction, where: Callable[[tuple[int, ...]], Sequence[int]]) -> list[Value]:
    source = x.operands[0]
    values, sizes = evaluate(source), source.shape.dimensions
    return [_at(values, sizes, where(index)) for index in _indices(x.shape.dimensions)]


def _broadcast(x: Instruction) -> list[Value]:
    dimensions = x.dimensions
    return _picked(x, lambda index: [index[d] for d in dimensions])


def _transpose(x: Instruction) -> list[Value]:
    order = [x.dimensions.index(d) for d in range(x.shape.rank)]
    return _picked(x, lambda index: [index[d] for d in order])


def _slice(x: Instruction) -> list[Value]:
    ranges = x.attributes["slice"]
    return _picked(x, lambda index: [r.start + k * r.stride for r, k in zip(ranges, index, strict=True)])


def _reverse(x: Instruction) -> list[Value]:
    sizes, turned = x.shape.dimensions, set(x.dimensions)
    return _picked(x, lambda index: [sizes[d] - 1 - k if d in turned else k for d, k in enumerate(index)])


def _iota(x: Instruction) -> list[Value]:
    dimension = int(x.attributes["iota_dimension"])
    numbers = [rounded(x.shape.element_type, index[dimension]) for index in _indices(x.shape.dimensions)]
    if any(n is None for n in numbers):
        raise CannotEvaluate
    return [n for n in numbers if n is not None]


def _concatenate(x: Instruction) -> list[Value]:
    (dimension,) = x.dimensions
    inner = math.prod(x.shape.dimensions[dimension:])
    pieces = [(evaluate(o), math.prod(o.shape.dimensions[dimension:])) for o in x.operands]
    out: list[Value] = []
    for block in range(x.shape.element_count // inner if inner else 0):
        for values, size in pieces:
            out += values[block * size : (block + 1) * size]
    return out


def _dynamic_slice(x: Instruction) -> list[Value]:
    source = x.operands[0]
    starts = []
    for d, o in enumerate(x.operands[1:]):
        (start,) = evaluate(o)
        if isinstance(start, complex):
            raise CannotEvaluate
        starts.append(min(max(0, int(start)), source.shape.dimensions[d] - x.shape.dimensions[d]))
    return _picked(x, lambda index: [s + k for s, k in zip(starts, index, strict=True)])


def _dynamic_update_slice(x: Instruction) -> list[Value]:
    base, update, *starts = x.operands
    sizes, part = base.shape.dimensions, update.shape.dimensions
    first = [
        min(max(int(evaluate(s)[0].real), 0), n - k) for s, n, k in zip(starts, sizes, part, strict=True)
    ]
    out = list(evaluate(base))
    for value, index in zip(evaluate(update), _indices(part), strict=True):
        place = 0
        for size, s, k in zip(sizes, first, index, strict=True):
            place = place * size + s + k
        out[place] = value
    return out


def _pad(x: Instruction) -> list[Value]:
    source, (value,) = x.operands[0], evaluate(x.operands[1])
    values, sizes, config = evaluate(source), source.shape.dimensions, x.attributes["padding"]

    def element(index: tuple[int, ...]) -> Value:
        inside = []
        for k, n, p in zip(index, sizes, config, strict=True):
            place, rest = divmod(k - p.low, p.interior + 1)
            if rest or not 0 <= place < n:
                return value
            inside.append(place)
        return _at(values, sizes, inside)

    return [element(index) for index in _indices(x.shape.dimensions)]


_FORMATS = {
    "f32": "f",
    "f64": "d",
    "f16": "e",
    "s32": "i",
    "u32": "I",
    "s64": "q",
    "u64": "Q",
    "s16": "h",
    "u16": "H",
}


def _bitcast_convert(x: Instruction) -> list[Value]:
    source, result = (_FORMATS.get(t) for t in (x.operands[0].shape.element_type, x.shape.element_type))
    if source is None or result is None or struct.calcsize(source) != struct.calcsize(result):
        raise CannotEvaluate
    return [struct.unpack(result, struct.pack(source, v))[0] for v in evaluate(x.operands[0])]


_ORDER_MATTERS_NOT = frozenset({"and", "or", "xor", "maximum", "minimum", "add", "multiply"})


def _reduce(x: Instruction) -> list[Value]:
    """Of integers and truth values, where it does not matter in which order they are taken."""
    element_type, function = x.shape.element_type, x.called_computations[0].root
    if len(x.operands) != 2 or function.opcode not in _ORDER_MATTERS_NOT:
        raise CannotEvaluate
    if element_type not in (*INTEGER_TYPES, "pred") or sorted(
        o.parameter_number if o.opcode == "parameter" else -1 for o in function.operands
    ) != [0, 1]:
        raise CannotEvaluate
    source, (init,) = x.operands[0], evaluate(x.operands[1])
    compute = _elementwise(function)
    out = [init] * x.shape.element_count
    kept = [d for d in range(source.shape.rank) if d not in x.dimensions]
    for value, index in zip(evaluate(source), _indices(source.shape.dimensions), strict=True):
        place = 0
        for d in kept:
            place = place * source.shape.dimensions[d] + index[d]
        result = rounded(element_type, compute(out[place], value))
        assert result is not None
        out[place] = result
    return out


_MOST_STEPS = 1 << 20
"""XLA works out more; it would take long here."""


def _reduce_window(x: Instruction) -> list[Value]:
    """Of one array, by a function of a single operation."""
    function, element_type = x.called_computations[0].root, x.shape.element_type
    if len(x.operands) != 2 or [o.payload for o in function.operands] != ["0", "1"]:
        raise CannotEvaluate
    window = x.attributes["window"]
    if x.shape.element_count * math.prod(w.size for w in window) > _MOST_STEPS:
        raise CannotEvaluate
    compute = _elementwise(function)

    def step(total: Value, value: Value) -> Value:
        result = rounded(element_type, compute(total, value))
        if result is None:
            raise CannotEvaluate
        return result

    source, (init,) = x.operands[0], evaluate(x.operands[1])
    return reduced_windows(evaluate(source), source.shape.dimensions, window, init, x.shape.dimensions, step)


_MOVES: dict[str, Callable[[Instruction], list[Value]]] = {
    "broadcast": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "iota": _iota,
    "concatenate": _concatenate,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "pad": _pad,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "reshape": lambda x: evaluate(x.operands[0]),
    "bitcast-convert": _bitcast_convert,
}
