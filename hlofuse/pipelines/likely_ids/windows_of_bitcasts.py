"""Which passes gave bitcasts their numbers: each numbers what it makes in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.bitcasts_of_products import (
    has_no_batches,
    is_of_fusion,
    is_of_matmul,
    joins_batches,
)
from hlofuse.pipelines.likely_ids.merged_bitcasts import changes_type, moves_ones
from hlofuse.pipelines.likely_ids.reduced_bitcasts import is_reduced, reads_reduction

_FEW_MISSING = 4
"""Numbers between two that ReshapeDecomposer made in a row, at most as a rule."""
_MANY_MISSING = 20
"""Numbers of what LayoutNormalization made for a part of a program."""


class Windows(NamedTuple):
    """The first number of each."""

    normalization: int
    """LayoutNormalization, and AlgebraicSimplifier right behind it. Those before are of ReshapeDecomposer."""
    products: int
    """AlgebraicSimplifier behind DotDimensionMerger, and whoever makes calls of products."""


def windows_of(bitcasts: list[Instruction], number: Mapping[Instruction, int]) -> Windows:
    """The windows of those that were made before reductions were grouped."""
    changing = [number[x] for x in bitcasts if changes_type(x)]
    start = _first_of_normalization([x for x in bitcasts if not _is_told_apart(x)], number)
    if start is None:
        start = min(changing, default=0)
    later = [x for x in bitcasts if number[x] >= start and not has_no_batches(x)]
    around = {number[x] for x in later if joins_batches(x) or (x.op_name and is_of_fusion(x))}
    last = max(around, default=-1)
    products = _first_of_next([(number[x], number[x] in around) for x in later if number[x] <= last])
    if products is None:
        products = max(number.values()) + 1
    return Windows(min(start or products, products), products)


def _is_told_apart(x: Instruction) -> bool:
    if changes_type(x) or (x.op_name and moves_ones(x)):
        return True
    return is_of_matmul(x) or is_of_fusion(x) or is_reduced(x) or reads_reduction(x)


def _first_of_normalization(bitcasts: list[Instruction], number: Mapping[Instruction, int]) -> int | None:
    """The number that parts those of the program best from those of LayoutNormalization, if any does.

    Those have the metadata of reshapes, if they are not of copies (transpositions today), and hardly a number
    between them is missing. LayoutNormalization makes two around all that it meets, without metadata, and
    most are merged.
    """
    best, found, score, before = -1, None, 0, -1
    for x in sorted(bitcasts, key=number.__getitem__):
        if score > best and not x.op_name:
            best, found = score, number[x]
        if x.op_name or x.operands[0].opcode != "transpose":
            score += 1 if x.op_name else -1
        score += _weight(number[x] - before)
        before = number[x]
    return found if score <= max(best, 0) else None


def _weight(numbers: int) -> int:
    """What numbers from one to the next say for ReshapeDecomposer: of what others made most is merged."""
    if numbers <= _FEW_MISSING:
        return 1
    return -1 if numbers < _MANY_MISSING else -4


def _first_of_next(bitcasts: list[tuple[int, bool]]) -> int | None:
    """The number from which on most are of the next window, if any is; given is which seem to be."""
    best, found, score = -len(bitcasts), None, 0
    for number, is_next in sorted(bitcasts):
        if is_next and score > best:
            best, found = score, number
        score += -1 if is_next else 1
    return found if score <= best else None
