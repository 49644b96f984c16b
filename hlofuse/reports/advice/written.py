"""Recipes on a module before optimizations, compiled from there; constants that XLA evaluates for long."""

import math
from collections.abc import Callable, Iterator, Sequence

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.kernels import kernel_source
from hlofuse.format.escape import printable
from hlofuse.format.paths import source_text
from hlofuse.format.units import quantity
from hlofuse.ir.copy import copy_module
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.record import Record
from hlofuse.passes.algebraic.constant_folding import MOST_FOLDED
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, dot_like
from hlofuse.passes.common.shapes import array, ranges_of, window_of, with_dimensions
from hlofuse.passes.control_flow.call_graph import CallInliner
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.releases.named import AROUND_FUSION
from hlofuse.reports.advice.matching import combines_by, is_constant
from hlofuse.trace import OnlySkipped

_INTEGERS = frozenset({"s32", "u32", "s64", "s16", "u16", "u8", "s8"})
_NARROW = ("bf16", "f16")


def prepared(module: Module) -> Module:
    """A copy without calls, in which broadcasts and reshapes are simple."""
    out = copy_module(module)
    simpler = AlgebraicSimplifier(Options(dot_strength_reduction=False, reduce_of_concatenate=False))
    cse = HloCSE(only_fusion_computations=False, release=AROUND_FUSION)
    for step in (CallInliner(), TupleSimplifier(), simpler, cse, HloDCE()):
        step.run(out, OnlySkipped())
    return out


def spread(x: Instruction) -> tuple[Instruction, list[int | None]]:
    """The value below broadcasts, transposes and conversions; for each dimension of `x` that of the value."""
    dims: list[int | None] = list(range(x.shape.rank))
    while True:
        below = x.operands[0] if x.operands else x
        if x.opcode == "broadcast":
            dims = [x.dimensions.index(d) if d in x.dimensions else None for d in dims]
        elif x.opcode == "transpose":
            dims = [None if d is None else x.dimensions[d] for d in dims]
        elif x.opcode not in ("convert", "copy"):
            return x, dims
        x = below


def _onehot(x: Instruction) -> tuple[Instruction, int] | None:
    """The indices of a one-hot array, and the dimension of its classes."""
    x, order = spread(x)
    if x.opcode == "select" and is_constant(x.operands[1], 1) and is_constant(x.operands[2], 0):
        x = x.operands[0]
    if x.opcode != "compare" or x.attributes.raw("direction") != "EQ":
        return None
    for numbers, labels in (x.operands, x.operands[::-1]):
        (iota, of_iota), (indices, dims) = spread(numbers), spread(labels)
        along = int(iota.attributes.raw("iota_dimension") or 0) if iota.opcode == "iota" else None
        if along is None or indices.opcode in ("iota", "constant") or along not in of_iota:
            continue
        classes = of_iota.index(along)
        others = [dims[d] for d in order if d is not None and d != classes]
        is_plain = dims[classes] is None and others == list(range(indices.shape.rank))
        if is_plain and None not in order and indices.shape.element_type in _INTEGERS:
            return indices, order.index(classes)
    return None


def gather_rows(
    at: Instruction, table: Instruction, indices: Instruction, along: int, batch: Sequence[int] = ()
) -> Instruction:
    """Elements of `table` along a dimension; of the others all, or those of the batch."""
    rest = [] if batch else [d for d in range(table.shape.rank) if d != along]
    sizes = [table.shape.dimensions[d] if d in rest else 1 for d in range(table.shape.rank)]
    shape = array(table.shape.element_type, [*indices.shape.dimensions, *(sizes[d] for d in rest)])
    rank = indices.shape.rank
    numbers = {
        "offset_dims": range(rank, rank + len(rest)),
        "collapsed_slice_dims": [along],
        "start_index_map": [along],
        "operand_batching_dims": batch,
        "start_indices_batching_dims": range(len(batch)),
        "slice_sizes": sizes,
    }
    texts = {n: make.numbers(v) for n, v in numbers.items() if v or "batching" not in n}
    return make.add(at, "gather", shape, [table, indices], index_vector_dim=rank, copied_attributes=texts)


def replace(x: Instruction, new: Instruction) -> bool:
    """Have the readers of `x` read another form of the same values."""
    new = make.convert(x, new, x.shape.element_type)
    is_same = new.shape.dimensions == x.shape.dimensions
    x.replace_all_uses_with(new if is_same else make.reshape(x, x.shape, new))
    return True


def _sums_at(
    at: Instruction,
    labels: Instruction,
    rows: Instruction,
    classes: int,
    batch: int = 0,
) -> Instruction:
    """Sums of rows by label, apart for each place of the first `batch` dimensions of the labels."""
    rank, kind = labels.shape.rank, rows.shape.element_type
    shape = array(kind, [*labels.shape.dimensions[:batch], classes, *rows.shape.dimensions[rank:]])
    texts = {"inserted_window_dims": f"{{{batch}}}", "scatter_dims_to_operand_dims": f"{{{batch}}}"}
    texts["update_window_dims"] = make.numbers(range(rank, rows.shape.rank))
    for name in ("input_batching_dims", "scatter_indices_batching_dims") if batch else ():
        texts[name] = make.numbers(range(batch))
    add = [("to_apply", make.reducer(at, "sum", "add", kind))]
    operands = [make.zeros(at, shape), labels, rows]
    return make.add(
        at, "scatter", shape, operands, called=add, index_vector_dim=rank, copied_attributes=texts
    )


def _count(x: Instruction) -> bool:
    """A sum of one-hot rows becomes a sum of ones at the labels."""
    found = _onehot(x.operands[0])
    if found is None or not combines_by(x, "add") or not is_constant(x.operands[1], 0):
        return False
    (labels, along), sizes = found, x.operands[0].shape.dimensions
    own = [d for d in range(len(sizes)) if d != along]
    kept = [k for k, d in enumerate(own) if d not in x.dimensions]
    if along in x.dimensions or len(kept) == len(own):
        return False
    labels = make.transpose(x, labels, [*kept, *(k for k in range(len(own)) if k not in kept)])
    one = make.scalar(x, x.shape.element_type, 1)
    ones = make.broadcast(x, labels.shape.with_element_type(x.shape.element_type), one, ())
    sums, place = _sums_at(x, labels, ones, sizes[along], len(kept)), sum(own[k] < along for k in kept)
    return replace(x, make.transpose(x, sums, [*range(place), len(kept), *range(place, len(kept))]))


def _take(x: Instruction) -> bool:
    """A product with a one-hot matrix becomes a gather of rows; one that sums over rows, a scatter."""
    if x.opcode == "reduce":
        return _count(x)
    dims = DotDimensions.of(x)
    for side in (0, 1):
        found, other = _onehot(x.operands[side]), x.operands[1 - side]
        own, summed = dims.contracting(side), dims.contracting(1 - side)
        if found is None or dims.lhs_batch:
            continue
        if found[1] not in own and len(own) == found[0].shape.rank:
            order = [summed[own.index(d)] for d in sorted(own)]
            rows = make.transpose(x, other, [*order, *dims.free(1 - side, other.shape.rank)])
            sums = _sums_at(x, found[0], rows, x.operands[side].shape.dimensions[found[1]])
            return replace(x, make.transpose(x, sums, [*range(side, sums.shape.rank), *range(side)]))
        if own != (found[1],):
            continue
        rows = gather_rows(x, other, found[0], summed[0])
        if side:
            labels = found[0].shape.rank
            rank = rows.shape.rank
            rows = make.transpose(x, rows, [*range(labels, rank), *range(labels)])
        return replace(x, rows)
    return False


def _narrow(x: Instruction) -> bool:
    """Operands that were widened are multiplied as they were."""
    operands = [o.operands[0] if o.opcode == "convert" else o for o in x.operands]
    types = {o.shape.element_type for o in operands}
    if x.shape.element_type != "f32" or len(types) > 1 or not types.issubset(_NARROW):
        return False
    return replace(x, dot_like(x, x.shape, operands[0], operands[1], DotDimensions.of(x)))


def _pick(x: Instruction) -> bool:
    """A sum over one-hot labels times values becomes the values at the labels."""
    product = x.operands[0]
    if product.opcode not in ("multiply", "select") or not combines_by(x, "add"):
        return False
    pairs = [product.operands[:2]]
    if product.opcode == "multiply":
        pairs.append(product.operands[::-1])
    elif not is_constant(product.operands[2], 0):
        return False
    for mask, values in pairs:
        found = _onehot(mask)
        if found is None or found[1] not in x.dimensions or is_constant(values):
            continue
        labels, classes = found
        batch = [d for d in range(values.shape.rank) if d != classes]
        picked = gather_rows(x, values, labels, classes, batch)
        rest = [batch.index(d) for d in x.dimensions if d != classes]
        if rest:
            picked = make.reduce(x, picked, x.operands[1], rest, x.called_computations[0])
        return replace(x, picked)
    return False


def _take_first(x: Instruction) -> bool:
    """Rows of what was computed become what is computed of rows."""
    whole, starts = x.operands[0], x.operands[1:]
    rows = x.shape.element_count * whole.shape.dimensions[0] // max(1, whole.shape.element_count)
    if x.opcode == "gather":
        is_of_rows = x.attributes.raw("start_index_map") == x.attributes.raw("collapsed_slice_dims") == "{0}"
        along, indices = [0] * is_of_rows, starts[0]
    else:
        along = [d for d, n in enumerate(x.shape.dimensions) if n != whole.shape.dimensions[d]]
        rows = x.shape.dimensions[along[0]] if along else 0
        indices = make.iota(x, array("s32", [rows]), 0)
        first = ranges_of(x)[along[0]] if along and not starts else None
        if first is not None:
            indices = make.binary(x, "multiply", indices, make.scalar_like(indices, first.stride))
        start = make.scalar(x, "s32", first.start) if first else make.convert(x, starts[along[0]], "s32")
        indices = make.binary(x, "add", indices, make.broadcast(x, indices.shape, start, ()))
    if len(along) != 1 or rows * 4 > whole.shape.dimensions[along[0]] or len(whole.users) > 1:
        return False
    done: dict[tuple[Instruction, int], Instruction] = {}
    indices = make.reshape(x, array(indices.shape.element_type, [rows]), indices)
    new = _places(whole, along[0], indices, done)
    return any(i.opcode == "dot" for i, _ in done) and replace(x, new)


def _places(
    x: Instruction, along: int, indices: Instruction, done: dict[tuple[Instruction, int], Instruction]
) -> Instruction:
    """Some places of `x` along a dimension, computed from such places where each is by itself."""
    if (x, along) not in done:
        below, sizes = _dimensions_below(x, along), list(x.shape.dimensions)
        if below is None:
            order = [*range(1, along + 1), 0, *range(along + 1, len(sizes))]
            return make.transpose(x, gather_rows(x, x, indices, along), order)
        sizes[along] = indices.shape.element_count
        pairs = zip(x.operands, below, strict=True)
        operands = [o if d is None else _places(o, d, indices, done) for o, d in pairs]
        new = x.clone(operands, shape=with_dimensions(x.shape, sizes))
        done[x, along] = computation_of(x).add_instruction(new)
    return done[x, along]


def _dimensions_below(x: Instruction, along: int) -> Sequence[int | None] | None:
    """The dimension of each operand of which places along one of `x` need the same; None for all of it."""
    shapes = [o.shape for o in x.operands]
    if x.opcode in ELEMENTWISE_OPCODES:
        return [along if s.rank else None for s in shapes]
    if x.opcode == "broadcast":
        return [x.dimensions.index(along) if along in x.dimensions else None]
    if x.opcode == "transpose":
        return [x.dimensions[along]]
    if x.opcode == "reshape":
        sizes, own = x.shape.dimensions, shapes[0].dimensions
        lead = math.prod(sizes[:along])
        return [d for d, n in enumerate(own) if n == sizes[along] and math.prod(own[:d]) == lead][-1:] or None
    if x.opcode == "reduce" and len(shapes) == 2:
        rest = [d for d in range(shapes[0].rank) if d not in x.dimensions]
        return [rest[along], None]
    if x.opcode == "dot":
        dims = DotDimensions.of(x)
        first, second = ([*dims.batch(k), *dims.free(k, s.rank)] for k, s in enumerate(shapes))
        lead = len(dims.lhs_batch)
        if along < len(first):
            return [first[along], second[along] if along < lead else None]
        return [None, second[along - len(first) + lead]]
    return None


class Rewriting(Record):
    """A recipe as a change of a module before optimizations."""

    opcodes: str
    """The operations at which it begins."""
    change: Callable[[Instruction], bool]
    """Makes the change at one of them; False where it cannot be made."""
    backend: str = ""
    """The only backend on which it can be made."""
    rough: str = ""
    """Kernels that it brings whose time rests on one measurement of one shape."""
    is_timed: bool = True
    """False where JAX computes more in each iteration than the change does: a small gain may be a loss."""


OWN = {
    "take-not-onehot": Rewriting("dot reduce", _take),
    "multiply-narrow-sum-wide": Rewriting("dot", _narrow),
    "pick-the-label": Rewriting("reduce", _pick),
    "take-first": Rewriting("gather slice dynamic-slice", _take_first),
}


_STEPS = 1_000_000
"""About 2 s: XLA's evaluator took 2 to 3 µs for each function of a window's element (jaxlib 0.11.1, CPU).
Sums, products, scatters and elementwise operations on 1,000,000 elements compiled in less than 0.6 s."""


def compile_time_notes(module: Module) -> Iterator[str]:
    """A sentence for each slow evaluation of a constant in a module before optimizations. Mirrors the
    conditions of `HloConstantFolding` (`xla/hlo/transforms/simplifiers/hlo_constant_folding.cc`)."""
    constants: set[Instruction] = set()
    for x in (x for c in reversed(module.computations) for x in c.post_order()):
        if not _is_constant(x, constants):
            continue
        constants.add(x)
        steps = _steps(x)
        if steps >= _STEPS and x.shape.element_count <= MOST_FOLDED:
            source = kernel_source(x, module)
            where = f" ({printable(source_text(source))})" if source is not None else ""
            text = f"{x.opcode} of a constant, {quantity(steps).strip()} steps{where}"
            yield f"Compile time: {text}; compute it outside jit"


def _is_constant(x: Instruction, constants: set[Instruction]) -> bool:
    if x.opcode in ("constant", "iota"):
        return True
    is_computed = x.opcode in ("reduce-window", "broadcast", "reshape") or x.opcode in with_trait(
        "elementwise"
    )
    return is_computed and bool(x.operands) and all(o in constants for o in x.operands)


def _steps(x: Instruction) -> int:
    """Applications of a function to an element of a window."""
    if x.opcode != "reduce-window" or not x.shape.is_array:
        return 0
    return x.shape.element_count * math.prod(d.size for d in window_of(x))
