"""Recipes about arrays that are updated in place, sums on the CPU, and collectives."""

from collections.abc import Iterator
from functools import partial

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, without_bitcasts
from hlofuse.analysis.hlo_alias import alias_config, write_alias_config
from hlofuse.analysis.hlo_value import Index
from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.fusing import computation_of, module_of, unfuse
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import integer_of
from hlofuse.passes.reduction import TreeReductionRewriter
from hlofuse.reports.advice.matching import (
    MIN_BYTES,
    SMALL_BYTES,
    combines_by,
    each,
    has,
    is_constant,
    is_product,
    only_reader,
    origins,
    source,
    sum_of,
)
from hlofuse.reports.advice.recipe import Finding, Recipe, Situation
from hlofuse.trace import OnlySkipped


def _results(module: Module) -> list[tuple[Index, Instruction]]:
    """Results without memory of an argument, bitcasts passed over."""
    root, config = module.entry.root, alias_config(module)
    results = [((k,), o) for k, o in enumerate(root.operands)] if root.opcode == "tuple" else [((), root)]
    return [
        (k, without_bitcasts(o))
        for k, o in results
        if k not in config.aliases and o.shape.byte_size >= MIN_BYTES
    ]


def _argument(module: Module, x: Instruction) -> int | None:
    """The number of an argument that is not donated."""
    if x.opcode != "parameter" or alias_config(module).is_aliased((x.parameter_number, ())):
        return None
    return x.parameter_number


def _not_donated(s: Situation) -> Iterator[Finding]:
    """Results that are an argument of which a part is updated."""
    for _, x in _results(s.module) if s.backend == "gpu" else ():
        if x.opcode in ("dynamic-update-slice", "scatter"):
            update = x.operands[1 if x.opcode == "dynamic-update-slice" else 2]
            is_part = update.shape.byte_size * 2 < x.shape.byte_size
            if is_part and _argument(s.module, without_bitcasts(x.operands[0])) is not None:
                yield Finding(x.name)


def _donate(found: Instruction) -> bool:
    module = module_of(computation_of(found))
    for index, x in _results(module):
        number = _argument(module, without_bitcasts(x.operands[0])) if x is found else None
        if number is not None:
            config = alias_config(module)
            config.set_up(index, (number, ()))
            write_alias_config(module, config)
            return True
    return False


def _computes_whole(x: Instruction) -> bool:
    """True if an array is computed of which only a small part is new."""
    whole, part = x.operands[0].shape.byte_size, x.operands[1].shape.byte_size
    return (
        whole >= max(MIN_BYTES, 8 * part)
        and _origin(x.operands[0]) is not None
        and only_reader(x.operands[0]) is x
    )


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
    test = mask.operands[0] if mask.opcode == "broadcast" else mask
    iotas = [o for o in test.operands if o.opcode == "iota"]
    positions = [source(o) for o in test.operands if o.opcode == "broadcast"]
    if test.opcode != "compare" or test.attributes.raw("direction") != "EQ" or new.opcode != "broadcast":
        return None
    if len(iotas) != 1 or len(positions) != 1 or positions[0].shape.dimensions:
        return None
    along = int(iotas[0].attributes.raw("iota_dimension") or 0)
    along = mask.dimensions[along] if mask is not test else along
    return None if along in new.dimensions else (along, positions[0])


def _write_row(x: Instruction) -> bool:
    row = _row(x)
    if row is None:
        return False
    along, position = row
    new, old = x.operands[1:]
    sizes = [1 if k == along else n for k, n in enumerate(x.shape.dimensions)]
    shape = make.slice_of(x, old, [0] * len(sizes), sizes).shape
    zero = make.scalar(x, position.shape.element_type, 0)
    update = make.broadcast(x, shape, new.operands[0], new.dimensions)
    starts = [position if k == along else zero for k in range(len(sizes))]
    x.replace_all_uses_with(make.dynamic_update_slice(x, old, update, starts))
    return True


def _is_second_scatter(x: Instruction) -> bool:
    first = without_bitcasts(x.operands[0])
    return (
        first.opcode == "scatter"
        and combines_by(x, "add")
        and combines_by(first, "add")
        and len(first.users) == 1
    )


def _scatter_once(x: Instruction) -> bool:
    first = x.operands[0]
    if first.opcode != "scatter" or x.operands[1].shape.rank != 2:
        return False
    joined = [make.concatenate(x, [first.operands[k], x.operands[k]], 0) for k in (1, 2)]
    x.replace_all_uses_with(make.copy_of(x, [first.operands[0], *joined]))
    return True


def window_start(x: Instruction) -> Instruction | None:
    """The position from which the indices of a scatter count up; None for other indices."""
    found = origins(x.operands[1])
    starts = [i for i in found if not i.operands and i.opcode not in ("iota", "constant")]
    counts = [i.opcode for i in found if i.opcode in ("iota", "multiply")] == ["iota"]
    is_one = counts and bool(starts) and not any(i.shape.dimensions for i in starts)
    return starts[0] if is_one else None


def _shifts(x: Instruction) -> bool:
    """True if a part of an array is written to another place of that array."""
    update = without_bitcasts(x.operands[1])
    same = update.opcode == "slice" and without_bitcasts(update.operands[0]) is without_bitcasts(
        x.operands[0]
    )
    return same and _written_along(x) is not None and update.shape.byte_size >= MIN_BYTES


def _written_along(x: Instruction) -> int | None:
    """The one dimension of which an update at a constant place writes a part."""
    whole, part = x.shape.dimensions, x.operands[1].shape.dimensions
    smaller = [k for k in range(len(whole)) if whole[k] != part[k]]
    starts = [integer_of(o) for o in x.operands[2:]]
    fits = all(n is not None and 0 <= n <= w - p for n, w, p in zip(starts, whole, part, strict=True))
    return smaller[0] if len(smaller) == 1 and fits else None


def _concatenate(x: Instruction) -> bool:
    """Have an update, and a second one of what it leaves, be parts of one concatenation."""
    along = _written_along(x)
    if along is None:
        return False
    updates, last = [x], only_reader(x)
    if last is not None and last.opcode == "dynamic-update-slice" and _written_along(last) == along:
        updates.append(last)
    parts: list[Instruction] = []
    end = 0
    for update in sorted(updates, key=lambda u: integer_of(u.operands[2 + along]) or 0):
        start = integer_of(update.operands[2 + along]) or 0
        if start < end or (update is not x and update.operands[0] is not x):
            return False
        parts += [_part(x, along, end, start), update.operands[1]] if start > end else [update.operands[1]]
        end = start + update.operands[1].shape.dimensions[along]
    if end < x.shape.dimensions[along]:
        parts.append(_part(x, along, end, x.shape.dimensions[along]))
    updates[-1].replace_all_uses_with(make.concatenate(updates[-1], parts, along))
    return True


def _part(x: Instruction, along: int, start: int, end: int) -> Instruction:
    starts, limits = [0] * x.shape.rank, list(x.shape.dimensions)
    starts[along], limits[along] = start, end
    return make.slice_of(x, x.operands[0], starts, limits)


def _returned_again(s: Situation) -> Iterator[Finding]:
    """One value is two results, or a result is an argument as it was."""
    seen: set[Instruction] = set()
    for _, x in _results(s.module):
        if x in seen or _argument(s.module, x) is not None:
            yield Finding(x.name)
        seen.add(x)


_masked = each(_is_row_by_mask, "select")
_whole = each(_computes_whole, "dynamic-update-slice")
_twice = each(_is_second_scatter, "scatter")
_moves = each(_shifts, "dynamic-update-slice")

UPDATES = (
    Recipe("donate-the-argument", "Donate what is updated: donate_argnums", _not_donated, _donate),
    Recipe("scale-only-the-update", "Scale only what is written, and donate the array", _whole, _update_only),
    Recipe("write-the-row", "Use dynamic_update_slice, not a mask", _masked, _write_row),
    Recipe("one-scatter", "Concatenate the updates and scatter once", _twice, _scatter_once),
    Recipe("window-not-scatter", "Use dynamic_update_slice for a window", each(window_start, "scatter")),
    Recipe("shift-by-concatenate", "Shift by concatenate, not by writing slices", _moves, _concatenate),
    Recipe("return-it-once", "Return a value once, and no argument as it was", _returned_again),
)


def _is_library_sum(x: Instruction) -> bool:
    """True for a library call that sums, and multiplies no matrices."""
    return has(x.called_computations[0], "reduce") and not is_product(x)


def _without_library(x: Instruction) -> bool:
    module = module_of(computation_of(x))
    unfuse(x)
    split = TreeReductionRewriter(lambda r: computation_of(r).fusion is not None)
    while split.run(module, OnlySkipped()):
        pass
    return True


def _is_split_sum(x: Instruction) -> bool:
    """True for the first step of a sum that is done in two."""
    user = only_reader(x)
    return user is not None and user.opcode == "reduce" and user.operands[0] is x and _is_step(x, user)


def _is_step(x: Instruction, total: Instruction) -> bool:
    """True if `x` reduces blocks, side by side, of the dimensions that `total` reduces in the same way."""
    if x.opcode != "reduce-window" or x.shape.is_tuple or x.operands[1] is not total.operands[1]:
        return False
    if not combines_by(total, x.called_computations[0].root.opcode):
        return False
    window = x.attributes.get("window", Window())
    blocks = (
        w == WindowDimension(w.size, w.size, w.padding_low, w.padding_high)
        and (d in total.dimensions or w == WindowDimension(1))
        for d, w in enumerate(window)
    )
    return len(window) > 0 and all(blocks)


def _without_tree(x: Instruction) -> bool:
    total = only_reader(x)
    if total is None or not _is_step(x, total):
        return False
    while _is_step(x, total):
        x = x.operands[0]
    total.replace_operand(0, x)
    return True


def _is_narrow(x: Instruction) -> bool:
    """True for a convolution of one channel by a few taps."""
    taps, result = x.operands[1].shape.element_count, x.shape.element_count
    return taps <= 9 and result == x.operands[0].shape.element_count


def _joins_computed(x: Instruction) -> bool:
    """True if computed arrays of one shape are concatenated along another dimension than the first."""
    computed = all(o.opcode in ELEMENTWISE_OPCODES and o.shape == x.operands[0].shape for o in x.operands)
    return computed and x.dimensions[0] > 0 and x.shape.byte_size < 4 * SMALL_BYTES


def _adds_sums(x: Instruction) -> bool:
    a, b = map(_summed_operand, x.operands)
    return a is not None and b is not None and a is not b and a.shape == b.shape


def _summed_operand(x: Instruction) -> Instruction | None:
    """The operand whose elements `x` sums, where nothing else reads the sum."""
    if (
        x.opcode != "reduce"
        or not combines_by(x, "add")
        or len(x.users) > 1
        or not is_constant(x.operands[1], 0)
    ):
        return None
    return _summed_operand(x.operands[0]) if x.operands[0].opcode == "reduce" else x.operands[0]


def _add_first(x: Instruction) -> bool:
    a, b = map(_summed_operand, x.operands)
    if a is None or b is None:
        return False
    both = make.binary(x, "add", a, b)
    reduce = x.operands[0]
    while reduce.operands[0] is not a:
        reduce = reduce.operands[0]
    reduce.replace_operand(0, both)
    x.replace_all_uses_with(x.operands[0])
    return True


_adds = each(_adds_sums, "add", backend="gpu")
_on = partial(each, backend="cpu")
_LIBRARY = "--xla_cpu_experimental_ynn_fusion_type=-reduce"
_TREE = "--xla_disable_hlo_passes=tree_reduction_rewriter"

CPU = (
    Recipe("no-library-sums", "", _on(_is_library_sum, "fusion"), _without_library, _LIBRARY),
    Recipe("no-tree-reduction", "", _on(_is_split_sum, "reduce-window"), _without_tree, _TREE),
    Recipe("slices-not-convolution", "Write a filter as shifted slices", _on(_is_narrow, "convolution")),
    Recipe("stack-not-concatenate", "Stack and transpose", _on(_joins_computed, "concatenate")),
    Recipe("add-before-the-sum", "Add the arrays first, and sum once", _adds, _add_first),
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


def _is_summed_later(x: Instruction) -> bool:
    return combines_by(x, "add") and sum_of(only_reader(x)) is not None


def _move(x: Instruction) -> bool:
    """Have what follows the collective be done before it."""
    user = only_reader(x)
    if user is None or x not in user.operands:
        return False
    part = x.operands[0]
    shape = user.shape if x.opcode == "all-reduce" else part.shape.with_element_type(user.shape.element_type)
    operands = [part if o is x else o for o in user.operands]
    for k, o in enumerate(operands):
        if o is not part and o.shape.dimensions:
            operands[k] = make.broadcast(user, shape, source(o), ())
    user.replace_all_uses_with(make.copy_of(x, [make.copy_of(user, operands, shape)], user.shape))
    return True


_gathers, _sums = each(_is_mapped_later, "all-gather"), each(_is_summed_later, "all-reduce")

COLLECTIVES = (
    Recipe("map-before-the-gather", "Map before the all-gather", _gathers, _move),
    Recipe("slice-before-the-gather", "Slice before the all-gather", each(_is_sliced_later, "all-gather")),
    Recipe("sum-before-the-psum", "Sum on each device before the psum", _sums, _move),
)
