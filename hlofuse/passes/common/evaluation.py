"""The result of an operation on constants (`xla/hlo/evaluator/hlo_evaluator.cc`). Elementwise operations
(`elementwise.py`) and those that only move elements."""

import itertools
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.shape import INTEGER_TYPES, Shape
from .elementwise import CannotEvaluate, value_function
from .literals import MOST_ELEMENTS, Value, rounded, values_of
from .shapes import reduced_windows, reinterpreted


def evaluate(x: Instruction, given_values: Mapping[Instruction, list[Value]] | None = None) -> list[Value]:
    """The elements of `x` in row-major order, `given_values` given; CannotEvaluate where not known."""
    if given_values is not None and x in given_values:
        return given_values[x]
    if not x.shape.is_array or x.shape.element_count > MOST_ELEMENTS or x.shape.dynamic_dimensions:
        raise CannotEvaluate
    if x.opcode == "constant":
        values = values_of(x)
        if values is None:
            raise CannotEvaluate
        return values
    if x.opcode == "get-tuple-element" and x.operands[0].opcode == "tuple":
        return evaluate(x.operands[0].operands[x.tuple_index])
    if x.opcode in _MOVES:
        return _MOVES[x.opcode](x)
    compute = value_function(x)
    columns = [_as_wide_as(evaluate(o, given_values), o.shape, x.shape) for o in x.operands]
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


def _indices(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
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
    sizes, flipped = x.shape.dimensions, x.dimensions
    return _picked(x, lambda index: [sizes[d] - 1 - k if d in flipped else k for d, k in enumerate(index)])


def _iota(x: Instruction) -> list[Value]:
    dimension = int(x.attributes["iota_dimension"])
    numbers = [rounded(x.shape.element_type, index[dimension]) for index in _indices(x.shape.dimensions)]
    if any(n is None for n in numbers):
        raise CannotEvaluate
    return [n for n in numbers if n is not None]


def _concatenate(x: Instruction) -> list[Value]:
    (dimension,) = x.dimensions
    inner = math.prod(x.shape.dimensions[dimension:])
    parts = [(evaluate(o), math.prod(o.shape.dimensions[dimension:])) for o in x.operands]
    out: list[Value] = []
    for block in range(x.shape.element_count // inner if inner else 0):
        for values, size in parts:
            out += values[block * size : (block + 1) * size]
    return out


def _first(x: Instruction, starts: Sequence[Instruction], part: Sequence[int]) -> list[int]:
    sizes = zip(starts, x.operands[0].shape.dimensions, part, strict=True)
    return [min(max(int(evaluate(s)[0].real), 0), n - k) for s, n, k in sizes]


def _dynamic_slice(x: Instruction) -> list[Value]:
    first = _first(x, x.operands[1:], x.shape.dimensions)
    return _picked(x, lambda index: [s + k for s, k in zip(first, index, strict=True)])


def _dynamic_update_slice(x: Instruction) -> list[Value]:
    base, update, *starts = x.operands
    sizes, part = base.shape.dimensions, update.shape.dimensions
    first = _first(x, starts, part)
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


_REDUCERS = with_trait("commutative")
_SUMMED_AT_ONCE = 512


def _reduce(x: Instruction) -> list[Value]:
    """By a function of a single operation, element after element as they lie in memory."""
    element_type, function = x.shape.element_type, x.called_computations[0].root
    source = x.operands[0]
    if len(x.operands) != 2 or function.opcode not in _REDUCERS:
        raise CannotEvaluate
    if sorted(o.parameter_number if o.opcode == "parameter" else -1 for o in function.operands) != [0, 1]:
        raise CannotEvaluate
    exact = element_type in (*INTEGER_TYPES, "pred")
    if not exact and source.shape.minor_to_major not in (None, tuple(reversed(range(source.shape.rank)))):
        raise CannotEvaluate
    values, (init,) = evaluate(source), evaluate(x.operands[1])
    remaining = [d for d in range(source.shape.rank) if d not in x.dimensions]
    reduced: list[list[Value]] = [[] for _ in range(x.shape.element_count)]
    for value, index in zip(values, _indices(source.shape.dimensions), strict=True):
        place = 0
        for d in remaining:
            place = place * source.shape.dimensions[d] + index[d]
        reduced[place].append(value)
    if element_type.startswith(("f", "bf")) and function.opcode == "add":
        return [_sum(element_type, init, part) for part in reduced]
    compute = value_function(function)
    return [_in_steps(element_type, compute, init, part) for part in reduced]


def _in_steps(
    element_type: str, compute: Callable[..., Value], init: Value, values: Sequence[Value]
) -> Value:
    total = init
    for value in values:
        total = _portable(rounded(element_type, compute(total, value)))
    return total


def _sum(element_type: str, init: Value, values: Sequence[Value]) -> Value:
    total: Value = init
    for start in range(0, len(values), _SUMMED_AT_ONCE):
        part: Value = 0.0
        for value in values[start : start + _SUMMED_AT_ONCE]:
            part += value
        total += part
    return _portable(rounded(element_type, total))


def _portable(value: Value | None) -> Value:
    """The value; raises `CannotEvaluate` for NaN, whose bits depend on the machine."""
    if value is None or value != value:
        raise CannotEvaluate
    return value


_MOST_STEPS = 1 << 20
"""XLA works out more; it would take long here."""


def _reduce_window(x: Instruction) -> list[Value]:
    """The elements of a `reduce-window` of one array, by a function of a single operation."""
    function, element_type = x.called_computations[0].root, x.shape.element_type
    if len(x.operands) != 2 or [o.payload for o in function.operands] != ["0", "1"]:
        raise CannotEvaluate
    window = x.attributes["window"]
    if x.shape.element_count * math.prod(w.size for w in window) > _MOST_STEPS:
        raise CannotEvaluate
    compute = value_function(function)

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
    "bitcast": lambda x: reinterpreted(evaluate(x.operands[0]), x.operands[0].shape, x.shape),
}
