"""Recipes about gathers, scatters, sorts, cumulative sums, random numbers and matrix products."""

from collections.abc import Iterable
from math import prod

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.ir import Instruction, Instructions
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import numbers_of
from .matching import (
    changed_by,
    each,
    is_below_zero,
    is_product,
    only_reader,
    readers,
    where,
)
from .products import root_for_power
from .recipe import Finding, Recipe, Situation
from .written import fold, replace


def _columns(indices: Instruction) -> Instructions:
    """The numbers that indices are joined of, below changes of form and the count from the end."""
    x = indices.through("bitcast", "reshape", "convert", "copy")
    if x.opcode == "select" and is_below_zero(x.operand):
        return _columns(x.operands[2])
    return [c for o in x.operands for c in _columns(o)] if x.is_concatenate else [x]


def _maximum(x: Instruction) -> Instruction | None:
    """The search along one dimension for the largest element, by whose place `x` reads the same array."""
    columns = dict(zip(numbers_of(x, "start_index_map"), _columns(x.second), strict=False))
    searched = [d for d, c in columns.items() if c.is_get_tuple_element]
    counted = [int(c.attributes["iota_dimension"]) for c in columns.values() if c.opcode == "iota"]
    found = columns[searched[0]].operand if len(searched) == 1 else x
    read = len(columns) + len(numbers_of(x, "operand_batching_dims"))
    is_whole = len(counted) + 1 == len(columns) and read == x.operand.rank and counted == sorted(counted)
    is_search = found.is_reduce and x.operand in found.operands
    return found if is_whole and is_search and list(found.dimensions) == searched else None


def _read_maximum(x: Instruction) -> bool:
    found = _maximum(x)
    if found is None or found.operand is not x.operand:
        return False
    user = only_reader(x)
    checked = user if user is not None and user.opcode == "select" and user.second is x else x
    value = make.get_tuple_element(found, found, 0)
    for view in [u for u in checked.users if u.is_bitcast and u.shape == value.shape]:
        view.replace_all_uses_with(value)
    checked.replace_all_uses_with(make.bitcast(value, checked.shape))
    return True


INDEXING = (
    Recipe("take-not-onehot", "Index the table: a one-hot product reads all"),
    Recipe("sum-over-the-entries", "Gather and segment_sum over the entries: this matrix is nearly empty"),
    Recipe("onehot-not-take", "Multiply by a one-hot array: a TPU's gather takes whole tiles"),
    Recipe("onehot-not-scatter", "Sum by a one-hot array: a TPU's scatter takes whole tiles"),
    Recipe("where-not-scatter", "Choose the row by jnp.where: what follows reads the whole array"),
    Recipe("multiply-the-small-first", "Multiply in the order that takes fewest operations"),
    Recipe("group-not-repeat", "Group the rows that one value multiplies, do not repeat it"),
    Recipe("multiply-before-the-repeat", "Multiply first, then repeat: rows of this product are equal"),
    Recipe("add-the-small-products", "Write products of small matrices, or of few columns, as sums"),
    Recipe("repeat-the-row", "Repeat a single row 8 times: alone it does not reach a TPU's MXU"),
    Recipe("use-the-structure", "Slice, sum up or index: a formula writes this matrix"),
    Recipe("scale-not-diagonal", "Multiply by the vector, not by diag(v)"),
    Recipe("solve-small-by-cofactors", "Solve 2 or 3 equations by a formula, not by a factorization"),
    Recipe("solve-not-invert", "Solve for what the inverse multiplies: it has fewer columns"),
    Recipe("solve-triangular", "Use solve_triangular, cho_solve or tridiagonal_solve: much of it is 0"),
    Recipe("svd-of-what-is-read", "Pass full_matrices=False or compute_uv=False: fewer vectors are read"),
    Recipe("jvp-not-jacobian", "Use jax.jvp or jax.vjp: a product with a Jacobian needs no Jacobian"),
    Recipe("window-by-dimension", "Take a window over each dimension in turn, not over all at once"),
    Recipe("add-the-shifts", "Add shifted products: each channel is convolved by itself"),
    Recipe("convolve-by-fft", "Convolve by fftconvolve, as a product of Fourier transforms"),
    Recipe("real-fft", "Transform real numbers with rfft and irfft"),
    Recipe("transform-once", "Add first, then transform once: several transforms are added"),
    Recipe("shift-the-pairs", "Shift by one place and select: pairs are taken apart and stacked"),
    Recipe("diagonal-alone", "Compute the diagonal alone, not the whole matrix"),
    Recipe("multiply-not-sum", "Multiply matrices: outer products are formed to be summed"),
    Recipe("slice-the-windows", "Combine slices, one for each place in a window, not a gather"),
    Recipe("map-the-table", "Compute on the table, then gather: rows are read many times"),
    Recipe("take-first", "Take the rows first, then work on them"),
    Recipe("index-all-rows", "Index whole rows by all ids at once, not by vmap or by element"),
    Recipe("reshape-not-segments", "Reshape equal segments"),
    Recipe("segment-sum-not-masks", "Use segment_sum: each label is masked and summed apart"),
    Recipe("one-segment-sum", "Stack what is summed over the same segments"),
    Recipe("triangular-cumsum", "Sum by a triangular matrix"),
    Recipe("scan-not-cumsum", "Sum row by row in a scan, not by cumsum"),
    Recipe("compute-in-float32", "Compute in float32: float32 values become float64 here"),
    Recipe("argmax-by-max", "Find the place by max and min of the places equal to it, not by argmax"),
    Recipe("argmax-of-logits", "Take the argmax of the logits: softmax keeps their order"),
    Recipe("compare-not-sort", "Exchange neighbours by minimum and maximum: rows are short"),
    Recipe("max-not-sort", "Use max, min, argmax or argmin, not sort"),
    Recipe("write-the-ranks", "Write ranks at the places of one argsort, not by a second"),
    Recipe("count-not-sort", "Use cumsum and a scatter, not a sort, to put True and False apart"),
    Recipe("top-k-not-sort", "Use jax.lax.top_k, not sort: few are read"),
    Recipe("sort-as-integers", "Sort floats as integers of the same order"),
    Recipe("keep-top-k", "Keep top_k by a barrier: to read parts of it XLA sorts whole rows"),
    Recipe("max-with-argmax", "Take max(x), not x at argmax(x)", each(_maximum, "gather"), _read_maximum),
)
_WARP = 32
_FEW = 8  # parts whose pads are added: each is a test for every element


def _has_odd_parts(x: Instruction) -> bool:
    """True for a concatenate of a few arrays in memory order, not of whole warps. False for the columns of
    indices that JAX joins for `x[i, j]`, where the program has no concatenate."""
    (dimension,) = x.dimensions
    indexing = [r.operands for r in readers(x) if r.opcode in ("gather", "scatter")]
    if any(without_bitcasts(values[len(values) // 2]) is x for values in indexing):
        return False
    sizes = [o.sizes[dimension] for o in x.operands]
    minor = dimension == x.minor_to_major[0] and x.element_type != "pred"
    return minor and 1 < len(sizes) <= _FEW and any(n % _WARP for n in sizes) and prod(x.sizes) >= 1 << 16


def _is_narrow(x: Instruction) -> bool:
    """True for values of less than 32 bits, which a CPU adds by conversions or by fewer vectors."""
    return any(o.past("convert").shape.bit_width < 32 for o in x.operands)


@where("concatenate", ("slice",), ("slice",), only="cpu")
def _shifts(x: Instruction) -> bool:
    sources = {o.operand for o in x.operands if o.is_slice}
    return _has_odd_parts(x) and len(sources) == 1 and not _is_narrow(x)


def _joins(s: Situation) -> Iterable[Finding]:
    def holds(x: Instruction) -> bool:
        is_shift = all(o.is_slice for o in x.operands)
        return _has_odd_parts(x) and not is_shift and not (s.backend == "cpu" and _is_narrow(x))

    return each(holds, "concatenate", inside=True)(s)


def _pads_for_parts(x: Instruction) -> bool:
    if not x.is_concatenate:
        return False
    (along,), pads, end = x.dimensions, Instructions(), 0
    for part in x.operands:
        start, end = end, end + part.sizes[along]
        pads.append(make.padded(x, part, start, x.sizes[along] - end, along))
    return replace(x, fold(x, "add", pads))


_powers = changed_by(root_for_power, "power")
_ROOTS = "Write x**1.5 as x * jnp.sqrt(x), x**0.25 by two roots"
LAYOUT = (
    Recipe("shift-by-pads", "Shift by the sum of two pads, not by jnp.roll", _shifts, _pads_for_parts),
    Recipe("join-by-pads", "Join columns by the sum of two pads", _joins, _pads_for_parts),
    Recipe("power-by-squares", "Use jnp.polyval, or squares: exponents are whole numbers"),
    Recipe("power-by-a-root", _ROOTS, _powers, root_for_power),
)


def _has_transposed_heads(x: Instruction) -> bool:
    operands = map(without_bitcasts, x.operands)
    return is_product(x) and any(o.is_transpose and o.rank > 3 for o in operands)


_transposed_heads = each(_has_transposed_heads, "fusion", "dot", "custom-call", backend="gpu")
PRODUCTS = (
    Recipe("multiply-narrow-sum-wide", "Multiply bfloat16 or int8 as it is, sum in float32 or int32"),
    Recipe("sum-before-the-product", "Sum the operand first, then multiply"),
    Recipe("heads-before-the-sequence", "Keep the heads before the sequence", _transposed_heads),
    Recipe("attention-by-cudnn", "Call jax.nn.dot_product_attention with cudnn"),
    Recipe("distances-by-a-product", "Compute distances as |a|² + |b|² − 2 a·b"),
)
ROUNDED = (
    Recipe("multiply-in-tf32", "Leave the precision of products to XLA"),
    Recipe("multiply-in-bfloat16", "Multiply in bfloat16"),
    Recipe("attention-in-bfloat16", "Call cuDNN's attention in bfloat16"),
)
