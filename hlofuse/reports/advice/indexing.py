"""Recipes about gathers, scatters, sorts, cumulative sums, random numbers and matrix products."""

from collections import Counter
from collections.abc import Iterator
from math import prod

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.cost.gpu.backend_config import is_tuned_product
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.grouping import grouped
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import array
from hlofuse.reports.advice.matching import (
    MIN_ELEMENTS,
    Find,
    combines_by,
    each,
    fusion_of,
    has,
    is_constant,
    is_draw,
    is_product,
    only_reader,
    origins,
    parsed,
    reader,
    readers,
    source,
    value_of,
    where,
)
from hlofuse.reports.advice.recipe import Finding, Recipe, Situation


def _factors(x: Instruction) -> list[Instruction]:
    """The factors of a product, also inside a fusion."""
    inside = [i for i in x.called_computations[0] if i.opcode == "dot"] if x.opcode == "fusion" else []
    return [source(o) for i in (x, *inside) for o in i.operands] if is_product(x) else []


def _compares_iota(x: Instruction) -> bool:
    is_equal = x.opcode == "compare" and x.attributes.raw("direction") == "EQ"
    return is_equal and has(map(source, x.operands), "iota", "parameter")


def _has_onehot(x: Instruction) -> bool:
    found = (f for f in _factors(x) if f.shape.rank and f.shape.dimensions[-1] > 64)
    return any(_compares_iota(f) and has(f.operands, "broadcast") for f in found)


def _has_diagonal(x: Instruction) -> bool:
    found = (f for f in _factors(x) if f.opcode == "select" and is_constant(f.operands[2], 0))
    return any(_compares_iota(f.operands[0]) and f.operands[1].opcode == "broadcast" for f in found)


def _is_late(x: Instruction) -> bool:
    """True if at most a quarter of what was worked out is read."""
    whole = source(x.operands[0])
    work = is_product(whole) or (whole.opcode == "fusion" and not combines_by(whole, "scatter"))
    return work and only_reader(whole) is not None and x.shape.element_count * 4 <= whole.shape.element_count


def _is_fixed(indices: Instruction) -> bool:
    """True for indices that follow from constants and counting alone."""
    found = origins(indices)
    leaves = [i for i in found if not i.operands or i.called or not set(i.operands) <= set(found)]
    return all(i.opcode in ("iota", "constant") for i in leaves)


def _sums_equal(x: Instruction) -> bool:
    """True for sums over segments that are constant."""
    grows = x.operands[2].shape.element_count > x.shape.element_count
    return grows and combines_by(x, "add") and is_constant(x.operands[0], 0) and _is_fixed(x.operands[1])


def _labels(x: Instruction) -> Instruction | None:
    """The columns where one constant a row is written into zeros."""
    zeros, indices, update = x.operands[:3]
    pairs = next((i for i in origins(indices) if i.opcode == "concatenate"), None)
    plain = combines_by(x, "add") or combines_by(x, "parameter")
    if pairs is None or not plain or not is_constant(zeros, 0) or not is_constant(update):
        return None
    if x.shape.rank != 2 or x.attributes.raw("scatter_dims_to_operand_dims") != "{0,1}":
        return None
    rows, columns = source(pairs.operands[0]), pairs.operands[-1]
    lengths = {rows.shape.dimensions[:1], x.shape.dimensions[:1], (columns.shape.element_count,)}
    return columns if rows.opcode == "iota" and len(lengths) == 1 and len(pairs.operands) == 2 else None


def _compare(x: Instruction) -> bool:
    labels = _labels(x)
    if labels is None:
        return False
    kind, shape = labels.shape.element_type, x.shape.with_element_type(labels.shape.element_type)
    column = make.broadcast(x, shape, make.bitcast(labels, array(kind, shape.dimensions[:1])), (0,))
    is_label = make.compare(x, "EQ", make.iota(x, shape, 1), column)
    value = make.broadcast(x, x.shape, source(x.operands[2]), ())
    x.replace_all_uses_with(make.select(x, is_label, value, x.operands[0]))
    return True


def _compacts(x: Instruction) -> bool:
    """True where indices of what a condition selects are counted."""
    counts = combines_by(x, "add") and x.shape.element_type == "s32" and is_constant(x.operands[2])
    return counts and has(origins(x.operands[1]), "reduce-window")


def _is_cumulative(x: Instruction) -> bool:
    """True for a cumulative sum over a short dimension, which XLA divides into blocks."""
    lengths = [a * b for a, b in zip(x.shape.dimensions, x.shape.dimensions[1:], strict=False)]
    is_large = x.shape.element_type in FLOATING_TYPES and x.shape.element_count >= MIN_ELEMENTS
    sums = is_large and combines_by(x, "add") and has(readers(x), "add")
    return sums and bool(lengths) and min(lengths) <= 512


def _reads_one(x: Instruction) -> bool:
    """True if one element of each sorted row is read."""
    parts = [r for u in x.users for r in (readers(u) if u.opcode == "get-tuple-element" else [u])]
    along = x.dimensions[0]
    return bool(parts) and all(r.opcode == "slice" and r.shape.dimensions[along] == 1 for r in parts)


def _maximum(x: Instruction) -> Instruction | None:
    """The search for the largest element, by whose index `x` reads the same array."""
    found = (i.operands[0] for i in origins(x.operands[1]) if i.opcode == "get-tuple-element")
    return next((i for i in found if i.opcode == "reduce" and x.operands[0] in i.operands), None)


def _read_maximum(x: Instruction) -> bool:
    found = _maximum(x)
    if found is None or found.operands[0] is not x.operands[0]:
        return False
    user = only_reader(x)
    checked = user if user is not None and user.opcode == "select" and user.operands[1] is x else x
    value = make.get_tuple_element(found, found, 0)
    for view in [u for u in checked.users if u.opcode == "bitcast" and u.shape == value.shape]:
        view.replace_all_uses_with(value)
    checked.replace_all_uses_with(make.bitcast(value, checked.shape))
    return True


def _same_segments(s: Situation) -> Iterator[Finding]:
    """Several sums over the same segments."""
    sums = [x for x in s.unfused("scatter") if x.shape.is_array and x.shape.rank == 1]
    found = Counter(without_bitcasts(x.operands[1]) for x in sums if combines_by(x, "add"))
    return (Finding(indices.name) for indices, times in found.items() if times > 1)


def _several_draws(s: Situation) -> Iterator[Finding]:
    """Draws of the same shape."""
    draws = filter(is_draw, s.unfused("shift-right-logical"))
    found = grouped(((x.computation, x.shape), x.name) for x in draws)
    return (Finding(names[0]) for names in found.values() if len(names) > 1)


_scattered = each(_labels, "scatter", backend="gpu")
_PRODUCTS = ("dot", "fusion", "custom-call")

INDEXING = (
    Recipe("take-not-onehot", "Index the table: a one-hot product reads all", each(_has_onehot, *_PRODUCTS)),
    Recipe("scale-not-diagonal", "Multiply by the vector, not by diag(v)", each(_has_diagonal, *_PRODUCTS)),
    Recipe("take-first", "Take the rows first, then work on them", each(_is_late, "gather", "slice")),
    Recipe("reshape-not-segments", "Reshape equal segments", each(_sums_equal, "scatter", backend="gpu")),
    Recipe("compare-not-scatter", "Pick labels by comparing with an iota", _scattered, _compare),
    Recipe("one-segment-sum", "Stack what is summed over the same segments", _same_segments),
    Recipe("triangular-cumsum", "Sum by a triangular matrix", each(_is_cumulative, "reduce-window")),
    Recipe("max-not-sort", "Use max, min, argmax or argmin, not sort", each(_reads_one, "sort")),
    Recipe("max-with-argmax", "Take max(x), not x at argmax(x)", each(_maximum, "gather"), _read_maximum),
    Recipe("mask-not-nonzero", "Mask with where, do not gather by nonzero", each(_compacts, "scatter")),
    Recipe("one-draw", "Draw random numbers of one shape at once", _several_draws),
)


_WARP = 32


def _has_odd_parts(x: Instruction) -> bool:
    """True for a concatenate of two arrays in memory order, not of whole warps."""
    (dimension,) = x.dimensions
    sizes = [o.shape.dimensions[dimension] for o in x.operands]
    minor = dimension == x.shape.minor_to_major[0] and x.shape.element_type != "pred"
    return minor and len(sizes) == 2 and any(n % _WARP for n in sizes) and prod(x.shape.dimensions) >= 1 << 16


@where("concatenate(slice, slice)", only="cpu")
def _shifts(x: Instruction) -> bool:
    """The parts of one array in another order."""
    sources = {o.operands[0] for o in x.operands if o.opcode == "slice"}
    return _has_odd_parts(x) and len(sources) == 1


@where("concatenate")
def _joins(x: Instruction) -> bool:
    return _has_odd_parts(x) and not all(o.opcode == "slice" for o in x.operands)


def _pads_for_parts(x: Instruction) -> bool:
    if x.opcode != "concatenate":
        return False
    (dimension,), (a, b) = x.dimensions, x.operands
    zero, rank = make.zero(x, x.shape.element_type), len(x.shape.dimensions)

    def padded(part: Instruction, low: int, high: int) -> Instruction:
        each = [PaddingDimension(0, 0)] * rank
        each[dimension] = PaddingDimension(low, high)
        return make.pad(x, x.shape, part, zero, PaddingConfig(tuple(each)))

    sizes = [o.shape.dimensions[dimension] for o in (a, b)]
    x.replace_all_uses_with(make.binary(x, "add", padded(a, 0, sizes[1]), padded(b, sizes[0], 0)))
    return True


@where("select(constant)", only="cpu")
def _large_masks(x: Instruction) -> bool:
    return prod(value_of(x.operands[0]).shape.dimensions) >= 1 << 16


def _half_integer(x: Instruction) -> float | None:
    """The exponent of a power, if it is 1.5 or 2.5."""
    exponent = scalar_of(value_of(x.operands[1]).operands[0])
    return exponent if isinstance(exponent, float) and exponent in (1.5, 2.5) else None


_half_integers = where("power(_, broadcast(constant))")(lambda x: _half_integer(x) is not None)


def _root_for_power(x: Instruction) -> bool:
    if x.opcode != "power":
        return False
    base = x.operands[0]
    power = make.binary(x, "multiply", base, base) if _half_integer(x) == 2.5 else base
    x.replace_all_uses_with(make.binary(x, "multiply", power, make.unary(x, "sqrt", base)))
    return True


LAYOUT = (
    Recipe("shift-by-pads", "Shift by the sum of two pads, not by jnp.roll", _shifts, _pads_for_parts),
    Recipe("join-by-pads", "Join columns by the sum of two pads", _joins, _pads_for_parts),
    Recipe("mask-by-position", "Compare positions instead of reading a mask", _large_masks),
    Recipe("power-by-a-root", "Write x**1.5 as x * jnp.sqrt(x)", _half_integers, _root_for_power),
)


_INTEGERS, _HALF, _WIDE = ("s8", "u8"), ("bf16", "f16"), ("bf16", "f16", "f32")


def _activations(s: Situation) -> Iterator[Finding]:
    """Products that several operations of one kernel read."""
    found: dict[str, None] = {}
    for r in s.refusals("PF002"):
        inside = set(s.inside(r.consumer))
        for x, _ in s.edges(r):
            if is_tuned_product(x) and 1 < len(x.users) == len(inside.intersection(x.users)):
                found[x.name] = None
    yield from (Finding(name, "PF002") for name in found)


@where("product", only="gpu", rule="PF002")
def _returned(x: Instruction) -> bool:
    """A product that is a result of the program, and that one other instruction reads."""
    results = [u for u in x.users if u.opcode == "tuple" and not u.users]
    return is_tuned_product(x) and bool(results) and len(x.users) == 2


def _source_type(x: Instruction) -> str:
    """The type from which an operand is widened, scaled or not; empty if it is not."""
    x = value_of(x)
    if x.opcode == "convert":
        return _source_type(x.operands[0]) or x.operands[0].shape.element_type
    types = [_source_type(o) for o in x.operands] if x.opcode == "multiply" else []
    return next(filter(None, types), "")


def _find_widened(types: tuple[str, ...], to: tuple[str, ...]) -> Find:
    """Finds products whose operands are both widened from some types to others."""

    def find(s: Situation) -> Iterator[Finding]:
        for dot in s.of("dot"):
            if dot.operands[0].shape.element_type not in to:
                continue
            if all(_source_type(o).startswith(types) for o in dot.operands):
                yield Finding((fusion_of(dot) or dot).name)

    return find


@where("product")
def _sole_sums(x: Instruction) -> bool:
    """A matrix of which only the sums of rows are used."""
    total = reader(next(iter(x.users)) if len(x.users) == 1 else x)
    return total.opcode == "reduce" and total.dimensions == (len(total.operands[0].shape.dimensions) - 1,)


_SOFTMAX = parsed("divide(exponential, broadcast(reduce))")


@where("product", only="gpu")
def _attention(x: Instruction) -> bool:
    """The product of a softmax, in a type for which cuDNN has a kernel."""
    is_narrow = x.shape.element_type in _HALF
    return is_narrow and any(_SOFTMAX.matches(_uncast(o)) for o in x.operands)


def _uncast(x: Instruction) -> Instruction:
    while x.opcode in ("bitcast", "convert"):
        x = x.operands[0]
    return x


@where("product", only="gpu")
def _wide_scores(x: Instruction) -> bool:
    """A product of narrow operands with a wide result that goes into a softmax."""
    wide = x.shape.element_type == "f32" and all(o.shape.element_type in _HALF for o in x.operands)
    return wide and any(u.opcode == "fusion" and has(u.called_computations[0], "reduce") for u in x.users)


@where("add(product, product)")
def _added_products(x: Instruction) -> bool:
    """Two products that a kernel of its own adds: since 0.12 XLA adds one within the other."""
    return fusion_of(x) is None


@where("reduce(multiply(subtract(broadcast, broadcast), subtract))")
def _distances(x: Instruction) -> bool:
    """Sums that matrix units pay for."""
    return prod(x.operands[0].shape.dimensions[d] for d in x.dimensions) >= 16


@where("product", only="gpu")
def _scaled_weights(x: Instruction) -> bool:
    """A product with weights that a kernel of their own widens and scales."""
    scaled = [_uncast(o) for o in x.operands]
    return any(o.opcode == "multiply" and _source_type(o).startswith(("s8", "u8", "f8")) for o in scaled)


@where("product", only="gpu")
def _transposed_heads(x: Instruction) -> bool:
    operands = map(without_bitcasts, x.operands)
    return any(o.opcode == "transpose" and len(o.shape.dimensions) > 3 for o in operands)


PRODUCTS = (
    Recipe("return-only-what-is-used", "Do not return the product and its activation", _returned),
    Recipe("activation-with-one-reader", "Choose an activation that reads once: ReLU, tanh", _activations),
    Recipe("one-product-of-concatenated", "Concatenate, multiply once", _added_products),
    Recipe("scale-after-an-int8-product", "Multiply int8, scale the result", _find_widened(_INTEGERS, _WIDE)),
    Recipe("multiply-narrow-sum-wide", "Multiply bfloat16, sum in float32", _find_widened(_HALF, ("f32",))),
    Recipe("scale-after-the-product", "Scale the product, not the quantized weights", _scaled_weights),
    Recipe("sum-before-the-product", "Sum the operand first, then multiply", _sole_sums),
    Recipe("heads-before-the-sequence", "Keep the heads before the sequence", _transposed_heads),
    Recipe("attention-by-cudnn", "Call jax.nn.dot_product_attention with cudnn", _attention),
    Recipe("softmax-of-bfloat16-scores", "Leave scores in bfloat16 up to the softmax", _wide_scores),
    Recipe("distances-by-a-product", "Compute distances as |a|² + |b|² − 2 a·b", _distances),
)
