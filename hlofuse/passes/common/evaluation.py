"""The result of an operation on constants (`xla/hlo/evaluator/hlo_evaluator.cc`): of elementwise operations
(`hlo_evaluator_typed_visitor.h`) and of those that only move elements. Functions such as exp are computed
in double precision; the caller rounds; XLA's last digit may differ."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofuse.ir import COMPLEX_TYPES, INTEGER_TYPES, Instruction, Ints, Shape, values
from .literals import MOST_ELEMENTS, Elements, Value, bounds, rounded, values_of
from .shapes import window_of


def evaluate(x: Instruction) -> list[list[Value]]:
    """The elements of each result of `x` in row-major order; CannotEvaluate where not known."""
    return [found.ravel().tolist() for found in _results(x, {}, MOST_ELEMENTS)]


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


def elements(
    x: Instruction,
    cache: dict[Instruction, Elements],
    most: int = MOST_ELEMENTS,
) -> Elements:
    """The elements of `x`, those in `cache` given; CannotEvaluate for others, and for more than `most`."""
    if x in cache:
        return cache[x]
    if not x.is_array or x.element_count > most or x.shape.dynamic_dimensions:
        raise CannotEvaluate
    if x.is_get_tuple_element:
        found = _results(x.operand, cache, most)[x.tuple_index]
    elif x.opcode in _CALLS:
        (found,) = _results(x, cache, most)
    elif x.opcode in MOVES:
        found = MOVES[x.opcode](x, *_operands(x, cache, most))
    else:
        found = _as_elements(x, array_function(x), *_operands(x, cache, most))
    cache[x] = found
    return found


def _operands(x: Instruction, cache: dict[Instruction, Elements], most: int) -> list[Elements]:
    try:
        return [elements(o, cache, most) for o in x.operands]
    except RecursionError:  # a long chain, whose start is hardly a constant
        raise CannotEvaluate from None


def _call(x: Instruction, *given: Elements) -> list[Elements]:
    body = x.called_computations[0]
    parameters = zip(body.parameters, given, strict=True)
    return _results(body.root, dict(parameters), MOST_ELEMENTS)


def _results(x: Instruction, cache: dict[Instruction, Elements], most: int) -> list[Elements]:
    if x.opcode not in _CALLS:
        return [elements(x, cache, most)]
    return _CALLS[x.opcode](x, *_operands(x, cache, most))


_KEEPS_NAN = values("convert copy select bitcast-convert")


def _as_elements(x: Instruction, function: Function, *given: Elements) -> Elements:
    """What a function makes of arrays, as elements of `x`; CannotEvaluate for NaN that it makes."""
    try:
        with np.errstate(all="ignore"):
            found = rounded(x.element_type, function(*given))
    except (ValueError, OverflowError, TypeError):
        raise CannotEvaluate from None
    # Which NaN an operation makes is up to the machine.
    if found is None or (x.opcode not in _KEEPS_NAN and (found != found).any()):
        raise CannotEvaluate
    return found


def _constant(x: Instruction) -> Elements:
    values = values_of(x)
    if values is None:
        raise CannotEvaluate
    return np.asarray(rounded(x.element_type, values)).reshape(x.sizes)


def _iota(x: Instruction) -> Elements:
    sizes, along = x.sizes, int(x.attributes["iota_dimension"])
    return _spread(sizes, [along], _as_elements(x, np.arange, np.asarray(sizes[along])))


def _spread(sizes: Ints, own: Ints, given: Elements) -> Elements:
    """An array along its own dimensions of a larger one."""
    return np.broadcast_to(given.reshape([n if d in own else 1 for d, n in enumerate(sizes)]), sizes)


def _box(x: Instruction, part: Ints, starts: Sequence[Elements]) -> tuple[slice, ...]:
    """The places of a part in the first operand, from starts that are moved inside."""
    sizes = zip(starts, x.operand.sizes, part, strict=True)
    firsts = (min(max(int(s.item().real), 0), n - k) for s, n, k in sizes)
    return tuple(slice(first, first + k) for first, k in zip(firsts, part, strict=True))


def _dynamic_update_slice(
    x: Instruction,
    base: Elements,
    update: Elements,
    *starts: Elements,
) -> Elements:
    out = base.copy()
    out[_box(x, update.shape, starts)] = update
    return out


def _pad(x: Instruction, given: Elements, value: Elements) -> Elements:
    out = np.full(x.sizes, value.item(), given.dtype)
    each = zip(given.shape, out.shape, x.attributes["padding"], strict=True)
    places = [(p.low + np.arange(n) * (p.interior + 1), size) for n, size, p in each]
    inside = [(at >= 0) & (at < size) for at, size in places]
    filled = (at[own] for (at, _), own in zip(places, inside, strict=True))
    out[np.ix_(*filled)] = given[np.ix_(*inside)]
    return out


def _bitcast_convert(x: Instruction, given: Elements) -> Elements:
    kinds = [s.element_type for s in (x.operand.shape, x.shape)]
    if not {k[1:] for k in kinds} < {"16", "32", "64"}:
        raise CannotEvaluate
    source, result = (f"{k[0].replace('s', 'i')}{int(k[1:]) // 8}" for k in kinds)
    if source[1:] == result[1:]:
        return _as_elements(x, lambda a: a.view(result), given.astype(source))
    # Parts of an element are its last dimension, the lowest bits first.
    flat = given.astype(source).reshape(-1)
    return _as_elements(x, lambda a: a.view(result).reshape(x.sizes), flat)


def reinterpreted(values: Elements, source: Shape, result: Shape) -> Elements:
    """The elements where an array of this element type lies (`HandleBitcast`, `hlo_evaluator.cc`)."""
    if source.element_type != result.element_type or source.element_count != result.element_count:
        raise CannotEvaluate
    own, other = (s.minor_to_major[::-1] for s in (source, result))
    places = values.transpose(own).reshape([result.dimensions[d] for d in other])
    return places.transpose(np.argsort(other))


_SUMMED_AT_ONCE = 512


def _combine(
    x: Instruction,
    totals: Sequence[Elements],
    values: Sequence[Elements],
) -> list[Elements]:
    """The totals with one more value each, by the function of `x`; CannotEvaluate where it moves elements."""
    body = x.to_apply
    if any(i.opcode in MOVES and not i.is_constant for i in body):
        raise CannotEvaluate
    given = zip(body.parameters, (*totals, *values), strict=True)
    return _results(body.root, dict(given), MOST_ELEMENTS)


def _rows(x: Instruction, values: Elements) -> Elements:
    """The values of each result in the last dimension, as they lie in memory."""
    shape = x.operand.shape
    exact = shape.element_type in (*INTEGER_TYPES, "pred")
    if not exact and shape.minor_to_major not in (None, tuple(reversed(range(shape.rank)))):
        raise CannotEvaluate
    order = sorted(range(shape.rank), key=lambda d: d in x.dimensions)
    moved = values.transpose(order)
    outer = shape.rank - len(x.dimensions)
    return moved.reshape([*moved.shape[:outer], math.prod(moved.shape[outer:])])


def _reduce(x: Instruction, *given: Elements) -> list[Elements]:
    """By a function of elementwise operations, element after element."""
    half = len(given) // 2
    totals = list(given[half:])
    rows = [_rows(x, values) for values in given[:half]]
    count = rows[0].shape[-1]
    body = x.to_apply
    is_sum = body.root.opcode == "add" and set(body.root.operands) == set(body.parameters)
    if is_sum and body.root.element_type.startswith(("f", "bf")):
        total = totals[0]
        for start in range(0, count, _SUMMED_AT_ONCE):
            total = total + rows[0][..., start : start + _SUMMED_AT_ONCE].cumsum(-1)[..., -1]
        totals = [_as_elements(x, np.asarray, total)]
    else:
        for k in range(count):
            totals = _combine(x, totals, [row[..., k] for row in rows])
    return [np.broadcast_to(total, rows[0].shape[:-1]) for total in totals]


_MOST_STEPS = 1 << 20  # XLA works out more; it would take long here


def _reduce_window(x: Instruction, *given: Elements) -> list[Elements]:
    """Windows, each summed up in order (`HloEvaluator::HandleReduceWindow`)."""
    half = len(given) // 2
    arrays, totals = given[:half], list(given[half:])
    window = window_of(x)
    sizes = x.shape.results[0].dimensions
    steps = math.prod(sizes) * math.prod(w.size for w in window)
    if steps > _MOST_STEPS or not arrays[0].size:
        raise CannotEvaluate
    places = []
    for w, n in zip(window, sizes, strict=True):
        offsets = np.arange(w.size)[:: -1 if w.window_reversal else 1] * w.window_dilation
        places.append(offsets[:, None] + np.arange(n) * w.stride - w.padding_low)
    for step in itertools.product(*places):
        inside, at = np.asarray(True), []
        for row, w, n in zip(np.ix_(*step), window, arrays[0].shape, strict=True):
            inside = inside & (row >= 0) & (row % w.base_dilation == 0) & (row < n * w.base_dilation)
            at.append(row // w.base_dilation % n)
        found = _combine(x, totals, [values[tuple(at)] for values in arrays])
        totals = [np.where(inside, *pair) for pair in zip(found, totals, strict=True)]
    return [np.broadcast_to(total, sizes) for total in totals]


_MOST_INDICES = 1 << 12  # of a scatter; XLA works out more


def _scatter(
    x: Instruction,
    base: Elements,
    indices: Elements,
    update: Elements,
    *more: Elements,
) -> list[Elements]:
    """Windows that lie inside, one after the other (`HloEvaluator::HandleScatter`)."""
    vector = x.attributes["index_vector_dim"]
    window = x.attributes["update_window_dims"]
    mapped = x.attributes["scatter_dims_to_operand_dims"]
    inserted = x.attributes["inserted_window_dims"]
    batched = "input_batching_dims" in x.attributes
    if more or batched or vector == indices.ndim or indices.size > _MOST_INDICES:
        raise CannotEvaluate
    total = base.copy()
    rows = np.moveaxis(indices, vector, -1)
    parts = np.moveaxis(update, window, range(-len(window), 0))
    for place in np.ndindex(rows.shape[:-1]):
        part = np.expand_dims(parts[place], inserted)
        starts = np.zeros(total.ndim, int)
        starts[[*mapped]] = rows[place]
        inside: tuple[Any, ...] = (*map(slice, starts, starts + part.shape), ...)
        old = total[inside]  # a view, of a scalar too
        if all(starts >= 0) and old.shape == part.shape:
            (old[...],) = _combine(x, [old], [part])
    return [total]


MOVES: dict[str, Callable[..., Elements]] = {
    "broadcast": lambda x, a: _spread(x.sizes, x.dimensions, a),
    "reshape": lambda x, a: a.reshape(x.sizes),
    "transpose": lambda x, a: a.transpose(x.dimensions),
    "reverse": lambda x, a: np.flip(a, x.dimensions),
    "slice": lambda x, a: a[tuple(slice(r.start, r.limit, r.stride) for r in x.attributes["slice"])],
    "concatenate": lambda x, *parts: np.concatenate(parts, x.dimension),
    "dynamic-slice": lambda x, a, *starts: a[_box(x, x.sizes, starts)],
    "dynamic-update-slice": _dynamic_update_slice,
    "pad": _pad,
    "constant": _constant,
    "iota": _iota,
    "bitcast-convert": _bitcast_convert,
    "bitcast": lambda x, a: reinterpreted(a, x.operand.shape, x.shape),
}
"""What an instruction that is not elementwise makes of the elements of its operands."""
_CALLS: dict[str, Callable[..., list[Elements]]] = {
    "call": _call,
    "fusion": _call,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "scatter": _scatter,
    "tuple": lambda _, *given: list(given),
}
