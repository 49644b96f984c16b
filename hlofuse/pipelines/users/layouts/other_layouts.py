"""Which values layout assignment gave another layout than row-major, and what was made anew for it.

That is told from ids: LayoutNormalization (`xla/service/layout_normalization.cc`) runs right behind
ReshapeDecomposer (`xla/hlo/transforms/expanders/reshape_decomposer.cc`), which makes the first bitcasts, so
that what is younger than these and bears the name of its opcode was made by it, and what it made right ahead
of the first that is left; element-wise operations have the layout of their operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import last_of_program
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.copies import was_bitcast_copied, was_copy
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert
from hlofuse.pipelines.users.layouts.made_by_others import is_made_by_others, opcodes_of_normalization
from hlofuse.pipelines.users.products.reshaped_products import (
    computed_by,
    is_filled_for_split,
    is_sum_of_split,
)

AS_THEIR_OPERANDS = ELEMENTWISE_OPCODES | frozenset(
    "concatenate dynamic-slice dynamic-update-slice pad reverse slice".split()
)
_GIVEN_BY_LIBRARY = frozenset({"custom-call", "get-tuple-element"})
_GIVEN = _GIVEN_BY_LIBRARY | {"dot", "fusion"}
_OF_MATRIX = 2
_MADE_ANEW = AS_THEIR_OPERANDS | {"broadcast", "iota", "reduce-window", "transpose"}


def made_anew(
    computation: Computation, *, ids_known: bool, makers: Mapping[Instruction, Maker] | None = None
) -> frozenset[Instruction]:
    """What layout normalization made. It did so with all of what shares a layout or with none of it.

    `makers` are those of a guess at ids, where there was one.
    """
    first = min((x.id for x in computation if x.opcode == "bitcast" or _was_copied(x)), default=None)
    if first is None:
        return frozenset()
    named = [
        x
        for x in computation
        if x.opcode in _MADE_ANEW
        and name_before_renaming(x).root == x.opcode
        and not (is_sum_of_split(x) or is_filled_for_split(x))
    ]
    last = _last_before(named, first) if ids_known else -1
    likely = {x for x in named if x.id > last}
    groups = [_anew_of(group, likely) for group in _of_one_layout(computation, likely if ids_known else None)]
    if makers:
        opcodes = opcodes_of_normalization(computation, makers)
        groups = [group for group in groups if not is_made_by_others(group, makers, opcodes)]
    anew = {x for group in groups for x in group}
    # Float normalization, later on, put these in front of or behind what had been made anew.
    late = [x for x in computation if is_inserted_convert(x)]
    return frozenset(anew.union(x for x in late if anew.intersection((*x.operands, *x.users))))


def _last_before(named: list[Instruction], first: int) -> int:
    """The id before those of the `named` that were made one right after the other, until `first` was.

    The bitcasts of ReshapeDecomposer may all be gone, and so may those of the normalization itself. A copy
    among them, which is a transpose now, tells that they are of the normalization, and so does what passes
    call as the framework does, younger than the program and next to what has the name of its opcode only.
    """
    made = {x.id: x for x in named if _is_of_row(x)}
    row = list(takewhile(made.__contains__, range(first - 1, -1, -1)))
    while row and made[row[-1]].opcode == "convert":
        row.pop()  # which another pass may have made right before
    return row[-1] - 1 if any(was_copy(made[k]) or _is_named_alike(made[k]) for k in row) else first


def _is_of_row(x: Instruction) -> bool:
    if x.opcode == "slice" and computed_by(x.operands[0]).opcode in _GIVEN:
        return False  # DotMerger cut it of a product, earlier
    if x.opcode in {"broadcast", "concatenate", "iota", "slice", "transpose"}:
        return bool(x.op_name)
    if x.opcode == "convert":
        return operation(x) == "convert_element_type"
    return x.opcode in ELEMENTWISE_OPCODES and not was_division(x)


def _is_named_alike(x: Instruction) -> bool:
    if x.opcode not in {"concatenate", "iota"} or x.computation is None or not is_of_program(x):
        return False
    if x.id < last_of_program(x.computation.root) or _is_of_moved_converts(x):
        return False
    return not all(map(is_of_program, (*x.operands, *x.users)))


def _is_of_moved_converts(x: Instruction) -> bool:
    """Did ConvertMover (`xla/hlo/transforms/simplifiers/convert_mover.cc`) put converts in front of it?

    They were reshaped since then, if at all.
    """
    operands = [o.operands[0] if o.opcode == "bitcast" else o for o in x.operands]
    return any(o.opcode == "convert" and not o.op_name and o.id < x.id for o in operands)


def _anew_of(group: list[Instruction], likely: set[Instruction]) -> list[Instruction]:
    for x in group:
        if x.opcode == "parameter" or (
            x.opcode in AS_THEIR_OPERANDS and x not in likely and not is_inserted_convert(x)
        ):
            return []
    return [x for x in group if x in likely and not is_inserted_convert(x)]


def _of_one_layout(computation: Computation, likely: set[Instruction] | None) -> list[list[Instruction]]:
    """Groups of one layout each; `likely` is what is young enough to be made anew, if ids are known."""
    leader: dict[Instruction, Instruction] = {}

    def find(x: Instruction) -> Instruction:
        up = leader.setdefault(x, x)
        while up is not x:
            leader[x] = leader[up]
            x = leader[x]
            up = leader[x]
        return x

    for x in computation:
        if may_have_layouts(x):
            find(x)
            for user in x.users:
                if likely is not None and (
                    _is_transposed_between(user, x, likely) or _was_equal_in_either(user, x, likely)
                ):
                    continue
                if shares_layout(user, x):
                    leader[find(user)] = find(x)
    groups: dict[Instruction, list[Instruction]] = {}
    for x in leader:
        groups.setdefault(find(x), []).append(x)
    return list(groups.values())


def _is_transposed_between(user: Instruction, x: Instruction, likely: set[Instruction]) -> bool:
    """Was a transpose between the two that moved nothing? One was made anew then, the other row-major."""
    if x.opcode == "transpose":
        return x in likely and user not in likely
    if x.opcode == "parameter":  # more dimensions have what convolutions read, in the layouts they ask for
        return user in likely and x.shape.rank == _OF_MATRIX
    if x.opcode == "bitcast":
        return user in likely and any(u not in likely and shares_layout(u, x) for u in x.users)
    if is_inserted_convert(x) or is_inserted_convert(user) or x.opcode not in AS_THEIR_OPERANDS:
        return False
    if is_of_product(user) or (is_of_product(x) and (x.opcode != "slice" or x in likely)):
        return False
    return (x in likely) != (user in likely)


def _was_equal_in_either(user: Instruction, x: Instruction, likely: set[Instruction]) -> bool:
    """Is it a scatter or a broadcast, of which those of either layout are equal once made anew, row-major?

    CSE keeps the broadcast that was row-major. What reads it besides something made anew had another. Where
    that of a number is made anew later, those of either are.
    """
    if x.opcode == "broadcast" and x not in likely:
        return user in likely and any(o in likely for o in user.operands)
    if x.opcode == "broadcast" and not x.operands[0].shape.rank:
        return user not in likely and any(u in likely for u in x.users)
    return x.opcode == "scatter" and user in likely


def is_of_product(x: Instruction) -> bool:
    """Is it what became of a matrix product, or does it round the sum of what one was split in?"""
    return operation(x) == "dot_general" or (x.opcode == "convert" and operation(x) != "convert_element_type")


def may_have_layouts(x: Instruction) -> bool:
    return x.shape.is_array and x.shape.rank > 1 and x.opcode != "constant"


def shares_layout(user: Instruction, x: Instruction) -> bool:
    if user.opcode not in AS_THEIR_OPERANDS or is_filled_for_split(user):
        return False
    return may_have_layouts(user) and user.shape.rank == x.shape.rank


def in_other_layout(order: Iterable[Instruction], anew: frozenset[Instruction]) -> frozenset[Instruction]:
    """What is not row-major; `order` is the post-order, `anew` what layout normalization made."""
    other: set[Instruction] = set()
    for x in order:
        if may_have_layouts(x) and _had_other_layout(x, anew, other):
            other.add(x)
    return frozenset(other)


def _had_other_layout(x: Instruction, anew: frozenset[Instruction], other: set[Instruction]) -> bool:
    if x in anew and x.opcode in AS_THEIR_OPERANDS:
        return True
    if x.opcode in AS_THEIR_OPERANDS and any(map(_was_copied, x.users)):
        return False  # it would have been made anew
    if was_bitcast_copied(x) and not anew.isdisjoint(x.users):
        return False
    same = [u for u in x.users if shares_layout(u, x) and not is_inserted_convert(u)]
    if same:
        if x.opcode == "bitcast" and any(is_inserted_convert(u) and u not in anew for u in x.users):
            return False  # CSE made one of two bitcasts of different layouts
        if x.opcode == "broadcast" and not x.operands[0].shape.rank and not anew.issuperset(same):
            return False  # or of two such broadcasts
        return any(u in anew for u in same)
    if x.opcode == "reduce":
        return x.shape.rank > 2 and x.operands[0] in other
    if x.opcode == "transpose":
        return x in anew and was_copy(x) and x.operands[0] not in other
    return x in anew and x.opcode in {"broadcast", "iota", "reduce-window"}


def _was_copied(x: Instruction) -> bool:
    """A parameter or an element-wise value that layout assignment copied, before any bitcast was made."""
    if x.opcode != "transpose":
        return False
    (source,) = x.operands
    if source.opcode != "parameter" and (source.opcode not in AS_THEIR_OPERANDS or is_of_product(source)):
        return False
    return was_copy(x) and x.op_name == source.op_name


def was_broadcast_for_each(x: Instruction) -> bool:
    """Is it what a dot became a product of (`HandleDotStrengthReduction` of AlgebraicSimplifier)?

    Those of several dots lie in memory as they go with the other operand, and are equal once made anew.
    """
    return x.opcode == "broadcast" and operation(x) == "dot_general"


def was_copied_for_each(x: Instruction) -> bool:
    """Is it a copy of a parameter, or of what a library call or a gemm gives?

    Layout assignment made one for every use.

    Behind a bitcast that is older there was a reshape, of which ReshapeDecomposer made the two.
    """
    if x.opcode != "transpose":
        return False
    (source,) = x.operands
    if source.opcode == "parameter":
        return True
    return _behind_younger_bitcasts(source, x.id).opcode in _GIVEN and was_copy(x)


def is_given_by_library(x: Instruction, number: int) -> bool:
    """Is it what a library call gives, behind bitcasts younger than that `number` at most?"""
    return _behind_younger_bitcasts(x, number).opcode in _GIVEN_BY_LIBRARY


def _behind_younger_bitcasts(x: Instruction, number: int) -> Instruction:
    while x.opcode == "bitcast" and x.id > number:
        x = x.operands[0]
    return x
