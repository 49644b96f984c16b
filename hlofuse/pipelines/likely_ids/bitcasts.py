"""The order in which bitcasts were made.

All bear the compiler's own root, and numbers grow from turn to turn. But AlgebraicSimplifier makes one of
two bitcasts in a row, and the new one takes the name of the one that it replaces
(`AlgebraicSimplifierVisitor::ReplaceWithBitcast`): a low number may be on something young. Those that are
read by reductions, or that read them, tell it by their shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, takewhile
from math import prod
from operator import mul

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass
from hlofuse.pipelines.names import name_before_renaming


def in_order_of_making(
    bitcasts: list[Instruction], normalized: frozenset[Instruction] = frozenset()
) -> list[Instruction]:
    """The bitcasts of a computation, given in the order of the text, in that of their ages.

    `normalized` is what LayoutNormalization made anew.

    ReductionDimensionGrouper and TreeReductionRewriter put bitcasts in front of reductions, and nobody else
    makes any meanwhile. What has a higher number was made by AlgebraicSimplifier behind them, which went
    through the computation as it is written today.
    """
    number = {x: name_before_renaming(x).number for x in bitcasts}
    grouped = _last_in_a_row(sorted(bitcasts, key=number.__getitem__))
    top = max(number.values()) + 1
    first = number[grouped[0]] if grouped else top
    merged = {x for x in grouped if _was_two(x)}
    remade = {x for x in bitcasts if number[x] < first and _is_remade(x, number, normalized)}
    order = _before_reductions([x for x in bitcasts if number[x] < first and x not in remade])
    order += [x for x in bitcasts if x in remade]
    order += [x for x in grouped if x not in merged]
    placed = frozenset(order)
    late = [x for x in bitcasts if x not in placed]
    return order + in_order_of_pass(late, [], frozenset(merged))


def _before_reductions(bitcasts: list[Instruction]) -> list[Instruction]:
    """In the order of their numbers, but for those that change the type.

    BitcastDtypesExpander leaves them to AlgebraicSimplifier, which meets them where LayoutNormalization has
    put bitcasts without a name of the program, and two in a row have become one. What has a higher number
    than those has been made since.
    """
    changing = frozenset(x for x in bitcasts if x.shape.element_type != x.operands[0].shape.element_type)
    number = {x: name_before_renaming(x).number for x in bitcasts}
    end = max((number[x] for x in changing), default=-1)
    start = _first_of_normalization([(n, bool(x.op_name)) for x, n in number.items() if n < end])
    if start is None:
        return in_order_of_pass(bitcasts, [], frozenset())
    turns: list[list[Instruction]] = [[], [], []]
    for x in bitcasts:
        turns[1 if x in changing else (number[x] >= start) + (number[x] > end)].append(x)
    aged = sorted(changing, key=number.__getitem__)
    first, met, last = turns
    return [
        *in_order_of_pass(first, [], frozenset()),
        *in_order_of_pass(met, aged, changing),
        *in_order_of_pass(last, [], frozenset()),
    ]


def _first_of_normalization(bitcasts: list[tuple[int, bool]]) -> int | None:
    """The number that parts those of the program best from those of LayoutNormalization, if any does.

    Given is which numbers are on something with an op_name. Other passes had made a few without one.
    """
    best, found, score = -len(bitcasts), None, 0
    for number, is_named in sorted(bitcasts):
        if not is_named and score > best:
            best, found = score, number
        score += 1 if is_named else -1
    return found if score <= best else None


def _last_in_a_row(numbered: list[Instruction]) -> list[Instruction]:
    """The last of those in front of reductions that no other bitcast comes between."""
    backwards = numbered[::-1]
    others = len([*takewhile(lambda x: not _regroups(x), backwards)])
    return [*takewhile(_regroups, backwards[others:])][::-1]


def _reductions(x: Instruction) -> tuple[Instruction | None, Instruction | None]:
    """The one that reads it, and the one that reads that one."""
    inner = next((u for u in x.users if u.opcode == "reduce" and u.operands[0] is x), None)
    users = inner.users if inner is not None else []
    return inner, next((u for u in users if u.opcode == "reduce"), None)


def _regroups(x: Instruction) -> bool:
    """Does it join what is reduced together? What is kept together stays as it is."""
    inner, outer = _reductions(x)
    if inner is None:
        return False
    rank = len(x.shape.dimensions)
    reduced = set(inner.attributes["dimensions"])
    if outer is not None:
        kept = [d for d in range(rank) if d not in reduced]
        reduced |= {kept[d] for d in outer.attributes["dimensions"]}
    kept_beside = any(reduced.isdisjoint((d, d + 1)) for d in range(rank - 1))
    if kept_beside and rank >= len(x.operands[0].shape.dimensions):
        return False
    return [d for d in range(rank - 1) if {d, d + 1} <= reduced] in ([], [_split_dimension(x)])


def _was_two(x: Instruction) -> bool:
    """Was there a bitcast already that another one for the reduction was put behind?

    ReductionDegenerateDimRemover drops dimensions of size one, ReductionDimensionGrouper joins neighbours,
    TreeReductionRewriter splits one dimension: what did more than one of these was more than one.
    """
    given, made = x.operands[0].shape.dimensions, x.shape.dimensions
    at = _split_dimension(x)
    if at is not None:
        return given != (*made[:at], prod(made[at : at + 2]), *made[at + 2 :])
    if 1 in given:
        return x.operands[0].shape.true_dimensions != x.shape.true_dimensions
    return not {*accumulate(made, mul)} <= {*accumulate(given, mul)}


def _split_dimension(x: Instruction) -> int | None:
    """The first of two neighbours of which one is reduced at once, the other one by the next reduction."""
    inner, outer = _reductions(x)
    if inner is None or outer is None:
        return None
    reduced = set(inner.attributes["dimensions"])
    kept = [d for d in range(len(x.shape.dimensions)) if d not in reduced]
    later = {kept[d] for d in outer.attributes["dimensions"]}
    return next((min(a, b) for a in sorted(later) for b in (a - 1, a + 1) if b in reduced), None)


def _is_remade(x: Instruction, number: Mapping[Instruction, int], normalized: frozenset[Instruction]) -> bool:
    """Has it an old name, but was made between the fusions of products and the grouping of reductions?

    Then something new was put between it and what it reads: the bitcast around a product that
    HoistFusedBitcasts left behind, the dimensions of size one of a reduction (ReductionDegenerateDimRemover)
    or the transposition of its result (ReductionLayoutNormalizer), or a narrower product.
    """
    source = x.operands[0]
    match source.opcode:
        case "fusion":
            batches = len(source.shape.dimensions) > 2 and x.shape.dimensions[0] != source.shape.dimensions[0]
            hoisted = any(number.get(o, 0) > number[x] + _MOST_OF_A_FUSION for o in source.operands)
            return bool(x.op_name) and batches and hoisted
        case "reduce":
            dropped = x.shape.true_dimensions == source.shape.true_dimensions
            # ScatterExpander asks so whether indices are in bounds.
            is_check = source.operands[0].opcode in ("and", "compare")
            return dropped and not is_check and not x.op_name and not source.op_name
        case "transpose":
            return source.operands[0].opcode == "reduce" and not x.op_name
        case "slice":
            if x.computation is None or not x.computation.is_entry:
                return False  # the names of clones tell less
            # Rows of what lies transposed; where a first dimension goes nothing was.
            dropped = (
                source.shape.dimensions[0] != 1 and x.shape.true_dimensions == source.shape.true_dimensions
            )
            return source in normalized and dropped and bool(x.op_name)
        case "convert":
            return not x.op_name and number.get(source.operands[0], 0) > number[x]
    return False


_MOST_OF_A_FUSION = 20
"""HoistFusedBitcasts names what it puts around one fusion in a row."""
