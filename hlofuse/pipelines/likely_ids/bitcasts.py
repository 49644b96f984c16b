"""The order in which bitcasts were made.

All bear the compiler's own root, and numbers grow from turn to turn. But AlgebraicSimplifier makes one of
two bitcasts in a row, and the new one takes the name of the one that it replaces
(`AlgebraicSimplifierVisitor::HandleBitcast`): a low number may be on something young. Which ones those are
is told by shapes and by what stands around them; the simplifier made them in the order of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.bitcasts_of_products import (
    has_no_batches,
    in_order_behind_merger,
    is_of_fusion,
    is_of_matmul,
    may_use_triton,
    reads_joined,
    reads_matmul,
    uses_triton,
)
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.merged_bitcasts import (
    changes_type,
    in_order_of_old_text,
    is_merged_again,
    is_merged_for_reduction,
    moves_ones,
    only_changes_layout,
    reads_decomposed,
    reads_normalized,
)
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass
from hlofuse.pipelines.likely_ids.reduced_bitcasts import (
    gives_back_ones_of,
    had_ones_dropped_since,
    is_only_reduced,
    is_reduced,
    last_in_a_row,
    reads_reduction,
    was_two,
)
from hlofuse.pipelines.likely_ids.windows_of_bitcasts import Windows, windows_of
from hlofuse.pipelines.names import name_before_renaming


def in_order_of_making(
    bitcasts: list[Instruction], normalized: frozenset[Instruction] = frozenset()
) -> dict[Maker, list[Instruction]]:
    """The bitcasts of a computation, given in the order of the text, by whose turn they were made behind.

    `normalized` is what LayoutNormalization made anew. Each turn is in the order of ages.

    ReshapeDecomposer comes ahead of LayoutNormalization. AlgebraicSimplifier merges right behind that, and
    behind DotDimensionMerger, where libraries' calls are still to be made and Triton's fusions are there.

    What was grouped for reductions comes behind what passes before made. What was put around reductions
    meanwhile AlgebraicSimplifier merges right before that where Triton may be used, and in its last turn
    otherwise.
    """
    if not bitcasts:
        return {}
    number = {x: name_before_renaming(x).number for x in bitcasts}
    grouped = last_in_a_row(sorted(bitcasts, key=number.__getitem__))
    first = number[grouped[0]] if grouped else max(number.values()) + 1
    merged_last = {x for x in grouped if was_two(x) or _reads_matrix(x) or reads_normalized(x, normalized)}
    merged_last |= {x for x in bitcasts if gives_back_ones_of(x, merged_last)}
    triton = uses_triton(bitcasts[0])
    without_ones = [*takewhile(_only_drops_ones, grouped)] if triton else []
    # LayoutNormalization makes what is laid out otherwise anew in its last turn.
    ahead = [x for x in bitcasts if number[x] < first and x.shape.is_row_major and x not in merged_last]
    merged = {x for x in ahead if is_merged_again(x, number)}
    merged |= {x for x in ahead if is_reduced(x) and is_merged_for_reduction(x, reads_matmul(x), normalized)}
    made = [x for x in ahead if x not in merged]
    turns: dict[Maker, list[Instruction]] = {}
    if made:
        windows = windows_of(made, number)
        late = {x for x in made if number[x] < windows.normalization and had_ones_dropped_since(x)}
        merged |= late
        kept, met, called = _before_reductions(
            [x for x in made if x not in late], number, windows, normalized
        )
        turns[Maker.MOVED_COPIES] = [x for x in kept if number[x] < windows.normalization]
        turns[Maker.LAYOUT_NORMALIZATION] = [x for x in kept if number[x] >= windows.normalization] + met
        turns[Maker.FUSIONS if triton else Maker.SPLIT_K] = called
    order = [x for x in without_ones if x not in merged_last]
    merged.update(x for x in without_ones if x in merged_last)
    if merged and may_use_triton(bitcasts[0]):
        order += [x for x in bitcasts if x in merged]
    merged |= merged_last
    order += [x for x in grouped[len(without_ones) :] if x not in merged]
    turns[Maker.REDUCTIONS] = order
    placed = frozenset(x for turn in turns.values() for x in turn)
    last = [x for x in bitcasts if x not in placed and x not in merged and _is_kept(x)]
    order = sorted(last, key=number.__getitem__)
    placed |= frozenset(order)
    turns[Maker.ANY] = order + in_order_of_old_text([x for x in bitcasts if x not in placed])
    return turns


def _before_reductions(
    bitcasts: list[Instruction],
    number: Mapping[Instruction, int],
    windows: Windows,
    normalized: frozenset[Instruction],
) -> tuple[list[Instruction], list[Instruction], list[Instruction]]:
    """In the order of their numbers, then those that AlgebraicSimplifier met behind LayoutNormalization.

    It runs twice there: at once, and behind DotDimensionMerger.
    """
    joined = {
        x for x in bitcasts if number[x] >= windows.products and is_of_matmul(x) and not has_no_batches(x)
    }
    joined |= {x for x in bitcasts if number[x] < windows.products and reads_joined(x, joined)}
    older = {x for x in bitcasts if number[x] < windows.normalization}
    before_products = {x for x in bitcasts if number[x] < windows.products}
    end = max((number[x] for x in bitcasts if changes_type(x)), default=windows.products)
    met: list[Instruction] = []
    kept: list[Instruction] = []
    last: list[Instruction] = []
    decomposed = [x for x in bitcasts if x not in joined and reads_decomposed(x)]
    for x in bitcasts:
        if x in joined or x in decomposed:
            continue
        is_normalized = number[x] >= windows.normalization
        is_behind = _is_made_behind(x) or (number[x] > end and not moves_ones(x))
        if number[x] >= windows.products or (is_normalized and is_behind):
            last.append(x)
        elif changes_type(x):
            met.append(x)
        elif is_normalized:
            (kept if only_changes_layout(x) else met).append(x)
        else:
            (met if reads_normalized(x, normalized) else kept).append(x)
    called = max((number[x] for x in last if is_of_matmul(x) or is_of_fusion(x)), default=-1)
    return (
        in_order_of_pass(kept, [], frozenset()),
        _in_order_of_simplifier(met, number, frozenset(older)),
        [
            *in_order_behind_merger([x for x in bitcasts if x in joined], frozenset(before_products)),
            *in_order_of_pass([x for x in last if number[x] <= called], [], frozenset()),
            *decomposed,
            *in_order_of_pass([x for x in last if number[x] > called], [], frozenset()),
        ],
    )


def _in_order_of_simplifier(
    bitcasts: list[Instruction], number: Mapping[Instruction, int], older: frozenset[Instruction]
) -> list[Instruction]:
    """What is merged, or made of other operations, behind LayoutNormalization; given in the text's order.

    That numbered what it made in the order in which the simplifier comes to it, but for those that something
    else read then: a broadcast that reads the source of a bitcast today read it through that. Behind all of
    those are bitcasts that were transpositions to begin with.
    """
    if not bitcasts or bitcasts[0].computation is None:
        return bitcasts
    place = {x: k for k, x in enumerate(bitcasts[0].computation)}
    spread = {x: [u for u in x.operands[0].users if u.opcode == "broadcast"] for x in bitcasts}
    first = {x: min(place[u] for u in (x, *spread[x])) for x in bitcasts}
    apart = older | {x for x in bitcasts if changes_type(x) or first[x] < place[x]}
    apart |= {x for x in bitcasts if _is_scattered(x)}
    others = (number[x] for x in bitcasts if x not in apart and not moves_ones(x) and not x.op_name)
    end = max(others, default=-1)
    met = sorted(bitcasts, key=lambda x: (_round(x) if number[x] > end and x not in older else 0, first[x]))
    changing = sorted((x for x in bitcasts if changes_type(x)), key=number.__getitem__)
    return in_order_of_pass(met, changing, frozenset(apart))


def _round(x: Instruction) -> int:
    """In which round of AlgebraicSimplifier was it made, of what was no bitcast?

    A transposition becomes a reshape, that a bitcast, and if it reads another one the two are merged.
    """
    if changes_type(x):
        return 0
    if moves_ones(x):
        return 1
    return 2 if x.op_name or _is_scattered(x) else 0


def _is_scattered(x: Instruction) -> bool:
    """Did ScatterSimplifier make it, behind AlgebraicSimplifier?"""
    return not x.op_name and all(u.opcode == "scatter" for u in x.users) and bool(x.users)


def _is_made_behind(x: Instruction) -> bool:
    """Was it made for a reduction?"""
    return (is_reduced(x) and is_only_reduced(x)) or (bool(x.op_name) and reads_reduction(x))


def _reads_matrix(x: Instruction) -> bool:
    """Does it read a product of two matrices? That has dimensions of its own, which a bitcast gave back.

    There is none behind a product that gives one vector.
    """
    return reads_matmul(x) and x.operands[0].shape.rank > 1


def _only_drops_ones(x: Instruction) -> bool:
    """Is it of ReductionDegenerateDimRemover? Triton's softmax comes between that and the others."""
    return x.shape.true_dimensions == x.operands[0].shape.true_dimensions


def _is_kept(x: Instruction) -> bool:
    """Is it as a pass made it that ran before the last turn of AlgebraicSimplifier?"""
    return only_changes_layout(x) or reads_reduction(x) or is_reduced(x)
