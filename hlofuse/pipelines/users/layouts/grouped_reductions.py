"""Reductions over several dimensions that became one, and those over one of which it was split."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_loop_of_one_turn
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.fusions import is_gemm
from hlofuse.pipelines.users.common.grouping import is_grouped, is_reduced
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_widening, readers_past_inserted
from hlofuse.pipelines.users.floats.widened import served_by
from hlofuse.pipelines.users.products.reshaped_products import is_filled_for_split


def with_grouped_where_met(grouped: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of the bitcast `grouped`, with reductions in front of the others if the walk meets one first.

    ReductionDimensionGrouper (`xla/backends/gpu/transforms/reduction_dimension_grouper.cc`) puts a bitcast of
    its own in front of each. HloCSE makes it one with the bitcast that is there; the one met first stays.
    """
    reductions = [u for u in users if is_grouped(u, grouped) and not u.shape.is_tuple]
    others = [u for u in users if u not in reductions]
    return _where_met(grouped, reductions, others, uses)


def with_grouped_of_program(grouped: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of the bitcast `grouped` that the program had as a reshape, reductions with the others.

    AlgebraicSimplifier has a reduction of one value read what is reshaped (`HandleReduce`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and the last user takes its place; so one of
    these was grouped as well. Products read bitcasts that came as late, but what fills one up that was split
    is as old. Broadcasts are made anew, of what is reshaped, when the reductions have gone.
    """
    if any(map(is_filled_for_split, users)):
        return with_grouped_where_met(grouped, users, uses)
    if any(u.opcode in {"custom-call", "fusion"} for u in users):
        return users
    if any(u.opcode == "broadcast" for u in users):
        return with_grouped_where_met(grouped, users, uses)
    reductions = [u for u in users if is_grouped(u, grouped) and not u.shape.is_tuple]
    others = [u for u in users if u not in reductions]
    # What came out of a loop of one turn was cloned, and reductions had read something else by then.
    others = others if all(map(is_loop_of_one_turn, others)) else without(users, reductions)
    return with_grouped_where_met(grouped, [*others, *reductions], uses)


def with_split_where_met(reshaped: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of the bitcast `reshaped`, likewise, with reductions of which one dimension was split.

    TreeReductionRewriter (`xla/backends/gpu/transforms/tree_reduction_rewriter.cc`) put a bitcast in front of
    each; HloCSE made it one with that of the program that happens to take the dimension apart in that way.
    Matrix products that were split have such bitcasts of passes, too, which are younger.
    """
    split = [u for u in users if reshaped.opcode == "bitcast" and _is_of_tree(served_by(u))]
    others = [u for u in users if u not in split]
    if not split or any(u.opcode in {"custom-call", "fusion", "transpose"} for u in others):
        return users
    return _where_met(reshaped, split, others, uses)


def _where_met(
    bitcast: Instruction, reductions: list[Instruction], others: list[Instruction], uses: Uses
) -> list[Instruction]:
    """Both kinds of users of what CSE made one, that kind first of which the walk meets one first."""
    if not reductions or not others:
        return [*reductions, *others]
    first = min((*reductions, *others), key=lambda u: uses[bitcast, u])
    return [*reductions, *others] if first in reductions else [*others, *reductions]


def _is_of_tree(x: Instruction) -> bool:
    """Does nothing but the rest of one reduction of the program read what this part of it gives?"""
    if x.opcode != "reduce":
        return False
    readers = [v for u in x.users for v in (u.users if u.opcode == "get-tuple-element" else [u])]
    same = (x.op_name, stack_frame(x))
    return bool(readers) and all(
        v.opcode == "reduce" and (v.op_name, stack_frame(v)) == same for v in readers
    )


def with_last_in_place_of_grouped(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a value with several reductions of one bitcast: the last took the places of all but one.

    Each had a bitcast of its own, where it stood itself; that of an argmax the program has as a reshape. If
    one was hoisted out of a Triton gemm that the walk meets first, that stayed instead.
    """
    gone: list[Instruction] = []
    for grouped in users:
        reductions = [u for u in grouped.users if is_grouped(u, grouped)]
        if not reductions:
            continue
        first, *others = sorted(grouped.users, key=order.__getitem__)
        is_of_gemm = is_gemm(first) and grouped.op_name == first.op_name
        if others == [u for u in others if u in reductions] and (first in reductions or is_of_gemm):
            gone += others
    if not gone:
        return users
    listed: list[Instruction | None] = [*users]
    for ahead, u in enumerate(sorted(gone, key=order.__getitem__)):
        listed.insert(ahead + sum(order[v] < order[u] for v in users), None)
    return [u for u in without(listed, [None] * len(gone)) if u is not None]


def with_grouped_behind_squeezed(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a value that lost dimensions of size 1, with those of reductions behind the others.

    The program reduced what was left. AlgebraicSimplifier has the reduction read the value itself
    (`HandleReduce`), behind the reshape, and what is grouped is put in front of it where it stood.
    """
    if 1 not in producer.shape.dimensions or any(u.opcode != "bitcast" for u in users):
        return users
    grouped = [u for u in users if u.users and all(is_grouped(v, u) for v in u.users)]
    others = [u for u in users if u not in grouped]
    if any(u.shape.true_dimensions != producer.shape.true_dimensions for u in others):
        return users
    return [*others, *grouped]


def with_squeezed_where_reduced(users: list[Instruction], order: dict[Instruction, int]) -> list[Instruction]:
    """The users of a narrow value, with a bitcast of it in front of converts that serve what comes later.

    ReductionDegenerateDimRemover (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`) puts a
    bitcast without the dimensions of size 1 where the reduction stood, and FloatNormalization a convert where
    stood what cannot compute in the program's precision. In post-order, `order`, the convert may come first.
    """
    listed = list(users)
    for squeezed in filter(_is_squeezed_to_reduce, users):
        reduction = min(order[u] for u in readers_past_inserted(squeezed))
        for convert in filter(is_widening, listed[: listed.index(squeezed)]):
            if all(order[u] > reduction for u in convert.users):
                listed.remove(squeezed)
                listed.insert(listed.index(convert), squeezed)
                break
    return listed


def _is_squeezed_to_reduce(x: Instruction) -> bool:
    if x.opcode != "bitcast" or x.op_name or x.shape.rank >= x.operands[0].shape.rank:
        return False
    if x.shape.true_dimensions != x.operands[0].shape.true_dimensions:
        return False
    readers = readers_past_inserted(x)
    return bool(readers) and all(u.opcode == "reduce" for u in readers)


def reductions_but_last(users: list[Instruction], order: dict[Instruction, int]) -> list[Instruction]:
    """Of several reductions among the `users` of what was made anew, all but the last in post-order, `order`.

    LayoutNormalization (`xla/service/layout_normalization.cc`) leaves reductions alone: they read one bitcast
    back, and get bitcasts of their own behind all others since. The last took the place of that bitcast.
    """
    reductions = [u for u in users if is_reduced(u)]
    return sorted(reductions, key=order.__getitem__)[:-1]
