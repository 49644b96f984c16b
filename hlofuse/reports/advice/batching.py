"""Loops without their iterations: values that wait for no iteration, as arrays over all of them."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import Computation, Dims, Instruction, Instructions, Shape, has_side_effect, reach, values
from hlofuse.ir.attributes.window import SliceRange, SliceRanges, Window, WindowDimension
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, replace_parameter
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.index_vectors import counted_loop
from hlofuse.passes.common.literals import integer_of
from hlofuse.passes.common.shapes import labels_of, numbers_of, ranges_of, window_of, with_dimensions
from hlofuse.passes.loop.code_motion import hoist_invariants
from hlofuse.passes.loop.parts import body_of, condition_of, drop_unused, is_element, new_loop
from hlofuse.trace import OnlySkipped
from .contracting import Labelled, multiply_apart, terms_of, total_of
from .loops import choose_result, plain_counter, replace_state
from .matching import both_orders, combines_by, has, is_below_zero, is_constant, is_product, is_total, source
from .written import Rewriting, fold, gather_rows, indexed, moved, place_of, replace, starts_at, written_part

_VIEWS = values("broadcast reshape convert transpose dynamic-slice slice iota constant")
"""Operations of which the loop may as well do its part."""
_OF_EACH = values("""
    reshape broadcast transpose slice concatenate reverse sort fft cholesky triangular-solve topk
    reduce reduce-window pad
    """)
"""Operations that are the same for arrays with a leading dimension, their attributes aside."""
_STARTING = ("reduce", "reduce-window", "pad")  # all iterations have the same second half of operands
_LINEAR = {"add": (1, 1), "subtract": (1, -1), "negate": (-1,)}  # the factors of the operands


class Batch:
    """The values of all iterations of a loop, written next to it, each with a leading dimension."""

    number: int  # The element of the state that the loop counts with
    init: Sequence[Instruction]

    def __init__(self, loop: Instruction, trips: int, body: Computation) -> None:
        self.loop, self.trips, self.body = loop, trips, body
        self.computed: dict[Instruction, Instruction] = {}
        """Values that differ from one iteration to the next."""
        self.fixed: dict[Instruction, Instruction] = {}  # Values that do not
        self.numbers = set[Instruction]()  # Elements of the state that count the iterations
        self.is_reversed = False  # True if the first value is the last iteration's, as of a gradient

    @property
    def given(self) -> Instruction:
        return self.body.parameter

    @staticmethod
    def of(loop: Instruction, in_any_order: bool = False) -> "Batch | None":
        """None for a loop that does not count from 0 to a constant; `in_any_order`: as arrays are read."""
        counter = plain_counter(loop)
        if counter is None or counter.trips < 2:
            return None
        batch = Batch(loop, counter.trips, body_of(loop))
        batch.number, batch.init = counter.index, loop.operand.operands
        batch.numbers = set(filter(batch._counts, batch.given.users))
        if in_any_order:
            moves = [x for x in batch.body if x.opcode in ("dynamic-slice", "dynamic-update-slice")]
            found = {batch._place(x.operands[1 + (x.opcode != "dynamic-slice") :]) for x in moves}
            batch.is_reversed = -1 in found and 1 not in found
        batch.extend()
        return batch

    def knows(self, *values: Instruction) -> bool:
        return all(x in self.computed or x in self.fixed for x in values)

    def extend(self) -> None:
        """Write what follows from the values that are known."""
        for x in self.body.post_order():
            if x is self.given or self.knows(x):
                continue
            if x.is_get_tuple_element and x.operand is self.given:
                if x in self.numbers:
                    number = make.iota(self.loop, self._leading(x.shape), 0)
                    if self.is_reversed:
                        last = make.scalar_like(number, self.trips - 1)
                        number = make.binary(self.loop, "subtract", last, number)
                    self.computed[x] = number
                elif self.body.root.operands[x.tuple_index] is x:
                    self.fixed[x] = self.init[x.tuple_index]
            elif x.is_while and (state := self._iterated(x)) is not None:
                self.computed[x] = state
            elif has_side_effect(x) or x.called_computations[1:]:
                continue
            elif all(o in self.fixed for o in x.operands):
                self.fixed[x] = self._add(x.clone([self.fixed[o] for o in x.operands]))
            elif self.knows(*x.operands) or self._is_own_row(x):
                found = self._batched(x)
                if found is not None:
                    self.computed[x] = found

    def over_all(self, x: Instruction) -> Instruction:
        """A value with the leading dimension."""
        return self.computed[x] if x in self.computed else self._repeated(self.fixed[x])

    def changed(self) -> list[tuple[int, Instruction]]:
        """The elements of the state that an iteration changes, the counter aside."""
        roots = enumerate(self.body.root.operands)
        return [(k, x) for k, x in roots if k != self.number and not is_element(x, self.given, k)]

    def written(self, k: int, places: Dims = (1,), is_read: bool = False) -> Instruction | None:
        """The part that an iteration writes at its own place of an array, from the end on for −1, or None.
        With `is_read` it may also read there."""
        x = self.body.root.operands[k]
        rows = x.rank and x.sizes[0] >= self.trips and is_element(x.operand, self.given, k)
        if not rows or x.user_count > 1:
            return None
        part, starts = written_part(x) or (x, {0: x})
        place = self._place([*starts.values()])
        reads = {*x.operand.users} - {x}
        own = all(self.reads_own_part(u) and self._place(u.operands[1:]) == place for u in reads)
        is_row = 0 in starts and part.element_count * x.sizes[0] == x.element_count and place in places
        return part if is_row and own and (is_read or not reads) else None

    def _is_own_row(self, x: Instruction) -> bool:
        is_part = x.opcode == "dynamic-slice" and x.operand in self.given.users
        return is_part and self.written(x.operand.tuple_index, (1, -1), is_read=True) is not None

    def stacked(self, element: Instruction) -> Instruction | None:
        """The row that each iteration writes of an element with as many rows as iterations; else None."""
        is_stack = element.sizes[:1] == (self.trips,)
        return self.written(element.tuple_index) if is_stack else None

    def reads_own_part(self, x: Instruction) -> bool:
        """True for a slice of one row, another one in each iteration."""
        return x.opcode == "dynamic-slice" and x.sizes[0] == 1 and self._place(x.operands[1:]) != 0

    def finish(self) -> bool:
        """Have the loop replaced by what is known; False where that is not all."""
        state = list(self.init)
        state[self.number] = make.scalar(self.loop, state[self.number].element_type, self.trips)
        for k, x in self.changed():
            part = self.written(k, (1, -1), is_read=True)
            value = x if part is None else part
            if not self.knows(value):
                total = self._total(k) if part is None else None
                if total is None:
                    return False
                state[k] = total
            elif part is not None:
                rows = make.resized(self.loop, self.over_all(part), [self.trips, *x.sizes[1:]])
                rows = self._reversed(rows) if self.written(k, is_read=True) is None else rows
                zeros = [make.scalar(self.loop, "s32", 0)] * x.rank
                state[k] = make.dynamic_update_slice(self.loop, self.init[k], rows, zeros)
            elif x in self.fixed:
                state[k] = self.fixed[x]
            else:
                last = 0 if self.is_reversed else self.trips - 1
                state[k] = place_of(self.loop, self.computed[x], last)
        replace_state(self.loop, state)
        return True

    def _leading(self, shape: Shape) -> Shape:
        if shape.is_tuple:
            return Shape.tuple_of([self._leading(s) for s in shape.tuple_shapes])
        return with_dimensions(shape, [self.trips, *shape.dimensions])

    def _add(self, x: Instruction) -> Instruction:
        return self.loop.parent.add_instruction(x)

    def _counts(self, x: Instruction) -> bool:
        after = self.body.root.operands[x.tuple_index]
        if after.opcode != "add" or not is_element(after.operand, self.given, x.tuple_index):
            return False
        return integer_of(after.second) == 1 and integer_of(self.init[x.tuple_index]) == 0

    def _place(self, starts: Sequence[Instruction]) -> int:
        """1 for the place of this iteration along the first dimension, −1 counted from the end, else 0."""
        if any(integer_of(o) != 0 for o in starts[1:]):
            return 0
        forward = (0, 1)
        backward = (self.trips - 1, -1)
        place = {forward: 1, backward: -1}.get(self._first_and_step(starts[0]) or (0, 0), 0)
        return -place if self.is_reversed else place

    def _first_and_step(self, x: Instruction) -> tuple[int, int] | None:
        """The value in the first iteration and how much each adds; None for what does not change evenly."""
        if x in self.numbers:
            return 0, 1
        if (value := integer_of(x)) is not None:
            return value, 0
        if x.is_reshape:
            return self._first_and_step(x.operand)
        if x.opcode == "select" and is_below_zero(x.operand):
            return self._first_and_step(x.operands[2])  # a negative index counts from the end
        parts = [self._first_and_step(o) for o in x.operands] if x.opcode in _LINEAR else [None]
        if None in parts:
            return None
        factors = _LINEAR[x.opcode]
        pairs = [p for p in parts if p is not None]
        first, step = (sum(f * p[k] for f, p in zip(factors, pairs, strict=True)) for k in (0, 1))
        return first, step

    def _batched(self, x: Instruction) -> Instruction | None:
        """The values of one operation; None where nothing says how to write them."""
        written = {
            "dynamic-slice": self._slices,
            "dot": self._product,
            "gather": self._at_indices,
            "scatter": self._at_indices,
            "convolution": self._convolution,
            "dynamic-update-slice": self._updated,
        }
        if x.opcode in written:
            return written[x.opcode](x)
        if x.is_get_tuple_element:
            return make.get_tuple_element(self.loop, self.computed[x.operand], x.tuple_index)
        if x.opcode not in ELEMENTWISE_OPCODES and x.opcode not in _OF_EACH:
            return None
        count = x.operand_count // (2 if x.opcode in _STARTING else 1)
        starts = x.operands[count:]
        if any(o not in self.fixed for o in starts):
            return None
        operands = [*map(self.over_all, x.operands[:count]), *(self.fixed[o] for o in starts)]
        return self._copy(x, operands, **self._attributes(x))

    def _attributes(self, x: Instruction) -> dict[str, object]:
        """The attributes that name dimensions, after a new leading one."""
        first = [0] if x.opcode in ("broadcast", "transpose") else []
        later: dict[str, object] = {"dimensions": [*first, *(d + 1 for d in x.dimensions)]}
        found = later if "dimensions" in x.attributes else {}
        if x.is_slice:
            found["slice"] = SliceRanges([SliceRange(0, self.trips, 1), *ranges_of(x)])
        if x.opcode == "pad":
            found["padding"] = f"0_0x{x.raw('padding')}"
        if x.opcode == "reduce-window":
            found["window"] = Window((WindowDimension(1), *window_of(x)))
        return found

    def _copy(
        self,
        x: Instruction,
        operands: Sequence[Instruction],
        shape: Shape | None = None,
        /,
        **attributes: object,
    ) -> Instruction:
        new = x.clone(operands, shape=shape or self._leading(x.shape))
        new.attributes = new.attributes.without("indices_are_sorted", "unique_indices").updated(**attributes)
        return self._add(new)

    def _slices(self, x: Instruction) -> Instruction | None:
        """The array of which each iteration reads its own part, or one element along a dimension."""
        whole = self.init[x.operand.tuple_index] if self._is_own_row(x) else self.fixed.get(x.operand)
        if whole is None:
            rows = self.computed[x.operand]
            starts = self._starts(x.operands[1:])
            sizes = [self.trips, *x.sizes]
            return make.dynamic_slice(self.loop, rows, starts, sizes) if starts else self._parts(x, rows, 1)
        place = self._place(x.operands[1:])
        if not place or whole.sizes != (self.trips, *x.sizes[1:]):
            along = [d for d, o in enumerate(x.operands[1:]) if integer_of(o) != 0]
            sizes = [1 if d in along else n for d, n in enumerate(whole.sizes)]
            if len(along) != 1 or sizes != list(x.sizes):
                return self._parts(x, whole, 0)
            rows = gather_rows(self.loop, whole, self.over_all(x.operands[1 + along[0]]), along[0])
            return make.reshape(self.loop, self._leading(x.shape), rows)
        if place < 0:
            whole = self._reversed(whole)
        return make.reshape(self.loop, self._leading(x.shape), whole)

    def _starts(self, starts: Sequence[Instruction]) -> Instructions:
        """The start of a part of each row that is at the same place in all; nothing for others."""
        if not all(o in self.fixed for o in starts):
            return []
        return [make.zero(self.loop, starts[0].element_type), *(self.fixed[o] for o in starts)]

    def _updated(self, x: Instruction) -> Instruction | None:
        starts = self._starts(x.operands[2:])
        rows, part = (self.over_all(o) for o in x.operands[:2])
        return make.dynamic_update_slice(self.loop, rows, part, starts) if starts else None

    def _iterated(self, x: Instruction) -> Instruction | None:
        """A loop that does in each iteration that of all; None where it does not count to a constant."""
        counter, init = plain_counter(x), x.operand.operands
        if counter is None or not x.users or not self.knows(*init):
            return None
        body, number = body_of(x), counter.index
        given = body.parameter
        results = list(enumerate(body.root.operands))
        differ = {k for k, o in enumerate(init) if o in self.computed}
        before = -1
        while before < len(differ):
            before = len(differ)
            own = {u for u in given.users if u.tuple_index in differ}
            differ |= {k for k, o in results if set(reach([o], lambda y: y.operands)) & own}
        rest = [k for k, _ in results if k != number]

        def iteration(at: Instruction, state: Instructions) -> Instructions:
            inner = Batch(at, self.trips, body)
            values = dict(zip(rest, state, strict=True))
            values[number] = make.convert(at, at, init[number].element_type)
            for u in given.users:
                (inner.computed if u.tuple_index in differ else inner.fixed)[u] = values[u.tuple_index]
            inner.extend()
            return [inner.over_all(o) if k in differ else inner.fixed[o] for k, o in results if k != number]

        state = [self.over_all(init[k]) if k in differ else self.fixed[init[k]] for k in rest]
        with suppress(KeyError):  # what a batch cannot do
            after = counted_loop(self.loop, state, iteration, counter.trips)
            after.insert(number, make.scalar(self.loop, init[number].element_type, counter.trips))
            whole = [o if k in differ else self._repeated(o) for k, o in enumerate(after)]
            return make.tuple_of(self.loop, whole)
        return None

    def _repeated(self, one: Instruction) -> Instruction:
        return make.broadcast(self.loop, self._leading(one.shape), one, range(1, one.rank + 1))

    def _reversed(self, x: Instruction) -> Instruction:
        return make.add(self.loop, "reverse", x.shape, [x], dimensions="{0}")

    def _parts(self, x: Instruction, whole: Instruction, batch: int) -> Instruction:
        """Slices of an array, or with `batch` each of its own, that begin anywhere."""
        starts = [make.resized(self.loop, self.over_all(o), [self.trips, 1]) for o in x.operands[1:]]
        return indexed(
            self.loop,
            "gather",
            [whole, make.concatenate(self.loop, starts, 1)],
            self._leading(x.shape),
            1,
            offset_dims=range(1, x.rank + 1),
            collapsed_slice_dims=(),
            start_index_map=range(batch, batch + x.rank),
            operand_batching_dims=range(batch),
            start_indices_batching_dims=range(batch),
            slice_sizes=[*[1] * batch, *x.sizes],
        )

    def _at_indices(self, x: Instruction) -> Instruction | None:
        """A gather or scatter; of a table that all iterations read, at further indices."""
        if x.opcode == "gather" and (table := self.fixed.get(x.operand)) is not None:
            return self._copy(x, [table, self.over_all(x.second)], **_after_leading(x))
        if x.operand_count > 3:
            return None
        sizes = numbers_of(x, "slice_sizes")
        own = {"slice_sizes": [1, *sizes]} if x.opcode == "gather" else {}
        return self._copy(x, list(map(self.over_all, x.operands)), **own, **_with_batch(x))

    def _convolution(self, x: Instruction) -> Instruction | None:
        """One convolution, of which the iterations are further images; None where the filters differ."""
        filters = self.fixed.get(x.second)
        labels = labels_of(x)
        if filters is None or x.raw("batch_group_count", "1") != "1":
            return None
        first = labels.input_batch_dimension
        last = labels.output_batch_dimension
        images = self.over_all(x.operand)
        images = moved(self.loop, images, 0, first)
        images = make.reshape(self.loop, self._larger(x.operand.shape, first), images)
        found = self._add(x.clone([images, filters], shape=self._larger(x.shape, last)))
        sizes = list(x.sizes)
        sizes.insert(last, self.trips)
        return moved(self.loop, make.resized(self.loop, found, sizes), last, 0)

    def _larger(self, shape: Shape, along: int) -> Shape:
        sizes = list(shape.dimensions)
        sizes[along] *= self.trips
        return with_dimensions(shape, sizes)

    def _total(self, k: int) -> Instruction | None:
        """An element of the state to which iterations add what is known, also at places; None for others."""
        x = self.body.root.operands[k]
        is_at_places = x.opcode == "scatter" and x.operand_count == 3 and combines_by(x, "add")
        if is_at_places and not is_element(x.operand, self.given, k):
            return None
        parts = x.operands if is_at_places else terms_of(x)
        rest = [t for t in parts if not is_element(t, self.given, k)]
        readers = [u for element in self.given.users if element.tuple_index == k for u in element.users]
        is_alone = x.user_count == len(readers) == 1
        if x.opcode not in ("add", "scatter") or not is_alone or not self.knows(*rest):
            return None
        if is_at_places:
            operands = [self.init[k], *map(self.over_all, rest)]
            return self._copy(x, operands, x.shape, **_after_leading(x))
        totals = [total_of(self.loop, self.over_all(t), [0]) for t in rest]
        return fold(self.loop, "add", [self.init[k], *totals])

    def _product(self, x: Instruction) -> Instruction:
        """One product: the iterations are rows of it where only one operand differs, else its batch."""
        dims = DotDimensions.of(x)
        batch = [dims.lhs_batch, dims.rhs_batch]
        contracting = [dims.lhs_contracting, dims.rhs_contracting]
        both = bool(dims.lhs_batch) or all(o in self.computed for o in x.operands)
        operands = []
        for side, o in enumerate(x.operands):
            operands.append(self.over_all(o) if both or o in self.computed else self.fixed[o])
            if both or o in self.computed:
                batch[side] = (*((0,) if both else ()), *(d + 1 for d in batch[side]))
                contracting[side] = tuple(d + 1 for d in contracting[side])
        found = new_dot(self.loop, operands, batch, contracting, x.element_type, x)
        is_first = both or x.operand in self.computed
        rows = 0 if is_first else x.operand.rank - len(contracting[0])
        return moved(self.loop, found, rows, 0) if rows else found


def _one_later(x: Instruction, names: str) -> dict[str, object]:
    """The lists of dimensions that an instruction has, moved behind a new leading dimension."""
    return {n: [d + 1 for d in numbers_of(x, n)] for n in names.split() if n in x.attributes}


def _after_leading(x: Instruction) -> dict[str, object]:
    """The dimensions that a gather or scatter names of arrays that get a leading one."""
    windows = "offset_dims update_window_dims"
    batches = "start_indices_batching_dims scatter_indices_batching_dims"
    texts = _one_later(x, f"{windows} {batches}")
    return texts | {"index_vector_dim": int(x.raw("index_vector_dim") or 0) + 1}


def _with_batch(x: Instruction) -> dict[str, object]:
    """The dimensions that a gather or scatter names where all its arrays get a leading one, a batch."""
    of_gather = "collapsed_slice_dims start_index_map"
    of_scatter = "inserted_window_dims scatter_dims_to_operand_dims"
    texts = _one_later(x, f"{of_gather} {of_scatter}")
    names = ("operand", "start_indices") if x.opcode == "gather" else ("input", "scatter_indices")
    for name in names:
        dims = numbers_of(x, f"{name}_batching_dims")
        texts[f"{name}_batching_dims"] = [0, *(d + 1 for d in dims)]
    return _after_leading(x) | texts


def iterate_at_once(loop: Instruction) -> bool:
    """Iterations that do not depend on each other are done at once, as `jax.vmap` does."""
    new = loop
    if has(body_of(loop), "conditional"):
        new = new_loop(loop, loop.operand, condition_of(loop), clone_computation(body_of(loop)))
        for x in [x for x in body_of(new) if x.opcode == "conditional"]:
            choose_result(x)
        for x in [x for x in body_of(new) if x.opcode == "select"]:
            _choose_row(x)
        drop_unused(body_of(new))
        loop.replace_all_uses_with(new)
    batch = Batch.of(new, in_any_order=True)
    is_done = batch is not None and bool(batch.changed()) and batch.finish()
    if not is_done and new is not loop:
        new.replace_all_uses_with(loop)
    return is_done


def _choose_row(x: Instruction) -> None:
    """Have a choice between an array and the same with another row be made of the rows."""
    test, *sides = x.operands
    for new, old in both_orders(sides) if test.is_broadcast and not test.dimensions else ():
        part, starts = written_part(new) or (x, {})
        if new.opcode != "scatter" or not starts or new.operand is not old:
            continue
        ((along, place),) = starts.items()
        places = starts_at(x, x.rank, make.resized(x, place, []), along)
        row = make.dynamic_slice(x, old, places, [1 if d == along else n for d, n in enumerate(x.sizes)])
        rows = part, make.reshape(x, part.shape, row)
        chosen, other = rows if new is sides[0] else rows[::-1]
        mask = make.broadcast(x, part.shape.with_element_type("pred"), test.operand)
        x.replace_all_uses_with(make.copy_of(new, [old, place, make.select(x, mask, chosen, other)]))


def scan_linear(loop: Instruction) -> bool:
    """h = a·h + b becomes `jax.lax.associative_scan`."""
    batch = Batch.of(loop)
    if batch is None:
        return False
    found = False
    for k, x in batch.changed():
        if x in batch.computed or x.element_type not in {*FLOATING_TYPES, *COMPLEX_TYPES}:
            continue
        whole = with_dimensions(x.shape, [batch.trips, *x.sizes])
        one = make.broadcast(loop, whole, make.scalar(loop, x.element_type, 1))
        before = next((u for u in batch.given.users if u.tuple_index == k), x)
        a, b = _linear(batch, before, one).get(x, (one, None))
        if a is None or a is one or b is None:
            continue
        product, sums = _recurrence(loop, a, b)
        first = batch.init[k]
        if not is_constant(first, 0):
            start = make.broadcast(loop, whole, first, range(1, whole.rank))
            sums = make.binary(loop, "add", make.binary(loop, "multiply", product, start), sums)
        batch.computed[x] = sums
        earlier = make.resized(loop, first, [1, *first.sizes])
        last = make.part(loop, sums, 0, batch.trips - 1)
        batch.computed[before] = make.concatenate(loop, [earlier, last], 0)
        batch.extend()
        found = True
    return found and batch.finish()


Linear = tuple[Instruction | None, Instruction | None]
"""a and b of a·h + b, over all iterations; None for no h, or for 0."""


def _linear(
    batch: Batch,
    element: Instruction,
    one: Instruction,
) -> dict[Instruction, Linear]:
    """Values as functions of an element h of the state, where they are linear; `one` is the factor of h."""
    found: dict[Instruction, Linear] = {element: (one, None)}
    for x in batch.body.post_order():
        sides = [found.get(o) or ((None, batch.over_all(o)) if batch.knows(o) else None) for o in x.operands]
        pairs = [p for p in sides if p is not None]
        if x.opcode not in _LINEAR_OPCODES or x in batch.computed or len(pairs) < len(sides):
            continue
        (a, b), (c, d) = [*pairs, (None, None)][:2]
        if x.opcode in _LINEAR:
            found[x] = _joined(x, a, c, batch), _joined(x, b, d, batch)
            continue
        if a is None and x.opcode == "multiply":
            (a, b), (c, d) = (c, d), (a, b)
        if c is None and d is not None:
            scaled = [v and make.binary(batch.loop, x.opcode, v, d) for v in (a, b)]
            found[x] = scaled[0], scaled[1]
    return found


_LINEAR_OPCODES = frozenset({*_LINEAR, "multiply", "divide"})


def _joined(
    x: Instruction,
    a: Instruction | None,
    b: Instruction | None,
    batch: Batch,
) -> Instruction | None:
    if a is not None and b is not None:
        return make.binary(batch.loop, x.opcode, a, b)
    is_negated = x.opcode == "negate" or (a is None and x.opcode == "subtract")
    one = b if a is None else a
    return make.unary(batch.loop, "negate", one) if one is not None and is_negated else one


def _recurrence(at: Instruction, a: Instruction, b: Instruction) -> tuple[Instruction, Instruction]:
    """All products of a and all sums h = a·h + b, h 0 before the first, as `jax.lax.associative_scan` has
    them: of pairs, then of pairs of pairs (Blelloch, Prefix Sums and Their Applications, 1990)."""
    n, both = a.sizes[0], (a, b)
    if n < 2:
        return both
    binary, part = partial(make.binary, at), partial(make.part, at)

    def joined(*pairs: Instruction) -> tuple[Instruction, Instruction]:
        a1, b1, a2, b2 = pairs
        after = binary("add", binary("multiply", a2, b1), b2)
        return binary("multiply", a1, a2), after

    odd = _recurrence(at, *joined(*(part(x, k, n - 1 + k, 0, 2) for k in (0, 1) for x in both)))
    even = [part(x, 0, 1) for x in both]
    if n > 2:
        before = [part(x, 0, (n - 1) // 2) for x in odd]
        further = joined(*before, *(part(x, 2, n, 0, 2) for x in both))
        even = [make.concatenate(at, two, 0) for two in zip(even, further, strict=True)]
    first = [make.padded(at, x, 0, 1 - n % 2, 0, 1) for x in even]
    second = [make.padded(at, x, 1, n % 2, 0, 1) for x in odd]
    products, sums = (binary("add", *two) for two in zip(first, second, strict=True))
    return products, sums


def carry(loop: Instruction, first: Sequence[Instruction]) -> tuple[Instructions, Instructions, Instruction]:
    """Further elements of the state: these in the body, all after the loop, and the body's new root."""
    size = loop.tuple_size
    body = body_of(loop)
    init = make.tuple_of(loop, [*loop.operand.operands, *first])
    _, given = (replace_parameter(part, init.shape) for part in (condition_of(loop), body))
    inside = [make.get_tuple_element(body.root, given, size + k) for k in range(len(first))]
    body.root = make.tuple_of(body.root, [*body.root.operands, *inside])
    new = new_loop(loop, init, condition_of(loop), body)
    after = make.elements(new, range(size + len(first)))
    replace_state(loop, after[:size])
    return inside, after, body.root


def hoist_products(loop: Instruction) -> bool:
    """Products that wait for no iteration, and what follows from them, are computed before the loop."""
    batch = Batch.of(loop)
    if batch is None:
        return False
    for x in batch.body.post_order():
        is_open = x.is_dot and x not in batch.computed
        if is_open and multiply_apart(x, batch.computed.__contains__):
            batch.extend()
    needs = set(filter(is_product, batch.computed))
    for x in batch.body.post_order():
        if x in batch.computed and not needs.isdisjoint(x.operands):
            needs.add(x)
    ends = {x for x in needs if any(u not in batch.computed for u in x.users)}
    while narrow := {x for x in ends if x.opcode in _VIEWS and x.operand in needs}:
        ends = (ends - narrow) | {x.operand for x in narrow}
    order = [x for x in batch.body.post_order() if x in ends]
    inside, _, root = carry(loop, [batch.computed[x] for x in order])
    number = make.get_tuple_element(root, batch.given, batch.number)
    for x, whole in zip(order, inside, strict=True):
        x.replace_all_uses_with(row_at(root, whole, number, x.shape))
    return bool(order)


def row_at(
    at: Instruction,
    whole: Instruction,
    number: Instruction,
    shape: Shape,
) -> Instruction:
    starts = starts_at(at, whole.rank, number)
    return make.reshape(at, shape, make.dynamic_slice(at, whole, starts, [1, *shape.dimensions]))


def _compute_before(loop: Instruction) -> bool:
    """Arrays that no iteration changes are computed before the loop, as XLA does on a CPU alone."""
    return any(x.is_tuple or x.rank for x in hoist_invariants(loop, OnlySkipped()))


def sum_in_carry(loop: Instruction) -> bool:
    """Results that are gathered only to be summed over the iterations are summed in the loop."""
    if (batch := Batch.of(loop)) is None:
        return False
    for element in list(loop.users):
        values, totals = _rows_to_sum(element)
        part = batch.stacked(element) if totals else None
        if part is None:
            continue
        shapes = {x: with_dimensions(x.shape, x.sizes[1:]) for x in values}
        inside, after, root = carry(loop, [make.zeros(loop, shapes[t.operand]) for t in totals])
        rows = {after[element.tuple_index]: make.reshape(root, shapes[element], part)}
        for x in values[1:]:
            operands = [rows.get(o) or _constant_like(root, o, shapes[x]) for o in x.operands]
            rows[x] = root.parent.add_instruction(x.clone(operands, shape=shapes[x]))
        for total, own, place in zip(totals, inside, range(-len(totals), 0), strict=True):
            new = make.binary(root, "add", own, rows[total.operand])
            root.replace_operand(len(after) + place, new)
            others = [d - 1 for d in total.dimensions if d]
            add = total.to_apply
            end = after[place]
            replace(total, make.reduce(total, end, total.second, others, add) if others else end)
        sum_in_carry(after[0].operand)
        return True
    return False


def keep_last(loop: Instruction) -> bool:
    """Results that are stacked, of which only the last is read, are carried, or are what the loop carries."""
    if (batch := Batch.of(loop)) is None:
        return False
    for element in list(loop.users):
        last = _last_rows(element, [*range(element.rank)])
        part = batch.stacked(element) if last else None
        if part is None:
            continue
        shape = with_dimensions(element.shape, element.sizes[1:])
        row = part.through("reshape")
        own = [k for k, x in enumerate(batch.body.root.operands) if x is row]
        _, after, root = carry(loop, [] if own else [make.zeros(loop, shape)])
        if not own:
            root.replace_operand(len(after) - 1, make.reshape(root, shape, part))
        for x, order in last:
            one = make.resized(x, after[own[0] if own else -1], [1, *shape.dimensions])
            replace(x, make.transpose(x, one, order))
        keep_last(after[0].operand)
        return True
    return False


def _last_rows(x: Instruction, order: list[int]) -> list[Labelled]:
    """All that reads `x`, whose dimensions are these of a stack, as parts of its last row; else none."""
    found = []
    for user in x.users:
        if user.is_transpose:
            inner = _last_rows(user, [order[d] for d in user.dimensions])
            if not inner:
                return []
            found += inner
            continue
        if not user.is_slice:
            return []
        along = order.index(0)
        size = x.sizes[along]
        is_row = user.element_count * size == x.element_count
        if not is_row or ranges_of(user)[along].start != size - 1:
            return []
        found.append((user, order))
    return found


def _rows_to_sum(x: Instruction) -> tuple[Instructions, Instructions]:
    """`x` and values computed row by row from it, and their sums over rows; none if others read them."""
    rows = [x]
    sums = []
    for user in x.parent.post_order():
        own = [o for o in user.operands if o in rows]
        others = [o for o in user.operands if o not in rows]
        if own and user.opcode in ELEMENTWISE_OPCODES and all(map(is_constant, others)):
            rows.append(user)
        elif own and user.is_reduce and len(others) == 1 and 0 in user.dimensions:
            sums.append(user)
        elif own:
            return rows, []
    return rows, sums if all(map(is_total, sums)) else []


def _constant_like(at: Instruction, x: Instruction, shape: Shape) -> Instruction:
    """The scalar constant that `x` is, in another computation and shape."""
    one = at.parent.add_instruction(source(x).clone([]))
    one = make.convert(at, one, x.element_type)
    return make.broadcast(at, shape.with_element_type(x.element_type), one)


BATCHED = {
    "vmap-not-map": Rewriting("while", iterate_at_once),
    "associative-scan": Rewriting("while", scan_linear),
    "compute-before-the-loop": Rewriting("while", _compute_before, "gpu"),
    "hoist-the-product": Rewriting("while", hoist_products),
    "sum-in-the-carry": Rewriting("while", sum_in_carry),
    "return-the-carry": Rewriting("while", keep_last),
}
