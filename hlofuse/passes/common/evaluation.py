"""The result of an operation on constants (`xla/hlo/evaluator/hlo_evaluator.cc`). Elementwise operations
(`elementwise.py`) and those that only move elements."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hlofuse.ir import Instruction, with_trait
from hlofuse.ir.shape import INTEGER_TYPES, Shape
from .elementwise import CannotEvaluate, value_function
from .literals import MOST_ELEMENTS, Value, rounded, values_of
from .shapes import reduced_windows, reinterpreted

Elements = npt.NDArray[Any]


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
    if x.opcode in MOVES:
        found: list[Value] = MOVES[x.opcode](x, *map(_elements, x.operands)).ravel().tolist()
        return found
    if x.opcode in _OTHERS:
        return _OTHERS[x.opcode](x)
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


def _elements(x: Instruction) -> Elements:
    found = np.empty(x.shape.element_count, object)
    found[:] = evaluate(x)
    return found.reshape(x.shape.dimensions)


def _iota(x: Instruction) -> list[Value]:
    along = int(x.attributes["iota_dimension"])
    numbers = [rounded(x.shape.element_type, k) for k in range(x.shape.dimensions[along])]
    if None in numbers:
        raise CannotEvaluate
    inner = math.prod(x.shape.dimensions[along + 1 :])
    row = [n for n in numbers if n is not None for _ in range(inner)]
    return row * math.prod(x.shape.dimensions[:along])


_KEEPS_NAN = frozenset({"convert", "copy", "select"})


def _as_wide_as(values: list[Value], shape: Shape, wanted: Shape) -> list[Value]:
    if shape.dimensions == wanted.dimensions:
        return values
    if shape.dimensions:
        raise CannotEvaluate
    return values * wanted.element_count  # a scalar bound of a clamp, a scalar predicate


def _broadcast(x: Instruction, given: Elements) -> Elements:
    sizes = x.shape.dimensions
    return np.broadcast_to(given.reshape([n if d in x.dimensions else 1 for d, n in enumerate(sizes)]), sizes)


def _box(x: Instruction, part: Sequence[int], starts: Sequence[Elements]) -> tuple[slice, ...]:
    """The places of a part in the first operand, from starts that are moved inside."""
    sizes = zip(starts, x.operands[0].shape.dimensions, part, strict=True)
    firsts = (min(max(int(s.item().real), 0), n - k) for s, n, k in sizes)
    return tuple(slice(first, first + k) for first, k in zip(firsts, part, strict=True))


def _dynamic_update_slice(x: Instruction, base: Elements, update: Elements, *starts: Elements) -> Elements:
    out = base.copy()
    out[_box(x, update.shape, starts)] = update
    return out


def _pad(x: Instruction, given: Elements, value: Elements) -> Elements:
    out = np.full(x.shape.dimensions, value.item(), given.dtype)
    each = zip(given.shape, out.shape, x.attributes["padding"], strict=True)
    places = [(p.low + np.arange(n) * (p.interior + 1), size) for n, size, p in each]
    inside = [(at >= 0) & (at < size) for at, size in places]
    out[np.ix_(*(at[own] for (at, _), own in zip(places, inside, strict=True)))] = given[np.ix_(*inside)]
    return out


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
    element_type, function = x.shape.element_type, x.to_apply.root
    source = x.operands[0]
    if len(x.operands) != 2 or function.opcode not in _REDUCERS:
        raise CannotEvaluate
    if sorted(o.parameter_number if o.opcode == "parameter" else -1 for o in function.operands) != [0, 1]:
        raise CannotEvaluate
    exact = element_type in (*INTEGER_TYPES, "pred")
    if not exact and source.shape.minor_to_major not in (None, tuple(reversed(range(source.shape.rank)))):
        raise CannotEvaluate
    values, (init,) = _elements(source), evaluate(x.operands[1])
    remaining = [d for d in range(source.shape.rank) if d not in x.dimensions]
    reduced = values.transpose([*remaining, *x.dimensions]).reshape(x.shape.element_count, -1).tolist()
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
    function, element_type = x.to_apply.root, x.shape.element_type
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


MOVES: dict[str, Callable[..., Elements]] = {
    "broadcast": _broadcast,
    "reshape": lambda x, a: a.reshape(x.shape.dimensions),
    "transpose": lambda x, a: a.transpose(x.dimensions),
    "reverse": lambda x, a: np.flip(a, x.dimensions),
    "slice": lambda x, a: a[tuple(slice(r.start, r.limit, r.stride) for r in x.attributes["slice"])],
    "concatenate": lambda x, *parts: np.concatenate(parts, x.dimensions[0]),
    "dynamic-slice": lambda x, a, *starts: a[_box(x, x.shape.dimensions, starts)],
    "dynamic-update-slice": _dynamic_update_slice,
    "pad": _pad,
}
"""What an instruction that moves elements makes of those of its operands."""
_OTHERS: dict[str, Callable[[Instruction], list[Value]]] = {
    "iota": _iota,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "bitcast-convert": _bitcast_convert,
    "bitcast": lambda x: reinterpreted(evaluate(x.operands[0]), x.operands[0].shape, x.shape),
}
