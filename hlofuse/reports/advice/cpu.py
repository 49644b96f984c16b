"""Recipes for the CPU, and about sums."""

from functools import partial

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.ir.fusing import computation_of, module_of, unfuse
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common import make
from hlofuse.passes.reduction import TreeReductionRewriter
from hlofuse.reports.advice.matching import (
    SMALL_BYTES,
    combines_by,
    each,
    has,
    is_constant,
    is_product,
    only_reader,
    source,
    sum_of,
)
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.trace import OnlySkipped


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
