"""Recipes about arrays that are updated in place, sums on the CPU, and collectives."""

from collections.abc import Iterator
from itertools import permutations, product

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, without_bitcasts
from hlofuse.analysis.hlo_alias import alias_config, write_alias_config
from hlofuse.analysis.hlo_value import Index
from hlofuse.ir import Dims, Instruction, InstructionSequence, Module, reach
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import bounds
from hlofuse.passes.common.shapes import numbers_of, others
from .contracting import over, spread_factor
from .matching import (
    MIN_BYTES,
    both_orders,
    changed_by,
    combines_by,
    each,
    is_backward,
    is_constant,
    only_reader,
    sum_of,
)
from .recipe import Finding, Recipe, Situation
from .written import counted_dimension, masked_place, onehot, replace, spread, starts_at, sums_at

_UPDATES = ("dynamic-update-slice", "scatter")


def _results(module: Module) -> list[tuple[Index, Instruction]]:
    """Results without memory of an argument, bitcasts passed over."""
    root = module.entry.root
    config = alias_config(module)
    results = [((k,), o) for k, o in enumerate(root.operands)] if root.opcode == "tuple" else [((), root)]
    return [
        (k, without_bitcasts(o)) for k, o in results if k not in config.aliases and o.byte_size >= MIN_BYTES
    ]


def _argument(module: Module, x: Instruction) -> int | None:
    """The number of the argument that `x` updates, perhaps several times, and that is not donated."""
    while x.opcode in _UPDATES:
        x = without_bitcasts(x.operand)
    if not x.is_parameter or alias_config(module).is_aliased((x.parameter_number, ())):
        return None
    return x.parameter_number


def _not_donated(s: Situation) -> Iterator[Finding]:
    for _, x in _results(s.module):
        if x.opcode in _UPDATES:
            update = x.operands[2 if x.opcode == "scatter" else 1]
            if update.byte_size * 2 < x.byte_size and _argument(s.module, x) is not None:
                yield Finding(x.name)


def _donate(found: Instruction) -> bool:
    module = found.parent.parent
    for index, x in _results(module):
        number = _argument(module, x) if x is found else None
        if number is not None:
            config = alias_config(module)
            config.set_up(index, (number, ()))
            write_alias_config(module, config)
            return True
    return False


def write_row(x: Instruction) -> bool:
    """One row, or one of each part, that a mask or a factor puts into a carried array is written alone."""
    for mask, new, old in _masked(x):
        along, position, batch = _place(mask)
        value = spread_factor(new)
        is_carried = without_bitcasts(old).opcode in ("parameter", "get-tuple-element")
        if along < 0 or along in value[1] or not is_carried or x.byte_size < MIN_BYTES:
            continue
        sizes = dict(enumerate(x.sizes)) | {along: 1}
        if batch:
            rows = over(x, value, others(x.rank, [along]), sizes)
            written = sums_at(x, position, rows, x.sizes, along, batch, old)
        else:
            starts = starts_at(x, len(sizes), position, along)
            written = make.dynamic_update_slice(x, old, over(x, value, [*sizes], sizes), starts)
        x.replace_all_uses_with(written)
        _donate(written)
        return True
    return False


def _place(mask: Instruction) -> tuple[int, Instruction, Dims]:
    """The dimension along which a mask has one place in each part, −1 for none, its numbers, and the first
    dimensions, those of the parts."""
    along, position = masked_place(mask) or (-1, mask)
    test, dims = spread(mask)
    if along >= 0 or (found := onehot(test)) is None:
        return along, position, ()
    places = list(map(dims.index, range(test.rank)))
    along = places.pop(found[1])
    return along if places == [*range(len(places))] else -1, found[0], tuple(places)


def _masked(x: Instruction) -> Iterator[InstructionSequence]:
    """The mask, the new values and the old ones of a choice, or of new · mask + old · (1 − mask)."""
    if x.opcode == "select":
        yield x.operands
    is_sum = x.opcode == "add" and all(o.opcode == "multiply" for o in x.operands)
    for first, second in both_orders(x.operands) if is_sum else ():
        for (mask, new), (rest, old) in product(permutations(first.operands), permutations(second.operands)):
            (others, dims), (test, own) = spread(rest), spread(mask)
            below = others.through("reshape")  # it removes sizes of one
            if below.opcode != "subtract" or not is_constant(below.operand, 1):
                continue
            subtracted, there = spread(below.second)
            if below is not others:
                there = [t for t, n in zip(there, below.sizes, strict=True) if n != 1]
            is_same = subtracted is test and len(there) == others.rank
            if is_same and [d if d is None else there[d] for d in dims] == own:
                yield mask, new, old


def _is_second_scatter(x: Instruction) -> bool:
    first = without_bitcasts(x.operand)
    if first.opcode != "scatter" or first.user_count != 1:
        return False
    return combines_by(x, "add") and combines_by(first, "add")


def _scatter_once(x: Instruction) -> bool:
    first = x.operand
    if first.opcode != "scatter" or x.second.rank != 2:
        return False
    joined = [make.concatenate(x, [first.operands[k], x.operands[k]], 0) for k in (1, 2)]
    x.replace_all_uses_with(make.copy_of(x, [first.operand, *joined]))
    return True


def add_to_rows(x: Instruction) -> bool:
    """Have sums over indices that are scaled and added to an array be added to its rows by the scatter."""
    is_part = x.operand_count == 3 and 2 * x.operands[2].byte_size < x.byte_size
    if not is_part or not combines_by(x, "add") or not is_constant(x.operand, 0):
        return False
    last = x
    update = x.operands[2]
    while (user := only_reader(last)) is not None and last in user.operands and not is_backward(user):
        others = [o for o in user.operands if o is not last]
        if others and (user.opcode == "add" or (user.opcode == "subtract" and user.second is last)):
            update = update if user.opcode == "add" else make.unary(x, "negate", update)
            new = make.copy_of(x, [others[0], x.second, update])
            user.replace_all_uses_with(new)
            _donate(new)
            return True
        is_scaled = user.opcode in ("multiply", "negate") or (
            user.opcode == "divide" and user.operand is last
        )
        if not is_scaled or any(not o.is_broadcast or o.dimensions for o in others):
            return False
        operands = [
            update if o is last else make.broadcast(x, update.shape, o.operand) for o in user.operands
        ]
        last = user
        update = make.copy_of(user, operands, update.shape)
    return False


def choose_written(x: Instruction) -> bool:
    """A choice between an array and the same with a scatter is made by indices, out of bounds for nothing."""
    (test, labels), sides = spread_factor(x.operand), x.operands[1:]
    for new, old in both_orders(sides):
        if new.opcode != "scatter" or new.operand is not old or new.user_count > 1:
            continue
        indices = new.second
        kind = indices.element_type
        last = int(bounds(kind)[1] or 0)
        batch = (numbers_of(new, f"{n}_batching_dims") for n in ("input", "scatter_indices"))
        places = dict(zip(*batch, strict=True))
        columns = indices.operands if indices.is_concatenate else ()
        for column, d in zip(columns, numbers_of(new, "scatter_dims_to_operand_dims"), strict=False):
            counts = counted_dimension(column, column.sizes)
            if counts is not None and column.sizes[counts] == x.sizes[d]:
                places[d] = counts
        if not places.keys() >= {*labels} or test.element_type != "pred" or last < max(x.sizes):
            return False
        nowhere = make.broadcast(x, indices.shape, make.scalar(x, kind, last))
        mask = make.broadcast(x, indices.shape.with_element_type("pred"), test, [places[d] for d in labels])
        pair = (indices, nowhere) if new is sides[0] else (nowhere, indices)
        return replace(x, make.copy_of(new, [old, make.select(x, mask, *pair), new.operands[2]]))
    return False


_rows = changed_by(write_row, "select")
_twice = each(_is_second_scatter, "scatter")
UPDATES = (
    Recipe("donate-the-argument", "Donate what is updated: donate_argnums", _not_donated, _donate),
    Recipe("write-the-row", "Write the row alone, not by a mask; donate the array", _rows, write_row),
    Recipe("choose-what-is-written", "Choose by the index what is written, not between whole arrays"),
    Recipe("update-the-rows", "Add to the rows that are read, not to the whole table; donate it"),
    Recipe("one-scatter", "Concatenate the updates and scatter once", _twice, _scatter_once),
    Recipe("window-not-scatter", "Write or read a window, or every n-th row, without indices"),
    Recipe("write-at-once", "Concatenate what is written side by side, write it once"),
)


def _is_number(x: Instruction) -> bool:
    return x.is_broadcast and x.operand.is_constant and not x.dimensions


def _map_first(x: Instruction) -> bool:
    """Elementwise operations on nothing but what was gathered are done before the gather."""
    mapped = [x]
    for i in mapped:
        users = (u for u in dict.fromkeys(i.users) if u.opcode in ELEMENTWISE_OPCODES and u not in mapped)
        mapped += [u for u in users if all(o in mapped or _is_number(o) for o in u.operands)]
    for last in reversed(mapped[1:]):
        below = {*reach([last], lambda i: [o for o in i.operands if o in mapped])}
        if any(i.is_root or not below.issuperset(i.users) for i in below - {last}):
            continue
        new = {x: x.operand}
        for y in (y for y in mapped[1:] if y in below):
            shapes = [new[x].shape.with_element_type(i.element_type) for i in (y, *y.operands)]
            pairs = zip(y.operands, shapes[1:], strict=True)
            parts = [new.get(o) or make.copy_of(o, o.operands, shape) for o, shape in pairs]
            new[y] = make.copy_of(y, parts, shapes[0])
        last.replace_all_uses_with(make.copy_of(x, [new[last]], last.shape))
        return True
    return False


def _is_sliced_later(x: Instruction) -> bool:
    user = only_reader(x)
    return user is not None and user.is_slice and 4 * user.byte_size <= x.byte_size


def _reader(x: Instruction) -> Instruction | None:
    """The one reader of `x`, below bitcasts and products with a number."""
    user = only_reader(x)
    is_scaled = user is not None and user.opcode == "multiply" and any(map(_is_number, user.operands))
    return _reader(user) if user is not None and (is_scaled or user.is_bitcast) else user


def _move(x: Instruction) -> bool:
    user = _reader(x)
    if user is None:
        return False
    x.replace_all_uses_with(x.operand)
    new = make.copy_of(x, [user], user.shape)
    user.replace_all_uses_with(new)
    new.replace_operand(0, user)
    return True


_gathers = changed_by(_map_first, "all-gather")
_sums = each(lambda x: combines_by(x, "add") and sum_of(_reader(x)) is not None, "all-reduce")
COLLECTIVES = (
    Recipe("map-before-the-gather", "Map before the all-gather", _gathers, _map_first),
    Recipe("slice-before-the-gather", "Slice before the all-gather", each(_is_sliced_later, "all-gather")),
    Recipe("sum-before-the-psum", "Sum on each device before the psum", _sums, _move),
)
