"""Recipes about arrays that are updated in place, sums on the CPU, and collectives."""

from collections.abc import Iterator

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, without_bitcasts
from hlofuse.analysis.hlo_alias import alias_config, write_alias_config
from hlofuse.analysis.hlo_value import Index
from hlofuse.ir import Instruction, Module, computation_of, module_of
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import bounds
from hlofuse.passes.common.shapes import numbers_of
from .contracting import spread_factor
from .matching import MIN_BYTES, combines_by, each, is_constant, only_reader, readers, source, sum_of
from .recipe import Finding, Recipe, Situation
from .written import counted, replace

_UPDATES = ("dynamic-update-slice", "scatter")


def _results(module: Module) -> list[tuple[Index, Instruction]]:
    """Results without memory of an argument, bitcasts passed over."""
    root = module.entry.root
    config = alias_config(module)
    results = [((k,), o) for k, o in enumerate(root.operands)] if root.opcode == "tuple" else [((), root)]
    return [
        (k, without_bitcasts(o))
        for k, o in results
        if k not in config.aliases and o.shape.byte_size >= MIN_BYTES
    ]


def _argument(module: Module, x: Instruction) -> int | None:
    """The number of the argument that `x` updates, perhaps several times, and that is not donated."""
    while x.opcode in _UPDATES:
        x = without_bitcasts(x.operands[0])
    if x.opcode != "parameter" or alias_config(module).is_aliased((x.parameter_number, ())):
        return None
    return x.parameter_number


def _not_donated(s: Situation) -> Iterator[Finding]:
    for _, x in _results(s.module):
        if x.opcode in _UPDATES:
            update = x.operands[2 if x.opcode == "scatter" else 1]
            is_part = update.shape.byte_size * 2 < x.shape.byte_size
            if is_part and _argument(s.module, x) is not None:
                yield Finding(x.name)


def _donate(found: Instruction) -> bool:
    module = module_of(computation_of(found))
    for index, x in _results(module):
        number = _argument(module, x) if x is found else None
        if number is not None:
            config = alias_config(module)
            config.set_up(index, (number, ()))
            write_alias_config(module, config)
            return True
    return False


def _computes_whole(x: Instruction) -> bool:
    """True if an array is computed of which only a small part is new."""
    whole, part = x.operands[:2]
    is_small = whole.shape.byte_size >= max(MIN_BYTES, 8 * part.shape.byte_size)
    is_read = any(r is not x and r.opcode != "dynamic-slice" for r in readers(whole))
    return is_small and _origin(whole) is not None and not is_read


def _origin(x: Instruction) -> Instruction | None:
    """The array of which `x` is a function, element by element; None for `x` itself."""
    while x.opcode in ELEMENTWISE_OPCODES:
        arrays = [o for o in x.operands if source(o).shape.dimensions]
        if len(arrays) != 1:
            break
        x = arrays[0]
        if x.opcode in ("parameter", "get-tuple-element"):
            return x
    return None


def _update_only(x: Instruction) -> bool:
    origin = _origin(x.operands[0])
    if origin is None or origin.shape != x.shape:
        return False
    x.replace_operand(0, origin)
    _donate(x)
    return True


def _is_row_by_mask(x: Instruction) -> bool:
    is_carried = without_bitcasts(x.operands[2]).opcode in ("parameter", "get-tuple-element")
    return is_carried and x.shape.byte_size >= MIN_BYTES and _row(x) is not None


def _row(x: Instruction) -> tuple[int, Instruction] | None:
    """The iota's dimension and the position of select(iota == position, new, old)."""
    mask, new = x.operands[:2]
    test = without_bitcasts(mask.operands[0]) if mask.opcode == "broadcast" else mask
    iotas = [o for o in test.operands if o.opcode == "iota"]
    positions = [source(o) for o in test.operands if o.opcode == "broadcast"]
    if test.opcode != "compare" or test.raw("direction") != "EQ" or new.opcode != "broadcast":
        return None
    if len(iotas) != 1 or len(positions) != 1 or positions[0].shape.dimensions:
        return None
    along = counted(iotas[0]) or 0
    if mask is not test:  # its ones may be left out
        along = mask.dimensions[sum(n > 1 for n in test.shape.dimensions[:along])]
    return None if along in new.dimensions else (along, positions[0])


def _write_row(x: Instruction) -> bool:
    row = _row(x)
    if row is None:
        return False
    along, position = row
    new, old = x.operands[1:]
    shape = make.part(x, old, 0, 1, along).shape
    zero = make.scalar(x, position.element_type, 0)
    update = make.broadcast(x, shape, new.operands[0], new.dimensions)
    starts = [position if k == along else zero for k in range(x.shape.rank)]
    new = make.dynamic_update_slice(x, old, update, starts)
    x.replace_all_uses_with(new)
    _donate(new)
    return True


def _is_second_scatter(x: Instruction) -> bool:
    first = without_bitcasts(x.operands[0])
    if first.opcode != "scatter" or len(first.users) != 1:
        return False
    return combines_by(x, "add") and combines_by(first, "add")


def _scatter_once(x: Instruction) -> bool:
    first = x.operands[0]
    if first.opcode != "scatter" or x.operands[1].shape.rank != 2:
        return False
    joined = [make.concatenate(x, [first.operands[k], x.operands[k]], 0) for k in (1, 2)]
    x.replace_all_uses_with(make.copy_of(x, [first.operands[0], *joined]))
    return True


def add_to_rows(x: Instruction) -> bool:
    """Have sums over indices that are scaled and added to an array be added to its rows by the scatter."""
    is_part = len(x.operands) == 3 and 2 * x.operands[2].shape.byte_size < x.shape.byte_size
    if not is_part or not combines_by(x, "add") or not is_constant(x.operands[0], 0):
        return False
    last = x
    update = x.operands[2]
    while (user := only_reader(last)) is not None and last in user.operands:
        others = [o for o in user.operands if o is not last]
        if others and (user.opcode == "add" or (user.opcode == "subtract" and user.operands[1] is last)):
            update = update if user.opcode == "add" else make.unary(x, "negate", update)
            new = make.copy_of(x, [others[0], x.operands[1], update])
            user.replace_all_uses_with(new)
            _donate(new)
            return True
        is_scaled = user.opcode in ("multiply", "negate") or (
            user.opcode == "divide" and user.operands[0] is last
        )
        if not is_scaled or any(o.opcode != "broadcast" or o.dimensions for o in others):
            return False
        operands = [
            update if o is last else make.broadcast(x, update.shape, o.operands[0], ()) for o in user.operands
        ]
        last = user
        update = make.copy_of(user, operands, update.shape)
    return False


def choose_written(x: Instruction) -> bool:
    """A choice between an array and the same with a scatter is made by indices, out of bounds for nothing."""
    (test, labels), sides = spread_factor(x.operands[0]), x.operands[1:]
    for new, old in (sides, sides[::-1]):
        if new.opcode != "scatter" or new.operands[0] is not old or len(new.users) > 1:
            continue
        indices = new.operands[1]
        kind = indices.element_type
        last = int(bounds(kind)[1] or 0)
        batch = (numbers_of(new, f"{n}_batching_dims") for n in ("input", "scatter_indices"))
        places = dict(zip(*batch, strict=True))
        if not places.keys() >= {*labels} or test.element_type != "pred" or last < max(x.shape.dimensions):
            return False
        nowhere = make.broadcast(x, indices.shape, make.scalar(x, kind, last), ())
        mask = make.broadcast(x, indices.shape.with_element_type("pred"), test, [places[d] for d in labels])
        pair = (indices, nowhere) if new is sides[0] else (nowhere, indices)
        return replace(x, make.copy_of(new, [old, make.select(x, mask, *pair), new.operands[2]]))
    return False


_masked = each(_is_row_by_mask, "select")
_whole = each(_computes_whole, "dynamic-update-slice")
_twice = each(_is_second_scatter, "scatter")

UPDATES = (
    Recipe("donate-the-argument", "Donate what is updated: donate_argnums", _not_donated, _donate),
    Recipe("scale-only-the-update", "Scale only what is written, and donate the array", _whole, _update_only),
    Recipe("write-the-row", "Use dynamic_update_slice, not a mask; donate the array", _masked, _write_row),
    Recipe("choose-what-is-written", "Choose by the index what is written, not between whole arrays"),
    Recipe("update-the-rows", "Add to the rows that are read, not to the whole table; donate it"),
    Recipe("one-scatter", "Concatenate the updates and scatter once", _twice, _scatter_once),
    Recipe("window-not-scatter", "Write or read a window, or every n-th row, without indices"),
    Recipe("write-at-once", "Concatenate what is written side by side, write it once"),
)


def _is_mapped_later(x: Instruction) -> bool:
    """True if all that was gathered goes through an operation on each element alone."""
    user = only_reader(x)
    if user is None or user.opcode not in ELEMENTWISE_OPCODES:
        return False
    return all(o is x or is_constant(o) for o in user.operands)


def _is_sliced_later(x: Instruction) -> bool:
    user = only_reader(x)
    return user is not None and user.opcode == "slice" and 4 * user.shape.byte_size <= x.shape.byte_size


def _move(x: Instruction) -> bool:
    """Have what follows the collective be done before it."""
    user = only_reader(x)
    if user is None or x not in user.operands:
        return False
    part = x.operands[0]
    shape = user.shape if x.opcode == "all-reduce" else part.shape.with_element_type(user.element_type)
    operands = [part if o is x else o for o in user.operands]
    for k, o in enumerate(operands):
        if o is not part and o.shape.dimensions:
            operands[k] = make.broadcast(user, shape, source(o), ())
    user.replace_all_uses_with(make.copy_of(x, [make.copy_of(user, operands, shape)], user.shape))
    return True


_gathers = each(_is_mapped_later, "all-gather")
_sums = each(lambda x: combines_by(x, "add") and sum_of(only_reader(x)) is not None, "all-reduce")

COLLECTIVES = (
    Recipe("map-before-the-gather", "Map before the all-gather", _gathers, _move),
    Recipe("slice-before-the-gather", "Slice before the all-gather", each(_is_sliced_later, "all-gather")),
    Recipe("sum-before-the-psum", "Sum on each device before the psum", _sums, _move),
)
