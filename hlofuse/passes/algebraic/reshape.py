"""Reshapes (`HandleReshape`)."""

from __future__ import annotations

from itertools import pairwise

from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.bitcasts import as_bitcast, bitcasting_operand
from hlofuse.passes.algebraic.chains import remove_chain
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array, common_factors, kept_by_reshape, ones_moved


def handle_reshape(c: Context, reshape: Instruction) -> None:
    (operand,) = reshape.operands
    shape = reshape.shape
    if shape.element_count == 0:
        c.replace(reshape, make.constant(reshape, shape, []))
        return
    if c.same_shape(shape, operand.shape):
        c.replace(reshape, operand)
        return
    if operand.opcode == "reshape":
        c.replace(reshape, make.reshape(reshape, shape, operand.operands[0]))
        return
    if operand.opcode == "rng" and len(operand.users) == 1:
        operand.shape = shape
        c.replace(reshape, operand)
        return
    if remove_chain(c, reshape):
        return
    sensitive = c.options.layout_sensitive
    if not sensitive and c.options.hoist_transpose_of_reshape and _hoist_transpose(c, reshape):
        return
    if operand.opcode == "broadcast":
        dimensions = kept_by_reshape(operand.shape, shape, operand.dimensions)
        if dimensions is not None:
            c.replace(reshape, make.broadcast(reshape, shape, operand.operands[0], dimensions))
            return
    if operand.opcode == "iota" and _of_iota(c, reshape):
        return
    if not sensitive and _ahead_of_update(c, reshape):
        return
    source = bitcasting_operand(c, reshape)
    if source is not None:
        as_bitcast(c, reshape, source)


def _of_iota(c: Context, reshape: Instruction) -> bool:
    """The counter along one dimension, spread over several: a sum of scaled counters."""
    iota = reshape.operands[0]
    dimension = int(iota.attributes["iota_dimension"])
    sizes = reshape.shape.dimensions
    cuts = common_factors(iota.shape.dimensions, sizes)
    start = next(
        (k for k, (a, b) in enumerate(cuts) if a == dimension and b < len(sizes) and sizes[b] > 1), None
    )
    if start is None or not any(a == dimension + 1 for a, _ in cuts):
        return False
    result: Instruction | None = None
    multiplier = 1
    for d in range(cuts[start + 1][1] - 1, cuts[start][1] - 1, -1):
        counter = make.iota(iota, reshape.shape, d)
        if result is None:
            result = counter
        else:
            factor = make.scalar_like(reshape, multiplier)
            scaled = make.binary(reshape, "multiply", counter, factor)
            result = make.binary(reshape, "add", result, scaled)
        multiplier *= sizes[d]
    assert result is not None
    return c.replace(reshape, result)


def _ahead_of_update(c: Context, reshape: Instruction) -> bool:
    """reshape(dynamic-update-slice(x, y, …)) that moves only 1s is an update of reshape(x)."""
    update = reshape.operands[0]
    if update.opcode != "dynamic-update-slice" or len(update.users) != 1:
        return False
    moved = ones_moved(update.shape, reshape.shape)
    said = [x.attributes.raw("sharding") for x in (update, update.operands[0])]
    if moved is None or any(said):
        return False
    deleted, inserted = moved
    part = update.operands[1]
    base = make.reshape(reshape, reshape.shape, update.operands[0])
    zero = make.scalar_like(update.operands[2], 0)
    sizes: list[int] = []
    starts: list[Instruction] = []
    for k in range(part.shape.rank + 1):
        if k in deleted:
            continue
        while len(sizes) in inserted:
            sizes.append(1)
            starts.append(zero)
        if k < part.shape.rank:
            sizes.append(part.shape.dimensions[k])
            starts.append(update.operands[2 + k])
    new_part = make.reshape(reshape, array(part.shape.element_type, sizes), part)
    return c.replace(reshape, make.copy_of(update, [base, new_part, *starts], reshape.shape))


def _hoist_transpose(c: Context, reshape: Instruction) -> bool:
    """reshape(transpose(reshape(x))) that joins whole runs is transpose(reshape(x))."""
    transpose = reshape.operands[0]
    if transpose.opcode != "transpose" or transpose.operands[0].opcode != "reshape":
        return False
    cuts = common_factors(reshape.shape.dimensions, transpose.shape.dimensions)
    permutation = transpose.dimensions
    runs: list[tuple[int, int, int]] = []
    for (a, b), (a_end, b_end) in pairwise(cuts):
        run = permutation[b:b_end]
        if a_end - a != 1 or not run or list(run) != list(range(run[0], run[0] + len(run))):
            return False
        runs.append((run[0], reshape.shape.dimensions[a], a))
    runs.sort()
    order = [0] * len(runs)
    for k, (_, _, place) in enumerate(runs):
        order[place] = k
    small = array(reshape.shape.element_type, [size for _, size, _ in runs])
    inner = make.reshape(reshape, small, transpose.operands[0].operands[0])
    return c.replace(reshape, make.transpose(reshape, inner, order, reshape.shape))
