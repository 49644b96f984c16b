"""Arrays that a loop carries, as rings, behind barriers or stacked; small arrays worked on as one vector."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.grouping import grouped
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, ranges_of, with_dimensions
from hlofuse.passes.loop.parts import body_of, is_element, only_elements_are_read
from hlofuse.passes.loop.trip_count import counter_of
from hlofuse.reports.advice.batching import Batch, carry
from hlofuse.reports.advice.matching import combines_by, is_constant, origins
from hlofuse.reports.advice.restated import combined, row_written, terms_of
from hlofuse.reports.advice.written import Rewriting, replace

_FEWEST = 3
"""Arrays that are worth joining."""
_UPDATES = ("dynamic-update-slice", "scatter")


# A window that moves over its rows.


def write_ring(loop: Instruction) -> bool:
    """A window that shifts in each iteration is overwritten where it is oldest, and put in order at the end.

    False where more is read of it than reductions over its rows, and single rows.
    """
    counter, body = counter_of(loop), body_of(loop)
    if counter is None or counter.init or counter.step != 1 or not counter.trips or loop.is_root:
        return False
    if body.root.opcode != "tuple" or any(u.opcode != "get-tuple-element" for u in loop.users):
        return False
    given, found = body.parameters[0], False
    for k, x in enumerate(body.root.operands):
        shift = _shift(x, given, k)
        if shift is None:
            continue
        joined, window, new, is_front = shift
        along, rank = joined.dimensions[0], window.shape.rank
        size, rows = window.shape.dimensions[along], new.shape.dimensions[along]
        rest = next(o for o in joined.operands if o.opcode == "slice" and o.operands[0] is window)
        skipped = (body.root, joined, rest, x)
        read = [_rows_read(v, along, skipped) for v in (x, window)]
        sums = [u for u in rest.users if u is not joined]
        if size % rows or None in read or body.root.operands.count(x) > 1:
            continue
        if any(u.opcode != "reduce" or along not in u.dimensions or len(u.operands) > 2 for u in sums):
            continue
        number = make.get_tuple_element(new, given, counter.index)
        kind = number.shape.element_type
        place = make.binary(new, "multiply", number, make.scalar(new, kind, rows))
        place = make.binary(new, "remainder", place, make.scalar(new, kind, size))
        if is_front:
            place = make.binary(new, "subtract", make.scalar(new, kind, size - rows), place)
        zeros = [make.scalar(new, kind, 0)] * rank
        starts = [*zeros[:along], place, *zeros[along + 1 :]]
        written = make.dynamic_update_slice(new, window, new, starts)
        offsets = (0, rows) if is_front else (rows, 0)
        for value, parts, offset in zip((written, window), read, offsets, strict=True):
            for part in parts or ():
                row = make.scalar(part, kind, offset + ranges_of(part)[along].start)
                row = make.binary(part, "add", place, row)
                row = make.binary(part, "remainder", row, make.scalar(part, kind, size))
                at = [*zeros[:along], row, *zeros[along + 1 :]]
                part.replace_all_uses_with(make.dynamic_slice(part, value, at, part.shape.dimensions))
        for total in sums:
            old = _masked(written, total.operands[1], place, along, rows)
            total.replace_operand(0, old)
        x.replace_all_uses_with(written)
        oldest = counter.trips * rows % size
        _put_in_order(loop, k, along, size - oldest if is_front and oldest else oldest)
        found = True
    return found


def _masked(x: Instruction, value: Instruction, place: Instruction, along: int, rows: int) -> Instruction:
    """`x` with a value in so many rows from `place` on."""
    numbers = make.iota(x, x.shape.with_element_type(place.shape.element_type), along)
    first = make.broadcast(x, numbers.shape, place, ())
    number = make.binary(x, "subtract", numbers, first)
    zero, end = (make.scalar_like(number, n) for n in (0, rows))
    is_new = make.binary(x, "and", make.compare(x, "GE", number, zero), make.compare(x, "LT", number, end))
    return make.select(x, is_new, make.broadcast(x, x.shape, value, ()), x)


def _shift(
    x: Instruction, given: Instruction, k: int
) -> tuple[Instruction, Instruction, Instruction, bool] | None:
    """The concatenate that shifts an element of the state, that element, its new rows, whether first."""
    row = row_written(x) if x.opcode in _UPDATES else None
    joined = x.operands[0] if row is not None else x
    if joined.opcode != "concatenate" or len(joined.operands) != 2:
        return None
    along = joined.dimensions[0]
    for is_front in (False, True):
        rest, new = joined.operands[:: -1 if is_front else 1]
        window = rest.operands[0] if rest.opcode == "slice" else rest
        if not is_element(window, given, k) or window is rest:
            continue
        size, rows = window.shape.dimensions[along], new.shape.dimensions[along]
        first = 0 if is_front else rows
        expected = [(first if d == along else 0, 1) for d in range(x.shape.rank)]
        if window.shape != x.shape or [(r.start, r.stride) for r in ranges_of(rest)] != expected:
            continue
        if row is None:
            return joined, window, new, is_front
        place = 0 if is_front else size - rows
        if along == 0 and row[0] == place and row[1].shape == new.shape and len(joined.users) == 1:
            return joined, window, row[1], is_front
    return None


def _rows_read(x: Instruction, along: int, skipped: Collection[Instruction]) -> list[Instruction] | None:
    """The single rows that are read of `x`; None where the order of its rows is of use in another way."""
    alike, rows = {x}, list[Instruction]()
    for user in computation_of(x).post_order():
        if user in skipped or alike.isdisjoint(user.operands):
            continue
        others = [o for o in user.operands if o not in alike]
        if user.opcode == "slice" and user.operands[0] is x and user.shape.dimensions[along] == 1:
            rows.append(user)
        elif user.opcode in ELEMENTWISE_OPCODES:
            if any(o.opcode != "broadcast" or along in o.dimensions for o in others):
                return None
            alike.add(user)
        elif user.opcode != "reduce" or along not in user.dimensions or len(user.operands) > 2:
            return None
    root = computation_of(x).root
    return None if any(v is not x and root in v.users for v in alike) else rows


def _put_in_order(loop: Instruction, k: int, along: int, first: int) -> None:
    """Have all that reads an element after the loop read its rows from `first` on, then those before."""
    readers = [u for u in loop.users if u.tuple_index == k] if first else []
    window = make.get_tuple_element(loop, loop, k)
    sizes = list(window.shape.dimensions)
    zeros = [0] * len(sizes)
    middle = [first if d == along else 0 for d in range(len(sizes))]
    end = [first if d == along else n for d, n in enumerate(sizes)]
    for reader in readers:
        parts = [make.slice_of(reader, window, middle, sizes), make.slice_of(reader, window, zeros, end)]
        reader.replace_all_uses_with(make.concatenate(reader, parts, along))


# Reads that XLA may do after the array is overwritten.


def read_behind_barrier(loop: Instruction) -> bool:
    """Parts of a carried array are read before its update, or after, for certain: then XLA copies nothing."""
    body, found = body_of(loop), False
    for k, x in enumerate(body.root.operands if body.root.opcode == "tuple" else ()):
        chain = [x]
        while chain[-1].opcode in _UPDATES:
            chain.append(chain[-1].operands[0])
        if len(chain) < 2 or not is_element(chain[-1], body.parameters[0], k):
            continue
        for value, update in zip(chain[1:], chain, strict=False):
            reads = [u for u in value.users if u is not update]
            if reads and all(2 * u.shape.byte_size <= value.shape.byte_size for u in reads):
                _wait(value, [value, *reads], [[update], *(list(u.users) for u in reads)])
                found = True
        for value in chain[:-1]:
            if len(value.users) > 1:
                _wait(value, [value], [list(value.users)])
                found = True
    return found


def _wait(at: Instruction, values: list[Instruction], readers: list[list[Instruction]]) -> None:
    """Have these readers of each value wait for all of the values."""
    both = make.tuple_of(at, values)
    barrier = make.add(at, "opt-barrier", both.shape, [both])
    for value, new, own in zip(values, make.elements(barrier, range(len(values))), readers, strict=True):
        for reader in own:
            value.replace_use_with(reader, new)


# Operations that several arrays go through alike.


class _Entangled(Exception):
    """A value is one of several in two ways."""


class Together(Batch):
    """Operations that several arrays go through alike, written once: on the arrays stacked, or end to end."""

    def __init__(self, lanes: Sequence[Instruction], *, is_flat: bool) -> None:
        self.loop, self.is_flat = lanes[0], is_flat
        self.trips = sum(x.shape.element_count for x in lanes) if is_flat else len(lanes)
        self.computed, self.fixed, self.numbers = {}, {}, set()
        self._lanes: dict[Instruction, tuple[Instruction, ...]] = {}

    def know(self, lanes: Sequence[Instruction], value: Instruction) -> None:
        """`value` holds these."""
        self._lanes[lanes[0]] = tuple(lanes)
        self.computed[lanes[0]] = value

    def join(self, lanes: Sequence[Instruction]) -> bool:
        """Have these values be one; True where one operation computes them all.

        _Entangled where one of them is part of something else already.
        """
        first = lanes[0]
        if self._lanes.setdefault(first, tuple(lanes)) != tuple(lanes):
            raise _Entangled
        if first in self.computed or first in self.fixed:
            return True
        if all(x is first for x in lanes) and not (self.is_flat and first.shape.dimensions):
            self.fixed[first] = first
            return True
        if len({self._form(x) for x in lanes}) == 1 and self._may_be_joined(lanes):
            for column in zip(*(x.operands for x in lanes), strict=True):
                self.join(column)
            if (found := self._batched(first)) is not None:
                self.computed[first] = found
                return True
        parts = [make.reshape(self.loop, self._one(x.shape), x) for x in lanes]
        self.computed[first] = make.concatenate(self.loop, parts, 0)
        return False

    def part(self, whole: Instruction, lane: int, lanes: Sequence[Instruction]) -> Instruction:
        """One of the values that are joined."""
        ends = [0, *accumulate(self._one(x.shape).dimensions[0] for x in lanes)]
        rest = whole.shape.dimensions[1:]
        part = make.slice_of(whole, whole, [ends[lane], *[0] * len(rest)], [ends[lane + 1], *rest])
        return make.reshape(whole, lanes[lane].shape, part)

    def _one(self, shape: Shape) -> Shape:
        return with_dimensions(shape, [shape.element_count] if self.is_flat else [1, *shape.dimensions])

    def _leading(self, shape: Shape) -> Shape:
        return array(shape.element_type, [self.trips]) if self.is_flat else super()._leading(shape)

    def _may_be_joined(self, lanes: Sequence[Instruction]) -> bool:
        x = lanes[0]
        if self.is_flat and x.opcode == "broadcast":
            return not x.dimensions and len({o.operands[0] for o in lanes}) == 1
        others = () if self.is_flat else _STACKED
        return x.opcode in ELEMENTWISE_OPCODES or x.opcode in others

    def _form(self, x: Instruction) -> object:
        """Equal for operations that do the same."""
        names = ("metadata", "frontend_attributes", "sharding", *(name for name, _ in x.called))
        shape = x.shape.element_type if self.is_flat else str(x.shape)
        functions = tuple(c.root.opcode for c in x.called_computations)
        return x.opcode, shape, len(x.operands), x.attributes.without(*names).text, functions


_STACKED = frozenset("dot reshape broadcast transpose slice reduce concatenate".split())


def _like(x: Instruction) -> tuple[object, ...]:
    """Equal for values that may be computed alike."""
    return x.shape.element_type, *(o.opcode for o in origins(x, 40))


def _are_joined(lanes: Sequence[Instruction], *, is_flat: bool) -> bool:
    """True if one operation computes all of them."""
    try:
        return Together(lanes, is_flat=is_flat).join(lanes)
    except _Entangled:
        return False


def stack_state(loop: Instruction) -> bool:
    """Carried arrays of one shape that go through the same operations become one array."""
    counter, body, found = counter_of(loop), body_of(loop), False
    if body.root.opcode != "tuple" or loop.operands[0].opcode != "tuple" or not only_elements_are_read(loop):
        return False
    changed = [
        (k, x)
        for k, x in enumerate(body.root.operands)
        if not is_element(x, body.parameters[0], k) and (counter is None or k != counter.index)
    ]
    for group in grouped(((str(x.shape), _like(x)), (k, x)) for k, x in changed).values():
        lanes = [x for _, x in group]
        if len(group) < _FEWEST or not _are_joined(lanes, is_flat=False):
            continue
        first = [loop.operands[0].operands[k] for k, _ in group]
        init = Together(first, is_flat=False)
        init.join(first)
        inside, after, root = carry(loop, [init.over_all(first[0])])
        given, loop = body.parameters[0], after[0].operands[0]
        elements = [
            next((u for u in given.users if u.tuple_index == k), inside[0].operands[0]) for k, _ in group
        ]
        both = Together(lanes, is_flat=False)
        both.know(elements, inside[0])
        try:
            both.join(lanes)
        except _Entangled:
            return False
        new = both.over_all(lanes[0])
        needed = _needed(new)
        for lane, (k, x) in enumerate(group):
            if x not in needed:
                x.replace_all_uses_with(both.part(new, lane, lanes))
            elements[lane].replace_all_uses_with(both.part(inside[0], lane, lanes))
            root.replace_operand(k, elements[lane])
            after[k].replace_all_uses_with(both.part(after[-1], lane, lanes))
        root.replace_operand(len(root.operands) - 1, new)
        found = True
    return found


def _needed(x: Instruction) -> set[Instruction]:
    """All that a value is computed from."""
    found, seen = [x], {x}
    for i in found:
        found += (fresh := [o for o in dict.fromkeys(i.operands) if o not in seen])
        seen.update(fresh)
    return seen


def reduce_as_vector(x: Instruction) -> bool:
    """Arrays that are reduced one by one, to one number, are reduced end to end."""
    if any(u.opcode == x.opcode for u in x.users):
        return False
    terms = terms_of(x, x.opcode)
    sums = [t for t in terms if t.opcode == "reduce" and t.shape.is_array and not t.shape.dimensions]
    sums = [t for t in sums if combines_by(t, x.opcode) and len(t.users) == 1]
    groups = grouped(((t.operands[1], _like(t.operands[0])), t) for t in sums)
    found = max(groups.values(), key=len, default=[])
    if len(found) < _FEWEST or (x.opcode == "add" and not is_constant(found[0].operands[1], 0)):
        return False
    lanes, first = [t.operands[0] for t in found], found[0]
    whole = Together(lanes, is_flat=True)
    try:
        whole.join(lanes)
    except _Entangled:
        return False
    function = first.called_computations[0]
    new = make.reduce(x, whole.over_all(lanes[0]), first.operands[1], [0], function)
    return replace(x, combined(x, x.opcode, [new, *(t for t in terms if t not in found)]))


def update_as_vector(x: Instruction) -> bool:
    """Results that go through the same operations are computed end to end, and divided."""
    if not x.is_root or computation_of(x) is not module_of(computation_of(x)).entry:
        return False
    results = [(k, o) for k, o in enumerate(x.operands) if o.opcode in ELEMENTWISE_OPCODES and o.shape.rank]
    found = False
    for group in grouped((_like(o), (k, o)) for k, o in results).values():
        lanes = [o for _, o in group]
        if len(group) < _FEWEST or not _are_joined(lanes, is_flat=True):
            continue
        whole = Together(lanes, is_flat=True)
        whole.join(lanes)
        for lane, (k, _) in enumerate(group):
            x.replace_operand(k, whole.part(whole.over_all(lanes[0]), lane, lanes))
        found = True
    return found


CARRIED = {
    "ring-not-shift": Rewriting("while", write_ring),
    "read-behind-a-barrier": Rewriting("while", read_behind_barrier),
    "stack-the-state": Rewriting("while", stack_state),
    "reduce-as-one-vector": Rewriting("add maximum minimum and or", reduce_as_vector),
    "update-as-one-vector": Rewriting("tuple", update_as_vector),
}
