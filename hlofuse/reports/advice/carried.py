"""Arrays that a loop carries, as rings, behind barriers or stacked; small arrays worked on as one vector."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import count

from hlofuse.analysis.components import depends_on
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.kernels import CONTROL_FLOW
from hlofuse.ir import (
    Instruction,
    Instructions,
    InstructionSequence,
    Shape,
    grouped,
    has_side_effect,
    reach,
    values,
)
from hlofuse.matching.key import Keys
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, numbers_of, ranges_of, with_dimensions
from hlofuse.passes.loop.parts import body_of, is_element
from .batching import Batch, carry, row_at
from .contracting import as_sum, terms_of, total_of
from .loops import plain_counter
from .matching import changed_by, combines_by, is_backward, is_total, origins, source
from .recipe import Recipe
from .written import Rewriting, fold, moved, replace, row_written, starts_at

_FEWEST = 3  # arrays that are worth joining
_PRODUCTS = ("dot", "convolution")
_UPDATES = ("dynamic-update-slice", "scatter")
_ROW_DIMS = ("inserted_window_dims", "scatter_dims_to_operand_dims")


def write_ring(loop: Instruction) -> bool:
    """A window that shifts in each iteration is overwritten where it is oldest, and put in order later. Rows
    that are read by their place are read before that, so that XLA copies nothing."""
    counter, body, found = plain_counter(loop), body_of(loop), False
    if counter is None or loop.is_root or any(not u.is_get_tuple_element for u in loop.users):
        return False
    given = body.parameter
    for k, x in enumerate(body.root.operands):
        shift = _shift(x, given, k)
        if shift is None or body.root.operands.count(x) > 1:
            continue
        joined, new, is_newest_first = shift
        along, window = joined.dimension, make.get_tuple_element(new, given, k)
        size, rows = window.sizes[along], new.sizes[along]
        own = [x, *(u for u in given.users if u.tuple_index == k)]
        skipped = {body.root, joined, x, *(o for o in joined.operands if o.user_count == 1)} - {new}
        reads = {u: v for v in own for u in v.users if u not in skipped and _is_block(u, along, rows)}
        taken = {*skipped, *reads}
        if size % rows or new in reads or not all(_is_free_of_order(v, along, taken) for v in own):
            continue
        binary, scalar = partial(make.binary, new), partial(make.scalar, new, "s32")
        number = make.get_tuple_element(new, given, counter.index)
        number = make.convert(new, number, "s32")  # the loop may count in fewer bits than the rows take
        place = binary("multiply", binary("remainder", number, scalar(size // rows)), scalar(rows))
        first = counter.trips * rows % size
        if is_newest_first:
            place = binary("subtract", scalar(size - rows), place)
            first = -first % size
        before = Instructions()
        for read, value in reads.items():  # the first row of the window before lies where the new one goes
            step = ranges_of(read)[along].start + rows * ((value is x) != is_newest_first)
            at = binary("remainder", binary("add", place, scalar(step)), scalar(size))
            source = x if value is x else window
            part = make.dynamic_slice(read, source, starts_at(new, window.rank, at, along), read.sizes)
            replace(read, part)
            before += [] if value is x else [part]
        update = make.dynamic_update_slice(new, window, new, starts_at(new, window.rank, place, along))
        x.replace_all_uses_with(update)
        if before:
            _wait(window, [window, *before], [[update], *(list(part.users) for part in before)])
        readers = [u for u in loop.users if u.tuple_index == k] if first else []
        window = make.get_tuple_element(loop, loop, k)
        twice = make.concatenate(loop, [window, window], along)
        for reader in readers:  # after the loop: the rows from `first` on, then those before
            reader.replace_all_uses_with(make.part(reader, twice, first, first + size, along))
        found = True
    return found


def update_stack(loop: Instruction) -> bool:
    """Rows that a scan passes from `xs` to `ys`, changed by each iteration, are changed in place."""
    forward = Batch.of(loop)
    if forward is None or loop.operand.user_count > 1:
        return False
    found = False
    for k, x in forward.changed():
        row = forward.written(k)
        changes = Instructions()
        while row is not None and (row.is_reshape or row.opcode in _UPDATES):
            changes += [row] if row.opcode in _UPDATES else []
            row = row.operand
        if row is None or x.opcode == "scatter" or not forward.reads_own_part(row):
            continue
        number, *zeros = row.operands[1:]
        whole, stack = row.operand, x.operand
        is_same = whole in forward.fixed and whole.shape == x.shape and number is x.operands[2]
        is_all = list(x.sizes) == [forward.trips, *row.sizes[1:]]
        if not is_same or not is_all or not all(_is_of_row(c, x) for c in changes):
            continue
        loop.operand.replace_operand(k, forward.init[whole.tuple_index])
        row.replace_all_uses_with(make.copy_of(row, [stack, number, *zeros]))
        for change in reversed(changes):
            stack = _change_in_stack(change, stack, number)
        if changes:
            new = make.copy_of(row, [stack, number, *zeros])
            changes[0].replace_all_uses_with(make.reshape(new, changes[0].shape, new))
        forward.body.root.replace_operand(k, stack)
        found = True
    return found


def _is_of_row(x: Instruction, stack: Instruction) -> bool:
    """True for a change of one row, whose indices lie side by side."""
    if x.sizes != stack.sizes[1:]:
        return False
    return x.opcode != "scatter" or (
        x.operand_count == 3 and int(x.attributes["index_vector_dim"]) >= x.second.rank - 1
    )


def _change_in_stack(x: Instruction, stack: Instruction, number: Instruction) -> Instruction:
    if x.opcode == "dynamic-update-slice":
        part, *starts = x.operands[1:]
        part = make.resized(x, part, [1, *part.sizes])
        starts = [number, *(make.convert(x, o, number.element_type) for o in starts)]
        return make.dynamic_update_slice(x, stack, part, starts)
    _, indices, part = x.operands
    places = list(indices.sizes)
    if int(x.attributes["index_vector_dim"]) == len(places):
        places.append(1)
        indices = make.resized(x, indices, places)
    column = make.convert(x, number, indices.element_type)
    column = make.broadcast(x, array(indices.element_type, [*places[:-1], 1]), column)
    joined = make.concatenate(x, [column, indices], len(places) - 1)
    moved = {n: [d + 1 for d in numbers_of(x, n)] for n in (*_ROW_DIMS, "input_batching_dims")}
    dims = {n: [0] * (n in _ROW_DIMS) + v for n, v in moved.items() if v or n in _ROW_DIMS}
    return make.copy_of(x, [stack, joined, part], stack.shape, **dims, index_vector_dim=len(places) - 1)


def compute_again(loop: Instruction) -> bool:
    """The backward loop computes again what the forward loop keeps for it, from the carry of each iteration,
    as with `jax.checkpoint` around the body. Where nothing is differentiated that would change nothing."""
    forward = Batch.of(loop) if loop.users else None
    if forward is None:
        return False
    body = forward.body
    written = [(u, p) for u in loop.users if (p := forward.written(u.tuple_index)) is not None]
    readers = dict.fromkeys(r for u, _ in written for t in u.users for r in t.users if r.is_while)
    for after in filter(is_backward, readers):
        if not after.users:  # replaced with another forward loop
            continue
        backward = Batch.of(after)
        reads = [(p, r) for u, p in written for r in _reads_of(backward, u, p.shape)]
        wanted = set(reach([p for p, _ in reads], lambda x: x.operands)) - {forward.given}
        needed = [x for x in body.post_order() if x in wanted]
        given = [x for x in needed if forward.given in x.operands and x not in forward.numbers]
        moving = [x for x in given if x not in forward.fixed]
        is_carried = all(x in given or x.is_reshape for x in needed)  # the carry itself
        is_carried = is_carried or any(forward.written(x.tuple_index) is not None for x in moving)
        if not reads or is_carried or any(has_side_effect(x) or x.opcode in CONTROL_FLOW for x in needed):
            continue
        rows = [with_dimensions(x.shape, [forward.trips, *x.sizes]) for x in moving]
        inside, state, root = carry(loop, [make.zeros(loop, shape) for shape in rows])
        number = make.get_tuple_element(root, forward.given, forward.number)
        for place, x, whole in zip(count(len(state) - len(moving)), moving, inside, strict=False):
            row = make.resized(root, x, [1, *x.sizes])
            starts = starts_at(root, whole.rank, number)
            root.replace_operand(place, make.dynamic_update_slice(root, whole, row, starts))
        stacks = dict(zip(moving, state[len(state) - len(moving) :], strict=True))
        again, _, root = carry(after, [stacks.get(x) or forward.init[x.tuple_index] for x in given])
        number = reads[0][1].second
        values = dict.fromkeys(forward.numbers, number)
        for x, value in zip(given, again, strict=True):
            values[x] = row_at(root, value, number, x.shape) if x in stacks else value
        for x in needed:
            if x not in values:
                clone = x.clone([values[o] for o in x.operands])
                values[x] = root.parent.add_instruction(clone)
        for part, read in reads:
            read.replace_all_uses_with(values[part])
        return True
    return False


def _reads_of(backward: Batch | None, stack: Instruction, shape: Shape) -> Instructions:
    """The parts of an array that each iteration of a loop reads; none if it reads others."""
    if backward is None:
        return []
    elements = (u for u in backward.given.users if backward.init[u.tuple_index] is stack)
    found = [r for u in elements for r in u.users if r is not backward.body.root]
    return found if all(r.shape == shape and backward.reads_own_part(r) for r in found) else []


def _shift(
    x: Instruction,
    given: Instruction,
    k: int,
) -> tuple[Instruction, Instruction, bool] | None:
    """The concatenate that shifts an element of the state, its new rows, and whether these are first."""
    row = row_written(x)
    joined = x.operand if row is not None else x
    if not joined.is_concatenate or joined.operand_count != 2:
        return None
    along = joined.dimension
    first, second = joined.operands
    is_first = first.sizes[along] < second.sizes[along]
    rest, new = (second, first) if is_first else (first, second)
    if not rest.is_slice or not is_element(rest.operand, given, k):
        return None
    old = ranges_of(rest)[along]
    if (old.start, old.stride) != (0 if is_first else new.sizes[along], 1):
        return None
    if row is None:
        return joined, new, is_first
    is_new = row[:2] == (along, 0 if is_first else rest.sizes[along])
    is_new = is_new and row[2].sizes == new.sizes
    return (joined, row[2], is_first) if is_new and joined.user_count == 1 else None


def _is_block(x: Instruction, along: int, rows: int) -> bool:
    """True for a slice of so many rows, all of each, from a multiple of their number on."""
    parts = dict(enumerate(ranges_of(x))) if x.is_slice else {}
    own = parts.pop(along, None)
    is_rows = own is not None and (own.limit - own.start, own.start % rows, own.stride) == (rows, 0, 1)
    return is_rows and all(x.sizes[d] == x.operand.sizes[d] for d in parts)


def _is_free_of_order(x: Instruction, along: int, skipped: Collection[Instruction]) -> bool:
    """True if all that reads `x` does the same with every row and then reduces them."""
    same = {x}
    for user in x.parent.post_order():
        if user in skipped or same.isdisjoint(user.operands):
            continue
        others = [o for o in user.operands if o not in same]
        if user.opcode in ELEMENTWISE_OPCODES:
            if any(not o.is_broadcast or along in o.dimensions for o in others):
                return False
            same.add(user)
        elif not user.is_reduce or along not in user.dimensions or user.operand_count > 2:
            return False
    root = x.parent.root
    return not any(v is not x and root in v.users for v in same)


def wait_for_reads(loop: Instruction) -> bool:
    """Parts of a carried array are read before its update, or after, for certain: then XLA copies nothing."""
    body, found = body_of(loop), False
    can_wait = body.root.opcode == "tuple" and not is_backward(loop)  # there JAX puts it elsewhere
    for k, x in enumerate(body.root.operands if can_wait else ()):
        chain = [x]
        while chain[-1].opcode in _UPDATES:
            chain.append(chain[-1].operand)
        if len(chain) < 2 or not is_element(chain[-1], body.parameter, k):
            continue
        for value, update in zip(chain[1:], chain, strict=False):
            reads = [u for u in value.users if u is not update]
            if reads and all(2 * u.byte_size <= value.byte_size for u in reads):
                _wait(value, [value, *reads], [[update], *(list(u.users) for u in reads)])
                found = True
        for value in chain[:-1]:
            if value.user_count > 1:
                _wait(value, [value], [list(value.users)])
                found = True
    return found


def _wait(at: Instruction, values: Instructions, readers: list[Instructions]) -> None:
    both = make.tuple_of(at, values)
    barrier = make.add(at, "opt-barrier", both.shape, [both])
    for value, new, own in zip(values, make.elements(barrier, range(len(values))), readers, strict=True):
        for reader in own:
            value.replace_use_with(reader, new)


class Together(Batch):
    """Operations that several arrays share, written once: on the arrays stacked, or end to end."""

    def __init__(
        self,
        lanes: InstructionSequence,
        *,
        is_flat: bool,
    ) -> None:
        trips = sum(x.element_count for x in lanes) if is_flat else len(lanes)
        super().__init__(lanes[0], trips, lanes[0].parent)
        self.is_flat, self.keys = is_flat, Keys()
        self.lanes: dict[Instruction, Instructions] = {}

    def join(self, lanes: InstructionSequence) -> bool:
        """Have these values be one; True where one operation computes them all, and each is in one place."""
        first = lanes[0]
        if self.lanes.setdefault(first, list(lanes)) != list(lanes):
            self.lanes.clear()
        if self.knows(first) or not self.lanes:
            return bool(self.lanes)
        if all(x is first for x in lanes) and not (self.is_flat and first.sizes):
            self.fixed[first] = first
            return True
        forms = set(map(self._form, lanes))
        if len(forms) == 1 and first not in forms:
            for column in zip(*(x.operands for x in lanes), strict=True):
                self.join(column)
            if self.lanes and (found := self._batched(first)) is not None:
                self.computed[first] = found
                return True
        is_row = first.rank > 0 and not self.is_flat  # XLA joins slices of one array again
        parts = [x if is_row else make.reshape(self.loop, self._one(x.shape), x) for x in lanes]
        joined = make.concatenate(self.loop, parts, 0)
        self.computed[first] = make.reshape(self.loop, self._leading(first.shape), joined)
        return False

    def parts(self, whole: Instruction, lanes: InstructionSequence) -> Instructions:
        """The values that are joined."""
        found, start = Instructions(), 0
        for x in lanes:
            end = start + self._one(x.shape).dimensions[0]
            found.append(make.reshape(whole, x.shape, make.part(whole, whole, start, end)))
            start = end
        return found

    def _one(self, shape: Shape) -> Shape:
        return with_dimensions(shape, [shape.element_count] if self.is_flat else [1, *shape.dimensions])

    def _leading(self, shape: Shape) -> Shape:
        return with_dimensions(shape, [self.trips]) if self.is_flat else super()._leading(shape)

    def _form(self, x: Instruction) -> object:
        """Equal for operations that do the same, and that can be done on all at once."""
        if self.is_flat and x.is_broadcast:
            return x if x.dimensions else x.operand
        if x.opcode not in ELEMENTWISE_OPCODES and (self.is_flat or x.opcode not in _STACKED):
            return x
        shapes = (i.element_type if self.is_flat else str(i.shape) for i in (x, *x.operands))
        return self.keys.operation(x), *shapes


_STACKED = values("dot convolution reshape broadcast transpose slice reduce concatenate")


def _equivalent(values: Iterable[tuple[int, Instruction]]) -> Iterator[list[tuple[int, Instruction]]]:
    """The values that may be computed by one operation, with their numbers, where they are worth joining."""
    found = list(values)
    keys = ((x.element_type, *(o.opcode for o in origins(x, 40))) for _, x in found)
    return (group for group in grouped(zip(keys, found, strict=True)).values() if len(group) >= _FEWEST)


def stack_state(loop: Instruction) -> bool:
    """Carried arrays of one shape and form become one array."""
    counter, body, found = plain_counter(loop), body_of(loop), False
    if counter is None or loop.operand.opcode != "tuple":
        return False
    state, given = enumerate(body.root.operands), body.parameter
    changed = [(k, x) for k, x in state if k != counter.index and not is_element(x, given, k)]
    for group in _equivalent(changed):
        lanes = [x for _, x in group]
        if not Together(lanes, is_flat=False).join(lanes):
            continue
        first = [loop.operand.operands[k] for k, _ in group]
        init = Together(first, is_flat=False)
        init.join(first)
        inside, after, root = carry(loop, [init.over_all(first[0])])
        given, loop = body.parameter, after[0].operand
        elements = [next((u for u in given.users if u.tuple_index == k), given) for k, _ in group]
        both = Together(lanes, is_flat=False)
        both.lanes[elements[0]], both.computed[elements[0]] = elements, inside[0]
        if given in elements or not both.join(lanes):
            return False
        new = both.over_all(lanes[0])
        parts = [both.parts(whole, lanes) for whole in (new, inside[0], after[-1])]
        for (k, x), element, own, before, end in zip(group, elements, *parts, strict=True):
            if not depends_on(new, x):
                x.replace_all_uses_with(own)
            element.replace_all_uses_with(before)
            root.replace_operand(k, element)
            after[k].replace_all_uses_with(end)
        root.replace_operand(root.operand_count - 1, new)
        found = True
    return found


def reduce_as_vector(x: Instruction) -> bool:
    """Small arrays that are reduced and combined are concatenated and reduced once."""
    if x.sizes or any(u.opcode == x.opcode for u in x.users):
        return False
    opcode, terms = x.opcode, terms_of(x, x.opcode)
    if opcode == "reduce":  # of numbers that are stacked
        opcode = x.to_apply.root.opcode
        is_whole = is_total(x) or opcode in ("maximum", "minimum", "and", "or")
        stacked = x.operand.operands if x.operand.is_concatenate and is_whole else ()
        terms = [o.through("reshape") for o in stacked]
        if not combines_by(x, opcode) or any(t.shape != x.shape for t in terms):
            return False
        terms.append(x.second)
    if opcode == "add":  # jnp.vdot(g, g)
        dots = [t for t in terms if t.is_dot and t.operand.element_type == x.element_type]
        terms = [((t in dots and as_sum(t)) or (t,))[0] for t in terms]
    sums = [t for t in terms if t.is_reduce and combines_by(t, opcode) and t.user_count == 1]
    sums = [t for t in sums if (is_total(t) if opcode == "add" else t.second is sums[0].second)]
    groups = _equivalent((k, t.operand) for k, t in enumerate(sums))
    found = max(groups, key=len, default=[])
    if not found:
        return False
    lanes = [o for _, o in found]
    whole = Together(lanes, is_flat=True)
    whole.join(lanes)
    if not whole.lanes:
        return False
    new = make.reduce(x, whole.over_all(lanes[0]), sums[0].second, [0], sums[0].to_apply)
    taken = {sums[k] for k, _ in found}
    return replace(x, fold(x, opcode, [new, *(t for t in terms if t not in taken)]))


def update_as_vector(x: Instruction) -> bool:
    """Results of one form are computed end to end, and divided."""
    if not x.is_root or x.parent is not x.parent.parent.entry:
        return False
    found = False
    arrays = ((k, o) for k, o in enumerate(x.operands) if o.is_array and o.rank)
    for group in _equivalent(arrays):
        lanes = [o for _, o in group]
        whole = Together(lanes, is_flat=True)
        if whole.join(lanes):
            parts = whole.parts(whole.over_all(lanes[0]), lanes)
            for (k, _), part in zip(group, parts, strict=True):
                x.replace_operand(k, part)
            found = True
    return found


def batch_operands(x: Instruction) -> bool:
    """Arrays that equal products compute, one each, are computed by one batch, and then joined or added."""
    if x.opcode == "add" and any(u.opcode == "add" for u in x.users):
        return False
    terms = terms_of(x) if x.opcode == "add" else list(x.operands)
    found = max(_equivalent(enumerate(terms)), key=len, default=[])
    lanes = [o for _, o in found]
    is_all = x.opcode == "add" or len(lanes) == len(terms)
    if not lanes or not is_all or len({o.shape for o in lanes}) > 1:
        return False
    whole = Together(lanes, is_flat=False)
    if not whole.join(lanes) or not any(source(v).opcode in _PRODUCTS for v in whole.computed.values()):
        return False
    new = whole.over_all(lanes[0])
    if x.opcode == "add":
        return replace(x, fold(x, "add", [total_of(x, new, [0]), *(t for t in terms if t not in lanes)]))
    return replace(x, moved(x, new, 0, x.dimension))


_stacked, _waiting = changed_by(stack_state, "while"), changed_by(wait_for_reads, "while")
_updated = changed_by(update_as_vector, "tuple")
CARRIED = (
    Recipe("ring-not-shift", "Write into a ring buffer rather than shift a window"),
    Recipe(
        "barrier-before-the-update", "Put an optimization_barrier before the update", _waiting, wait_for_reads
    ),
    Recipe("checkpoint-the-body", "Put jax.checkpoint around the loop's body"),
    Recipe("stack-the-state", "Stack the carried arrays into one", _stacked, stack_state),
    Recipe("update-the-stack", "Carry the stack and update it in place, not from xs to ys"),
    Recipe("batch-the-products", "Stack the operands, multiply them in one batch"),
    Recipe("reduce-as-one-vector", "Concatenate small arrays, reduce once"),
    Recipe("update-as-one-vector", "Keep small arrays in one vector, update it", _updated, update_as_vector),
)
"""Rewrites are tried at the input of fusion where there is no module before optimizations."""
EARLY = {
    "checkpoint-the-body": Rewriting("while", compute_again, is_timed=False),
    "ring-not-shift": Rewriting("while", write_ring),
    "barrier-before-the-update": Rewriting("while", wait_for_reads),
    "stack-the-state": Rewriting("while", stack_state),
    "update-the-stack": Rewriting("while", update_stack),
    "reduce-as-one-vector": Rewriting("add maximum minimum and or reduce", reduce_as_vector),
    "update-as-one-vector": Rewriting("tuple", update_as_vector),
    "batch-the-products": Rewriting("concatenate add", batch_operands, "gpu"),
}
