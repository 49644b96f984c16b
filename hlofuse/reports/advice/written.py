"""Recipes on a module before optimizations, compiled from there; constants that XLA evaluates for long."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce

import numpy as np

from hlofuse.analysis.kernels import is_small_call, kernel_source, launched_computations
from hlofuse.format import printable, quantity
from hlofuse.format.paths import source_text
from hlofuse.ir import (
    Computation,
    Instruction,
    Instructions,
    Ints,
    Module,
    Predicate,
    Record,
    copy_module,
    grouped,
    reach,
    with_trait,
)
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import Shape
from hlofuse.matching.key import Keys
from hlofuse.passes.algebraic.constant_folding import MOST_FOLDED
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.common import make
from hlofuse.passes.common.evaluation import CannotEvaluate, elements
from hlofuse.passes.common.literals import Elements, bounds, rounded, values_of
from hlofuse.passes.common.shapes import array, inserted, numbers_of, others, window_of, without, without_ones
from hlofuse.passes.control_flow.call_graph import CallInliner
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.passes.loop.parts import body_of, carried_unchanged
from hlofuse.trace import OnlySkipped
from .matching import both_orders, combines_by, is_below_zero, is_constant, is_masked, source

MOST_EVALUATED = 1 << 24  # Elements of an array that a formula writes, and that is worked out
_INTEGERS = values("s32 u32 s64 s16 u16 u8 s8")
SMALL = values("s8 u8 s16 u16")


def prepared(module: Module) -> Module:
    """A copy without calls, in which broadcasts and reshapes are simple."""
    out = copy_module(module)
    CallInliner().run(out, OnlySkipped())
    for x in [x for x in out.instructions() if x.opcode in ("gather", "select")]:
        _simplify_read(x)
    simpler = AlgebraicSimplifier(Options(dot_strength_reduction=False, reduce_of_concatenate=False))
    cse = HloCSE(only_fusion_computations=False)
    for step in (TupleSimplifier(), simpler, cse, HloDCE()):
        step.run(out, OnlySkipped())
    return out


def _simplify_read(x: Instruction) -> None:
    """A gather at one known place (`jnp.take(x, -1, axis=0)`) becomes a slice; one of windows of one row,
    as `vmap` makes of an index, one of rows; a known choice, one side."""
    test = x.operand.through("broadcast")
    if x.opcode == "select":
        value = formula_values(test) if test.element_count == 1 else None
        if value is not None and test.element_type == "pred":
            x.replace_all_uses_with(x.operands[1 if value.all() else 2])
        return
    table, indices = x.operands
    along, sizes = numbers_of(x, "start_index_map"), numbers_of(x, "slice_sizes")
    is_one = indices.element_count == len(along) > 0 and not numbers_of(x, "operand_batching_dims")
    values = formula_values(indices) if is_one else None
    if values is not None:
        first = dict(zip(along, values.ravel().tolist(), strict=True))
        starts = [make.scalar(x, "s32", first.get(d, 0)) for d in dims_of(table)]
        replace(x, make.dynamic_slice(x, table, starts, sizes))
        return
    removed, offsets, batch = (
        numbers_of(x, n) for n in ("collapsed_slice_dims", "offset_dims", "operand_batching_dims")
    )
    windows = zip(others(table.rank, [*removed, *batch]), offsets, strict=True)
    ones = {d: w for d, w in windows if d in along and sizes[d] == 1 < table.sizes[d]}
    if ones:
        rest = others(x.rank, [*ones.values()])
        attributes = {
            "offset_dims": [rest.index(w) for w in offsets if w in rest],
            "collapsed_slice_dims": sorted([*removed, *ones]),
        }
        new = make.copy_of(x, x.operands, without(x.shape, [*ones.values()]), **attributes)
        replace(x, make.reshape(x, x.shape, new))


def dims_of(x: Instruction) -> list[int]:
    """All dimensions, in order."""
    return [*range(x.rank)]


def spread(x: Instruction) -> tuple[Instruction, list[int | None]]:
    """The value below broadcasts, transposes, conversions and sizes of one; each dimension of `x` there."""
    dims: list[int | None] = [*dims_of(x)]
    while True:
        below = x.operand if x.operands else x
        (low, high), (least, most) = bounds(x.element_type), bounds(below.element_type)
        if x.is_broadcast:
            dims = [x.dimensions.index(d) if d in x.dimensions else None for d in dims]
        elif x.is_transpose:
            dims = [None if d is None else x.dimensions[d] for d in dims]
        elif x.is_reshape and without_ones(x.shape).dimensions == below.sizes:
            places = [k for k, n in enumerate(x.sizes) if n != 1]
            dims = [places.index(d) if d in places else None for d in dims]
        elif x.opcode == "convert" and x.element_type[0] != "c" and None in (low, least):
            return x, dims  # to or from a float of 8 bits, or a real part
        elif x.opcode not in ("convert", "copy") or not (low is None or low <= least <= most <= high):
            return x, dims  # or it loses a fraction or high digits
        x = below


def counted_along(x: Instruction) -> int | None:
    """The dimension whose places `x` numbers, also spread; None where its type lacks some of the numbers."""
    numbers, dims = spread(x)
    along = counted(numbers)
    if along is None or along not in dims:
        return None
    last = (numbers.sizes[along] - 1) | 1  # of floats the even numbers end later
    is_exact = all(rounded(i.element_type, last) == last for i in (numbers, x))
    return dims.index(along) if is_exact else None


def _numbered(test: Instruction) -> Iterator[tuple[int, Instruction, list[int | None]]]:
    """The dimensions whose places a test of equality compares, each with what it compares them to, spread."""
    sides = test.operands if test.opcode == "compare" and test.raw("direction") == "EQ" else []
    for numbers, other in zip(*both_orders(sides), strict=True):
        value, dims = spread(other)
        if (along := counted_along(numbers)) is not None and value.element_type in _INTEGERS:
            yield along, value, dims


def equal_places(x: Instruction) -> list[int]:
    """The two dimensions at equal places of which a test, or its numbers, is true; none for another test."""
    test, own = spread(x)
    along = {d for d, *_ in _numbered(test)}
    is_square = len({test.sizes[d] for d in along}) == 1
    return sorted(map(own.index, along)) if len(along) == 2 and is_square else []


def masked_place(mask: Instruction) -> tuple[int, Instruction] | None:
    """The dimension along which a mask has one place, and the number of this place."""
    test, dims = spread(mask)
    return next(((dims.index(d), i) for d, i, _ in _numbered(test) if not i.sizes), None)


def onehot(x: Instruction) -> tuple[Instruction, int] | None:
    """The indices of a one-hot array, and the dimension of its classes."""
    x, order = spread(x)
    if x.opcode == "gather" and equal_places(x.operand) == [0, 1]:  # rows of an identity matrix
        offsets, (table, indices), sizes = numbers_of(x, "offset_dims"), x.operands, x.sizes
        rest = [d for d in order if d is not None and d not in offsets]
        count, columns = table.sizes[0], numbers_of(x, "start_index_map")
        is_whole = [sizes[d] for d in offsets] == [count] and len(columns) == 1
        if None in order or not is_whole or rest != sorted(rest):
            return None
        indices = limited(indices, count - 1)
        return make.resized(x, indices, [sizes[d] for d in rest]), order.index(offsets[0])
    if is_masked(x) and is_constant(x.second, 1):
        x = x.operand
    for classes, indices, dims in _numbered(x):
        others = [dims[d] for d in order if d is not None and d != classes]
        is_plain = dims[classes] is None and others == dims_of(indices)
        is_written = indices.opcode in ("iota", "constant")
        if is_plain and not is_written and None not in order:
            return indices, order.index(classes)
    return None


def limited(starts: Instruction, last: int) -> Instruction:
    """Each start where XLA begins a slice of which `last` is the last place."""
    if starts.element_type in SMALL:
        starts = make.convert(starts, starts, "s32")
    starts = make.binary(starts, "minimum", starts, make.scalar_like(starts, last))
    return make.binary(starts, "maximum", starts, make.scalar_like(starts, 0))


def gather_rows(
    at: Instruction,
    table: Instruction,
    indices: Instruction,
    along: int,
    batch: Ints = (),
) -> Instruction:
    """Elements of `table` along a dimension, those of the batch by the first dimensions of the indices."""
    rest = others(table.rank, [along, *batch])
    sizes = [table.sizes[d] if d in rest else 1 for d in range(table.rank)]
    shape = array(table.element_type, [*indices.sizes, *(sizes[d] for d in rest)])
    rank = indices.rank
    return indexed(
        at,
        "gather",
        [table, indices],
        shape,
        rank,
        offset_dims=range(rank, rank + len(rest)),
        collapsed_slice_dims=[along],
        start_index_map=[along],
        operand_batching_dims=batch,
        start_indices_batching_dims=range(len(batch)),
        slice_sizes=sizes,
    )


def moved(at: Instruction, x: Instruction, along: int, place: int) -> Instruction:
    """`x` with one dimension in another place."""
    order = others(x.rank, [along])
    order.insert(place, along)
    return make.transpose(at, x, order)


def place_of(at: Instruction, x: Instruction, number: int, along: int = 0) -> Instruction:
    """The elements at one place of a dimension, without it."""
    part = make.part(at, x, number, number + 1, along)
    return make.reshape(at, without(part.shape, [along]), part)


def starts_at(at: Instruction, rank: int, number: Instruction, along: int = 0) -> Instructions:
    """The place of a part that begins at a number along one dimension, and at 0 along the others."""
    starts = [make.scalar(at, number.element_type, 0)] * rank
    starts[along] = number
    return starts


def indexed(
    at: Instruction,
    opcode: str,
    operands: Sequence[Instruction],
    shape: Shape,
    rank: int,
    called: Sequence[tuple[str, Computation]] | Computation = (),
    **dimensions: object,
) -> Instruction:
    """A gather or scatter at indices of so many dimensions."""
    given = {n: v for n, v in dimensions.items() if v or "batching" not in n}
    return make.add(
        at, opcode, shape, operands, called=called, index_vector_dim=rank, copied_attributes=given
    )


def sums_at(
    at: Instruction,
    indices: Instruction,
    rows: Instruction,
    sizes: Ints,
    along: int,
    batch: Ints,
    written_to: Instruction | None = None,
    **attributes: object,
) -> Instruction:
    """Sums of rows by index along a dimension, apart for each place of the batch; or rows in an array."""
    shape, rank = array(rows.element_type, sizes), indices.rank
    body = make.reducer(at, "sum", "add", rows.element_type)
    if written_to is not None:
        body.root = body.parameters[1]
    return indexed(
        at,
        "scatter",
        [written_to or make.zeros(at, shape), indices, rows],
        shape,
        rank,
        body,
        inserted_window_dims=[along],
        scatter_dims_to_operand_dims=[along],
        update_window_dims=range(rank, rows.rank),
        input_batching_dims=batch,
        scatter_indices_batching_dims=batch,
        **attributes,
    )


def replace(x: Instruction, new: Instruction) -> bool:
    """Have the readers of `x` read another form of the same values."""
    new = make.convert(x, new, x.element_type)
    is_same = new.sizes == x.sizes
    x.replace_all_uses_with(new if is_same else make.reshape(x, x.shape, new))
    return True


def written_part(x: Instruction) -> tuple[Instruction, dict[int, Instruction]] | None:
    """The part of an array that is written at one place, and its starts; None for other operations."""
    if x.opcode == "dynamic-update-slice":
        return x.second, dict(enumerate(x.operands[2:]))
    names = ("inserted_window_dims", "scatter_dims_to_operand_dims")
    along, places = (numbers_of(x, n) if x.opcode == "scatter" else () for n in names)
    if len(along) != 1 or along != places or x.operand_count > 3 or not combines_by(x, "parameter"):
        return None
    indices, part = x.operands[1:]
    if indices.element_count > 1 or part.sizes != without(x.shape, along).dimensions:
        return None
    return part, {along[0]: indices}


def row_written(x: Instruction) -> tuple[int, int, Instruction] | None:
    """The dimension and the constant place of whole rows that are written, and the rows; else None."""
    part, starts = written_part(x) or (x, {})
    if x.opcode == "scatter" and starts:
        part = make.reshape(x, inserted(part.shape, next(iter(starts)), [1]), part)
    numbers = {d: [int(v.real) for v in values_of(o) or ()] for d, o in starts.items()}
    cut = [d for d in starts if part.sizes[d] != x.sizes[d]]
    if len(cut) != 1 or not numbers[cut[0]]:
        return None
    (along,) = cut
    start, last = numbers[along][0], x.sizes[along] - part.sizes[along]
    is_elsewhere = any(d != along and found != [0] for d, found in numbers.items())
    return None if is_elsewhere or not 0 <= start <= last else (along, start, part)


def fold(at: Instruction, opcode: str, parts: Instructions) -> Instruction:
    """All parts by one operation, from the first on."""
    return reduce(lambda total, part: make.binary(at, opcode, total, part), parts)


def counted(x: Instruction) -> int | None:
    return int(x.raw("iota_dimension") or 0) if x.opcode == "iota" else None


def formula_values(x: Instruction, cache: dict[Instruction, Elements] | None = None) -> "Elements | None":
    """The elements of an array that a formula writes; None for others."""
    with suppress(CannotEvaluate):
        return elements(x, cache or {}, MOST_EVALUATED)
    return None


def counted_dimension(x: Instruction, sizes: Ints) -> int | None:
    """The dimension of which each element of `x`, in these sizes, is the number."""
    values = formula_values(x)
    if values is None:
        return None
    for d, size in enumerate(sizes):
        if (np.moveaxis(values.reshape(sizes), d, -1) == np.arange(size)).all():
            return d
    return None


def written_before(x: Instruction) -> dict[Instruction, Elements]:
    """Elements of the state of the loop around `x` that no iteration changes, and that a formula writes."""
    found = dict[Instruction, Elements]()
    if (loop := x.called_by("while")) is None:
        return found
    for element in carried_unchanged(body_of(loop)):
        before = formula_values(loop.operand.operands[element.tuple_index])
        if before is not None:
            found[element] = before
    return found


class Numbers(Record):
    """first + all starts + step · (i // repeat), for i from 0."""

    first: int
    starts: tuple[Instruction, ...]
    step: int
    repeat: int

    def start(
        self,
        at: Instruction,
        kind: str,
    ) -> Instruction:
        starts = [make.convert(at, s, kind) for s in self.starts]
        return fold(at, "add", [make.scalar(at, kind, self.first), *starts])


def numbers(x: Instruction) -> Numbers | None:
    """The numbers that a formula writes, plus values that are not known; None for others."""
    if x.opcode in ("reshape", "convert"):
        return numbers(x.operand)
    if (given := formula_values(x)) is not None:
        values = given.ravel()
        if values.size < 2 or (repeat := int(np.argmax(values != values[0]))) == 0:
            return None
        found = Numbers(int(values[0]), (), int(values[repeat] - values[0]), repeat)
        counts = np.arange(values.size) // repeat
        return found if np.array_equal(values, found.first + found.step * counts) else None
    if x.opcode == "select" and is_below_zero(x.operand):
        _, other, same = x.operands
        return numbers(same) if other.opcode == "add" and same in other.operands else None
    for a, b in both_orders(x.operands) if x.opcode == "add" else ():
        below = numbers(a) if not source(b).sizes else None
        if below is not None:
            return Numbers(below.first, (*below.starts, source(b)), below.step, below.repeat)
    return None


class Rewriting(Record):
    """A recipe as a change of a module before optimizations."""

    opcodes: str  # The operations at which it begins
    change: Predicate  # Makes the change at one of them; False where it cannot be made
    backend: str = ""  # The only backend on which it can be made
    rough: str = ""  # Kernels that it brings whose time rests on one measurement of one shape
    rounds: bool = False  # Values lose digits: it is stated apart from what keeps them
    is_timed: bool = True
    """False where JAX computes more in each iteration than the change does: a small gain may be a loss."""


_WRITTEN_OUT = 100
"""Operations of one line. 192 convolutions with their updates compiled in 120 s (jaxlib 0.11.1, CPU)."""
_COSTLY = values("convolution dot dynamic-update-slice scatter sort")
_STEPS = 1_000_000
"""About 2 s: XLA's evaluator took 2 to 3 µs for each function of a window's element (jaxlib 0.11.1, CPU).
Sums, products, scatters and elementwise operations on 1,000,000 elements compiled in less than 0.6 s."""


def compile_time_notes(module: Module) -> Iterator[str]:
    """A sentence for each slow evaluation of a constant in a module before optimizations, and one on what a
    line writes out most often. Mirrors the conditions of `HloConstantFolding` (`hlo_constant_folding.cc`)."""
    constants: set[Instruction] = set()
    for x in (x for c in reversed(module.computations) for x in c.post_order()):
        if not _is_constant(x, constants):
            continue
        constants.add(x)
        steps = _steps(x)
        if steps >= _STEPS and x.element_count <= MOST_FOLDED:
            source = printable(source_text(kernel_source(x, module)))
            where = f" ({source})" if source else ""
            text = f"{x.opcode} of a constant, {quantity(steps).strip()} steps{where}"
            yield f"Compile time: {text}; compute it outside jit"
    costly = (x for x in module.instructions() if x.opcode in _COSTLY)
    shapes = ((x, str([x.shape, *(o.shape for o in x.operands)])) for x in costly)
    repeated = grouped(((x.opcode, s, source_text(kernel_source(x, module))), x) for x, s in shapes)
    for (opcode, _, line), copies in sorted(repeated.items(), key=lambda p: -len(p[1]))[:1]:
        if len(copies) >= _WRITTEN_OUT and line:
            above = reach([o for x in copies for o in x.operands], lambda i: i.operands)
            is_one_place = len({x.computation for x in copies}) == 1
            is_free = is_one_place and set(copies).isdisjoint(above)
            how = "jax.vmap or lax.scan" if is_free else "a loop (lax.scan, lax.fori_loop)"
            text = f"{len(copies):,} times the same {opcode} ({printable(line)})"
            yield f"Compile time: {text}; {how} compiles it once"


_KERNEL_SECONDS, _CALL_SECONDS = 0.014, 0.075
"""Processor time that XLA:CPU took at least to compile a kernel unlike the others, and a call with its loops
(14 to 54 ms, 75 to 90 ms; jaxlib 0.11.1, EPYC)."""


def generated_code_note(module: Module) -> Iterator[str]:
    """A sentence on each line of a final module for which XLA:CPU generates code for a second or more."""
    keys = Keys()
    compiled = dict[object, Instruction]()
    for computation in launched_computations(module):
        for x in computation:
            if x.is_fusion:
                compiled.setdefault(keys.computation(x.fused_computation), x)
            elif is_small_call(x):
                compiled[x] = x
    lines = grouped((source_text(kernel_source(x, module)), x) for x in compiled.values())
    for line, own in lines.items():
        calls = sum(map(is_small_call, own))
        seconds = _CALL_SECONDS * calls + _KERNEL_SECONDS * (len(own) - calls)
        if line and seconds >= 1:
            text = f"at least {seconds:.0f} s for {len(own):,} kernels that differ ({printable(line)})"
            how = "where a Python loop writes them out, lax.scan compiles its body once"
            yield f"Compile time: {text}; {how}"


def _is_constant(x: Instruction, constants: set[Instruction]) -> bool:
    if x.opcode in ("constant", "iota"):
        return True
    is_computed = x.opcode in ("reduce-window", "broadcast", "reshape") or x.opcode in with_trait(
        "elementwise"
    )
    return is_computed and bool(x.operands) and all(o in constants for o in x.operands)


def _steps(x: Instruction) -> int:
    """Applications of a function to an element of a window."""
    if x.opcode != "reduce-window" or not x.is_array:
        return 0
    return x.element_count * math.prod(d.size for d in window_of(x))
